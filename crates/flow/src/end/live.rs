//! Figures of a running end, for interval lines.

use landspeed_model::TcpInfo;
use serde::{Deserialize, Serialize};

/// One end at one moment. Counters are cumulative from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveReading {
    /// Nanoseconds after the start.
    pub t_ns: u64,
    /// Payload bytes that senders here handed to the kernel.
    pub sent: u64,
    /// Payload bytes that receivers here delivered.
    pub received: u64,
    /// TCP senders here.
    pub tcp: Option<TcpState>,
    /// UDP receivers here.
    pub udp: Option<UdpState>,
    /// Transactions completed by requesters here.
    pub transactions: u64,
    /// The sum of their latencies, nanoseconds.
    pub latency_sum_ns: u64,
}

/// TCP senders of one end, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpState {
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// Smoothed RTT, the mean over the streams, microseconds.
    pub rtt_us: u64,
    /// Congestion windows, bytes.
    pub cwnd_bytes: u64,
}

/// UDP receivers of one end, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpState {
    /// Datagrams delivered so far (first copies).
    pub delivered: u64,
    /// Datagrams missing so far below the highest sequence number; those under way behind a later one are among them.
    pub lost: u64,
    /// RFC 3550 jitter of the worst stream, nanoseconds.
    pub jitter_ns: u64,
}

impl TcpState {
    /// Of the senders' `tcp_info`; `None` without any.
    pub fn sum(infos: impl Iterator<Item = TcpInfo>) -> Option<Self> {
        let (mut sum, mut streams) = (Self::default(), 0);
        for info in infos {
            streams += 1;
            sum.retransmits += u64::from(info.total_retrans);
            sum.rtt_us += u64::from(info.rtt_us);
            sum.cwnd_bytes += u64::from(info.snd_cwnd) * u64::from(info.snd_mss_bytes);
        }
        (streams > 0).then(|| Self { rtt_us: sum.rtt_us / streams, ..sum })
    }
}
