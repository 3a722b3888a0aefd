//! What a running test tells about itself: live readings for interval output, and the final counts of its senders.
//! The engine ([`crate::end`]), the messages ([`crate::control`]) and the client share these types.

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
    /// Time since the last ACK on any stream although data is outstanding on all, milliseconds; otherwise 0.
    pub silent_ms: u64,
}

/// Combined state of the UDP receivers of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpState {
    /// Datagrams delivered, without duplicates.
    pub delivered: u64,
    /// Datagrams missing below the highest sequence number, including reordered ones still in flight.
    pub lost: u64,
    /// RFC 3550 jitter of the worst stream, nanoseconds; `None` if a stream has none (no kernel timestamps).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

impl TcpState {
    /// Combines the senders' `tcp_info`; `None` if there are no senders.
    pub fn sum(infos: impl Iterator<Item = TcpInfo>) -> Option<Self> {
        let (mut sum, mut streams) = (Self { silent_ms: u64::MAX, ..Self::default() }, 0);
        for info in infos {
            sum.silent_ms = sum.silent_ms.min(if info.unacked > 0 { u64::from(info.last_ack_recv_ms) } else { 0 });
            streams += 1;
            sum.retransmits += u64::from(info.total_retrans);
            sum.rtt_us += u64::from(info.rtt_us);
            sum.cwnd_bytes += u64::from(info.snd_cwnd) * u64::from(info.snd_mss_bytes);
        }
        (streams > 0).then(|| Self { rtt_us: sum.rtt_us / streams, ..sum })
    }
}

/// Live figures. Each side reads its own streams; the server's reading is up to 0.2 s and half a round trip
/// old.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Nanoseconds since the start.
    pub t_ns: u64,
    /// Data from client to server.
    pub upload: DirectionProgress,
    /// Data from server to client.
    pub download: DirectionProgress,
    /// Bytes (UDP: payload) passed to the kernel by the client.
    pub sent: u64,
    /// Request/response: transactions completed.
    pub transactions: u64,
    /// Sum of their latencies, nanoseconds.
    pub latency_sum_ns: u64,
    /// Time of the transaction count, nanoseconds since the start.
    pub transactions_t_ns: u64,
}

/// Live state of one direction: bytes and loss as counted by the receiver, TCP state as seen by the sender.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectionProgress {
    /// Time of the receiver's reading, nanoseconds since the start.
    pub t_ns: u64,
    /// Payload bytes that reached the receivers.
    pub bytes: u64,
    /// TCP: state of the senders.
    pub tcp: Option<TcpState>,
    /// UDP: state of the receivers.
    pub udp: Option<UdpState>,
}

impl Progress {
    /// Combines the latest readings of client and server.
    pub(crate) fn of(t_ns: u64, local: &LiveReading, remote: &LiveReading) -> Self {
        let moved = |sender: &LiveReading, receiver: &LiveReading| DirectionProgress {
            t_ns: receiver.t_ns,
            bytes: receiver.received,
            tcp: sender.tcp,
            udp: receiver.udp,
        };
        Self {
            t_ns,
            upload: moved(local, remote),
            download: moved(remote, local),
            sent: local.sent,
            transactions: local.transactions,
            latency_sum_ns: local.latency_sum_ns,
            transactions_t_ns: local.t_ns,
        }
    }
}

/// Final counts of a sending stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderDone {
    /// Stream number.
    pub stream: u32,
    /// Payload bytes accepted by the kernel.
    pub bytes: u64,
    /// Datagrams accepted by the kernel.
    pub packets: u64,
    /// Time when the last write returned, nanoseconds after the agreed start.
    pub stopped_ns: u64,
}
