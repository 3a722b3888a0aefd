//! The sysctls that matter to a transfer.

use std::collections::BTreeMap;

use landspeed_model::Fact;

use crate::files::Files;
use crate::host::FactReader;
use crate::parse::collapse_whitespace;

/// Names below `net.`; those that a kernel or a namespace does not have are omitted.
const NAMES: &[&str] = &[
    "core.busy_poll",
    "core.busy_read",
    "core.default_qdisc",
    "core.dev_weight",
    "core.flow_limit_table_len",
    "core.gro_normal_batch",
    "core.high_order_alloc_disable",
    "core.netdev_budget",
    "core.netdev_budget_usecs",
    "core.netdev_max_backlog",
    "core.netdev_tstamp_prequeue",
    "core.optmem_max",
    "core.rmem_default",
    "core.rmem_max",
    "core.rps_sock_flow_entries",
    "core.skb_defer_max",
    "core.somaxconn",
    "core.wmem_default",
    "core.wmem_max",
    "ipv4.ip_forward",
    "ipv4.ip_no_pmtu_disc",
    "ipv4.tcp_adv_win_scale",
    "ipv4.tcp_allowed_congestion_control",
    "ipv4.tcp_autocorking",
    "ipv4.tcp_available_congestion_control",
    "ipv4.tcp_backlog_ack_defer",
    "ipv4.tcp_base_mss",
    "ipv4.tcp_collapse_max_bytes",
    "ipv4.tcp_comp_sack_delay_ns",
    "ipv4.tcp_comp_sack_nr",
    "ipv4.tcp_congestion_control",
    "ipv4.tcp_dsack",
    "ipv4.tcp_early_retrans",
    "ipv4.tcp_ecn",
    "ipv4.tcp_fack",
    "ipv4.tcp_frto",
    "ipv4.tcp_limit_output_bytes",
    "ipv4.tcp_low_latency",
    "ipv4.tcp_max_reordering",
    "ipv4.tcp_mem",
    "ipv4.tcp_min_rtt_wlen",
    "ipv4.tcp_min_tso_segs",
    "ipv4.tcp_moderate_rcvbuf",
    "ipv4.tcp_mtu_probing",
    "ipv4.tcp_no_metrics_save",
    "ipv4.tcp_notsent_lowat",
    "ipv4.tcp_pacing_ca_ratio",
    "ipv4.tcp_pacing_ss_ratio",
    "ipv4.tcp_pingpong_thresh",
    "ipv4.tcp_rcvbuf_low_rtt",
    "ipv4.tcp_recovery",
    "ipv4.tcp_reordering",
    "ipv4.tcp_rmem",
    "ipv4.tcp_rto_min_us",
    "ipv4.tcp_sack",
    "ipv4.tcp_shrink_window",
    "ipv4.tcp_slow_start_after_idle",
    "ipv4.tcp_timestamps",
    "ipv4.tcp_tso_rtt_log",
    "ipv4.tcp_tso_win_divisor",
    "ipv4.tcp_window_scaling",
    "ipv4.tcp_wmem",
    "ipv4.tcp_workaround_signed_windows",
    "ipv4.udp_mem",
    "ipv4.udp_rmem_min",
    "ipv4.udp_wmem_min",
    "mptcp.enabled",
];

/// Reads the sysctls that exist, with white space collapsed.
pub(crate) fn read(files: &Files) -> BTreeMap<String, String> {
    let one = |name: &&str| {
        let text = files.read(&format!("/proc/sys/net/{}", name.replace('.', "/"))).ok()?;
        Some((format!("net.{name}"), collapse_whitespace(&text)))
    };
    NAMES.iter().filter_map(one).collect()
}

/// Further sysctls that checks use, with their full names.
const ADDITIONAL_NAMES: &[&str] = &[
    "kernel.numa_balancing",
    "kernel.timer_migration",
    "net.bridge.bridge-nf-call-iptables",
    "net.core.dev_weight_rx_bias",
    "net.core.dev_weight_tx_bias",
    "net.core.flow_limit_cpu_bitmap",
    "net.core.fb_tunnels_only_for_init_net",
    "net.core.gro_normal_batch",
    "net.core.max_skb_frags",
    "net.core.rps_default_mask",
    "net.core.txrehash",
    "net.core.warnings",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_time",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.route.gc_elasticity",
    "net.ipv4.route.gc_interval",
    "net.ipv4.route.gc_thresh",
    "net.ipv4.route.gc_timeout",
    "net.ipv4.route.max_size",
    "net.ipv4.route.min_adv_mss",
    "net.ipv4.route.min_pmtu",
    "net.ipv4.route.mtu_expires",
    "net.ipv4.tcp_abc",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_app_win",
    "net.ipv4.tcp_bic",
    "net.ipv4.tcp_challenge_ack_limit",
    "net.ipv4.tcp_early_demux",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_invalid_ratelimit",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_probe_interval",
    "net.ipv4.tcp_probe_threshold",
    "net.ipv4.tcp_mtu_probe_floor",
    "net.ipv4.tcp_retrans_collapse",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rfc1337",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_thin_linear_timeouts",
    "net.ipv4.tcp_tw_recycle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.udp_early_demux",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.route.gc_thresh",
    "net.ipv6.route.max_size",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_be_liberal",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.min_free_kbytes",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Per-interface settings, also read for `all` and `default`.
const PER_INTERFACE: &[&str] = &["arp_announce", "arp_filter", "arp_ignore", "rp_filter"];

/// Reads all of them as facts, by full name. Those of the scheduler (`kernel.sched_*`) are included only if
/// they exist: most moved to debugfs in 5.13.
pub(crate) fn facts(look: FactReader<'_>, interfaces: &[&str]) -> BTreeMap<String, Fact<String>> {
    let first = look.exists("/proc/sys/net/core/netdev_max_backlog");
    let one = |name: String, path: String| {
        let fact = match look.fact(&format!("/proc/sys/{path}")) {
            Fact::Known(text) => Fact::Known(collapse_whitespace(&text)),
            Fact::Absent(_) if first => Fact::Absent(format!("this kernel has no {name}")),
            Fact::Absent(_) => Fact::Absent(format!("this kernel or this network namespace has no {name}")),
            Fact::Unknown(why) => Fact::Unknown(why),
        };
        (name, fact)
    };
    let fixed =
        NAMES.iter().map(|name| format!("net.{name}")).chain(ADDITIONAL_NAMES.iter().map(|name| (*name).to_owned()));
    let mut facts: BTreeMap<_, _> = fixed.map(|name| one(name.clone(), name.replace('.', "/"))).collect();
    for interface in ["all", "default"].iter().chain(interfaces) {
        for name in PER_INTERFACE {
            // A dot in an interface's name is not a separator: sysctl(8) writes it as a slash.
            let dotted = format!("net.ipv4.conf.{}.{name}", interface.replace('.', "/"));
            let (name, fact) = one(dotted, format!("net/ipv4/conf/{interface}/{name}"));
            facts.insert(name, fact);
        }
    }
    for name in look.names("/proc/sys/kernel", "sched_") {
        let (name, fact) = one(format!("kernel.{name}"), format!("kernel/{name}"));
        facts.insert(name, fact);
    }
    facts
}
