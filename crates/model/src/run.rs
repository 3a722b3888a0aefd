//! `landspeed.run/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Conservation, Cost, Direction, HostSeries, HostSnapshot, Iperf3End, LatencyResult, LatencyUnderLoad, Parameters,
    RunEmulation, Stream, Verdict,
};

/// One measurement between two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Always `landspeed.run/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Identifier of the test, 32 hex digits.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// Whether it ran to its end.
    pub status: Status,
    /// What went wrong.
    pub errors: Vec<ErrorEntry>,
    /// What a reader should know before trusting a figure.
    pub warnings: Vec<Warning>,
    /// The figures most readers want.
    pub summary: Summary,
    /// What was asked for.
    pub requested: Parameters,
    /// What was in force, when the two ends agreed on it.
    pub effective: Option<Parameters>,
    /// The path.
    pub path: Option<PathInfo>,
    /// Both hosts at the start.
    pub hosts: Ends<HostSnapshot>,
    /// Phases of the timeline, as the receiver saw them, per direction.
    pub phases: Vec<Phase>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Sums of each end.
    pub totals: Ends<EndTotals>,
    /// UDP sums over all streams.
    pub udp: Option<UdpTotals>,
    /// Request/response results, one for each size.
    pub latency: Vec<LatencyResult>,
    /// Latency beside bulk streams.
    pub latency_under_load: Option<LatencyUnderLoad>,
    /// The accounting.
    pub conservation: Conservation,
    /// What it cost.
    pub cost: Cost,
    /// What the hosts did meanwhile.
    pub host_series: Ends<HostSeries>,
    /// Where the server was iperf3: what it reported, and what it cannot report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iperf3: Option<Iperf3End>,
    /// `run --from`: a third host asked for the test, and the client is another `landspeed serve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub third_party: Option<ThirdParty>,
    /// The path was emulated by `landspeed emulate` on this host: what that says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<RunEmulation>,
    /// What held it back.
    pub verdict: Verdict,
    /// `--bidir`: the same for the other direction.
    pub reverse_verdict: Option<Verdict>,
}

impl RunDocument {}

/// A test that a third host asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThirdParty {
    /// The client's server, as given with `--from`.
    pub from: String,
    /// Address of the host that asked, as the client saw it.
    pub asker_addr: String,
    /// Version of landspeed at the client, once known.
    pub client_version: Option<String>,
    /// Whether the asker and the client proved they hold the same pre-shared key.
    pub authenticated: bool,
}

/// The program that wrote a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildInfo {
    /// Version of the client.
    pub version: String,
    /// Version of the server, once known.
    pub server_version: Option<String>,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ran to its end; both ends reported.
    Complete,
    /// Cut short: what was measured until then is kept.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEntry {
    /// Stable word: `connection-refused`, `server-busy`, `wrong-key`, `version-mismatch`, `peer-lost`, `interrupted` …
    pub code: String,
    /// What happened, on what.
    pub message: String,
    /// What to try.
    pub advice: Option<String>,
}

/// Something that weakens a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable word: `zerocopy-copied`, `other-load`, `steal`, `loopback`, `still-ramping` …
    pub code: String,
    /// In words.
    pub message: String,
}

/// A value for each end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends<T> {
    /// At the client.
    pub client: Option<T>,
    /// At the server.
    pub server: Option<T>,
}

/// The figures most readers want.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Payload rate the receivers saw in the steady phase, all streams of the primary direction, bits/s.
    pub goodput_bps: Option<f64>,
    /// `--bidir`: the same for server to client, bits/s.
    pub reverse_goodput_bps: Option<f64>,
    /// Payload bytes delivered to receiving applications, whole test, all directions.
    pub bytes_delivered: u64,
    /// TCP segments retransmitted, whole test, all senders; `None` for UDP or when unknown.
    pub retransmits: Option<u64>,
    /// UDP: share of packets lost, 0..=1.
    pub loss_ratio: Option<f64>,
    /// Length of the steady phase, nanoseconds.
    pub steady_ns: u64,
    /// Minimum RTT seen by TCP, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Spread of the goodput between intervals of the steady phase: coefficient of variation. A span that the sampler
    /// missed counts as many intervals as it covers, all at its mean rate.
    pub goodput_cv: Option<f64>,
    /// Why `goodput_cv` is unknown, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_cv_unknown: Option<String>,
    /// `--bidir`: the spread of `reverse_goodput_bps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_goodput_cv: Option<f64>,
    /// Why `reverse_goodput_cv` is unknown, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_goodput_cv_unknown: Option<String>,
    /// Request/response: transactions per second; of a sweep, those of its first size.
    pub transactions_per_s: Option<f64>,
    /// Request/response (of a sweep, its first size), or probes under load: median, nanoseconds.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile, nanoseconds.
    pub latency_p99_ns: Option<u64>,
}

/// The path between the two hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathInfo {
    /// Name as given by the user.
    pub target: String,
    /// Client's control address.
    pub client_addr: String,
    /// Server's control address.
    pub server_addr: String,
    /// Whether both ends are one machine over the loopback interface.
    pub loopback: bool,
    /// Minimum RTT of the control channel before the test, nanoseconds.
    pub control_rtt_ns: u64,
    /// How the two timelines were aligned.
    pub clock: ClockAlignment,
    /// Path MTU probes, client to server and back.
    pub mtu: Vec<MtuProbe>,
    /// Whether both ends proved they hold the same pre-shared key.
    pub authenticated: bool,
}

/// How the server's clock was mapped to the client's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockAlignment {
    /// Server monotonic clock minus client monotonic clock, nanoseconds.
    pub offset_ns: i64,
    /// Largest possible error: half the shortest round trip, nanoseconds.
    pub uncertainty_ns: u64,
}

/// Result of a path MTU probe in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MtuProbe {
    /// Which way the probes went.
    pub direction: Direction,
    /// Largest IP packet that arrived unfragmented, bytes.
    pub path_mtu_bytes: Option<u32>,
    /// Smallest that did not arrive, bytes.
    pub smallest_failed_bytes: Option<u32>,
    /// MTU of the local interface, bytes.
    pub interface_mtu_bytes: Option<u32>,
    /// Probes sent.
    pub probes: u32,
    /// Probes that vanished without an ICMP message: a black hole.
    pub silent: u32,
    /// In words.
    pub note: Option<String>,
}

/// Names of phases in the order they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PhaseName {
    /// From the agreed start until every stream has moved its first byte.
    Startup,
    /// `--omit`: measured, kept out of the steady figures.
    Omitted,
    /// What the headline figures are computed from.
    Steady,
    /// From the sender's last write until the receiver has everything.
    Drain,
}

/// One phase of one direction, as its receiver saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Which direction.
    pub direction: Direction,
    /// Which phase.
    pub name: PhaseName,
    /// Start, nanoseconds.
    pub start_ns: u64,
    /// End, nanoseconds.
    pub end_ns: u64,
    /// Bytes delivered in it.
    pub bytes: u64,
}

/// Sums of one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndTotals {
    /// Bytes its applications wrote.
    pub bytes_sent: u64,
    /// TCP: bytes its peers acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes its applications read.
    pub bytes_received: u64,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// Bytes by phase name, received.
    pub received_by_phase: BTreeMap<String, u64>,
}

/// UDP sums over all streams. sent = delivered + lost exactly; duplicates are extra copies of delivered packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTotals {
    /// Packets the senders' kernels accepted.
    pub sent_packets: u64,
    /// Packets refused by the senders' kernels; not part of `sent_packets`.
    pub refused_packets: u64,
    /// Distinct packets that reached the receiving application.
    pub delivered_packets: u64,
    /// Packets that never did: sent − delivered.
    pub lost_packets: i64,
    /// Further copies.
    pub duplicate_packets: u64,
    /// First copies that arrived after a later packet.
    pub reordered_packets: u64,
    /// First copies that arrived after the sender had stopped.
    pub late_packets: u64,
    /// Of the lost, those after the last arrival, which only the sender's count reveals.
    pub tail_lost_packets: u64,
    /// Lost / sent, 0..=1.
    pub loss_ratio: f64,
    /// Interarrival jitter (RFC 3550), nanoseconds, mean over streams.
    pub jitter_ns: Option<u64>,
    /// Payload of each packet, bytes.
    pub payload_bytes: u32,
}
