//! Requested changes: settings from the command line, and recommendations of an audit.

use landspeed_model::{Applicability, AuditDocument, Change, Side, Target};

use crate::discipline::bytes_per_s;

/// Parses the argument of `--set`.
///
/// `net.ipv4.tcp_rmem=4096 131072 1073741824`, `eth0:mtu=9000`, `eth0:qdisc=fq maxrate 8gbit`,
/// `eth0:rx-ring=8192`, `eth0:channels=16`, `eth0:adaptive-rx=on`, `eth0:pause-rx=on`,
/// `eth0:gso_max_size=185000`, `eth0:rx-0/rps_cpus=ff`, `eth0:gro_flush_timeout=20000`,
/// `eth0:tx-tcp-segmentation=on`, `irq:45/mlx5_comp0=0-7`, `cpufreq:policy0/governor=performance`,
/// `cpu:3/resume-latency=n/a`, `eth0:cgroup/backup.slice=9gbit`. The error explains what is wrong.
pub fn parse_setting(text: &str) -> Result<Change, String> {
    let help =
        || format!("`{text}` is not a setting; write net.ipv4.tcp_mtu_probing=1, eth0:mtu=9000 or eth0:qdisc=fq");
    let (name, desired) = text.split_once('=').ok_or_else(help)?;
    let (name, desired) = (name.trim(), desired.trim());
    if name.is_empty() || desired.is_empty() {
        return Err(help());
    }
    let Some((place, what)) = name.split_once(':') else {
        if !name.contains(['.', '/']) {
            return Err(help());
        }
        return Ok(Change::sysctl(name, desired));
    };
    let target = match place {
        "irq" => {
            let (number, name) = what.split_once('/').ok_or_else(|| "write irq:45/mlx5_comp0=0-7".to_owned())?;
            let number = number.parse().map_err(|_| format!("`{number}` is not an interrupt number"))?;
            Target::InterruptAffinity { number, name: name.to_owned() }
        }
        "cpufreq" => match what.split_once('/') {
            Some((policy, "governor")) => Target::Governor { policy: policy.to_owned() },
            Some((policy, "epp")) => Target::EnergyPreference { policy: policy.to_owned() },
            _ => return Err("write cpufreq:policy0/governor=performance or cpufreq:policy0/epp=performance".into()),
        },
        "cpu" => {
            let number = what.strip_suffix("/resume-latency").and_then(|number| number.parse().ok());
            let cpu = number.ok_or_else(|| "write cpu:3/resume-latency=n/a".to_owned())?;
            Target::ResumeLatency { cpu }
        }
        interface => match what.strip_prefix("cgroup/") {
            Some(cgroup) => return egress(interface, cgroup, desired),
            None => of_interface(interface.to_owned(), what),
        },
    };
    Ok(Change::new(target, desired))
}

/// Parses a rate limit, rounded down to whole bytes/s as the kernel stores it; `none` removes the limit.
fn egress(interface: &str, cgroup: &str, desired: &str) -> Result<Change, String> {
    let bytes = if ["none", "0"].contains(&desired) { 0 } else { bytes_per_s(desired)? };
    let target = Target::EgressRate { cgroup: cgroup.trim_matches('/').to_owned(), interface: interface.to_owned() };
    Ok(Change::new(target, bytes.saturating_mul(8).to_string()))
}

fn of_interface(interface: String, what: &str) -> Target {
    match what {
        "mtu" => Target::Mtu { interface },
        "qdisc" => Target::Qdisc { interface },
        "txqueuelen" => Target::TxQueueLen { interface },
        "channels" => Target::Channels { interface },
        "rx-ring" => Target::Ring { interface, side: Side::Rx },
        "tx-ring" => Target::Ring { interface, side: Side::Tx },
        "pause-rx" => Target::Pause { interface, side: Side::Rx },
        "pause-tx" => Target::Pause { interface, side: Side::Tx },
        "rx-usecs" | "tx-usecs" | "rx-frames" | "tx-frames" | "adaptive-rx" | "adaptive-tx" => {
            Target::Coalescing { interface, parameter: what.to_owned() }
        }
        "gso_max_size" | "gro_max_size" | "gso_ipv4_max_size" | "gro_ipv4_max_size" => {
            Target::SegmentLimit { interface, name: what.to_owned() }
        }
        "gro_flush_timeout" | "napi_defer_hard_irqs" | "threaded" => {
            Target::InterfaceFile { interface, file: what.to_owned() }
        }
        other => match other.split_once('/') {
            Some((queue, file)) => Target::Queue { interface, queue: queue.to_owned(), file: file.to_owned() },
            None => Target::Feature { interface, name: other.to_owned() },
        },
    }
}

/// Formats a change for [`parse_setting`]: `net.ipv4.tcp_rmem=4096 131072 1073741824`, `eth0:qdisc=fq`.
pub fn setting(change: &Change) -> String {
    let of = |interface: &str, what: &str| format!("{interface}:{what}");
    let side = |side: &Side, what: &str| match side {
        Side::Rx => format!("rx-{what}"),
        Side::Tx => format!("tx-{what}"),
    };
    let name = match &change.target {
        Target::Sysctl { name } => name.clone(),
        Target::Qdisc { interface } => of(interface, "qdisc"),
        Target::Mtu { interface } => of(interface, "mtu"),
        Target::TxQueueLen { interface } => of(interface, "txqueuelen"),
        Target::Channels { interface } => of(interface, "channels"),
        Target::Feature { interface, name } | Target::SegmentLimit { interface, name } => of(interface, name),
        Target::Ring { interface, side: ring } => of(interface, &side(ring, "ring")),
        Target::Pause { interface, side: Side::Rx } => of(interface, "pause-rx"),
        Target::Pause { interface, side: Side::Tx } => of(interface, "pause-tx"),
        Target::Coalescing { interface, parameter } => of(interface, parameter),
        Target::InterfaceFile { interface, file } => of(interface, file),
        Target::Queue { interface, queue, file } => of(interface, &format!("{queue}/{file}")),
        Target::InterruptAffinity { number, name } => format!("irq:{number}/{name}"),
        Target::Governor { policy } => format!("cpufreq:{policy}/governor"),
        Target::EnergyPreference { policy } => format!("cpufreq:{policy}/epp"),
        Target::ResumeLatency { cpu } => format!("cpu:{cpu}/resume-latency"),
        Target::EgressRate { cgroup, interface } => of(interface, &format!("cgroup/{cgroup}")),
    };
    format!("{name}={}", change.desired)
}

/// Returns the changes that an audit recommends. Without `only`, those of findings that are safe to apply;
/// with it, those of the named codes, including ones that need care. Display-only findings never change
/// anything.
pub fn changes_from_audit(audit: &AuditDocument, only: &[String], except: &[String]) -> Vec<Change> {
    let named = |codes: &[String], code: &str| codes.iter().any(|wanted| wanted.eq_ignore_ascii_case(code));
    audit
        .findings
        .iter()
        .filter(|finding| match finding.applicability {
            Applicability::Safe => only.is_empty() || named(only, &finding.code),
            Applicability::NeedsCare => named(only, &finding.code),
            Applicability::DisplayOnly => false,
        })
        .filter(|finding| !named(except, &finding.code))
        .flat_map(|finding| finding.changes.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_syntax_is_parsed() {
        let eth0 = || "eth0".to_owned();
        for (text, target, desired) in [
            (
                "net.ipv4.tcp_rmem=4096 131072 1073741824",
                Target::Sysctl { name: "net.ipv4.tcp_rmem".into() },
                "4096 131072 1073741824",
            ),
            ("eth0:mtu=9000", Target::Mtu { interface: eth0() }, "9000"),
            ("eth0:qdisc=fq maxrate 8gbit", Target::Qdisc { interface: eth0() }, "fq maxrate 8gbit"),
            ("eth0:rx-ring = 8192", Target::Ring { interface: eth0(), side: Side::Rx }, "8192"),
            (
                "eth0:rx-0/rps_cpus=ff",
                Target::Queue { interface: eth0(), queue: "rx-0".into(), file: "rps_cpus".into() },
                "ff",
            ),
            ("eth0:rx-gro=off", Target::Feature { interface: eth0(), name: "rx-gro".into() }, "off"),
            ("irq:45/mlx5_comp0=0-7", Target::InterruptAffinity { number: 45, name: "mlx5_comp0".into() }, "0-7"),
            ("cpufreq:policy0/governor=performance", Target::Governor { policy: "policy0".into() }, "performance"),
            (
                "eth0:cgroup/system.slice/backup.service=9gbit",
                Target::EgressRate { cgroup: "system.slice/backup.service".into(), interface: eth0() },
                "9000000000",
            ),
            (
                "eth0:cgroup//backup.slice/=none",
                Target::EgressRate { cgroup: "backup.slice".into(), interface: eth0() },
                "0",
            ),
            ("cpu:3/resume-latency=n/a", Target::ResumeLatency { cpu: 3 }, "n/a"),
        ] {
            let change = Change::new(target, desired);
            assert_eq!(parse_setting(text), Ok(change.clone()), "{text}");
            assert_eq!(parse_setting(&setting(&change)), Ok(change), "{text}");
        }
        for text in [
            "",
            "mtu",
            "mtu=9000",
            "eth0:mtu=",
            "=1",
            "irq:x/y=1",
            "cpu:0=1",
            "cpufreq:policy0=x",
            "eth0:cgroup/a=fast",
        ] {
            assert!(parse_setting(text).is_err(), "{text}");
        }
    }
}
