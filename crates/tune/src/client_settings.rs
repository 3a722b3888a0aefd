//! Settings that clients of `serve --allow-host-changes` may change, each with its permitted values: those that a
//! search for throughput needs, in ranges that leave the host's protection as it is.

use std::fmt;

use landspeed_model::{Change, Side, Target};
use landspeed_netlink::configure::{Codel, Discipline, Fq, FqCodel};

use crate::Knobs;
use crate::discipline::QdiscRequest;
use crate::rules::objection;

/// Permitted values of a setting.
#[derive(Debug, Clone, Copy)]
enum Permitted {
    /// A decimal number in this range.
    Range(u64, u64),
    /// Three rising numbers: minimum, default and maximum, each in its range.
    Triple([(u64, u64); 3]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or a number in the range.
    WordsOrRange(&'static [&'static str], u64, u64),
    /// A congestion control that is loaded on this host.
    LoadedCongestionControl,
    /// A mask of CPUs or queues.
    Mask,
    /// A list of CPUs, for an interrupt of a network interface.
    NetworkInterrupt,
    /// A qdisc of [`QDISCS`].
    Qdisc,
}

use Permitted::{LoadedCongestionControl, Mask, NetworkInterrupt, Qdisc, Range, Triple, Words, WordsOrRange};

/// `0` or `1`.
const SWITCH: Permitted = Range(0, 1);
const ON_OFF: Permitted = Words(&["on", "off"]);
/// `SO_RCVBUF` and `SO_SNDBUF` at most: a program that asks for less is not affected.
const SOCKET_MAX: Permitted = Range(65_536, GIB);
/// Initial buffers of all sockets but TCP's.
const SOCKET_DEFAULT: Permitted = Range(65_536, 16 * MIB);
/// `tcp_rmem` and `tcp_wmem`: autotuning ends at the third number.
const AUTOTUNING: Permitted = Triple([(4096, MIB), (4096, 16 * MIB), (65_536, GIB)]);
/// GSO and GRO up to the kernel's `GSO_MAX_SIZE` (8 × 65,535).
const SEGMENT: Permitted = Range(1500, 524_280);
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All settings. Upper case stands for the name of an interface, a number or a policy.
const SETTINGS: &[(&str, Permitted)] = &[
    ("net.core.busy_poll", Range(0, 200)),
    ("net.core.busy_read", Range(0, 200)),
    ("net.core.default_qdisc", Words(&["fq", "fq_codel", "pfifo_fast"])),
    ("net.core.dev_weight", Range(16, 1024)),
    ("net.core.gro_normal_batch", Range(1, 64)),
    ("net.core.netdev_budget", Range(100, 4800)),
    ("net.core.netdev_budget_usecs", Range(1000, 32_000)),
    ("net.core.netdev_max_backlog", Range(300, 300_000)),
    ("net.core.optmem_max", Range(20_480, 4 * MIB)),
    ("net.core.rmem_default", SOCKET_DEFAULT),
    ("net.core.rmem_max", SOCKET_MAX),
    ("net.core.rps_sock_flow_entries", Range(0, MIB)),
    ("net.core.wmem_default", SOCKET_DEFAULT),
    ("net.core.wmem_max", SOCKET_MAX),
    ("net.ipv4.tcp_autocorking", SWITCH),
    ("net.ipv4.tcp_congestion_control", LoadedCongestionControl),
    ("net.ipv4.tcp_dsack", SWITCH),
    ("net.ipv4.tcp_early_retrans", Range(0, 4)),
    ("net.ipv4.tcp_ecn", Range(0, 2)),
    ("net.ipv4.tcp_frto", Range(0, 2)),
    ("net.ipv4.tcp_limit_output_bytes", Range(65_536, 64 * MIB)),
    ("net.ipv4.tcp_max_reordering", Range(3, 10_000)),
    ("net.ipv4.tcp_min_tso_segs", Range(1, 64)),
    ("net.ipv4.tcp_moderate_rcvbuf", SWITCH),
    ("net.ipv4.tcp_mtu_probing", Range(0, 2)),
    ("net.ipv4.tcp_no_metrics_save", SWITCH),
    ("net.ipv4.tcp_notsent_lowat", Range(512, u32::MAX as u64)),
    ("net.ipv4.tcp_pacing_ca_ratio", Range(100, 1000)),
    ("net.ipv4.tcp_pacing_ss_ratio", Range(100, 1000)),
    ("net.ipv4.tcp_recovery", Range(0, 7)),
    ("net.ipv4.tcp_reordering", Range(3, 300)),
    ("net.ipv4.tcp_rmem", AUTOTUNING),
    ("net.ipv4.tcp_sack", SWITCH),
    ("net.ipv4.tcp_slow_start_after_idle", SWITCH),
    // Without timestamps there is no PAWS, and with 2 they show the time since boot.
    ("net.ipv4.tcp_timestamps", Range(1, 1)),
    ("net.ipv4.tcp_tso_win_divisor", Range(1, 30)),
    ("net.ipv4.tcp_window_scaling", Range(1, 1)),
    ("net.ipv4.tcp_wmem", AUTOTUNING),
    ("net.ipv4.udp_rmem_min", Range(4096, MIB)),
    ("net.ipv4.udp_wmem_min", Range(4096, MIB)),
    ("kernel.numa_balancing", SWITCH),
    ("kernel.timer_migration", SWITCH),
    ("vm.zone_reclaim_mode", Range(0, 1)),
    ("IFACE:qdisc", Qdisc),
    ("IFACE:mtu", Range(1280, 65_536)),
    ("IFACE:txqueuelen", Range(10, 100_000)),
    ("IFACE:rx-ring", Range(64, 32_768)),
    ("IFACE:tx-ring", Range(64, 32_768)),
    ("IFACE:channels", Range(1, 1024)),
    ("IFACE:rx-usecs", Range(0, 1000)),
    ("IFACE:tx-usecs", Range(0, 1000)),
    ("IFACE:rx-frames", Range(0, 1024)),
    ("IFACE:tx-frames", Range(0, 1024)),
    ("IFACE:adaptive-rx", ON_OFF),
    ("IFACE:adaptive-tx", ON_OFF),
    ("IFACE:pause-rx", ON_OFF),
    ("IFACE:pause-tx", ON_OFF),
    ("IFACE:gso_max_size", SEGMENT),
    ("IFACE:gro_max_size", SEGMENT),
    ("IFACE:gso_ipv4_max_size", SEGMENT),
    ("IFACE:gro_ipv4_max_size", SEGMENT),
    ("IFACE:gro_flush_timeout", Range(0, 1_000_000)),
    ("IFACE:napi_defer_hard_irqs", Range(0, 200)),
    ("IFACE:threaded", SWITCH),
    ("IFACE:rx-N/rps_cpus", Mask),
    ("IFACE:rx-N/rps_flow_cnt", Range(0, 65_536)),
    ("IFACE:tx-N/xps_cpus", Mask),
    ("IFACE:tx-N/xps_rxqs", Mask),
    ("IFACE:rx-checksum", ON_OFF),
    ("IFACE:rx-gro", ON_OFF),
    ("IFACE:rx-gro-hw", ON_OFF),
    ("IFACE:rx-gro-list", ON_OFF),
    ("IFACE:rx-hashing", ON_OFF),
    ("IFACE:rx-lro", ON_OFF),
    ("IFACE:rx-udp-gro-forwarding", ON_OFF),
    ("IFACE:tx-checksum-ip-generic", ON_OFF),
    ("IFACE:tx-checksum-ipv4", ON_OFF),
    ("IFACE:tx-checksum-ipv6", ON_OFF),
    ("IFACE:tx-generic-segmentation", ON_OFF),
    ("IFACE:tx-nocache-copy", ON_OFF),
    ("IFACE:tx-scatter-gather", ON_OFF),
    ("IFACE:tx-tcp-ecn-segmentation", ON_OFF),
    ("IFACE:tx-tcp-mangleid-segmentation", ON_OFF),
    ("IFACE:tx-tcp-segmentation", ON_OFF),
    ("IFACE:tx-tcp6-segmentation", ON_OFF),
    ("IFACE:tx-udp-segmentation", ON_OFF),
    ("irq:N/NAME", NetworkInterrupt),
    ("cpufreq:POLICY/governor", Words(&["performance", "schedutil", "ondemand", "conservative", "powersave"])),
    ("cpufreq:POLICY/epp", Words(&["default", "performance", "balance_performance", "balance_power", "power"])),
    ("cpu:N/resume-latency", WordsOrRange(&["n/a"], 0, 100_000)),
];

/// An option of a qdisc, with its smallest and largest value.
type QdiscOption = (&'static str, u64, u64);

/// Permitted qdiscs, with the ranges of their options.
const QDISCS: &[(&str, &[QdiscOption])] = &[
    ("default", &[]),
    ("pfifo_fast", &[]),
    ("pfifo", &[("limit", 10, 100_000)]),
    ("bfifo", &[("limit", 65_536, 64 * MIB)]),
    (
        "fq",
        &[
            ("limit", 100, 100_000),
            ("flow_limit", 10, 100_000),
            ("quantum", 1500, MIB),
            ("initial_quantum", 1500, MIB),
            ("maxrate", 1_000_000, 34_359_738_360),
        ],
    ),
    (
        "fq_codel",
        &[
            ("limit", 100, 100_000),
            ("flows", 1, 65_536),
            ("target", 100, 100_000),
            ("interval", 1000, 1_000_000),
            ("quantum", 256, 65_536),
        ],
    ),
];

impl fmt::Display for Permitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |(least, most): (u64, u64)| {
            if least == most { least.to_string() } else { format!("{least} to {most}") }
        };
        match *self {
            Range(least, most) => f.write_str(&range((least, most))),
            Triple([least, middle, most]) => {
                write!(f, "minimum {}, default {}, maximum {}", range(least), range(middle), range(most))
            }
            Words(words) => f.write_str(&words.join(", ")),
            WordsOrRange(words, least, most) => write!(f, "{}, {}", words.join(", "), range((least, most))),
            LoadedCongestionControl => f.write_str("a name in net.ipv4.tcp_available_congestion_control"),
            Mask => f.write_str("a hexadecimal mask"),
            NetworkInterrupt => f.write_str("a list of CPUs, for interrupts of network interfaces"),
            Qdisc => {
                let option = |&(name, least, most): &(&str, u64, u64)| format!("{name} {}", range((least, most)));
                let qdisc = |(kind, options): &(&str, &[(&str, u64, u64)])| match options {
                    [] => (*kind).to_owned(),
                    options => format!("{kind} ({})", options.iter().map(option).collect::<Vec<_>>().join(", ")),
                };
                f.write_str(&QDISCS.iter().map(qdisc).collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// Returns all settings that clients may change, each with its permitted values in words.
pub fn client_settings() -> impl Iterator<Item = (&'static str, String)> {
    SETTINGS.iter().map(|(name, permitted)| (*name, permitted.to_string()))
}

/// Returns why a client may not make a change on this host; `None` if it may.
pub fn client_objection(change: &Change, host: &dyn Knobs) -> Option<String> {
    let Some((_, permitted)) = pattern(&change.target).and_then(|name| SETTINGS.iter().find(|row| row.0 == name))
    else {
        return Some("clients of a server may not change this setting".to_owned());
    };
    if !permitted.contains(change, host) {
        return Some(format!("`{}` is not permitted to clients of a server: {permitted}", change.desired));
    }
    objection(change)
}

/// Returns the name of a setting in [`SETTINGS`]; `None` for kinds that have none.
fn pattern(target: &Target) -> Option<String> {
    let side = |side: &Side, of: &str| match side {
        Side::Rx => of.replace('*', "rx"),
        Side::Tx => of.replace('*', "tx"),
    };
    Some(match target {
        Target::Sysctl { name } => return Some(crate::sysctl::dotted(name)),
        Target::EgressRate { .. } => return None,
        Target::InterruptAffinity { .. } => "irq:N/NAME".to_owned(),
        Target::Governor { .. } => "cpufreq:POLICY/governor".to_owned(),
        Target::EnergyPreference { .. } => "cpufreq:POLICY/epp".to_owned(),
        Target::ResumeLatency { .. } => "cpu:N/resume-latency".to_owned(),
        Target::Qdisc { .. } => "IFACE:qdisc".to_owned(),
        Target::Mtu { .. } => "IFACE:mtu".to_owned(),
        Target::TxQueueLen { .. } => "IFACE:txqueuelen".to_owned(),
        Target::Channels { .. } => "IFACE:channels".to_owned(),
        Target::Ring { side: ring, .. } => side(ring, "IFACE:*-ring"),
        Target::Pause { side: pause, .. } => side(pause, "IFACE:pause-*"),
        Target::Feature { name, .. }
        | Target::SegmentLimit { name, .. }
        | Target::Coalescing { parameter: name, .. }
        | Target::InterfaceFile { file: name, .. } => format!("IFACE:{name}"),
        Target::Queue { queue, file, .. } => {
            let kind = queue.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("IFACE:{kind}N/{file}")
        }
    })
}

impl Permitted {
    fn contains(self, change: &Change, host: &dyn Knobs) -> bool {
        let desired = change.desired.trim();
        let within =
            |text: &str, (least, most): (u64, u64)| number(text).is_some_and(|n| (least..=most).contains(&n));
        match self {
            Range(least, most) => within(desired, (least, most)),
            Triple(ranges) => {
                let texts: Vec<&str> = desired.split_whitespace().collect();
                texts.len() == ranges.len() && texts.into_iter().zip(ranges).all(|(text, range)| within(text, range))
            }
            Words(words) => words.contains(&desired),
            WordsOrRange(words, least, most) => words.contains(&desired) || within(desired, (least, most)),
            LoadedCongestionControl => {
                // The kernel would load a module for any other name.
                let available = Target::Sysctl { name: "net.ipv4.tcp_available_congestion_control".to_owned() };
                let available = host.read(&available).map(|value| value.to_string()).unwrap_or_default();
                available.split(' ').any(|name| name == desired)
            }
            Mask => desired.chars().all(|c| c.is_ascii_hexdigit() || c == ','),
            NetworkInterrupt => objection(change).is_none() && host.is_network_interrupt(&change.target),
            Qdisc => qdisc(desired),
        }
    }
}

/// Parses a decimal number as the kernel does: it reads a leading zero as octal.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Whether a qdisc and all its options are permitted.
fn qdisc(text: &str) -> bool {
    let Ok(request) = QdiscRequest::parse(text) else { return false };
    let (kind, options) = match &request {
        QdiscRequest::Default => ("default", Vec::new()),
        QdiscRequest::DefaultOptions(kind) => (*kind, Vec::new()),
        QdiscRequest::ExplicitOptions(discipline) => (discipline.kind(), options(discipline)),
    };
    let Some((_, permitted)) = QDISCS.iter().find(|row| row.0 == kind) else { return false };
    options.into_iter().all(|(name, value)| {
        permitted.iter().any(|&(option, least, most)| option == name && (least..=most).contains(&value))
    })
}

/// Returns the options of a qdisc that are set, as numbers: packets, bytes, µs or bits/s.
fn options(discipline: &Discipline) -> Vec<(&'static str, u64)> {
    let some = |all: &[(&'static str, Option<u32>)]| -> Vec<(&'static str, u64)> {
        all.iter().filter_map(|&(name, value)| Some((name, u64::from(value?)))).collect()
    };
    match discipline {
        Discipline::Pfifo { limit_packets } => vec![("limit", u64::from(*limit_packets))],
        Discipline::Bfifo { limit_bytes } => vec![("limit", u64::from(*limit_bytes))],
        // All fields are named, so that a new option is not permitted by accident.
        &Discipline::Fq(Fq {
            limit_packets,
            flow_limit_packets,
            quantum_bytes,
            initial_quantum_bytes,
            pacing: _,
            flow_max_rate_bytes_per_s,
            refill_delay_us,
            ce_threshold_us,
            timer_slack_ns,
            horizon_us,
            beyond_horizon: _,
        }) => {
            let mut set = some(&[
                ("limit", limit_packets),
                ("flow_limit", flow_limit_packets),
                ("quantum", quantum_bytes),
                ("initial_quantum", initial_quantum_bytes),
                ("refill_delay", refill_delay_us),
                ("ce_threshold", ce_threshold_us),
                ("timer_slack", timer_slack_ns),
                ("horizon", horizon_us),
            ]);
            set.extend(flow_max_rate_bytes_per_s.map(|rate| ("maxrate", rate.saturating_mul(8))));
            set
        }
        &Discipline::FqCodel(FqCodel { codel, flows, quantum_bytes }) => {
            let Codel { limit_packets, target_us, interval_us, ce_threshold_us, ecn: _ } = codel;
            some(&[
                ("limit", limit_packets),
                ("flows", flows),
                ("target", target_us),
                ("interval", interval_us),
                ("quantum", quantum_bytes),
                ("ce_threshold", ce_threshold_us),
            ])
        }
        // The others have no row in `QDISCS`.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimulatedKnobs, Value, parse_setting};

    /// A host with two loaded congestion controls, and one interrupt of a network interface.
    fn host() -> SimulatedKnobs {
        let available = Target::Sysctl { name: "net.ipv4.tcp_available_congestion_control".into() };
        let network = Target::InterruptAffinity { number: 45, name: "mlx5_comp0".into() };
        let disk = Target::InterruptAffinity { number: 46, name: "nvme0q1".into() };
        let host = SimulatedKnobs::new([
            (available, Value::text("reno cubic bbr")),
            (network.clone(), Value::text("0-7")),
            (disk, Value::text("0-7")),
        ]);
        host.add_network_interrupt(&network);
        host
    }

    fn refusal(setting: &str) -> Option<String> {
        client_objection(&parse_setting(setting).expect("a setting"), &host())
    }

    #[test]
    fn clients_may_tune_transfers() {
        for setting in [
            "net.core.rmem_max=67108864",
            "net.core.default_qdisc=fq",
            "net.core.netdev_max_backlog=10000",
            "net.core.rps_sock_flow_entries=32768",
            "net.ipv4.tcp_rmem=4096 131072 67108864",
            "net/ipv4/tcp_wmem=4096 65536 1073741824",
            "net.ipv4.tcp_congestion_control=bbr",
            "net.ipv4.tcp_mtu_probing=1",
            "net.ipv4.tcp_notsent_lowat=131072",
            "vm.zone_reclaim_mode=0",
            "kernel.numa_balancing=0",
            "eth0:qdisc=fq",
            "eth0:qdisc=fq maxrate 8gbit",
            "eth0:qdisc=fq_codel limit 1000 ecn",
            "eth0:qdisc=pfifo limit 77",
            "eth0:qdisc=pfifo_fast",
            "eth0:qdisc=default",
            "eth0:mtu=9000",
            "eth0:txqueuelen=10000",
            "eth0:rx-ring=4096",
            "eth0:tx-tcp-segmentation=on",
            "eth0:rx-gro=on",
            "eth0:adaptive-rx=off",
            "eth0:gso_max_size=185000",
            "eth0:rx-0/rps_cpus=ff",
            "eth0:tx-11/xps_cpus=40,00000000",
            "irq:45/mlx5_comp0=0-7",
            "cpufreq:policy0/governor=performance",
            "cpu:3/resume-latency=n/a",
            "cpu:3/resume-latency=10",
        ] {
            assert_eq!(refusal(setting), None, "{setting}");
        }
    }

    #[test]
    fn clients_cannot_weaken_the_host() {
        for setting in [
            // Settings of the second attack (issue 29).
            "net.ipv4.tcp_fastopen=1539",
            "net.ipv4.tcp_fwmark_accept=1",
            "net.ipv4.tcp_migrate_req=1",
            "net.ipv4.tcp_synack_retries=255",
            "net.ipv4.tcp_max_tw_buckets=1",
            "net.ipv4.tcp_retries2=0",
            "net.ipv4.tcp_mem=1 1 1",
            "net.ipv4.tcp_syncookies=0",
            "net/ipv4/tcp_syncookies=0",
            "net.ipv4.tcp_fastopen_key=0",
            "net.ipv4.tcp_timestamps=0",
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf/all/accept_redirects=1",
            "net.core.bpf_jit_harden=0",
            "net.netfilter.nf_conntrack_max=1",
            "kernel.core_pattern=|/tmp/x",
            "vm.min_free_kbytes=100000000",
            "eth0:cgroup/system.slice/ssh.service=64kbit",
            "eth0:rx-all=on",
            "eth0:loopback=on",
            "eth0:ifalias=1",
            "irq:46/nvme0q1=0",
            "cpufreq:policy0/governor=userspace",
        ] {
            assert!(refusal(setting).is_some(), "{setting}");
        }
    }

    #[test]
    fn refusals_name_the_permitted_values() {
        for (setting, permitted) in [
            ("net.core.rmem_max=2147483647", "65536 to 1073741824"),
            ("net.core.rmem_max=0777777", "65536 to 1073741824"),
            ("net.core.rmem_max=0x100000", "65536 to 1073741824"),
            ("net.ipv4.tcp_notsent_lowat=0", "512 to 4294967295"),
            ("net.ipv4.tcp_rmem=1 1 1", "minimum 4096 to 1048576"),
            ("net.ipv4.tcp_rmem=4096 65536 2147483647", "maximum 65536 to 1073741824"),
            ("net.ipv4.tcp_rmem=131072 4096 6291456", "rise"),
            ("net.ipv4.tcp_congestion_control=dctcp", "tcp_available_congestion_control"),
            ("net.ipv4.tcp_congestion_control=reno cubic", "tcp_available_congestion_control"),
            ("eth0:qdisc=fq maxrate 8kbit", "maxrate 1000000 to 34359738360"),
            ("eth0:qdisc=fq horizon 1s", "fq_codel"),
            ("eth0:qdisc=tbf rate 64kbit burst 1KiB limit 1KiB", "fq_codel"),
            ("eth0:qdisc=pfifo limit 0", "limit 10 to 100000"),
            ("eth0:mtu=1279", "1280 to 65536"),
            ("eth0:channels=0", "1 to 1024"),
            ("eth0:rx-gro=maybe", "on, off"),
            ("cpu:3/resume-latency=1000000000", "n/a, 0 to 100000"),
            ("irq:46/nvme0q1=0", "network interfaces"),
        ] {
            let refusal = refusal(setting).expect(setting);
            assert!(refusal.contains(permitted), "{setting}: {refusal}");
        }
    }

    #[test]
    fn the_documentation_lists_exactly_the_permitted_values() {
        // Neighbours with the same values share a row.
        let mut rows: Vec<(String, String)> = Vec::new();
        for (name, permitted) in client_settings() {
            match rows.last_mut().filter(|row| row.1 == permitted) {
                Some((names, _)) => names.push_str(&format!(", `{name}`")),
                None => rows.push((format!("`{name}`"), permitted)),
            }
        }
        let lines: Vec<String> =
            rows.iter().map(|(names, permitted)| format!("| {names} | {permitted} |\n")).collect();
        let table = lines.concat();
        let page = include_str!("../../../docs/serving.md");
        assert!(page.contains(&format!("|---|---|\n{table}\n")), "docs/serving.md needs this table:\n{table}");
    }
}
