//! Helpers shared by the checks of CPUs, buses, interrupts and devices.

use landspeed_model::{Change, CpuFacts, Fact, InterfaceFacts, Interrupt, PciFacts, Role, Severity, Target};
use landspeed_units::Ratio;

use crate::view::{View, cpu_list};

/// The kernel's maximum number of CPUs (`CONFIG_NR_CPUS`): higher numbers in a corrupt recording are ignored.
const MAX_CPUS: u32 = 8192;

/// Rate of one flow on one CPU, bits/s: ESnet's figure for jumbo frames and 3 GHz or more.
pub(crate) const FLOW_BPS: u64 = 30_000_000_000;

/// Minimum rate to which ESnet's page on 100 Gb/s hosts applies, bits/s.
pub(crate) const FAST_BPS: u64 = 100_000_000_000;

/// Loss rate that is severe on a long path: the decks of 2014 to 2016 plot 0.0046 % on a 10 Gb/s link over
/// growing RTTs and call the difference huge; a fifth of it is bad enough.
const LOSS_MAJOR: f64 = 1e-5;

/// Minimum loss rate of a finding. Counters run since boot and include losses while links came up: below one in
/// ten million packets the two cannot be distinguished.
const LOSS_MINOR: f64 = 1e-7;

/// Rate from which a single CPU needs tuning, bits/s: below it, findings about CPUs and interrupts are only
/// notes. The decks begin at 10 Gb/s.
const CPU_TUNING_MIN_BPS: u64 = 10_000_000_000;

/// Returns the severity of a finding about CPUs or interrupts: `severity` for fast links, lower for slow ones
/// and for unknown rates. Benchmark and latency hosts get `severity` at any rate.
pub(crate) fn severity_for_rate(view: &View<'_>, severity: Severity) -> Severity {
    if matches!(view.role(), Role::Benchmark | Role::Latency) {
        return severity;
    }
    match view.rate_bps() {
        Fact::Known(rate) if rate >= CPU_TUNING_MIN_BPS => severity,
        Fact::Known(_) => Severity::Note,
        Fact::Absent(_) | Fact::Unknown(_) => severity.min(Severity::Minor),
    }
}

/// Returns the severity of a loss since boot, of packets that the counter of those received does not contain; `None`
/// if it is negligible.
pub(crate) fn loss_severity(lost: u64, received: u64) -> Option<Severity> {
    // Fewer lost packets are an incident rather than a pattern, regardless of the number of packets.
    const MIN_LOST_PACKETS: u64 = 100;
    let share = lost as f64 / lost.saturating_add(received).max(1) as f64;
    match share {
        _ if lost < MIN_LOST_PACKETS => None,
        share if share >= LOSS_MAJOR => Some(Severity::Major),
        share if share >= LOSS_MINOR => Some(Severity::Minor),
        _ => None,
    }
}

/// Formats lost packets, of all that arrived: `12 of 3400012 (0.00035%)`.
pub(crate) fn loss_text(lost: u64, received: u64) -> String {
    let arrived = lost.saturating_add(received);
    Ratio::of(lost, arrived)
        .map_or_else(|| format!("{lost} of {arrived}"), |ratio| format!("{lost} of {arrived} ({ratio})"))
}

impl<'a> View<'a> {
    /// Returns a text that names the container or hypervisor; `None` on bare metal and where it is unknown.
    pub(crate) fn guest_description(&self) -> Option<String> {
        if let Some(container) = self.facts.virtualization.container.known() {
            return Some(format!("this is a container ({container})"));
        }
        if let Some(hypervisor) = self.facts.virtualization.hypervisor.known() {
            return Some(format!("this is a virtual machine ({hypervisor})"));
        }
        self.is_guest().then(|| "the role is that of a virtual machine".into())
    }

    /// Returns the CPU facts; absent in virtual machines and containers, whose CPUs the host below controls.
    pub(crate) fn cpus(&self) -> Fact<&'a CpuFacts> {
        match self.guest_description() {
            Some(guest_description) => {
                Fact::Absent(format!("{guest_description}: its CPUs are set up on the host below"))
            }
            None => Fact::Known(&self.facts.cpu),
        }
    }

    /// Returns the port if it is a hardware device; absent if it is virtual.
    pub(crate) fn device(&self) -> Fact<&'a InterfaceFacts> {
        match self.port() {
            Fact::Known(port) => match &port.kind {
                Some(kind) => Fact::Absent(format!("{} is a {kind}: it has no own hardware", port.name)),
                None => Fact::Known(port),
            },
            other => other,
        }
    }

    /// Returns the port and its PCI facts; absent in a virtual machine, which sees a virtual bus.
    pub(crate) fn pci(&self) -> Fact<(&'a InterfaceFacts, &'a PciFacts)> {
        if self.is_guest() {
            let guest_description = self.guest_description().unwrap_or_default();
            return Fact::Absent(format!("{guest_description}: the bus it sees is not the one the device sits on"));
        }
        match self.device() {
            Fact::Known(port) => port.pci.as_ref().map(|pci| (port, pci)),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns the CPUs near the port; absent where every CPU is equally near.
    pub(crate) fn local_cpus(&self) -> Fact<Vec<u32>> {
        match &self.facts.numa {
            Fact::Known(nodes) if nodes.len() < 2 => return Fact::Absent("there is one NUMA node".into()),
            _ => {}
        }
        let list = match self.pci() {
            Fact::Known((_, pci)) => match (&pci.numa_node, &pci.local_cpus) {
                (Fact::Absent(why), _) => {
                    return Fact::Absent(format!("the device's NUMA node is not known: {why}"));
                }
                (_, list) => list.as_ref(),
            },
            Fact::Absent(why) => return Fact::Absent(why),
            Fact::Unknown(why) => return Fact::Unknown(why),
        };
        match list.map(|text| cpu_list(text)) {
            Fact::Known(Some(cpus)) if !cpus.is_empty() => Fact::Known(cpus),
            Fact::Known(_) => Fact::Unknown("the list of CPUs near the device cannot be read".into()),
            Fact::Absent(why) => Fact::Absent(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns the interrupts of the port's queues by number. If some have fired, those that never fired are
    /// left out: drivers allocate one for each CPU and use as many as there are queues.
    pub(crate) fn queue_interrupts(&self) -> Fact<Vec<&'a Interrupt>> {
        if self.is_container() {
            return Fact::Absent("this is a container: interrupts belong to the host below".into());
        }
        let port = match self.device() {
            Fact::Known(port) => port,
            Fact::Absent(why) => return Fact::Absent(why),
            Fact::Unknown(why) => return Fact::Unknown(why),
        };
        let all = match &self.facts.interrupts {
            Fact::Known(all) => all,
            Fact::Absent(why) => return Fact::Absent(why.clone()),
            Fact::Unknown(why) => return Fact::Unknown(why.clone()),
        };
        let mut own: Vec<_> =
            all.iter().filter(|i| port.interrupts.contains(&i.number) && is_queue_interrupt(&i.name)).collect();
        // Intel's drivers name that of link changes after the interface alone, those of queues with something after it.
        let names: Vec<&str> = own.iter().map(|interrupt| interrupt.name.as_str()).collect();
        own.retain(|interrupt| {
            let is_extended =
                |name: &&str| name.strip_prefix(&*interrupt.name).is_some_and(|rest| rest.starts_with('-'));
            !names.iter().any(is_extended)
        });
        if own.iter().any(|interrupt| interrupt.count > 0) {
            own.retain(|interrupt| interrupt.count > 0);
        }
        own.sort_by_key(|interrupt| interrupt.number);
        if own.is_empty() {
            return Fact::Absent(format!("{} has no interrupts for its queues", port.name));
        }
        Fact::Known(own)
    }
}

/// Returns whether an interrupt belongs to a queue rather than to device management (firmware events,
/// mailboxes, link changes), by the names that drivers use for those.
fn is_queue_interrupt(name: &str) -> bool {
    const MANAGEMENT_NAMES: &[&str] =
        &["async", "pages", "misc", "mbx", "mailbox", "mgm", "config", "control", "ctrl", "fdir", "lsc", "event"];
    let name = name.to_ascii_lowercase();
    !MANAGEMENT_NAMES.iter().any(|word| name.contains(word))
}

/// Returns whether an interrupt is of a transmit queue only (`eth0-tx-0`, `virtio0-output.0`).
pub(crate) fn is_transmit_interrupt(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("output") || name.contains("-tx-") && !name.contains("rx")
}

/// Returns the CPUs that handle an interrupt: its effective affinity, else the configured one.
pub(crate) fn handled_by(interrupt: &Interrupt) -> Option<Vec<u32>> {
    let effective = interrupt.effective.known().and_then(|list| cpu_list(list)).filter(|cpus| !cpus.is_empty());
    effective.or_else(|| interrupt.affinity.known().and_then(|list| cpu_list(list)).filter(|cpus| !cpus.is_empty()))
}

/// Returns changes that move each of `moving` to the CPU in `allowed` with the fewest interrupts, those in
/// `staying` included; of equally loaded CPUs, the lowest.
pub(crate) fn spread(moving: &[&Interrupt], staying: &[&Interrupt], allowed: &[u32]) -> Vec<Change> {
    let mut load: Vec<(usize, u32)> = allowed.iter().map(|&cpu| (0, cpu)).collect();
    for cpu in staying.iter().filter_map(|interrupt| handled_by(interrupt)?.first().copied()) {
        if let Some(entry) = load.iter_mut().find(|(_, known)| *known == cpu) {
            entry.0 += 1;
        }
    }
    let place = |interrupt: &&Interrupt| {
        let least = load.iter_mut().min()?;
        least.0 += 1;
        let target = Target::InterruptAffinity { number: interrupt.number, name: interrupt.name.clone() };
        Some(Change::new(target, least.1.to_string()))
    };
    moving.iter().filter_map(place).collect()
}

/// Parses a hexadecimal CPU mask with commas (`00000000,0000ffff`); `None` if it is invalid.
pub(crate) fn cpu_mask(text: &str) -> Option<Vec<u32>> {
    let digits: Vec<u32> =
        text.trim().chars().filter(|c| *c != ',').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > MAX_CPUS as usize / 4 {
        return None;
    }
    let bits = |(place, digit): (usize, &u32)| {
        let digit = *digit;
        (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| place as u32 * 4 + bit)
    };
    Some(digits.iter().rev().enumerate().flat_map(bits).collect())
}

/// Formats CPUs as a mask in the kernel's format: groups of eight digits with commas.
pub(crate) fn mask_text(cpus: &[u32]) -> String {
    let cpus: Vec<u32> = cpus.iter().copied().filter(|cpu| *cpu < MAX_CPUS).collect();
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |group: u32| {
        let bits = cpus.iter().filter(|cpu| **cpu / 32 == group).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
        if group + 1 == groups { format!("{bits:x}") } else { format!("{bits:08x}") }
    };
    (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
}

/// Formats numbers as a kernel list (`0-3,8`).
pub(crate) fn list_text(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_masks_and_lists_round_trip() {
        for cpus in [vec![0], vec![0, 1, 2, 3], vec![31, 32], vec![5, 64, 127]] {
            assert_eq!(cpu_mask(&mask_text(&cpus)), Some(cpus.clone()));
            assert_eq!(cpu_list(&list_text(&cpus)), Some(cpus));
        }
        assert_eq!(mask_text(&[32]), "1,00000000");
        assert_eq!(mask_text(&[]), "0");
        assert_eq!(cpu_mask("00000000,0000000f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(cpu_mask("xyz"), None);
    }

    #[test]
    fn few_lost_packets_are_not_a_finding() {
        assert_eq!(loss_severity(99, 1000), None);
        assert_eq!(loss_severity(1000, 10), Some(Severity::Major), "most of what arrived");
        assert_eq!(loss_text(1000, 0), "1000 of 1000 (100%)");
        assert_eq!(loss_severity(100, 10_000_000_000), None);
        assert_eq!(loss_severity(100_000, 100_000_000_000), Some(Severity::Minor));
        assert_eq!(loss_severity(46_000, 1_000_000_000), Some(Severity::Major));
    }

    #[test]
    fn interrupts_go_to_the_least_loaded_allowed_cpu() {
        let at = |number, cpu: u32| Interrupt {
            number,
            name: format!("q{number}"),
            effective: Fact::Known(cpu.to_string()),
            ..Interrupt::default()
        };
        let (a, b, c) = (at(1, 0), at(2, 9), at(3, 9));
        let changes = spread(&[&b, &c], &[&a], &[0, 1]);
        let desired: Vec<_> = changes.iter().map(|change| change.desired.as_str()).collect();
        assert_eq!(desired, ["1", "0"]);
    }
}
