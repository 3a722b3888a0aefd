//! `landspeed.watch/1`: TCP flows that were running on a host, and what limits each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Cause, Confidence, Epoch, Evidence, WatchChange, WatchRecent, WatchSeries};

/// What was seen of a host's TCP flows in a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchDocument {
    /// Always `landspeed.watch/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// Host name.
    pub hostname: String,
    /// Kernel release (`uname -r`).
    pub kernel_release: String,
    /// Time from the first to the last dump, nanoseconds.
    pub duration_ns: u64,
    /// Flows that moved data or had data queued, the most bytes first. Limited to `--top` that still run and as many that ended.
    pub flows: Vec<WatchFlow>,
    /// How many sockets there were.
    pub sockets: WatchSockets,
    /// What watching cost this host.
    pub overhead: WatchOverhead,
    /// What the kernel's tracepoints counted, where they may be read. `unavailable.tracepoints` says why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<WatchEvents>,
    /// What could not be read, and why.
    pub unavailable: BTreeMap<String, String>,
}

/// One TCP connection from this host's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchFlow {
    /// Address and port of this host.
    pub local: String,
    /// Address and port of the other end.
    pub remote: String,
    /// The kernel's number of the socket (`sk` in `ss -e`, hexadecimal): a new connection between the same ports has another.
    pub cookie: String,
    /// Whether this host sent or received most of the bytes of `span_ns`; the verdict is about that direction.
    pub role: WatchRole,
    /// Whether the connection was gone at the last dump.
    pub ended: bool,
    /// Process that holds the socket. `None`: `process_unknown` says why.
    pub pid: Option<u32>,
    /// Its name (`comm`).
    pub command: Option<String>,
    /// Its systemd unit, from its control group (`nginx.service`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its container, from its control group: the runtime's identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Why the process is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_unknown: Option<String>,
    /// User that made the socket.
    pub uid: u32,
    /// Congestion control.
    pub congestion: Option<String>,
    /// When it was first and last seen, nanoseconds after the start.
    pub seen_ns: (u64, u64),
    /// Bytes sent and acknowledged while it was watched.
    pub bytes_acked: u64,
    /// Bytes received while it was watched.
    pub bytes_received: u64,
    /// Segments retransmitted while it was watched.
    pub retransmits: u64,
    /// The span that rates, verdict and shares are about, nanoseconds after the start: at most the last 30 s.
    pub span_ns: (u64, u64),
    /// Readings in that span.
    pub readings: u32,
    /// Payload rate in that span in the flow's direction, bits/s: acknowledged for a sender, received in order for a receiver.
    pub goodput_bps: f64,
    /// Last smoothed RTT, microseconds; at a receiver that sends nothing, from before.
    pub rtt_us: Option<u32>,
    /// Minimum RTT of the connection, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Last congestion window, segments.
    pub cwnd: u32,
    /// What limits it.
    pub cause: Cause,
    /// How sure. From one end never `high`.
    pub confidence: Confidence,
    /// One sentence a person can read.
    pub summary: String,
    /// Which end or component.
    pub place: Option<String>,
    /// The readings that support it. `source` names the kernel's field.
    pub evidence: Vec<Evidence>,
    /// Causes that were considered and dropped, with the reading that dropped each.
    pub ruled_out: Vec<Evidence>,
    /// What was not visible from this end and would have helped.
    pub missing: Vec<String>,
    /// What to try.
    pub next_step: String,
    /// What limited the sender at which time of the span: the shares add up to 1000 thousandths. `unknown` where it was not
    /// visible: at a receiver, all of it.
    pub shares: Vec<Epoch>,
    /// What this host did beside the flow's socket in the same span.
    #[serde(default)]
    pub host: WatchHost,
    /// When the verdict changed, from the first one on; the last 32 changes. A flow is judged at each interval while it is among
    /// the busiest that are shown, and at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<WatchChange>,
    /// The last second. `None` for a flow that ended or was not read for a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent: Option<WatchRecent>,
    /// The whole time it was sampled. Only in the document that is written at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<WatchSeries>,
}

/// What a host did beside a flow's socket, in the span of the flow's readings. `None`: not visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchHost {
    /// The thread of the flow's process with the most CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<ThreadUse>,
    /// Threads of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The thread of the process that was blocked most (state D).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedThread>,
    /// What the process read from storage, bits/s (`read_bytes` of `/proc/PID/io`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bps: Option<f64>,
    /// What the process wrote to storage, bits/s (`write_bytes` of `/proc/PID/io`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_write_bps: Option<f64>,
    /// CPU quota of the process's control group, or of the one above it that was held back most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Core that took in the flow's last segment (`SO_INCOMING_CPU`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_cpu: Option<u32>,
    /// Interface by which packets to the remote end leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Packets dropped by rules of this network namespace's nftables that have a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nft_drops: Option<u64>,
    /// Packets that conntrack dropped, or could not assign to a connection (`drop`, `early_drop`, `insert_failed`, `invalid`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack_drops: Option<u64>,
    /// Packets dropped by a packet filter in any network namespace (`skb:kfree_skb`, reason `NETFILTER_DROP`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_drops: Option<u64>,
}

/// What a thread of a process did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// Its number (TID).
    pub tid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// Share of the time on a core, 0..=1.
    pub cpu_share: f64,
    /// Share of the time ready to run without a core, 0..=1.
    pub wait_share: f64,
    /// Core it was last seen on.
    pub cpu: Option<u32>,
}

/// A thread that waits where signals do not wake it: nearly always for storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedThread {
    /// Its number (TID).
    pub tid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// Share of the readings in which its state was D, 0..=1.
    pub share: f64,
    /// Readings.
    pub readings: u32,
}

/// A CPU quota (CFS bandwidth control) and how often it was used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    /// Control group that has it.
    pub group: String,
    /// Cores it allows.
    pub cores: f64,
    /// Enforcement periods in which the group ran.
    pub periods: u64,
    /// Of these, those in which the quota was used up.
    pub throttled_periods: u64,
}

/// What tracepoints counted on the whole host, every network namespace included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEvents {
    /// Segments retransmitted, by the state of the connection (`tcp:tcp_retransmit_skb`).
    pub retransmits: BTreeMap<String, u64>,
    /// Packets dropped, by the kernel's reason (`skb:kfree_skb`).
    pub drops: BTreeMap<String, u64>,
    /// Events that were overwritten before they were read.
    pub lost: u64,
}

/// Which way most bytes of a flow moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WatchRole {
    /// From this host.
    Sender,
    /// To this host.
    Receiver,
}

/// How many sockets were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSockets {
    /// Connections that passed the filter, at the last dump.
    pub now: u64,
    /// The most at one dump.
    pub most: u64,
    /// Different connections seen. What begins and ends between two dumps is not seen.
    pub seen: u64,
    /// Of these, those that ended.
    pub ended: u64,
    /// Ended connections that were sampled and are not listed in `flows`: there were too many.
    pub ended_unlisted: u64,
}

/// What watching cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchOverhead {
    /// CPU time of the watching thread over time passed: share of one core, kernel included.
    pub cpu_share: f64,
    /// CPU time of the watching thread, nanoseconds.
    pub cpu_ns: u64,
    /// Time passed, nanoseconds.
    pub wall_ns: u64,
    /// Dumps of all sockets.
    pub dumps: u64,
    /// Readings of single sockets.
    pub readings: u64,
    /// Readings that came more than one period late: the watching thread had no core.
    pub late: u64,
}
