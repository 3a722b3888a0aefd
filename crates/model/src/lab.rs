//! `landspeed.lab/2`: one run of a scenario in virtual time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BuildInfo, Cause, CheckedCriterion, ComparedFigure, Confidence, Direction, ErrorEntry, QualifyDocument,
    Reference, RunDocument, Warning,
};

/// One run of a scenario in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabDocument {
    /// `landspeed.lab/2`; `landspeed.lab/1` in older documents, which are still readable.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Wall-clock start of the run, RFC 3339 UTC. Not part of the digest.
    pub started: String,
    /// Command line, one argument per element. Not part of the digest.
    pub command: Vec<String>,
    /// Outcome of the run.
    pub status: LabStatus,
    /// Errors; empty if nothing failed.
    pub errors: Vec<ErrorEntry>,
    /// Conditions that reduce trust in the figures.
    pub warnings: Vec<Warning>,
    /// The scenario that was run.
    pub scenario: ScenarioInfo,
    /// Seed of all random draws of the run.
    pub seed: u64,
    /// Kernel of the guest, whose TCP was measured.
    pub kernel: KernelInfo,
    /// SHA-256 over all measured results, hex; the same for the same scenario, seed and kernel on any host. `None` if
    /// nothing was measured.
    pub digest: Option<String>,
    /// Elapsed real time from boot to power-off, seconds.
    pub wall_s: f64,
    /// Part of `wall_s` before the traffic began, seconds.
    pub boot_s: f64,
    /// Virtual time from the start of the scenario to its end, seconds.
    pub virtual_s: f64,
    /// Memory of the guest, bytes.
    pub memory_bytes: u64,
    /// Peak memory of the guest's processes on this host, bytes; `None` if it could not be read.
    pub memory_peak_bytes: Option<u64>,
    /// Nodes and links of the network.
    pub topology: Topology,
    /// Flows, in the order of the scenario.
    pub flows: Vec<LabFlow>,
    /// Programs of this host that ran in the network, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<LabProgram>,
    /// Changes of the scenario during the run, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<LabEvent>,
    /// Queues: switch ports, qdiscs of the hosts, and link emulation.
    pub queues: Vec<LabQueue>,
    /// Links, one entry for each direction.
    pub links: Vec<LabLink>,
    /// Packets dropped on receive by hosts, as configured in the scenario or by a full receive ring; only hosts that may drop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_drops: Vec<LabHostDrops>,
    /// CPUs of hosts with CPU costs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<LabCpu>,
    /// Increase of each host's protocol counters during the run. Not part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_counters: Vec<LabHostCounters>,
    /// Packet captures requested by the scenario. Not part of the digest.
    pub captures: Vec<LabCapture>,
    /// Consistency checks of this run; one failure makes it invalid.
    pub checks: Vec<LabCheck>,
    /// Published figures of the scenario next to those of this run. Not part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_figures: Vec<ComparedFigure>,
    /// Criteria of the scenario, by cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CheckedCriterion>,
}

impl LabDocument {
    /// Returns what its figures are a prediction of, by the CPU costs of its hosts.
    pub fn prediction(&self) -> &'static str {
        if self.cpus.is_empty() {
            "a network-limited prediction: the lab's hosts have infinite CPU and no NIC"
        } else {
            "a prediction for hosts with the CPU costs of the scenario; everything else that they do takes no time"
        }
    }
}

/// Outcome of a lab run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabStatus {
    /// Completed, and all checks passed.
    Complete,
    /// Completed, but a check failed: do not use its figures.
    Invalid,
    /// Ended early.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// A scenario as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioInfo {
    /// Name of the scenario.
    pub name: String,
    /// Description in the scenario file; `None` without one.
    pub description: Option<String>,
    /// SHA-256 of the resolved scenario, hex; independent of comments and key order.
    pub hash: String,
    /// Text of the resolved scenario file.
    pub text: String,
    /// Varied keys and their values in this cell.
    pub cell: BTreeMap<String, serde_json::Value>,
    /// Published results for this setup; `None` without any.
    pub reference: Option<Reference>,
}

/// Kernel of a lab run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelInfo {
    /// Version, such as `7.3.4`.
    pub release: String,
    /// Hash of source, configuration, source edits and compiler.
    pub build_id: String,
    /// Origin of the kernel source.
    pub source: String,
}

/// Nodes and links of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Hosts and switches.
    pub nodes: Vec<TopologyNode>,
    /// Links between nodes.
    pub links: Vec<TopologyLink>,
}

/// A host or switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyNode {
    /// Node name.
    pub name: String,
    /// Role: `host` or `switch`.
    pub role: String,
    /// Settings in short form, such as `cubic, fq`.
    pub settings: Vec<String>,
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyLink {
    /// Names of the two nodes.
    pub between: [String; 2],
    /// Rate from the first node to the second, bits/s.
    pub rate_bps: u64,
    /// Rate from the second node to the first, bits/s.
    #[serde(alias = "back_rate_bps")]
    pub reverse_rate_bps: u64,
    /// One-way delay from the first node to the second, nanoseconds.
    pub delay_ns: u64,
    /// One-way delay from the second node to the first, nanoseconds.
    #[serde(alias = "back_delay_ns")]
    pub reverse_delay_ns: u64,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Loss and other impairments of both directions in short form.
    pub impairments: Vec<String>,
}

/// A flow with its complete measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabFlow {
    /// Name of the flow in the scenario.
    pub name: String,
    /// Sending node (the client).
    pub from: String,
    /// Receiving node (the server).
    pub to: String,
    /// Start in virtual time, nanoseconds after the start of the scenario.
    pub start_ns: u64,
    /// Goodput in the steady phase, bits/s; `None` without a steady phase.
    pub goodput_bps: Option<f64>,
    /// TCP segments retransmitted; `None` for UDP or if unknown.
    pub retransmits: Option<u64>,
    /// Run document of the flow; `None` if it was not measured, and for `protocol = "qualify"`.
    pub run: Option<RunDocument>,
    /// Test of the section between the two hosts (`protocol = "qualify"`); `None` for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualify: Option<Box<QualifyDocument>>,
    /// What limited it between the changes of its path, in the order of time; empty if nothing that concerns it changed
    /// in its steady phase. Not part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<LabEpoch>,
}

/// Limit of a flow between two changes of its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabEpoch {
    /// Direction of the data.
    pub direction: Direction,
    /// Start and end, nanoseconds after the start of the scenario.
    pub span_ns: (u64, u64),
    /// Goodput in this time, bits/s; `None` if unknown.
    pub goodput_bps: Option<f64>,
    /// Cause that limited it; `None` without a verdict.
    pub cause: Option<Cause>,
    /// Confidence in `cause`; `None` without a verdict.
    pub confidence: Option<Confidence>,
    /// The verdict as one human-readable sentence.
    pub summary: String,
}

/// A change during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabEvent {
    /// Time of the change in the scenario, nanoseconds after its start.
    pub at_ns: u64,
    /// Virtual time at which it was made, nanoseconds after the start of the scenario; `None` if it was not.
    pub applied_ns: Option<u64>,
    /// What changed: `link FROM->TO`, `host NAME` or `flow NAME`.
    pub object: String,
    /// Key that changed, such as `rate`; `down`, `up`, `start` and `stop` have no value.
    pub key: String,
    /// New value as text; empty for keys without a value.
    pub value: String,
    /// New value as a number: bits/s, nanoseconds or a share; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// Reason why it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A program that ran on a host of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabProgram {
    /// Name of the program in the scenario.
    pub name: String,
    /// Name of its host.
    pub host: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Start in virtual time, nanoseconds after the start of the scenario.
    pub start_ns: u64,
    /// End in virtual time, nanoseconds after the start of the scenario.
    pub end_ns: u64,
    /// Reason for its end.
    pub end: LabProgramEnd,
    /// Exit status; `None` if a signal ended it, or if it did not start.
    pub exit_status: Option<i32>,
    /// Number of the signal that ended it; `None` if it exited.
    pub signal: Option<i32>,
    /// Error of the start; `None` if it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it ended as the scenario expects.
    pub expected: bool,
    /// Standard output. Not part of the digest.
    pub stdout: LabOutput,
    /// Standard error. Not part of the digest.
    pub stderr: LabOutput,
    /// Files that the scenario keeps. Not part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LabFile>,
}

/// Reason for the end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabProgramEnd {
    /// It ended by itself.
    Exited,
    /// The scenario stopped it.
    Stopped,
    /// It ran longer than its `time`.
    TimeLimit,
    /// It wrote more output than a program may.
    OutputLimit,
    /// It could not be started.
    NotStarted,
}

/// Output of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabOutput {
    /// Bytes written.
    pub bytes: u64,
    /// The first 1 MiB, as text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// A file that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabFile {
    /// Path on the host of the network.
    pub path: String,
    /// Its content; `None` if it cannot be read.
    pub content: Option<LabOutput>,
}

/// Role of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueRole {
    /// Port of a switch.
    Switch,
    /// Queueing discipline of a host.
    Host,
    /// Link emulation (netem): packets in flight on the link, and its losses.
    Wire,
}

/// Counters and occupancy of one queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabQueue {
    /// `NODE->NEIGHBOUR`: the node and the neighbour the queue sends to.
    pub name: String,
    /// Role of the queue.
    pub role: QueueRole,
    /// Queueing discipline, such as `bfifo`.
    pub kind: String,
    /// Limit in bytes; `None` without one.
    pub limit_bytes: Option<u64>,
    /// Limit in packets; `None` without one.
    pub limit_packets: Option<u64>,
    /// Configured drain rate, bits/s.
    pub rate_bps: u64,
    /// Bytes dequeued.
    pub bytes: u64,
    /// Packets dequeued.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked CE (ECN).
    pub marks: u64,
    /// Maximum backlog in the samples, bytes.
    pub peak_bytes: u64,
    /// Mean backlog over the duration of the scenario, bytes.
    pub mean_bytes: f64,
    /// Share of the samples with a backlog, 0..=1.
    pub busy_ratio: f64,
    /// Median sojourn time of a packet that joins the tail, nanoseconds: backlog with framing / drain rate. 0 for
    /// link emulation.
    pub sojourn_ns_p50: u64,
    /// 99th percentile of the sojourn time, nanoseconds.
    pub sojourn_ns_p99: u64,
    /// Total length of sampling intervals in which the queue cannot have been empty, nanoseconds.
    #[serde(default)]
    pub backlogged_ns: u64,
    /// Drain rate in the time of `backlogged_ns`, framing included, bits/s; compare it with `rate_bps`. Samples split
    /// frames, so the value is accurate to two frames per span. `None` if the queue was never backlogged.
    #[serde(default)]
    pub drained_bps: Option<f64>,
    /// Backlog, drops and bytes over time.
    pub series: QueueSeries,
    /// Statistics specific to the queueing discipline, by kernel name.
    pub detail: BTreeMap<String, u64>,
}

/// A queue over time, reduced to a fixed number of points. Point `i` begins `i * interval_ns` after the start of
/// the scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueSeries {
    /// Width of each point, nanoseconds.
    pub interval_ns: u64,
    /// Maximum backlog in each point, bytes.
    pub backlog_bytes_max: Vec<u64>,
    /// Packets dropped in each point.
    pub drops: Vec<u64>,
    /// Bytes dequeued in each point.
    pub bytes: Vec<u64>,
}

/// Counters of one direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabLink {
    /// `FROM->TO`.
    pub name: String,
    /// Link rate at the start of the scenario, bits/s; the mean of a rate that follows a trace.
    pub rate_bps: u64,
    /// Whether the rate follows a trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rate_over_time: bool,
    /// One-way delay at the start of the scenario, nanoseconds.
    pub delay_ns: u64,
    /// Frames delivered.
    pub packets: u64,
    /// Bytes delivered, framing included.
    pub bytes: u64,
    /// Frames lost because of the link's impairments.
    pub lost: u64,
    /// Delivered bytes / capacity of the link over the duration of the scenario, 0..=1.
    pub utilisation: f64,
}

/// Packets a host dropped on receive: as configured in the scenario, or because its receive ring was full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabHostDrops {
    /// Name of the host.
    pub host: String,
    /// Frames dropped on receive, by the ring and as configured.
    pub dropped: u64,
    /// Those of them that a full receive ring dropped, before the point where a capture records them; `None` for a host whose
    /// received frames cost no CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<u64>,
}

/// CPU of a host with CPU costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabCpu {
    /// Name of the host.
    pub host: String,
    /// Cores: 1 if softirqs and applications share one.
    pub cores: u32,
    /// Share of the run in which softirqs worked, 0..=1.
    pub softirq_ratio: f64,
    /// Share of the run in which the calls of flows worked, 0..=1.
    pub application_ratio: f64,
    /// Calls of flows that cost time.
    pub calls: u64,
    /// Receive path; `None` if received frames cost no time.
    pub receive: Option<LabReceivePath>,
}

/// Receive path of a host over the run, from the boot on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabReceivePath {
    /// Frames that arrived at the ring.
    pub arrived: u64,
    /// Frames dropped because no descriptor was free.
    pub dropped: u64,
    /// Packets that GRO passed on, merged or not.
    pub merged: u64,
    /// Interrupts raised after moderation.
    pub interrupts: u64,
    /// NAPI polls, each of at most the budget of frames.
    pub polls: u64,
    /// Descriptors of the ring.
    pub ring: u64,
    /// Maximum number of descriptors in use.
    pub ring_max: u64,
}

/// Increase of a host's protocol counters, as `nstat` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabHostCounters {
    /// Name of the host.
    pub host: String,
    /// Increase by name, such as `TcpExt.TCPTimeouts` or `Tcp.RetransSegs`; a counter that is absent did not change.
    pub counters: BTreeMap<String, u64>,
}

/// A packet capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabCapture {
    /// `NODE:NEIGHBOUR`: the port that was captured.
    pub name: String,
    /// Path of the capture file.
    pub file: String,
    /// Packets in the file.
    pub packets: u64,
    /// Packets dropped by the capture.
    pub missed: u64,
}

/// A consistency check of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabCheck {
    /// Stable identifier, such as `drops-placed`.
    pub name: String,
    /// Whether the check passed.
    pub passed: bool,
    /// Figures the result is based on.
    pub detail: String,
}

/// A chart of one figure over the varied keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabChart {
    /// Figure to draw.
    pub figure: LabFigure,
    /// Name of the flow; default: sum of all flows. RTT and loss are figures of a single flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// X axis; default: the varied keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<LabChartAxis>,
}

/// X axis of a chart that replaces the varied keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabChartAxis {
    /// Time after the start of the flow, one line for each combination of varied values (first seed): goodput,
    /// retransmits or cwnd of one flow, one point per `interval`.
    Time,
}

/// Figure of a flow in a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabFigure {
    /// Goodput in the steady phase, bits/s.
    #[default]
    Goodput,
    /// UDP: share of packets lost, 0..=1; for all flows together: packets dropped by switches.
    Loss,
    /// Mean smoothed RTT of TCP in the steady phase.
    Rtt,
    /// Maximum smoothed RTT of TCP in the steady phase.
    #[serde(rename = "rtt-max")]
    RttMax,
    /// Time from the start of a flow until its last byte arrived.
    Time,
    /// Request/response: 99th percentile of the latency.
    #[serde(rename = "latency-p99")]
    LatencyP99,
    /// TCP segments retransmitted.
    Retransmits,
    /// Maximum cwnd of TCP in the steady phase, sum of the streams, bytes.
    Cwnd,
    /// Jain's fairness index of the streams' goodput, 0..=1.
    Balance,
    /// Time from the start of a flow until its goodput, in steps of 100 ms, first reaches 90 % of its largest.
    #[serde(rename = "ramp-time")]
    RampTime,
    /// Variation over time: standard deviation / mean of a flow's goodput in steps of 100 ms, in the steady phase.
    Variation,
}

/// A flow over time: point `i` covers `i * interval_ns` to `(i + 1) * interval_ns` after the start of the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSeries {
    /// Width of each point, nanoseconds.
    pub interval_ns: u64,
    /// Goodput in each point, sum of the streams, bits/s.
    pub goodput_bps: Vec<u64>,
    /// TCP: segments retransmitted in each point, sum of the streams; empty for other protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmits: Vec<u64>,
    /// TCP: maximum cwnd in each point, sum of the streams, bytes; empty for other protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cwnd_bytes: Vec<u64>,
}
