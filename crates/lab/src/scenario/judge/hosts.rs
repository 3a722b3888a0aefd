//! Settings of hosts.

use std::collections::BTreeMap;

use crate::scenario::judgement::Judgement;
use crate::scenario::{Buffers, HostSettings, Scenario, SysctlValue};
use landspeed_problems::suggest;

/// Congestion controls of Linux, and `prague` of the L4S project's kernels.
pub(super) const CONGESTION: [&str; 18] = [
    "cubic",
    "reno",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
    "prague",
];
/// sysctls under `net.` that are not per namespace (documentation: networking/ip-sysctl, admin-guide/sysctl/net).
const SHARED: [&str; 12] = [
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.dev_weight",
    "net.core.rps_sock_flow_entries",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.tstamp_allow_data",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
];
/// Maximum size of a buffer, bytes; [`crate::plan`] stays a little below the kernel's 31 bits.
const MAX_BUFFER: u64 = 2 << 30;

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    settings("hosts", &scenario.hosts, judgement);
    for (name, host) in &scenario.host {
        settings(&format!("host.{name}"), host, judgement);
    }
}

fn settings(key: &str, host: &HostSettings, judgement: &mut Judgement) {
    if let Some(name) = &host.congestion {
        congestion(&format!("{key}.congestion"), name, judgement);
    }
    judgement.time(format!("{key}.gro"), host.gro, 0, 100_000_000, "use at most 100ms");
    if let Some(drops) = &host.drops {
        super::links::drops(&format!("{key}.drops"), drops, judgement);
    }
    if let Some(Buffers::UpTo(size)) = &host.buffers
        && !(4096..=MAX_BUFFER).contains(&size.0.get())
    {
        judgement.refuse_with(
            format!("{key}.buffers"),
            format!("{size} is out of range for TCP buffers"),
            "use 4KiB to 2GiB",
        );
    }
    sysctls(&format!("{key}.sysctl"), &host.sysctl, judgement);
}

/// Validates the name of a congestion control; only the kernel knows which ones it has.
pub(super) fn congestion(key: &str, name: &str, judgement: &mut Judgement) {
    let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !legal || name.is_empty() || name.len() > 15 {
        judgement.refuse_with(
            key,
            "invalid name of a congestion control",
            "use a word of at most 15 letters, such as cubic or bbr",
        );
    } else if !CONGESTION.contains(&name) {
        let hint = suggest(name, CONGESTION).unwrap_or_else(|| format!("Linux has {}", CONGESTION.join(", ")));
        judgement.warn(
            "congestion-unknown",
            key,
            format!("`{name}` is not a congestion control of mainline Linux; {hint}"),
        );
    }
}

pub(super) fn sysctls(key: &str, all: &BTreeMap<String, SysctlValue>, judgement: &mut Judgement) {
    for (name, value) in all {
        let key = format!("{key}.{name}");
        let part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        if !name.split('.').all(part) || name.len() > 128 {
            judgement.refuse_with(
                key,
                "invalid name of a sysctl",
                "use words separated by dots, such as \"net.ipv4.tcp_sack\"",
            );
        } else if !name.starts_with("net.") {
            judgement.refuse_with(
                key,
                "not a network sysctl",
                "use a sysctl that begins with net.: hosts are network namespaces of one kernel",
            );
        } else if SHARED.contains(&name.as_str()) {
            judgement.warn(
                "sysctl-shared",
                &key,
                "this sysctl is not per network namespace: it applies to all hosts, and may not exist",
            );
        } else if name == "net.ipv4.tcp_congestion_control" {
            judgement.refuse_with(key, "conflicts with `congestion`", "use `congestion` of the host");
        } else if let SysctlValue::Text(text) = value
            && (text.len() > 256 || text.chars().any(char::is_control))
        {
            judgement.refuse_with(key, "invalid value of a sysctl", "use one or more numbers on one line");
        }
    }
}
