//! `landspeed.tuneup/1`: settings changed one at a time, each measured against the best so far.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Cause, Change, Confidence, Direction, ErrorEntry, Evidence, Parameters, Status};

/// A search for better settings between two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupDocument {
    /// Always `landspeed.tuneup/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// `complete`: it ended by its own rules; `partial`: it was interrupted, or the server was lost; `failed`: there is not even a
    /// baseline.
    pub status: Status,
    /// What went wrong.
    pub errors: Vec<ErrorEntry>,
    /// Server as the user gave it.
    pub target: String,
    /// Which way data moves.
    pub direction: Direction,
    /// Where the random order of the tests begins: the same seed gives the same order.
    pub seed: u64,
    /// Time it may take, nanoseconds.
    pub budget_ns: u64,
    /// Time it took, nanoseconds.
    pub spent_ns: u64,
    /// Tests that were run.
    pub tests: u32,
    /// Length of each compared test, and of the part before it that is left out, nanoseconds.
    pub test_ns: u64,
    /// The part left out, nanoseconds.
    pub omit_ns: u64,
    /// Why it ended.
    pub ended: TuneupEnd,
    /// The same in one sentence.
    pub ended_because: String,
    /// What a change had to meet to be kept.
    pub rules: TuneupRules,
    /// The settings it began with.
    pub baseline: Option<TuneupBaseline>,
    /// Every change that was tried, in order.
    pub rungs: Vec<TuneupRung>,
    /// Goodput with the threads on each core (`--map`), measured instead of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<TuneupMap>,
    /// Settings that must be slower, to show that the tests can tell.
    pub sanity: Vec<TuneupSanity>,
    /// The first settings, measured again at the end.
    pub baseline_again: Option<TuneupAgain>,
    /// What came out. `None` without a baseline.
    #[serde(rename = "final")]
    pub result: Option<TuneupResult>,
    /// Where the flows are processed, with the last settings.
    pub placement: Vec<TuneupPlacement>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuneupEnd {
    /// Every candidate was tried; none helps any more.
    NothingHelps,
    /// The rate has reached a ceiling: the link's rate or the memory's.
    Ceiling,
    /// The time was over.
    Budget,
    /// Every placement was measured (`--map`).
    Mapped,
    /// As many candidates were tried as the error rate is stated for.
    MostCandidates,
    /// Only the candidates were asked for (`--dry-run`).
    DryRun,
    /// The user stopped it.
    Interrupted,
    /// A test failed.
    Failed,
}

/// What a change has to meet to be kept. All figures are medians over the tests of a comparison; a bound is the greater of its two
/// figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupRules {
    /// The ratio of the goodputs must be at least this.
    pub min_ratio: f64,
    /// Probability that a search keeps a change that does not help, if none does.
    pub error_rate: f64,
    /// Most candidates that are tried, which `error_rate` is divided among.
    pub most_candidates: u32,
    /// Median RTT: times that of the best so far.
    pub rtt_p50_factor: f64,
    /// Median RTT: more than that of the best so far, microseconds.
    pub rtt_p50_more_us: f64,
    /// 99th percentile of the RTT: factor.
    pub rtt_p99_factor: f64,
    /// 99th percentile of the RTT: more, microseconds.
    pub rtt_p99_more_us: f64,
    /// Retransmits per GB: factor.
    pub retransmits_factor: f64,
    /// Retransmits per GB: more.
    pub retransmits_more_per_gb: f64,
    /// CPU time per Gb: factor.
    pub cpu_factor: f64,
    /// A change that multiplies the goodput by more than a factor above may multiply that cost by as much, up to this; the allowance of
    /// retransmits grows likewise. 1 in documents from before 0.2.
    #[serde(default = "unweighted")]
    pub gain_weight_max: f64,
}

fn unweighted() -> f64 {
    1.0
}

/// The settings a search begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupBaseline {
    /// Median goodput, bits/s.
    pub goodput_bps: f64,
    /// Spread between tests: coefficient of variation.
    pub cv: f64,
    /// Noise: the same settings against themselves, in tests that took turns; 1 but for noise.
    pub ratio: f64,
    /// Its interval, at `level`.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Level of the interval, 0..=1.
    pub level: f64,
    /// Goodput of each test, bits/s, in order.
    pub goodputs_bps: Vec<f64>,
    /// What limited it.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence.
    pub summary: String,
    /// The settings.
    pub settings: Parameters,
}

/// One change that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupRung {
    /// What was changed (`write size 4 KiB → 1 MiB`).
    pub change: String,
    /// Why it was tried.
    pub reason: String,
    /// The cause of the verdict that pointed to it; `None`: it is tried whatever the cause.
    pub cause: Option<Cause>,
    /// The readings of that verdict.
    pub evidence: Vec<Evidence>,
    /// Goodput with the change over goodput of the best so far: median of all ratios of two tests. `None`: it was not measured.
    pub ratio: Option<f64>,
    /// Interval of the ratio at `level`.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
    /// Level of the interval, 0..=1. Hopeless changes are dropped after a few tests, which carry a low level only.
    pub level: Option<f64>,
    /// Tests of each of the two.
    pub pairs: u32,
    /// Median goodput of the best so far in these tests, bits/s.
    pub best_bps: Option<f64>,
    /// Median goodput with the change, bits/s.
    pub goodput_bps: Option<f64>,
    /// Latency, retransmits and CPU time against their bounds.
    pub bounds: Vec<TuneupBound>,
    /// Whether it was kept.
    pub kept: bool,
    /// Why not, if it was not.
    pub rejected: Option<String>,
    /// Settings of the host it changes at the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_changes: Vec<Change>,
    /// Settings of the host it changes at the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_changes: Vec<Change>,
}

/// Goodput with the receiving thread on each core, and its interrupts, or the sending thread, on each. The receiver is the server,
/// or the client where data moves from the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupMap {
    /// What the columns are.
    pub columns: TuneupMapColumns,
    /// Tests of each cell.
    pub rounds: u32,
    /// Row by row.
    pub cells: Vec<TuneupMapCell>,
}

/// What is on the cores of a map's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuneupMapColumns {
    /// The handling of received packets at the receiver: the interface's interrupts, or RPS where it has none.
    Interrupts,
    /// The sending thread.
    Sender,
}

/// Two cores, and what they gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupMapCell {
    /// Core of the receiving thread: the row.
    pub receiver_core: u32,
    /// Core of the interrupts or of the sending thread: the column.
    pub column_core: u32,
    /// Median goodput, bits/s.
    pub goodput_bps: Option<f64>,
    /// Lowest, bits/s.
    pub lowest_bps: Option<f64>,
    /// Highest, bits/s.
    pub highest_bps: Option<f64>,
    /// CPU time of the hosts for each Gb delivered, all cores, seconds.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU that served the flows' receive queue in all tests (`SO_INCOMING_CPU`); `None` where several did.
    pub receive_queue_cpu: Option<u32>,
    /// Why it was not measured.
    pub refused: Option<String>,
}

/// A figure that a change must not spoil.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupBound {
    /// What it is (`p99 RTT`).
    pub name: String,
    /// Unit (`us`, `per GB`, `s/Gb`).
    pub unit: String,
    /// With the best settings so far.
    pub best: f64,
    /// With the change.
    pub candidate: f64,
    /// The most it may be.
    pub limit: f64,
    /// Whether it is.
    pub within: bool,
}

/// A setting that must be slower than the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupSanity {
    /// What was done (`both ends on core 0`).
    pub change: String,
    /// Goodput over that of the result.
    pub ratio: f64,
    /// Interval of the ratio at 97 % or more.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Whether it shows: the whole interval lies below 1.
    pub shows: bool,
}

/// The first settings at the end of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupAgain {
    /// Median goodput, bits/s.
    pub goodput_bps: f64,
    /// Goodput over that at the beginning.
    pub ratio: f64,
    /// Interval of the ratio at 97 % or more.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Whether it moved: the interval excludes 1 and the ratio differs by 5 % or more. Hosts or path changed meanwhile.
    pub moved: bool,
}

/// What came out of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupResult {
    /// Median goodput of the last settings, bits/s.
    pub goodput_bps: f64,
    /// Over the first settings, measured in turns at the end; `None` where the search ended early.
    pub ratio: Option<f64>,
    /// Interval of the ratio at 97 % or more.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
    /// Command line that uses these settings.
    pub command: String,
    /// Settings of the hosts that were kept, as `landspeed tune` takes them.
    pub plan: TuneupPlan,
    /// The settings.
    pub settings: Parameters,
    /// What limits it now.
    pub cause: Option<Cause>,
    /// One sentence.
    pub summary: Option<String>,
}

/// Changes to both hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupPlan {
    /// At the client.
    pub client: Vec<Change>,
    /// At the server.
    pub server: Vec<Change>,
}

/// Where one flow is processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupPlacement {
    /// Stream.
    pub stream: u32,
    /// CPU the client's thread was pinned to.
    pub client_cpu: Option<u32>,
    /// CPU the server's thread was pinned to.
    pub server_cpu: Option<u32>,
    /// CPU that serves the flow's receive queue at the receiver (`SO_INCOMING_CPU`).
    pub receive_queue_cpu: Option<u32>,
    /// The receive queue there (`SO_INCOMING_NAPI_ID`).
    pub napi_id: Option<u32>,
    /// Other streams that the same CPU serves although it is not the only one.
    pub collides_with: Vec<u32>,
}
