//! One stream: its intervals, both its ends, and their samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CongestionDetail, Direction, PhaseName, TcpInfo};

/// One TCP connection or UDP flow of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Number within the test, from 0; the same at both ends.
    pub id: u32,
    /// Which way its data moves.
    pub direction: Direction,
    /// Client's address and port.
    pub client_addr: String,
    /// Server's address and port.
    pub server_addr: String,
    /// What the receiver delivered, interval by interval; their bytes add up to the receiver's total exactly.
    /// Sender-side acknowledgements stand in when the receiver's report was lost (`intervals_from`).
    pub intervals: Vec<Interval>,
    /// Which end `intervals` was read from: `receiver` or `sender`.
    pub intervals_from: String,
    /// The sending end, as the sender saw it.
    pub sender: Option<StreamEnd>,
    /// The receiving end, as the receiver saw it.
    pub receiver: Option<StreamEnd>,
}

/// Bytes delivered in one span of the timeline. An interval never straddles two phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start, nanoseconds after the agreed start.
    pub start_ns: u64,
    /// End, nanoseconds.
    pub end_ns: u64,
    /// The phase it belongs to.
    pub phase: PhaseName,
    /// Payload bytes delivered to the receiving application.
    pub bytes: u64,
    /// UDP: packets delivered (first copies).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// One end of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEnd {
    /// Payload bytes the application wrote to, or read from, the socket.
    pub bytes: u64,
    /// TCP sender: payload bytes acknowledged by the peer (`tcpi_bytes_acked`).
    pub bytes_acked: Option<u64>,
    /// TCP sender: segments retransmitted.
    pub retransmits: Option<u64>,
    /// TCP sender: bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Bytes left in the send queue when the stream ended (`SIOCOUTQ`: unsent and unacknowledged).
    pub send_queue_bytes: Option<u64>,
    /// Bytes left unread in the receive queue when the stream ended (`SIOCINQ`).
    pub receive_queue_bytes: Option<u64>,
    /// Congestion control in force.
    pub congestion: Option<String>,
    /// Send MSS, bytes.
    pub mss_bytes: Option<u32>,
    /// `SO_SNDBUF` in force, bytes (kernel bookkeeping included).
    pub sndbuf_bytes: Option<u64>,
    /// `SO_RCVBUF` in force, bytes.
    pub rcvbuf_bytes: Option<u64>,
    /// Core the thread was pinned to.
    pub cpu: Option<u32>,
    /// CPU that processed the last packet that arrived (`SO_INCOMING_CPU`): it serves the flow's receive queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming_cpu: Option<u32>,
    /// Receive queue of that packet (`SO_INCOMING_NAPI_ID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi_id: Option<u32>,
    /// CPU time the stream's thread used, nanoseconds.
    pub thread_cpu_ns: u64,
    /// User part of it, nanoseconds.
    pub thread_user_ns: u64,
    /// System part of it, nanoseconds.
    pub thread_system_ns: u64,
    /// Time the thread was ready to run and had no core, nanoseconds (`/proc/thread-self/schedstat`).
    pub thread_wait_ns: Option<u64>,
    /// Data system calls made.
    pub syscalls: u64,
    /// Time the local application spent waiting for its own schedule (`--rate` at the sender, `--read-rate` at the
    /// receiver), nanoseconds.
    pub app_wait_ns: u64,
    /// First byte moved, nanoseconds after the start.
    pub first_byte_ns: Option<u64>,
    /// Last byte moved, nanoseconds after the start.
    pub last_byte_ns: Option<u64>,
    /// How the stream ended, if not well.
    pub error: Option<String>,
    /// Zero copy: what became of it.
    pub zerocopy: Option<ZeroCopyUse>,
    /// Local UDP accounting.
    pub udp: Option<UdpEnd>,
    /// Readings over time, cumulative counters.
    pub samples: Vec<Sample>,
}

/// What became of zero-copy sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyUse {
    /// Sends completed.
    pub completions: u64,
    /// Sends the kernel copied after all (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: u64,
    /// Sends refused with `ENOBUFS` (`net.core.optmem_max`), repeated with a copy.
    pub enobufs: u64,
}

/// UDP accounting of one end of a stream. Sender fields are zero at the receiver and the other way round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpEnd {
    /// Sender: datagrams accepted by the kernel.
    pub sent_packets: u64,
    /// Sender: datagrams refused by the kernel (`ENOBUFS`: dropped in the local qdisc or device).
    pub send_errors: u64,
    /// Receiver: first copies of datagrams of this test.
    pub delivered_packets: u64,
    /// Receiver: further copies.
    pub duplicate_packets: u64,
    /// Receiver: first copies that arrived after a higher sequence number (RFC 4737 type-P-reordered).
    pub reordered_packets: u64,
    /// Receiver: first copies that arrived in the drain phase, after the sender had stopped; counted as delivered.
    pub late_packets: u64,
    /// Receiver: packets so late that the sequence bitmap had moved on; they can be neither first copies nor duplicates for sure.
    pub beyond_window_packets: u64,
    /// Receiver: datagrams that were not of this stream or malformed.
    pub foreign_packets: u64,
    /// Receiver: highest sequence number seen plus one.
    pub highest_seq: u64,
    /// Receiver: what the socket dropped because its buffer was full (`SO_RXQ_OVFL`). The kernel counts a coalesced
    /// batch as one.
    pub socket_drops: u64,
    /// Receiver: interarrival jitter (RFC 3550), kernel receive timestamps, nanoseconds.
    pub jitter_ns: Option<u64>,
    /// Receiver: where the timestamps came from: `kernel`, or `kernel, coalesced` when GRO batches shared one.
    pub timestamps: Option<String>,
    /// Sender: lateness of departures against the schedule: quantiles in nanoseconds.
    pub departure_error: Option<DepartureError>,
    /// Receiver: whether GRO delivered coalesced batches.
    pub gro_used: bool,
    /// Sender: whether GSO was used.
    pub gso_used: bool,
}

/// How far departures were from their schedule, in absolute value, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepartureError {
    /// Departures counted.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// One reading of a stream's counters. Counters are cumulative from the start of the test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When, nanoseconds after the agreed start.
    pub t_ns: u64,
    /// Bytes written or read by the application so far.
    pub bytes: u64,
    /// Send queue, bytes unacknowledged and unsent (`SIOCOUTQ`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_queue_bytes: Option<u32>,
    /// Receive queue, bytes unread (`SIOCINQ`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue_bytes: Option<u32>,
    /// Memory charged to the receive queue and its limit, bytes (`SO_MEMINFO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmem_alloc_bytes: Option<u32>,
    /// `SO_RCVBUF` now, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf_bytes: Option<u32>,
    /// Memory charged to the send queue (`SK_MEMINFO_WMEM_QUEUED`), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmem_queued_bytes: Option<u32>,
    /// `SO_SNDBUF` now, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf_bytes: Option<u32>,
    /// Datagrams or segments dropped by the socket (`SK_MEMINFO_DROPS`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u32>,
    /// CPU time the stream's thread has used since it began, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// Time it was ready to run and had no core, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_wait_ns: Option<u64>,
    /// UDP: packets sent or delivered so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// TCP: decoded `tcp_info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Box<TcpInfo>>,
    /// TCP: the same `tcp_info` as the kernel returned it, base64, so that unknown fields survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_info_raw: Option<String>,
    /// TCP: congestion control's own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionDetail>,
}
