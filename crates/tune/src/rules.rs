//! Rules for requested changes. A change comes from a file or a command line and is executed by root:
//! settings of other kinds, and values that the kernel accepts but that do harm, are refused before the
//! host is read.

use landspeed_model::{Change, Target};

use crate::discipline::QdiscRequest;

/// Sysctls outside `net.` that affect a transfer.
const OTHER_SYSCTLS: &[&str] = &[
    "kernel.numa_balancing",
    "kernel.timer_migration",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.min_free_kbytes",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Interface sysctls with side effects on addresses (Documentation/networking/ip-sysctl.rst).
const DELETES_ADDRESSES: &[&str] = &["disable_ipv6", "addr_gen_mode", "stable_secret"];

/// Sysctls that show another one in coarser units: writing back the value read does not restore the other.
const COARSER_ALIASES: &[&str] = &["base_reachable_time", "gc_min_interval", "retrans_time", "unres_qlen"];

const SEGMENT_LIMITS: &[&str] = &["gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size"];
const QUEUE_FILES: &[&str] = &["rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs"];
const INTERFACE_FILES: &[&str] = &["gro_flush_timeout", "napi_defer_hard_irqs", "threaded"];
const COALESCING: &[&str] = &["rx-usecs", "tx-usecs", "rx-frames", "tx-frames"];
const COALESCING_SWITCHES: &[&str] = &["adaptive-rx", "adaptive-tx"];

/// Range of rate limits for a cgroup, bits/s. At the minimum a frame takes an eighth of a second; above the
/// maximum a frame's time in whole nanoseconds is too imprecise.
const MIN_EGRESS_BPS: u64 = 64_000;
const MAX_EGRESS_BPS: u64 = 1_000_000_000_000;

/// Maximum length of a value, bytes.
const VALUE_BYTES: usize = 256;
/// Minimum MTU: below it the kernel deletes an interface's IPv6 state, which comes back with defaults (RFC
/// 8200, section 5).
const IPV6_MIN_MTU: u64 = 1280;

/// Returns why a change is refused on any host; `None` if it is allowed.
pub fn objection(change: &Change) -> Option<String> {
    judge(change).err()
}

fn judge(change: &Change) -> Result<(), String> {
    let desired = change.desired.trim();
    if desired.is_empty() {
        return Err("no value is given".into());
    }
    if desired.len() > VALUE_BYTES || desired.chars().any(char::is_control) {
        return Err("the value is not a single line of at most 256 bytes".into());
    }
    if let Some(interface) = change.target.interface()
        && (interface.is_empty()
            || interface.len() > 15
            || interface.starts_with('.')
            || interface.contains(|c: char| c == '/' || c.is_whitespace()))
    {
        return Err(format!("`{interface}` is not an interface name"));
    }
    match &change.target {
        Target::Sysctl { name } => sysctl(name, desired),
        Target::Qdisc { .. } => QdiscRequest::parse(desired).map(drop),
        Target::Mtu { .. } => match number(desired)? {
            0..IPV6_MIN_MTU => Err(format!(
                "an MTU below {IPV6_MIN_MTU} makes the kernel delete the interface's IPv6 state, which comes back with \
                 defaults"
            )),
            IPV6_MIN_MTU..=65_536 => Ok(()),
            _ => Err("no link has an MTU above 65536".into()),
        },
        Target::TxQueueLen { .. } | Target::Ring { .. } | Target::Channels { .. } => match number(desired)? {
            0 => Err("0 would leave nothing to send or receive with".into()),
            n if n > u64::from(u32::MAX) => Err(format!("{n} is too large")),
            _ => Ok(()),
        },
        Target::Feature { name, .. } if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) => {
            Err(format!("`{name}` is not a feature name"))
        }
        Target::Feature { .. } | Target::Pause { .. } => switch(desired),
        Target::Coalescing { parameter, .. } => match parameter.as_str() {
            name if COALESCING_SWITCHES.contains(&name) => switch(desired),
            name if COALESCING.contains(&name) => number(desired).map(drop),
            _ => Err(format!("`{parameter}` is none of {}", [COALESCING, COALESCING_SWITCHES].concat().join(", "))),
        },
        Target::SegmentLimit { name, .. } => one_of(name, SEGMENT_LIMITS).and_then(|()| match number(desired)? {
            n if n < 1500 => Err("less than one frame".into()),
            n if n > u64::from(u32::MAX) => Err(format!("{n} is too large")),
            _ => Ok(()),
        }),
        Target::InterruptAffinity { name, .. } => {
            if name.is_empty() || name.contains('/') {
                return Err("the interrupt has no name it could be known by again".into());
            }
            cpus(desired)
        }
        Target::Queue { queue, file, .. } => {
            let known = queue.strip_prefix("rx-").or(queue.strip_prefix("tx-"));
            if !known.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit())) {
                return Err(format!("`{queue}` is not a queue; write rx-0"));
            }
            one_of(file, QUEUE_FILES)?;
            if desired.chars().all(|c| c.is_ascii_hexdigit() || c == ',') {
                Ok(())
            } else {
                Err(format!("`{desired}` is neither a mask of CPUs (`ff`) nor a number"))
            }
        }
        Target::InterfaceFile { file, .. } => one_of(file, INTERFACE_FILES).and_then(|()| number(desired).map(drop)),
        Target::Governor { policy } | Target::EnergyPreference { policy } => {
            if policy.strip_prefix("policy").is_none_or(|n| n.parse::<u32>().is_err()) {
                return Err(format!("`{policy}` is not a frequency policy; write policy0"));
            }
            if desired.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                Ok(())
            } else {
                Err(format!("`{desired}` is not a name"))
            }
        }
        Target::ResumeLatency { .. } if desired == "n/a" => Ok(()),
        Target::ResumeLatency { .. } => number(desired).map(drop),
        Target::EgressRate { cgroup, .. } => {
            if cgroup.split('/').any(|part| matches!(part, "" | "." | "..")) {
                return Err(format!(
                    "`{cgroup}` is not a control group below the root; write system.slice/backup.service"
                ));
            }
            match number(desired)? {
                0 => Ok(()),
                1..MIN_EGRESS_BPS => Err("less than 64 kbit/s would make connections time out".into()),
                n if n % 8 != 0 => {
                    Err(format!("{n} bit/s is not a whole number of bytes/s, which the kernel stores"))
                }
                n if n > MAX_EGRESS_BPS => Err("no link is as fast as that".into()),
                _ => Ok(()),
            }
        }
    }
}

fn sysctl(asked: &str, desired: &str) -> Result<(), String> {
    let dotted = crate::sysctl::dotted(asked);
    let name = dotted.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if !name.chars().all(plain) || name.split(['.', '/']).any(str::is_empty) {
        return Err(format!("`{name}` is not a sysctl"));
    }
    if !name.starts_with("net.") && !OTHER_SYSCTLS.contains(&name) {
        return Err(
            "only sysctls below net. and a few of vm. and kernel. bear on a transfer; this one is left alone".into(),
        );
    }
    let last = name.rsplit(['.', '/']).next().unwrap_or_default();
    if ["ip_forward", "forwarding", "mc_forwarding", "force_forwarding"].contains(&last) {
        return Err(
            "switching forwarding resets other parameters of the interfaces, which could not be put back".into()
        );
    }
    if DELETES_ADDRESSES.contains(&last) {
        return Err(
            "the kernel deletes or makes addresses and routes when it is written, which could not be put back".into(),
        );
    }
    if COARSER_ALIASES.contains(&last) {
        return Err("it is another setting in coarser units, which could not be put back exactly: set the one in bytes or _ms".into());
    }
    if last == "nf_hooks_lwtunnel" {
        return Err("the kernel lets it be switched on and never off again".into());
    }
    if matches!(name, "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" | "net.ipv4.tcp_mem") {
        let numbers: Result<Vec<u64>, String> = desired.split_whitespace().map(number).collect();
        let numbers = numbers.map_err(|_| format!("`{desired}` is not three numbers of 0 or more"))?;
        let &[least, middle, most] = numbers.as_slice() else {
            return Err(format!("`{desired}` is not three numbers: minimum, default, maximum"));
        };
        if least > middle || middle > most {
            return Err(format!("`{desired}` does not rise from minimum over default to maximum"));
        }
        if !name.ends_with("_mem") && most > i32::MAX as u64 {
            return Err(format!("the maximum is an int in the kernel: at most {}", i32::MAX));
        }
        if !name.ends_with("_mem") && least == 0 {
            return Err("a minimum of 0 would leave sockets without a buffer under memory pressure".into());
        }
    } else if matches!(
        name,
        "net.core.rmem_max" | "net.core.wmem_max" | "net.core.rmem_default" | "net.core.wmem_default"
    ) {
        let bytes = number(desired)?;
        if bytes > i32::MAX as u64 {
            return Err(format!("an int in the kernel: at most {}", i32::MAX));
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number of 0 or more"))
}

fn switch(text: &str) -> Result<(), String> {
    if ["on", "off"].contains(&text) { Ok(()) } else { Err(format!("`{text}` is neither on nor off")) }
}

fn one_of(name: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&name) { Ok(()) } else { Err(format!("`{name}` is none of {}", names.join(", "))) }
}

fn cpus(text: &str) -> Result<(), String> {
    let number = |part: &str| part.parse::<u32>().is_ok();
    let range = |part: &str| part.split_once('-').map_or_else(|| number(part), |(a, b)| number(a) && number(b));
    if text.split(',').all(range) { Ok(()) } else { Err(format!("`{text}` is not a list of CPUs; write 0-3,8")) }
}

#[cfg(test)]
mod tests {
    use landspeed_model::Side;

    use super::*;

    #[test]
    fn invalid_buffer_sizes_are_refused() {
        // bpftune wrote negative values (its issue 36).
        for value in
            ["4096 131072 -1", "-4096 131072 6291456", "4096 131072", "131072 4096 6291456", "4096 131072 4294967296"]
        {
            assert!(objection(&Change::sysctl("net.ipv4.tcp_rmem", value)).is_some(), "{value}");
        }
        assert_eq!(objection(&Change::sysctl("net.ipv4.tcp_rmem", "4096 131072 1073741824")), None);
    }

    #[test]
    fn settings_outside_the_allowed_kinds_are_refused() {
        let interface = "eth0".to_owned();
        for change in [
            Change::sysctl("kernel.core_pattern", "|/tmp/x"),
            Change::sysctl("net.ipv4.../../../etc/passwd", "x"),
            Change::sysctl("net.ipv4.ip_forward", "1"),
            Change::sysctl("net.core.default_qdisc", "fq\nnet.x=1"),
            Change::new(Target::Mtu { interface: "../x".into() }, "9000"),
            Change::new(Target::Mtu { interface: interface.clone() }, "1279"),
            Change::new(Target::InterfaceFile { interface: interface.clone(), file: "ifalias".into() }, "1"),
            Change::new(
                Target::Queue { interface: interface.clone(), queue: "rx-0/../..".into(), file: "rps_cpus".into() },
                "f",
            ),
            Change::new(Target::Ring { interface, side: Side::Rx }, "0"),
            Change::new(Target::Governor { policy: "../policy0".into() }, "performance"),
            Change::new(Target::InterruptAffinity { number: 3, name: "../x".into() }, "0"),
            Change::new(Target::EgressRate { cgroup: "a/../..".into(), interface: "eth0".into() }, "0"),
            Change::new(Target::EgressRate { cgroup: String::new(), interface: "eth0".into() }, "9000000000"),
            Change::new(Target::EgressRate { cgroup: "a".into(), interface: "eth0".into() }, "9000000001"),
        ] {
            assert!(objection(&change).is_some(), "{change:?}");
        }
    }
}
