//! `landspeed.lab/2`: one run of one scenario in virtual time, and `landspeed.labset/1`: the cells of a varied one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, ComparedFigure, ErrorEntry, Reference, RunDocument, Warning};

/// One run of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabDocument {
    /// `landspeed.lab/2`; in older documents `landspeed.lab/1`, which is read alike.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// When it ran, RFC 3339 UTC. Not part of the digest.
    pub started: String,
    /// Command line. Not part of the digest.
    pub command: Vec<String>,
    /// How it ended.
    pub status: LabStatus,
    /// What went wrong.
    pub errors: Vec<ErrorEntry>,
    /// What a reader should know before trusting a figure.
    pub warnings: Vec<Warning>,
    /// What was run.
    pub scenario: ScenarioInfo,
    /// Every random draw of the run follows from it.
    pub seed: u64,
    /// The kernel whose TCP this was.
    pub kernel: KernelInfo,
    /// SHA-256 over every measured outcome, hex; the same for the same scenario, seed and kernel, wherever it runs.
    /// `None` when nothing was measured.
    pub digest: Option<String>,
    /// Real time from boot to power-off, seconds.
    pub wall_s: f64,
    /// Of that, until the traffic began, seconds.
    pub boot_s: f64,
    /// Virtual time from the scenario's zero to its end, seconds.
    pub virtual_s: f64,
    /// Memory the guest had, bytes.
    pub memory_bytes: u64,
    /// Most memory the guest's processes on this host held, bytes, where it could be read.
    pub memory_peak_bytes: Option<u64>,
    /// The network as it was built.
    pub topology: Topology,
    /// Flows, in the scenario's order.
    pub flows: Vec<LabFlow>,
    /// Queues: switch ports, the hosts' own, and the wires' impairments.
    pub queues: Vec<LabQueue>,
    /// Links, one entry for each direction.
    pub links: Vec<LabLink>,
    /// What hosts dropped on purpose after it came in, of those that were to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_drops: Vec<LabHostDrops>,
    /// Captures asked for. Not part of the digest.
    pub captures: Vec<LabCapture>,
    /// What was verified about this run; one failure makes it invalid.
    pub checks: Vec<LabCheck>,
    /// Figures of the scenario's reference beside those of this run. Not part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_figures: Vec<ComparedFigure>,
}

/// How a lab run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabStatus {
    /// Ran to its end and every check passed.
    Complete,
    /// Ran to its end, and a check failed: do not use its figures.
    Invalid,
    /// Cut short.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioInfo {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// SHA-256 of the resolved scenario, hex: comments and order of keys do not change it.
    pub hash: String,
    /// The file's text, as it was resolved.
    pub text: String,
    /// The varied keys and their values in this cell.
    pub cell: BTreeMap<String, serde_json::Value>,
    /// Published results for this set-up.
    pub reference: Option<Reference>,
}

/// The kernel of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelInfo {
    /// Version, such as `7.3.4`.
    pub release: String,
    /// Content hash of source, configuration, edits and compiler.
    pub build_id: String,
    /// Where its source came from.
    pub source: String,
}

/// The network as it was built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Nodes.
    pub nodes: Vec<TopologyNode>,
    /// Links.
    pub links: Vec<TopologyLink>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyNode {
    /// Name.
    pub name: String,
    /// `host` or `switch`.
    pub role: String,
    /// What is set on it, in words, such as `cubic, fq`.
    pub settings: Vec<String>,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyLink {
    /// Its two ends.
    pub between: [String; 2],
    /// Rate from the first to the second, bits/s.
    pub rate_bps: u64,
    /// Rate from the second to the first, bits/s.
    #[serde(alias = "back_rate_bps")]
    pub reverse_rate_bps: u64,
    /// Delay from the first to the second, nanoseconds.
    pub delay_ns: u64,
    /// Delay from the second to the first, nanoseconds.
    #[serde(alias = "back_delay_ns")]
    pub reverse_delay_ns: u64,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Loss and other impairments of either direction, in words.
    pub impairments: Vec<String>,
}

/// One flow: everything a run has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabFlow {
    /// Name.
    pub name: String,
    /// Sending node (the client).
    pub from: String,
    /// Receiving node (the server).
    pub to: String,
    /// Start in the scenario's time, nanoseconds.
    pub start_ns: u64,
    /// Payload rate in the steady phase, bits/s.
    pub goodput_bps: Option<f64>,
    /// TCP segments retransmitted.
    pub retransmits: Option<u64>,
    /// The whole measurement.
    pub run: Option<RunDocument>,
}

/// What a queue is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueRole {
    /// The port of a switch.
    Switch,
    /// A host's own queueing discipline.
    Host,
    /// The impairment of a link: what is under way on it, and what it loses.
    Wire,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabQueue {
    /// `NODE->NEIGHBOUR`, after what it feeds.
    pub name: String,
    /// What it is for.
    pub role: QueueRole,
    /// Queueing discipline, such as `bfifo`.
    pub kind: String,
    /// Its limit in bytes, where it has one.
    pub limit_bytes: Option<u64>,
    /// Its limit in packets, where it has one.
    pub limit_packets: Option<u64>,
    /// The rate it drains at, bits/s.
    pub rate_bps: u64,
    /// Bytes that left it.
    pub bytes: u64,
    /// Packets that left it.
    pub packets: u64,
    /// Packets it dropped.
    pub drops: u64,
    /// Packets it marked (ECN).
    pub marks: u64,
    /// Most bytes seen waiting, at the sampling grain.
    pub peak_bytes: u64,
    /// Mean of the bytes waiting over the time the scenario lasted.
    pub mean_bytes: f64,
    /// Share of the samples in which something waited, 0..=1.
    pub busy_ratio: f64,
    /// Median waiting time of what is at its tail: bytes waiting, with their framing on the link, over the rate it
    /// drains at, nanoseconds.
    pub sojourn_ns_p50: u64,
    /// 99th percentile of the same, nanoseconds.
    pub sojourn_ns_p99: u64,
    /// Time between samples in which it cannot have run empty, nanoseconds.
    #[serde(default)]
    pub backlogged_ns: u64,
    /// Rate it drained at in that time, framing included, bits/s: what `rate_bps` is to be compared with. Two samples of
    /// each such span cut a frame, so that it is exact to two frames per span.
    #[serde(default)]
    pub drained_bps: Option<f64>,
    /// Occupancy over time.
    pub series: QueueSeries,
    /// Counters of the discipline's own, by their kernel names.
    pub detail: BTreeMap<String, u64>,
}

/// A queue over time, thinned to a fixed number of points: each covers `interval_ns` from the scenario's zero on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueSeries {
    /// Width of a point, nanoseconds.
    pub interval_ns: u64,
    /// Most bytes seen waiting in each.
    pub backlog_bytes_max: Vec<u64>,
    /// Packets dropped in each.
    pub drops: Vec<u64>,
    /// Bytes that left in each.
    pub bytes: Vec<u64>,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabLink {
    /// `FROM->TO`.
    pub name: String,
    /// Its rate, bits/s.
    pub rate_bps: u64,
    /// One-way delay, nanoseconds.
    pub delay_ns: u64,
    /// Frames that it delivered.
    pub packets: u64,
    /// Bytes of these, framing included.
    pub bytes: u64,
    /// Frames lost on it on purpose.
    pub lost: u64,
    /// Bytes over what the rate could have carried from the scenario's zero to its end, 0..=1.
    pub utilisation: f64,
}

/// What a host dropped of what came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabHostDrops {
    /// The host.
    pub host: String,
    /// Frames dropped behind the place where a capture sees them.
    pub dropped: u64,
}

/// A capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabCapture {
    /// `NODE:NEIGHBOUR`.
    pub name: String,
    /// The file.
    pub file: String,
    /// Packets in it.
    pub packets: u64,
    /// Packets the capture missed.
    pub missed: u64,
}

/// Something verified about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabCheck {
    /// Stable word, such as `drops-placed`.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// The figures.
    pub detail: String,
}

/// The cells of a varied or repeated scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabSetDocument {
    /// Always `landspeed.labset/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// When it ran, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// Name of the scenario.
    pub name: String,
    /// In words.
    pub description: Option<String>,
    /// Published results for this set-up.
    pub reference: Option<Reference>,
    /// Figures of the reference beside the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_figures: Vec<ComparedFigure>,
    /// What a reader should know before trusting a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The charts that answer the scenario's question, the most important first. Empty: goodput, sum of all flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<LabChart>,
    /// The varied keys, in the order they vary; the first is the chart's x axis.
    pub varied: Vec<String>,
    /// Real time of all cells together, seconds.
    pub wall_s: f64,
    /// The cells.
    pub cells: Vec<LabCell>,
}

/// A figure to be drawn over the varied keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabChart {
    /// The figure.
    pub figure: LabFigure,
    /// The flow whose figure it is, by name; default: the sum of all flows. Delays and losses are those of one flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Over what; default the varied keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<LabChartAxis>,
}

/// What a figure is drawn over instead of the varied keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabChartAxis {
    /// Time after the flow's start, one line for each combination of varied values, of its first seed: goodput, retransmits
    /// or cwnd of one flow, at its `interval`.
    Time,
}

/// A figure of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabFigure {
    /// Payload rate in the steady phase.
    #[default]
    Goodput,
    /// Share of UDP packets lost; of all flows together, packets dropped by switches.
    Loss,
    /// TCP's mean smoothed RTT in the steady phase.
    Rtt,
    /// Segments retransmitted.
    Retransmits,
    /// TCP's largest cwnd in the steady phase, sum of the streams, bytes.
    Cwnd,
    /// Goodput of the slowest stream over that of the fastest, 0..=1.
    Balance,
}

/// One cell: the figures of its run without the time series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabCell {
    /// The varied keys and their values.
    pub values: BTreeMap<String, serde_json::Value>,
    /// The seed.
    pub seed: u64,
    /// How it ended.
    pub status: LabStatus,
    /// The kernel.
    pub kernel: KernelInfo,
    /// Digest of its run.
    pub digest: Option<String>,
    /// Why it is not complete.
    pub problems: Vec<String>,
    /// Real time, seconds.
    pub wall_s: f64,
    /// Flows.
    pub flows: Vec<CellFlow>,
    /// Queues of the switches.
    pub queues: Vec<CellQueue>,
}

/// The figures of a flow in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellFlow {
    /// Name.
    pub name: String,
    /// Payload rate in the steady phase, bits/s.
    pub goodput_bps: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// UDP: share of packets lost, 0..=1.
    pub loss_ratio: Option<f64>,
    /// TCP: mean of the sender's smoothed RTT over the steady phase's samples, all streams, nanoseconds.
    #[serde(default)]
    pub rtt_ns: Option<u64>,
    /// Request/response: median latency, nanoseconds.
    #[serde(default)]
    pub latency_p50_ns: Option<u64>,
    /// Request/response: 99th percentile of the latency, nanoseconds.
    #[serde(default)]
    pub latency_p99_ns: Option<u64>,
    /// Payload rate of each stream, bits/s.
    pub streams_bps: Vec<f64>,
    /// The flow over time, if a chart of the scenario is drawn over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<FlowSeries>,
}

/// A flow over time: point `i` covers `i * interval_ns` to `(i + 1) * interval_ns` after its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSeries {
    /// Width of a point, nanoseconds.
    pub interval_ns: u64,
    /// Payload rate in each, all streams, bits/s.
    pub goodput_bps: Vec<u64>,
    /// TCP: segments retransmitted in each, all streams; empty for other protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmits: Vec<u64>,
    /// TCP: largest cwnd in each, sum of the streams, bytes; empty for other protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cwnd_bytes: Vec<u64>,
}

/// The figures of a queue in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellQueue {
    /// Name.
    pub name: String,
    /// Packets dropped.
    pub drops: u64,
    /// Most bytes seen waiting.
    pub peak_bytes: u64,
}
