//! Live readings of a running test, for interval output.

use landspeed_model::TcpInfo;
use serde::{Deserialize, Serialize};

/// Reading of one side at one time. Counters are cumulative from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveReading {
    /// Nanoseconds after the start.
    pub t_ns: u64,
    /// Payload bytes passed to the kernel by the local senders.
    pub sent: u64,
    /// Payload bytes delivered by the local receivers.
    pub received: u64,
    /// State of the local TCP senders.
    pub tcp: Option<TcpState>,
    /// State of the local UDP receivers.
    pub udp: Option<UdpState>,
    /// Transactions completed by the local requesters.
    pub transactions: u64,
    /// Sum of their latencies, nanoseconds.
    pub latency_sum_ns: u64,
}

/// Combined state of the TCP senders of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpState {
    /// Segments, summed over the streams.
    pub retransmits: u64,
    /// Smoothed RTT, mean over the streams, microseconds.
    pub rtt_us: u64,
    /// Sum of the congestion windows, bytes.
    pub cwnd_bytes: u64,
}

/// Combined state of the UDP receivers of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpState {
    /// Datagrams delivered, without duplicates.
    pub delivered: u64,
    /// Datagrams missing below the highest sequence number, including reordered ones still in flight.
    pub lost: u64,
    /// RFC 3550 jitter of the worst stream, nanoseconds.
    pub jitter_ns: u64,
}

impl TcpState {
    /// Combines the senders' `tcp_info`; `None` if there are no senders.
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
