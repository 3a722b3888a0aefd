//! The sysctls that matter to a transfer.

use std::collections::BTreeMap;

use crate::files::Files;
use crate::parse::squeeze;

/// Below `net.`; those a kernel or a namespace does not have are left out.
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

/// Those that exist, as text with single blanks.
pub(crate) fn read(files: &Files) -> BTreeMap<String, String> {
    let one = |name: &&str| {
        let text = files.read(&format!("/proc/sys/net/{}", name.replace('.', "/"))).ok()?;
        Some((format!("net.{name}"), squeeze(&text)))
    };
    NAMES.iter().filter_map(one).collect()
}
