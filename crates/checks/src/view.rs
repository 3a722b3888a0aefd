//! Input of a check: facts, goal, and interface.

use landspeed_model::{Change, Fact, Facts, Goal, InterfaceFacts, Role, Side, Target};
use landspeed_units::{BitRate, Bytes, Nanos};

/// RTT assumed if none is given, nanoseconds: typical of a data centre.
const LOCAL_RTT_NS: u64 = 1_000_000;

/// Input of a check.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Facts of the host.
    pub facts: &'a Facts,
    /// Goal: role, rate, RTT, interface.
    pub goal: &'a Goal,
    /// Interface that carries the data, the topmost of its stack.
    pub top: Option<&'a InterfaceFacts>,
    /// Port that is checked, at the bottom of the stack; equal to `top` if nothing is below it.
    pub bottom: Option<&'a InterfaceFacts>,
    /// Number of ports.
    pub ports: usize,
}

impl<'a> View<'a> {
    /// Returns the interface that the check is about: the port for port checks, else the topmost one.
    ///
    /// # Errors
    /// Absent, with the reason, if there is none; the check then does not apply.
    pub fn port(&self) -> Fact<&'a InterfaceFacts> {
        self.bottom
            .or(self.top)
            .map_or_else(|| Fact::Absent("no interface was named and there is no default route".into()), Fact::Known)
    }

    /// Returns the topmost interface.
    pub fn interface(&self) -> Fact<&'a InterfaceFacts> {
        self.top
            .map_or_else(|| Fact::Absent("no interface was named and there is no default route".into()), Fact::Known)
    }

    /// Returns the role of the host.
    pub fn role(&self) -> Role {
        self.goal.role
    }

    /// Returns whether the host is a virtual machine, by its facts or its role.
    pub fn is_guest(&self) -> bool {
        self.goal.role == Role::Guest || self.facts.virtualization.hypervisor.known().is_some()
    }

    /// Returns whether the host is a container.
    pub fn is_container(&self) -> bool {
        self.facts.virtualization.container.known().is_some()
    }

    /// Returns the text of a sysctl.
    pub fn sysctl(&self, name: &str) -> Fact<&'a str> {
        match self.facts.sysctls.get(name) {
            Some(Fact::Known(text)) => Fact::Known(text),
            Some(Fact::Absent(why)) => Fact::Absent(why.clone()),
            Some(Fact::Unknown(why)) => Fact::Unknown(why.clone()),
            None => Fact::Unknown(format!("{name} was not read")),
        }
    }

    /// Returns the number of a sysctl, or its last one if it has several (`tcp_rmem`: the maximum).
    pub fn sysctl_last(&self, name: &str) -> Fact<u64> {
        self.numbers(name, |numbers| numbers.last().copied())
    }

    /// Returns the numbers of a sysctl with three (`tcp_rmem`, `tcp_wmem`, `tcp_mem`).
    pub fn sysctl_triple(&self, name: &str) -> Fact<[u64; 3]> {
        self.numbers(name, |numbers| numbers.try_into().ok())
    }

    fn numbers<T>(&self, name: &str, choose: impl FnOnce(&[u64]) -> Option<T>) -> Fact<T> {
        match self.sysctl(name) {
            Fact::Known(text) => {
                let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
                let chosen = numbers.ok().and_then(|numbers| choose(&numbers));
                chosen.map_or_else(
                    || Fact::Unknown(format!("{name} is `{text}`, which is not the numbers it should be")),
                    Fact::Known,
                )
            }
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns the rate to reach, bits/s: the goal's, else the link's (the sum over all ports of a bond).
    pub fn rate_bps(&self) -> Fact<u64> {
        if let Some(rate) = self.goal.rate_bps {
            return Fact::Known(rate);
        }
        let Some(top) = self.top else {
            return Fact::Unknown("no rate was given (--goal) and there is no interface to take it from".into());
        };
        match (&top.speed_bps, self.bottom.map(|port| &port.speed_bps)) {
            (Fact::Known(rate), _) => Fact::Known(*rate),
            (_, Some(Fact::Known(rate))) => Fact::Known(rate.saturating_mul(self.ports.max(1) as u64)),
            (Fact::Absent(why) | Fact::Unknown(why), _) => {
                Fact::Unknown(format!("no rate was given (--goal), and the link's is not known: {why}"))
            }
        }
    }

    /// Returns the RTT in seconds, and whether it was given.
    pub fn rtt_s(&self) -> (f64, bool) {
        (self.goal.rtt_ns.unwrap_or(LOCAL_RTT_NS) as f64 / 1e9, self.goal.rtt_ns.is_some())
    }

    /// Returns the bandwidth-delay product of the goal, bytes.
    pub fn bdp_bytes(&self) -> Fact<f64> {
        self.rate_bps().map(|rate| landspeed_calc::bdp_bytes(rate as f64, self.rtt_s().0))
    }

    /// Formats rate and RTT: `100 Gb/s × 92 ms`.
    pub fn path_text(&self) -> String {
        let rate = self.rate_bps().known().map_or_else(|| "an unknown rate".into(), |&bps| rate_text(bps));
        format!("{rate} × {}", Nanos::new((self.rtt_s().0 * 1e9) as u64))
    }
}

/// Formats a rate: `100 Gb/s`.
pub(crate) fn rate_text(bps: u64) -> String {
    BitRate::from_bps(bps).to_string()
}

/// Formats a size: `32 MiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Returns a change of the size of one of an interface's rings.
pub(crate) fn ring(interface: &InterfaceFacts, side: Side, entries: u32) -> Change {
    Change::new(Target::Ring { interface: interface.name.clone(), side }, entries.to_string())
}

/// Returns a change that turns an offload on or off.
pub(crate) fn feature(interface: &InterfaceFacts, name: &str, on: bool) -> Change {
    let target = Target::Feature { interface: interface.name.clone(), name: name.into() };
    Change::new(target, if on { "on" } else { "off" })
}

/// Parses a kernel list of CPUs (`0-3,8`); `None` if it is invalid or has a number beyond the kernel's maximum
/// number of CPUs.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    const MAX_CPUS: u32 = 8192;
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MAX_CPUS {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}
