//! One stream: its intervals, its sender and receiver, and their samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CongestionDetail, Direction, PhaseName, TcpInfo};

/// One TCP connection or UDP flow of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Number of the stream in the test, from 0; the same on both hosts.
    pub id: u32,
    /// Direction of the data.
    pub direction: Direction,
    /// Client's address and port.
    pub client_addr: String,
    /// Server's address and port.
    pub server_addr: String,
    /// Bytes delivered per interval, measured by the receiver; their sum is exactly the receiver's total. TCP: taken
    /// from the sender's ACKs if the receiver's samples are missing (`intervals_from`).
    pub intervals: Vec<Interval>,
    /// Source of `intervals`: `receiver`, `sender`, or `none`.
    pub intervals_from: String,
    /// Figures of the sender; `None` if it did not report.
    pub sender: Option<StreamEnd>,
    /// Figures of the receiver; `None` if it did not report.
    pub receiver: Option<StreamEnd>,
}

/// Bytes delivered in one interval of the timeline; intervals do not cross phase boundaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start, nanoseconds after the agreed start.
    pub start_ns: u64,
    /// End, nanoseconds after the agreed start.
    pub end_ns: u64,
    /// Phase of the interval.
    pub phase: PhaseName,
    /// Payload bytes delivered to the receiving application.
    pub bytes: u64,
    /// UDP: packets delivered, duplicates excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// Sender or receiver of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEnd {
    /// Payload bytes written to the socket (sender) or read from it (receiver).
    pub bytes: u64,
    /// TCP sender: payload bytes acknowledged by the peer (`tcpi_bytes_acked`).
    pub bytes_acked: Option<u64>,
    /// TCP sender: segments retransmitted.
    pub retransmits: Option<u64>,
    /// TCP sender: bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Bytes in the send queue at the end of the stream, unsent and unacknowledged (`SIOCOUTQ`).
    pub send_queue_bytes: Option<u64>,
    /// Unread bytes in the receive queue at the end of the stream (`SIOCINQ`).
    pub receive_queue_bytes: Option<u64>,
    /// Effective congestion control (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Send MSS, bytes.
    pub mss_bytes: Option<u32>,
    /// Effective `SO_SNDBUF`, bytes (kernel overhead included).
    pub sndbuf_bytes: Option<u64>,
    /// Effective `SO_RCVBUF`, bytes (kernel overhead included).
    pub rcvbuf_bytes: Option<u64>,
    /// Core the stream's thread is pinned to; `None` if it is not pinned.
    pub cpu: Option<u32>,
    /// CPU that processed the last received packet (`SO_INCOMING_CPU`), which serves the flow's receive queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming_cpu: Option<u32>,
    /// NAPI id (receive queue) of the last received packet (`SO_INCOMING_NAPI_ID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi_id: Option<u32>,
    /// CPU time of the stream's thread, nanoseconds; like the next fields `None` if the host does not report it (iperf3).
    pub thread_cpu_ns: Option<u64>,
    /// User part of `thread_cpu_ns`, nanoseconds.
    pub thread_user_ns: Option<u64>,
    /// System part of `thread_cpu_ns`, nanoseconds.
    pub thread_system_ns: Option<u64>,
    /// Time the thread was runnable without a core, nanoseconds (`/proc/thread-self/schedstat`).
    pub thread_wait_ns: Option<u64>,
    /// System calls that sent or received data; `None` for request/response.
    pub syscalls: Option<u64>,
    /// Time the application waited for its own schedule (`--rate` at the sender, `--read-rate` at the receiver),
    /// nanoseconds.
    pub app_wait_ns: Option<u64>,
    /// Time of the first byte, nanoseconds after the agreed start; `None` if no byte was transferred.
    pub first_byte_ns: Option<u64>,
    /// Time of the last byte, nanoseconds after the agreed start; `None` if no byte was transferred.
    pub last_byte_ns: Option<u64>,
    /// Error that ended the stream; `None` if it ended normally.
    pub error: Option<String>,
    /// Zero-copy statistics; `None` for other send modes.
    pub zerocopy: Option<ZeroCopyUse>,
    /// UDP accounting of this host; `None` for TCP.
    pub udp: Option<UdpEnd>,
    /// Samples over time; counters are cumulative.
    pub samples: Vec<Sample>,
}

/// Zero-copy statistics of a sender (`MSG_ZEROCOPY`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyUse {
    /// Completed sends.
    pub completions: u64,
    /// Completed sends that the kernel copied nevertheless (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: u64,
    /// Sends refused with `ENOBUFS` (`net.core.optmem_max`) and repeated with a copy.
    pub enobufs: u64,
}

/// UDP accounting at the sender or receiver of a stream. Fields of the other side are 0 or `None`; counters are `None`
/// if the host does not report them (iperf3) or its kernel does not have them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpEnd {
    /// Sender: datagrams accepted by the kernel.
    pub sent_packets: u64,
    /// Sender: datagrams refused by the kernel (`ENOBUFS`: dropped in the local qdisc or device).
    pub send_errors: Option<u64>,
    /// Receiver: distinct datagrams of this stream.
    pub delivered_packets: u64,
    /// Receiver: extra copies of delivered datagrams.
    pub duplicate_packets: Option<u64>,
    /// Receiver: datagrams whose first copy arrived after a higher sequence number (RFC 4737 Type-P-Reordered).
    pub reordered_packets: Option<u64>,
    /// Receiver: datagrams whose first copy arrived in the drain phase, after the sender had stopped; counted as
    /// delivered.
    pub late_packets: Option<u64>,
    /// Receiver: runs of consecutive lost datagrams before the last one that arrived (loss periods, RFC 3357); `None` if datagrams were
    /// reordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_periods: Option<u64>,
    /// Receiver: datagrams older than the sequence bitmap, which may be first copies or duplicates.
    pub beyond_window_packets: Option<u64>,
    /// Receiver: datagrams that are malformed or do not belong to this stream.
    pub foreign_packets: Option<u64>,
    /// Receiver: highest sequence number received + 1.
    pub highest_seq: u64,
    /// Receiver: datagrams dropped because the socket buffer was full (`SO_RXQ_OVFL`). The kernel counts a coalesced
    /// GRO batch as one.
    pub socket_drops: Option<u64>,
    /// Receiver: interarrival jitter (RFC 3550) from kernel receive timestamps, nanoseconds.
    pub jitter_ns: Option<u64>,
    /// Receiver: source of the timestamps: `kernel`, or `kernel, coalesced` if datagrams of a GRO batch shared one.
    pub timestamps: Option<String>,
    /// Sender: deviation of departures from their schedule; `None` if nothing was scheduled.
    pub departure_error: Option<DepartureError>,
    /// Receiver: whether GRO delivered coalesced datagrams.
    pub gro_used: bool,
    /// Sender: whether GSO was used.
    pub gso_used: bool,
}

/// Absolute deviation of departures from their schedule, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepartureError {
    /// Number of departures measured.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// One sample of a stream's counters, cumulative since the start of the test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Time of the sample, nanoseconds after the agreed start.
    pub t_ns: u64,
    /// Payload bytes written or read by the application.
    pub bytes: u64,
    /// Send queue, unsent and unacknowledged bytes (`SIOCOUTQ`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_queue_bytes: Option<u32>,
    /// Receive queue, unread bytes (`SIOCINQ`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue_bytes: Option<u32>,
    /// Memory charged to the receive queue (`SK_MEMINFO_RMEM_ALLOC`), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmem_alloc_bytes: Option<u32>,
    /// Current `SO_RCVBUF`, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf_bytes: Option<u32>,
    /// Memory charged to the send queue (`SK_MEMINFO_WMEM_QUEUED`), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmem_queued_bytes: Option<u32>,
    /// Current `SO_SNDBUF`, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf_bytes: Option<u32>,
    /// Datagrams or segments dropped by the socket (`SK_MEMINFO_DROPS`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u32>,
    /// CPU time of the stream's thread since it started, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
    /// Time the thread was runnable without a core, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_wait_ns: Option<u64>,
    /// UDP: packets sent or delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// TCP: decoded `struct tcp_info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Box<TcpInfo>>,
    /// TCP: `struct tcp_info` as the kernel returned it, base64; preserves fields that are not decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_info_raw: Option<String>,
    /// TCP: state of the congestion control (`TCP_CC_INFO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionDetail>,
}
