//! The guest's report: readings, not conclusions.

use std::collections::BTreeMap;

use landspeed_model::{LabFile, LabOutput, LabProgramEnd, QualifyDocument, QueueSeries, RunDocument};
use serde::{Deserialize, Serialize};

/// Maximum number of points in a queue's series.
pub const SERIES_POINTS: usize = 1000;

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestReport {
    /// The scenario's zero on the guest's monotonic clock, nanoseconds.
    pub zero_ns: u64,
    /// End of the last flow, nanoseconds from zero.
    pub ended_ns: u64,
    /// Time of the last reading of counters, nanoseconds from zero.
    pub span_ns: u64,
    /// Flows in the plan's order.
    pub flows: Vec<FlowReport>,
    /// Programs in the plan's order.
    pub programs: Vec<ProgramReport>,
    /// Links that change, in the plan's order: forward and reverse direction.
    #[serde(default)]
    pub carriers: Vec<[CarrierReport; 2]>,
    /// Hosts whose CPU costs time, in the plan's order.
    #[serde(default)]
    pub cpus: Vec<CpuReport>,
    /// Sysctls that changed, in the plan's order: time after zero, nanoseconds, or the reason why not.
    #[serde(default)]
    pub settings: Vec<Result<u64, String>>,
    /// Queues of all ports.
    pub queues: Vec<QueueReport>,
    /// Counters just before zero.
    pub before: HostCounters,
    /// Counters after the last flow.
    pub after: HostCounters,
    /// Captures, in the plan's order.
    pub captures: Vec<CaptureReport>,
    /// Release of the kernel.
    pub release: String,
    /// Offloads that are active where frames must not be merged or segmented: `NODE:INTERFACE FEATURE`.
    pub offloads: Vec<String>,
}

/// Result of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowReport {
    /// The engine's document of a test, without a verdict.
    Run(Box<RunDocument>),
    /// The engine's document of a section.
    Qualify(Box<QualifyDocument>),
}

impl FlowReport {
    /// Returns the document of a test; `None` for a section.
    pub fn run(&self) -> Option<&RunDocument> {
        match self {
            Self::Run(document) => Some(document),
            Self::Qualify(_) => None,
        }
    }
}

/// Result of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Reason for its end.
    pub end: LabProgramEnd,
    /// End, nanoseconds from zero.
    pub end_ns: u64,
    /// Exit status; `None` if a signal ended it, or it was not started.
    pub exit_status: Option<i32>,
    /// Number of the signal that ended it.
    pub signal: Option<i32>,
    /// Error of its start, or of the wait for its end.
    pub error: Option<String>,
    /// What it wrote to standard output, up to the limit.
    pub stdout: LabOutput,
    /// What it wrote to standard error, up to the limit.
    pub stderr: LabOutput,
    /// Contents of the files named in `keep`, up to the limit each.
    pub files: Vec<LabFile>,
}

/// One direction of a link that changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierReport {
    /// Frames that the carrier failed to handle; each makes the run invalid.
    pub unhandled: u64,
    /// Longest time by which a frame left later than the model says, nanoseconds.
    pub late_ns_max: u64,
    /// Number of changes made.
    pub changes: u64,
    /// Frames dropped by the policer and the queue, from the boot on.
    pub queue_drops: u64,
    /// Frames lost on the link, outages included, from the boot on.
    pub lost: u64,
    /// Frames marked CE, from the boot on.
    pub marked: u64,
}

/// CPU of a host, from the boot on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReport {
    /// Frames that arrived at the receive ring.
    pub arrived: u64,
    /// Frames dropped because the ring was full.
    pub dropped: u64,
    /// Packets that GRO passed on, merged or not.
    pub merged: u64,
    /// Interrupts of the receive path.
    pub interrupts: u64,
    /// NAPI polls of the receive path.
    pub polls: u64,
    /// Maximum number of descriptors in use.
    pub ring_max: u64,
    /// Frames that the receive path failed to handle; each makes the run invalid.
    pub unhandled: u64,
    /// Longest time by which a frame was passed on later than the model says, nanoseconds.
    pub late_ns_max: u64,
    /// Time that softirqs took, nanoseconds.
    pub softirq_ns: u64,
    /// Time that the calls of flows took, nanoseconds.
    pub application_ns: u64,
    /// Read and send calls of flows that cost time.
    pub calls: u64,
    /// Both times over the run.
    pub samples: Vec<CpuSample>,
}

/// Times that a host's CPU worked until a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSample {
    /// Time, nanoseconds from zero.
    pub t_ns: u64,
    /// Time that softirqs took, nanoseconds.
    pub softirq_ns: u64,
    /// Time that the calls of flows took, nanoseconds.
    pub application_ns: u64,
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
    /// Peak backlog, bytes.
    pub peak_bytes: u64,
    /// Sum of the backlog over all samples, bytes.
    pub backlog_sum: u64,
    /// Number of samples with a backlog.
    pub busy: u64,
    /// Median and 99th percentile of the backlog, bytes on the link (with framing).
    pub link_quantiles: (u64, u64),
    /// Data sent while there was a backlog.
    pub drain: Drain,
    /// Backlog, drops and bytes sent, over time.
    pub series: QueueSeries,
    /// Counters specific to the qdisc, at the end.
    pub detail: BTreeMap<String, u64>,
    /// Queue before a link that changes, which is in its model: bytes and packets sent, drops.
    #[serde(default)]
    pub carried: Option<(u64, u64, u64)>,
}

/// Data sent by a queue while it certainly had a backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Duration, nanoseconds.
    pub busy_ns: u64,
    /// Bytes sent, with framing.
    pub bytes: u64,
    /// Number of contiguous spans; each begins and ends within a frame.
    pub spans: u64,
}

/// Counters of all nodes at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Ports, node by node, in the plan's order.
    pub ports: Vec<Vec<PortReport>>,
    /// Counters of each node's namespace, by `GROUP.NAME`.
    pub counters: Vec<BTreeMap<String, u64>>,
    /// Packets dropped by the softnet backlog, all nodes together.
    pub softnet_drops: u64,
    /// Pages used by TCP, all nodes together.
    pub tcp_pages: u64,
}

/// Counters of one port at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Received frames that were dropped.
    pub rx_dropped: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames dropped by the device before they were sent.
    pub tx_dropped: u64,
    /// Readings of its qdiscs.
    pub qdiscs: Vec<Sample>,
    /// Frames dropped by its filter, as the scenario specifies.
    pub filtered: u64,
}

/// One reading of one qdisc.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Whether it is the root qdisc of its interface.
    pub root: bool,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Backlog, bytes.
    pub backlog_bytes: u64,
    /// Backlog, packets.
    pub backlog_packets: u64,
    /// Copies of packets that it made; only a link that changes counts them.
    #[serde(default)]
    pub copies: u64,
}

/// Result of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// Name of the file in the results directory.
    pub file: String,
    /// Packets written.
    pub packets: u64,
    /// Packets that were dropped because the ring was full.
    pub missed: u64,
    /// Error that ended the capture, if any.
    pub error: Option<String>,
}

/// Progress of the guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Scenario time, nanoseconds; negative before its zero.
    pub t_ns: i64,
    /// Bytes received, all flows together.
    pub arrived_bytes: u64,
    /// Number of flows that have ended.
    pub flows_ended: u64,
}
