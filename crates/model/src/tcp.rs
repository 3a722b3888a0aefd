//! Decoding of `struct tcp_info` and of congestion control state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sample of `struct tcp_info` (linux/tcp.h); fields are named as in the kernel without `tcpi_`, with the
/// unit last.
///
/// Fields that the kernel did not return (older kernels have a shorter `tcp_info`) are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpInfo {
    /// TCP state number (1 = ESTABLISHED).
    pub state: u8,
    /// Congestion avoidance state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Consecutive retransmission timeouts.
    pub retransmits: u8,
    /// Zero window or RTO probes outstanding.
    pub probes: u8,
    /// RTO back-off exponent.
    pub backoff: u8,
    /// Option bits: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN, 16 ECN seen, 32 SYN data, 64 usec timestamps.
    pub options: u8,
    /// Send window scale.
    pub snd_wscale: u8,
    /// Receive window scale.
    pub rcv_wscale: u8,
    /// Whether the delivery rate sample is application-limited.
    pub delivery_rate_app_limited: bool,
    /// Fast Open failure reason.
    pub fastopen_client_fail: u8,
    /// Retransmission timeout, microseconds.
    pub rto_us: u32,
    /// Delayed ACK timeout, microseconds.
    pub ato_us: u32,
    /// Send MSS, bytes.
    pub snd_mss_bytes: u32,
    /// Receive MSS estimate, bytes.
    pub rcv_mss_bytes: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Segments selectively acknowledged.
    pub sacked: u32,
    /// Segments considered lost.
    pub lost: u32,
    /// Retransmitted segments in flight.
    pub retrans: u32,
    /// Milliseconds since data was last sent.
    pub last_data_sent_ms: u32,
    /// Milliseconds since data was last received.
    pub last_data_recv_ms: u32,
    /// Milliseconds since an ACK was last received.
    pub last_ack_recv_ms: u32,
    /// Path MTU, bytes.
    pub pmtu_bytes: u32,
    /// Receive slow start threshold, bytes.
    pub rcv_ssthresh_bytes: u32,
    /// Smoothed RTT, microseconds.
    pub rtt_us: u32,
    /// RTT variation, microseconds.
    pub rttvar_us: u32,
    /// Slow start threshold, segments.
    pub snd_ssthresh: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Advertised MSS, bytes.
    pub advmss_bytes: u32,
    /// Reordering degree, segments.
    pub reordering: u32,
    /// Receiver's RTT estimate, microseconds.
    pub rcv_rtt_us: u32,
    /// Receive buffer autotuning target, bytes.
    pub rcv_space_bytes: u32,
    /// Retransmitted segments since the connection began.
    pub total_retrans: u32,
    /// Current pacing rate, bytes/s; `None` when unlimited.
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// Pacing limit, bytes/s; `None` when unlimited.
    pub max_pacing_rate_bytes_per_s: Option<u64>,
    /// Bytes acknowledged (RFC 4898 tcpEStatsAppHCThruOctetsAcked).
    pub bytes_acked: Option<u64>,
    /// Bytes received in order.
    pub bytes_received: Option<u64>,
    /// Segments sent.
    pub segs_out: Option<u32>,
    /// Segments received.
    pub segs_in: Option<u32>,
    /// Bytes written and not yet sent.
    pub notsent_bytes: Option<u32>,
    /// Minimum RTT, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Segments received carrying data.
    pub data_segs_in: Option<u32>,
    /// Segments sent carrying data.
    pub data_segs_out: Option<u32>,
    /// Most recent delivery rate sample, bytes/s.
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// Time with data outstanding, microseconds (includes both limits below).
    pub busy_time_us: Option<u64>,
    /// Time limited by the receive window, microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Time limited by the send buffer, microseconds.
    pub sndbuf_limited_us: Option<u64>,
    /// Segments delivered, retransmissions included.
    pub delivered: Option<u32>,
    /// Segments delivered with an ECN mark.
    pub delivered_ce: Option<u32>,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// DSACK blocks received (RFC 4898 tcpEStatsStackDSACKDups).
    pub dsack_dups: Option<u32>,
    /// Reordering events seen.
    pub reord_seen: Option<u32>,
    /// Out-of-order packets received.
    pub rcv_ooopack: Option<u32>,
    /// Peer's advertised window after scaling, bytes.
    pub snd_wnd_bytes: Option<u32>,
    /// Advertised receive window of this host after scaling, bytes.
    pub rcv_wnd_bytes: Option<u32>,
    /// Number of PLB (protective load balancing) rehashes.
    pub rehash: Option<u32>,
    /// Retransmission timeouts since the connection began.
    pub total_rto: Option<u16>,
    /// RTO recoveries since the connection began.
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in RTO recoveries, milliseconds.
    pub total_rto_time_ms: Option<u32>,
    /// Number of bytes the kernel returned. Bytes beyond the last field above are only in the raw copy.
    pub returned_bytes: u32,
}

/// State of the congestion control (`TCP_CC_INFO`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "algorithm")]
pub enum CongestionDetail {
    /// BBR's model of the path.
    Bbr {
        /// Bottleneck bandwidth estimate, bytes/s.
        bandwidth_bytes_per_s: u64,
        /// Minimum RTT, microseconds.
        min_rtt_us: u32,
        /// Current pacing gain.
        pacing_gain: f64,
        /// Current cwnd gain.
        cwnd_gain: f64,
    },
}

impl TcpInfo {
    /// Decodes only `bytes_acked`, `bytes_received` and `total_retrans`, which show whether a connection transfers
    /// data; 0 if `struct tcp_info` is too short. Much cheaper than [`Self::decode`].
    pub fn moved(raw: &[u8]) -> (u64, u64, u32) {
        let u64_at =
            |at: usize| raw.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u64::from_ne_bytes(*b));
        let retransmits = raw.get(100..).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b));
        (u64_at(120), u64_at(128), retransmits)
    }

    /// Decodes `struct tcp_info` as returned by the kernel. The offsets are those of linux/tcp.h and the same on
    /// every 64-bit architecture (`static_assert` in the kernel checks the user ABI); fields beyond the end of `raw`
    /// are `None`.
    pub fn decode(raw: &[u8]) -> Self {
        let u8_at = |at: usize| raw.get(at).copied().unwrap_or(0);
        let u16_at = |at: usize| Some(u16::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let old = |at| u32_at(at).unwrap_or(0);
        // The kernel reports "no limit" as all ones (`sk_pacing_rate` is an unsigned long, ~0UL).
        let rate = |at| u64_at(at).filter(|&v| v != u64::MAX && v != u64::from(u32::MAX));
        Self {
            state: u8_at(0),
            ca_state: u8_at(1),
            retransmits: u8_at(2),
            probes: u8_at(3),
            backoff: u8_at(4),
            options: u8_at(5),
            snd_wscale: u8_at(6) & 0x0f,
            rcv_wscale: u8_at(6) >> 4,
            delivery_rate_app_limited: u8_at(7) & 1 == 1,
            fastopen_client_fail: (u8_at(7) >> 1) & 3,
            rto_us: old(8),
            ato_us: old(12),
            snd_mss_bytes: old(16),
            rcv_mss_bytes: old(20),
            unacked: old(24),
            sacked: old(28),
            lost: old(32),
            retrans: old(36),
            last_data_sent_ms: old(44),
            last_data_recv_ms: old(52),
            last_ack_recv_ms: old(56),
            pmtu_bytes: old(60),
            rcv_ssthresh_bytes: old(64),
            rtt_us: old(68),
            rttvar_us: old(72),
            snd_ssthresh: old(76),
            snd_cwnd: old(80),
            advmss_bytes: old(84),
            reordering: old(88),
            rcv_rtt_us: old(92),
            rcv_space_bytes: old(96),
            total_retrans: old(100),
            pacing_rate_bytes_per_s: rate(104),
            max_pacing_rate_bytes_per_s: rate(112),
            bytes_acked: u64_at(120),
            bytes_received: u64_at(128),
            segs_out: u32_at(136),
            segs_in: u32_at(140),
            notsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148).filter(|&v| v != u32::MAX),
            data_segs_in: u32_at(152),
            data_segs_out: u32_at(156),
            delivery_rate_bytes_per_s: u64_at(160),
            busy_time_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            delivered: u32_at(192),
            delivered_ce: u32_at(196),
            bytes_sent: u64_at(200),
            bytes_retrans: u64_at(208),
            dsack_dups: u32_at(216),
            reord_seen: u32_at(220),
            rcv_ooopack: u32_at(224),
            snd_wnd_bytes: u32_at(228),
            rcv_wnd_bytes: u32_at(232),
            rehash: u32_at(236),
            total_rto: u16_at(240),
            total_rto_recoveries: u16_at(242),
            total_rto_time_ms: u32_at(244),
            returned_bytes: raw.len() as u32,
        }
    }
}

impl CongestionDetail {
    /// Decodes `union tcp_cc_info` of algorithms with a known layout (BBR: `tcp_bbr_info` of linux/inet_diag.h);
    /// otherwise `None`.
    pub fn decode(algorithm: &str, raw: &[u8]) -> Option<Self> {
        /// BBR's gains are fixed point with eight fractional bits.
        const BBR_UNIT: f64 = 256.0;
        let u32_at = |at: usize| Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        match algorithm {
            "bbr" => Some(Self::Bbr {
                bandwidth_bytes_per_s: u64::from(u32_at(0)?) | u64::from(u32_at(4)?) << 32,
                min_rtt_us: u32_at(8)?,
                pacing_gain: f64::from(u32_at(12)?) / BBR_UNIT,
                cwnd_gain: f64::from(u32_at(16)?) / BBR_UNIT,
            }),
            _ => None,
        }
    }
}
