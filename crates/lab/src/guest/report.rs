//! What the guest writes down: readings, not conclusions.

use std::collections::BTreeMap;

use landspeed_model::{QueueSeries, RunDocument};
use serde::{Deserialize, Serialize};

/// Points of a queue's series, at most.
pub const SERIES_POINTS: usize = 1000;

/// Everything a run left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestReport {
    /// The scenario's zero on the guest's monotonic clock, nanoseconds.
    pub zero_ns: u64,
    /// When the last flow had ended, nanoseconds from zero.
    pub ended_ns: u64,
    /// When the last counter was read, nanoseconds from zero.
    pub span_ns: u64,
    /// Flows in the plan's order.
    pub flows: Vec<FlowReport>,
    /// Queues.
    pub queues: Vec<QueueReport>,
    /// Counters at zero.
    pub before: HostCounters,
    /// Counters at the end.
    pub after: HostCounters,
    /// Captures.
    pub captures: Vec<CaptureReport>,
    /// The kernel's release.
    pub release: String,
    /// Offloads that are on where a frame must not be merged or cut: `NODE:INTERFACE FEATURE`.
    pub offloads: Vec<String>,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// The engine's document, without a verdict.
    pub document: RunDocument,
}

/// One queue over the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Node, by index.
    pub node: usize,
    /// Port, by index.
    pub port: usize,
    /// Samples taken from the scenario's zero to its end.
    pub samples: u64,
    /// Most bytes seen waiting.
    pub peak_bytes: u64,
    /// Sum over the samples of the bytes waiting.
    pub backlog_sum: u64,
    /// Samples in which something waited.
    pub busy: u64,
    /// Median and 99th percentile of the bytes waiting, with the framing they take on the link.
    pub link_quantiles: (u64, u64),
    /// Bytes that left while it was backlogged.
    pub drain: Drain,
    /// Over time.
    pub series: QueueSeries,
    /// The discipline's own counters at the end.
    pub detail: BTreeMap<String, u64>,
}

/// What left a queue while it surely had a backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// For how long that was, nanoseconds.
    pub busy_ns: u64,
    /// Bytes that left, with their framing.
    pub bytes: u64,
    /// Spans of time this is made of; each begins and ends amid a frame.
    pub spans: u64,
}

/// Counters of all nodes at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Ports, node by node, in the plan's order.
    pub ports: Vec<Vec<PortReport>>,
    /// Counters of each node's namespace, by `GROUP.NAME`.
    pub counters: Vec<BTreeMap<String, u64>>,
    /// Packets the kernel's backlog dropped, all nodes together.
    pub softnet_drops: u64,
    /// Pages TCP holds, all nodes together.
    pub tcp_pages: u64,
}

/// One port at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Frames in.
    pub rx_packets: u64,
    /// Bytes in.
    pub rx_bytes: u64,
    /// Frames dropped on the way in.
    pub rx_dropped: u64,
    /// Frames out.
    pub tx_packets: u64,
    /// Bytes out.
    pub tx_bytes: u64,
    /// Frames dropped by the device on the way out.
    pub tx_dropped: u64,
    /// Its disciplines.
    pub qdiscs: Vec<Sample>,
    /// Frames its filter dropped on purpose.
    pub filtered: u64,
}

/// One reading of one discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Whether it is the root of its interface.
    pub root: bool,
    /// Bytes that left.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// Packets waiting.
    pub backlog_packets: u64,
}

/// One capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// File in the results directory.
    pub file: String,
    /// Packets written.
    pub packets: u64,
    /// Packets missed.
    pub missed: u64,
    /// What went wrong.
    pub error: Option<String>,
}

/// How far the guest is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Scenario time, nanoseconds; negative before its zero.
    pub t_ns: i64,
    /// Bytes that have arrived, all flows.
    pub arrived_bytes: u64,
    /// Flows that have ended.
    pub flows_ended: u64,
}
