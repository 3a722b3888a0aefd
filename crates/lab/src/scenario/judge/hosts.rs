//! Settings of hosts.

use std::collections::BTreeMap;

use crate::scenario::judgement::Judgement;
use crate::scenario::{Buffers, HostCpu, HostSettings, Scenario, SysctlValue, Time};
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

/// Maximum cost of a packet, call or byte, nanoseconds.
const MAX_COST_NS: f64 = 1e7;
/// Maximum number of descriptors of a receive ring.
const MAX_RING: u32 = 65_536;

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    settings("hosts", &scenario.hosts, &scenario.hosts, judgement);
    for (name, host) in &scenario.host {
        settings(&format!("host.{name}"), host, &scenario.hosts, judgement);
    }
}

fn settings(key: &str, host: &HostSettings, all: &HostSettings, judgement: &mut Judgement) {
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
    if let Some(cpu) = &host.cpu {
        self::cpu(&format!("{key}.cpu"), cpu, host.gro.or(all.gro), judgement);
    }
    sysctls(&format!("{key}.sysctl"), &host.sysctl, judgement);
}

/// Reports contradictions and values out of range in the CPU costs of a host.
fn cpu(key: &str, cpu: &HostCpu, gro: Option<Time>, judgement: &mut Judgement) {
    if !matches!(cpu.cores, None | Some(1 | 2)) {
        judgement.refuse_with(
            format!("{key}.cores"),
            "softirqs and applications have 1 or 2 cores",
            "use 1 for a shared core, or 2",
        );
    }
    if cpu.clock.is_some_and(|clock| !(0.01..=100.0).contains(&clock)) {
        judgement.refuse_with(
            format!("{key}.clock"),
            "the clock rate is out of range",
            "use 0.01 to 100; 0.5 is half the rate",
        );
    }
    judgement.time(format!("{key}.noise"), cpu.noise, 0, 100_000_000, "use at most 100ms");
    for (name, cost) in cpu.costs() {
        if !(0.0..=MAX_COST_NS).contains(&cost) {
            judgement.refuse_with(
                format!("{key}.{name}"),
                format!("{cost} ns is out of range"),
                "use 0 to 1e7 nanoseconds",
            );
        }
    }
    if let Some(receive) = &cpu.receive {
        judgement.time(format!("{key}.receive.moderation"), receive.moderation, 0, 100_000_000, "use at most 100ms");
        let counts = [
            ("ring", receive.ring, 1..=MAX_RING),
            ("moderation-packets", receive.moderation_packets, 1..=MAX_RING),
            ("budget", receive.budget, 1..=4096),
        ];
        for (name, count, range) in counts {
            if let Some(count) = count.filter(|count| !range.contains(count)) {
                let hint = format!("use {} to {}", range.start(), range.end());
                judgement.refuse_with(format!("{key}.receive.{name}"), format!("{count} is out of range"), hint);
            }
        }
        if gro.is_some_and(|gro| gro.0.get() > 0) {
            judgement.refuse_with(
                format!("{key}.receive"),
                "conflicts with `gro` of the host: the receive path merges the segments of a poll",
                "use `receive.moderation` and `receive.gro` in place of `gro`",
            );
        }
    } else if cpu.costs().is_empty() {
        judgement.refuse_with(
            key,
            "no cost is set",
            "add `receive`, `read` or `send`, such as receive = { packet-ns = 200 }",
        );
    }
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
