//! Windows and the buffers they need.

/// The largest window TCP can advertise: a 16-bit field shifted by at most 14 (RFC 7323 section 2.3), just under 1 GiB.
pub const MAX_WINDOW_BYTES: f64 = (65_535_u32 << 14) as f64;

/// The largest value of `tcp_rmem` and `tcp_wmem`: they are signed 32-bit integers
/// (Linux net/ipv4/sysctl_net_ipv4.c; Documentation/networking/ip-sysctl.rst).
pub const MAX_SYSCTL_BYTES: f64 = i32::MAX as f64;

/// The largest socket buffer that limits anything: 64 MiB below 2 GiB. The kernel counts a socket's memory in a signed
/// 32-bit integer and compares after it has added a packet: without a margin the count becomes negative.
pub const MAX_BUFFER_BYTES: f64 = ((2_u32 << 30) - (64 << 20)) as f64;

/// Bandwidth-delay product: `rate × RTT / 8` (RFC 7323 section 1.1). The data in flight that just fills the path.
pub fn bdp_bytes(rate_bps: f64, rtt_s: f64) -> f64 {
    rate_bps * rtt_s / 8.0
}

/// The window one flow needs for `rate_bps`, which is the BDP; `None` if it exceeds the window that TCP can
/// advertise ([`MAX_WINDOW_BYTES`]).
pub fn window_bytes(rate_bps: f64, rtt_s: f64) -> Option<f64> {
    let bdp = bdp_bytes(rate_bps, rtt_s);
    (bdp <= MAX_WINDOW_BYTES).then_some(bdp)
}

/// The maximum rate of one TCP flow over an RTT: `65535 × 2^14 × 8 / RTT` (RFC 7323 section 2.3).
pub fn flow_rate_ceiling_bps(rtt_s: f64) -> f64 {
    MAX_WINDOW_BYTES * 8.0 / rtt_s
}

/// The number of flows that the window field requires for a rate: `⌈BDP / 1 GiB window⌉`, at least one.
pub fn flows_needed(rate_bps: f64, rtt_s: f64) -> f64 {
    (bdp_bytes(rate_bps, rtt_s) / MAX_WINDOW_BYTES).ceil().max(1.0)
}

/// The maximum for `tcp_rmem` and `tcp_wmem` per flow: `min(2 × BDP, 1.94 GiB)`, the window capped at 1 GiB
/// first ([`MAX_BUFFER_BYTES`]).
///
/// The factor is 2 because a receive buffer also has to hold the kernel's own structures (about 0.67 of it became
/// window at MTU 9000 on Linux 6.18), and a sender holds the data in flight and the data to send next (ESnet
/// fasterdata, host tuning).
pub fn socket_buffer_bytes(rate_bps: f64, rtt_s: f64) -> f64 {
    (2.0 * bdp_bytes(rate_bps, rtt_s).min(MAX_WINDOW_BYTES)).min(MAX_BUFFER_BYTES)
}

/// The bottleneck buffer for `flows` unsynchronised long flows: `RTT × C / √N` (Appenzeller, Keslassy, McKeown:
/// Sizing Router Buffers, SIGCOMM 2004). With one flow it is the rule of thumb `RTT × C` (Villamizar, Song: High
/// Performance TCP in ANSNET, CCR 1994).
pub fn buffer_many_flows_bytes(rate_bps: f64, rtt_s: f64, flows: f64) -> f64 {
    bdp_bytes(rate_bps, rtt_s) / flows.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_gigabits_over_100_ms_are_125_megabytes() {
        assert!((bdp_bytes(10e9, 0.1) - 125e6).abs() < 1e-3);
        assert!((bdp_bytes(40e9, 0.1) - 500e6).abs() < 1e-3);
        assert!((bdp_bytes(100e9, 0.1) - 1.25e9).abs() < 1e-3);
    }

    #[test]
    fn a_window_above_one_gib_is_refused() {
        assert_eq!(window_bytes(100e9, 0.1), None);
        assert!(window_bytes(85e9, 0.1).is_some());
        assert!(MAX_WINDOW_BYTES < (1u64 << 30) as f64);
    }

    #[test]
    fn one_flow_carries_at_most_86_gigabits_at_100_ms() {
        assert!((flow_rate_ceiling_bps(0.1) / 1e9 - 85.9).abs() < 0.01);
        assert!((flows_needed(85e9, 0.1) - 1.0).abs() < f64::EPSILON);
        assert!((flows_needed(200e9, 0.1) - 3.0).abs() < f64::EPSILON);
        assert!((flows_needed(1e6, 1e-5) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn socket_buffers_are_twice_the_bdp_and_fit_an_int() {
        assert!((socket_buffer_bytes(10e9, 0.1) - 250e6).abs() < 1e-3);
        assert!((socket_buffer_bytes(100e9, 0.1) - MAX_BUFFER_BYTES).abs() < 1.0);
        assert!((socket_buffer_bytes(1e15, 3600.0) - MAX_BUFFER_BYTES).abs() < 1.0);
        const { assert!(MAX_BUFFER_BYTES < MAX_SYSCTL_BYTES) };
    }

    #[test]
    fn a_hundred_flows_need_a_tenth_of_the_buffer() {
        let one = buffer_many_flows_bytes(10e9, 0.1, 1.0);
        assert!((one - bdp_bytes(10e9, 0.1)).abs() < 1e-3);
        assert!((buffer_many_flows_bytes(10e9, 0.1, 100.0) - one / 10.0).abs() < 1e-3);
    }
}
