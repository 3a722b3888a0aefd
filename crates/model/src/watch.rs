//! `landspeed.watch/1`: running TCP flows of a host, and the cause that limits each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Cause, Confidence, Epoch, Evidence, QuotaUse, WatchChange, WatchRecent, WatchSeries};

/// TCP flows of a host observed over a period, with verdicts. A figure that was not read is null; builds before 0.2.0 wrote
/// 0 for some of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchDocument {
    /// Always `landspeed.watch/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Host name.
    pub hostname: String,
    /// Kernel release (`uname -r`).
    pub kernel_release: String,
    /// Time from the first to the last socket dump, nanoseconds.
    pub duration_ns: u64,
    /// Flows that transferred data or had data queued, most bytes first: at most `--top` running flows and as many
    /// ended ones.
    pub flows: Vec<WatchFlow>,
    /// Numbers of sockets seen.
    pub sockets: WatchSockets,
    /// Cost of watching to this host.
    pub overhead: WatchOverhead,
    /// Events counted by kernel tracepoints; `None` if they cannot be read (reason in `unavailable.tracepoints`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<WatchEvents>,
    /// Data that could not be read, by name, with the reason.
    pub unavailable: BTreeMap<String, String>,
}

/// One TCP connection, seen from this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchFlow {
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// Socket cookie (`sk` in `ss -e`), hexadecimal; it distinguishes successive connections between the same ports.
    pub cookie: String,
    /// Whether this host sent or received most bytes in `span_ns`; the verdict is about that direction.
    pub role: WatchRole,
    /// Whether the connection had ended at the last dump.
    pub ended: bool,
    /// Process that owns the socket; `None` if unknown (reason in `process_unknown`).
    pub pid: Option<u32>,
    /// Name of the process (`comm`).
    pub command: Option<String>,
    /// Systemd unit of the process, from its control group (`nginx.service`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Container of the process, from its control group: id assigned by the container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Reason the process is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_unknown: Option<String>,
    /// User id of the socket's owner.
    pub uid: u32,
    /// Congestion control (`cubic`); `None` if the kernel did not report it.
    pub congestion: Option<String>,
    /// Times the flow was first and last seen, nanoseconds after the start.
    pub seen_ns: (u64, u64),
    /// Payload bytes sent and acknowledged while the flow was watched.
    pub bytes_acked: u64,
    /// Payload bytes received while the flow was watched.
    pub bytes_received: u64,
    /// Segments retransmitted while the flow was watched.
    pub retransmits: u64,
    /// Span of rates, verdict and shares, nanoseconds after the start: at most the last 30 s.
    pub span_ns: (u64, u64),
    /// Number of `tcp_info` readings in that span.
    pub readings: u32,
    /// Goodput in that span, bits/s: bytes acknowledged at a sender, bytes received in order at a receiver; `None` with
    /// fewer than two readings.
    pub goodput_bps: Option<f64>,
    /// Last smoothed RTT, microseconds; not current at a receiver that sends no data.
    pub rtt_us: Option<u32>,
    /// Minimum RTT of the connection, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Last congestion window, segments; `None` without a reading.
    pub cwnd: Option<u32>,
    /// Cause that limits the flow.
    pub cause: Cause,
    /// Confidence in `cause`; never `high`, because only one host is observed.
    pub confidence: Confidence,
    /// The verdict as one human-readable sentence.
    pub summary: String,
    /// Host or component the cause refers to; `None` if it refers to none.
    pub place: Option<String>,
    /// Readings that support the cause; `source` is the name of the kernel's field.
    pub evidence: Vec<Evidence>,
    /// Rejected causes, each with the reading that excluded it.
    pub ruled_out: Vec<Evidence>,
    /// Readings that were not visible on this host and would have helped.
    pub missing: Vec<String>,
    /// Suggested action.
    pub next_step: String,
    /// Time of the span by limiting state of the sender; the shares add up to 1000. State `unknown` where it was not
    /// visible: at a receiver, all of the time.
    pub shares: Vec<Epoch>,
    /// Activity of this host in the same span, outside the flow's socket.
    #[serde(default)]
    pub host: WatchHost,
    /// Changes of the verdict, the first one included; the last 32. A flow is judged at every interval in which it is
    /// one of the busiest shown, and at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<WatchChange>,
    /// Figures of the last second; `None` for a flow that ended or was not read for a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent: Option<WatchRecent>,
    /// Figures over the whole time the flow was sampled; only in the final document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<WatchSeries>,
}

/// Activity of a host in the span of a flow's readings, outside its socket. `None`: not visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchHost {
    /// Thread of the flow's process with the most CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<ThreadUse>,
    /// Number of threads of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Thread of the process that was blocked most often (state D).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedThread>,
    /// What the thread that serves the socket waits for; known if it was seen in a system call on it, or is the only
    /// thread of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<ThreadWaits>,
    /// Storage reads of the process, bits/s (`read_bytes` of `/proc/PID/io`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bps: Option<f64>,
    /// Storage writes of the process, bits/s (`write_bytes` of `/proc/PID/io`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_write_bps: Option<f64>,
    /// CPU quota of the process's control group or of the ancestor that was throttled most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Why the quota is unknown, if the process's control groups are not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_unknown: Option<String>,
    /// CPU that processed the flow's last received segment (`SO_INCOMING_CPU`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_cpu: Option<u32>,
    /// Which buffer sizes of the socket the program set itself (`SO_BUF_LOCK`, Linux 5.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_locks: Option<BufferLocks>,
    /// Egress interface of the route to the remote address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Packets dropped by nftables rules with a counter, in this network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nft_drops: Option<u64>,
    /// Packets that conntrack dropped or could not assign to a connection (`drop`, `early_drop`, `insert_failed`,
    /// `invalid`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack_drops: Option<u64>,
    /// Packets dropped by packet filters in all network namespaces (`skb:kfree_skb`, reason `NETFILTER_DROP`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_drops: Option<u64>,
}

/// What a thread does and waits for, as shares of its readings, 0..=1, which add up to 1
/// (`/proc/PID/task/TID/syscall`; root).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadWaits {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread (`comm`).
    pub name: String,
    /// Number of readings.
    pub readings: u32,
    /// Running, or ready to run.
    pub runs: f64,
    /// In a receive call on this socket: it waits for data from the remote host.
    pub receive: f64,
    /// In a send call on this socket: it waits for space in the send buffer.
    pub send: f64,
    /// In poll, select or epoll: it waits for any of several descriptors, this socket may be one.
    pub poll: f64,
    /// Sleeping in nanosleep.
    pub sleep: f64,
    /// In another system call: a file, a pipe, a lock.
    pub other: f64,
}

/// Buffers of a socket whose size the program set, so that the kernel no longer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BufferLocks {
    /// `SO_RCVBUF` was set.
    pub receive: bool,
    /// `SO_SNDBUF` was set.
    pub send: bool,
}

/// CPU use of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread (`comm`).
    pub name: String,
    /// Share of the time running on a core, 0..=1.
    pub cpu_share: f64,
    /// Share of the time runnable without a core, 0..=1.
    pub wait_share: f64,
    /// Core the thread last ran on.
    pub cpu: Option<u32>,
}

/// A thread in uninterruptible sleep (state D), nearly always waiting for storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedThread {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread (`comm`).
    pub name: String,
    /// Share of the readings in state D, 0..=1.
    pub share: f64,
    /// Number of readings.
    pub readings: u32,
}

/// Events counted by tracepoints on the whole host, in all network namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEvents {
    /// Retransmitted segments by TCP state of the connection (`tcp:tcp_retransmit_skb`).
    pub retransmits: BTreeMap<String, u64>,
    /// Dropped packets by the kernel's drop reason (`skb:kfree_skb`).
    pub drops: BTreeMap<String, u64>,
    /// Events lost because the buffer was overwritten before it was read.
    pub lost: u64,
}

/// Role of this host in a flow, by the direction of most bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WatchRole {
    /// This host sent most bytes.
    Sender,
    /// This host received most bytes.
    Receiver,
}

/// Numbers of TCP sockets seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSockets {
    /// Connections accepted by the filter at the last dump.
    pub now: u64,
    /// Maximum number of connections in one dump.
    pub most: u64,
    /// Distinct connections seen; a connection that begins and ends between two dumps is not seen.
    pub seen: u64,
    /// Distinct connections that ended.
    pub ended: u64,
    /// Ended connections that were sampled but are not in `flows` because of its limit.
    pub ended_unlisted: u64,
}

/// Cost of watching to this host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchOverhead {
    /// CPU use of the watching thread as a share of one core, kernel time included.
    pub cpu_share: f64,
    /// CPU time of the watching thread, nanoseconds.
    pub cpu_ns: u64,
    /// Elapsed time, nanoseconds.
    pub wall_ns: u64,
    /// Number of dumps of all sockets.
    pub dumps: u64,
    /// Number of readings of single sockets.
    pub readings: u64,
    /// Readings more than one period late, because the watching thread had no core.
    pub late: u64,
}
