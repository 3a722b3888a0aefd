//! `landspeed.tuneup/1`: a search for better settings, one change at a time, each compared with the best settings
//! so far.

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
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// `complete`: ended by its own rules; `partial`: interrupted, or the server was lost; `failed`: ended before the
    /// baseline was measured.
    pub status: Status,
    /// Errors; empty if nothing failed.
    pub errors: Vec<ErrorEntry>,
    /// Server as given by the user.
    pub target: String,
    /// Direction of the data.
    pub direction: Direction,
    /// Seed of the random order of tests; the same seed gives the same order.
    pub seed: u64,
    /// Time budget, nanoseconds.
    pub budget_ns: u64,
    /// Time used, nanoseconds.
    pub spent_ns: u64,
    /// Number of tests.
    pub tests: u32,
    /// Length of the measured part of each test, nanoseconds.
    pub test_ns: u64,
    /// Length of the omitted part at the start of each test, nanoseconds.
    pub omit_ns: u64,
    /// Reason the search ended.
    pub ended: TuneupEnd,
    /// Reason the search ended, as one sentence.
    pub ended_because: String,
    /// Criteria for keeping a change.
    pub rules: TuneupRules,
    /// Initial settings and their goodput; `None` if they could not be measured.
    pub baseline: Option<TuneupBaseline>,
    /// Changes tried, in order.
    pub rungs: Vec<TuneupRung>,
    /// `--map`: goodput by placement of threads and interrupts, measured instead of changes; otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<TuneupMap>,
    /// Settings known to be slower, measured to show that the tests detect a difference.
    pub sanity: Vec<TuneupSanity>,
    /// Initial settings, measured again at the end; `None` if the search ended early.
    pub baseline_again: Option<TuneupAgain>,
    /// Final settings; `None` without a baseline.
    #[serde(rename = "final")]
    pub result: Option<TuneupResult>,
    /// CPUs that process each flow, with the final settings.
    pub placement: Vec<TuneupPlacement>,
    /// Remarks on the search and its result.
    pub notes: Vec<String>,
}

/// Reason a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuneupEnd {
    /// All candidates were tried, and no further change helps.
    NothingHelps,
    /// Goodput reached a ceiling: the link rate or the memory bandwidth.
    Ceiling,
    /// The time budget was used up.
    Budget,
    /// All placements were measured (`--map`).
    Mapped,
    /// The maximum number of candidates was tried (`most_candidates`).
    MostCandidates,
    /// Only the list of candidates was requested (`--dry-run`).
    DryRun,
    /// The user interrupted it.
    Interrupted,
    /// A test failed.
    Failed,
}

/// Criteria for keeping a change, on medians over the tests of a comparison. A bound has a factor and a margin,
/// and the greater of both applies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupRules {
    /// Minimum goodput ratio of the change to the best so far.
    pub min_ratio: f64,
    /// Probability that a search keeps a change that does not help, if no candidate helps.
    pub error_rate: f64,
    /// Maximum number of candidates, among which `error_rate` is divided.
    pub most_candidates: u32,
    /// Median RTT: maximum factor over the best so far.
    pub rtt_p50_factor: f64,
    /// Median RTT: maximum increase over the best so far, microseconds.
    pub rtt_p50_more_us: f64,
    /// 99th percentile of the RTT: maximum factor.
    pub rtt_p99_factor: f64,
    /// 99th percentile of the RTT: maximum increase, microseconds.
    pub rtt_p99_more_us: f64,
    /// Retransmits per GB: maximum factor.
    pub retransmits_factor: f64,
    /// Retransmits per GB: maximum increase.
    pub retransmits_more_per_gb: f64,
    /// CPU time per Gb: maximum factor.
    pub cpu_factor: f64,
    /// Maximum weight of the goodput ratio: a change that multiplies the goodput by more than a factor above may
    /// multiply that cost by as much, up to this value; the margin for retransmits grows likewise. 1 in documents
    /// before version 0.2.
    #[serde(default = "unweighted")]
    pub gain_weight_max: f64,
}

fn unweighted() -> f64 {
    1.0
}

/// Initial settings of a search, and their goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupBaseline {
    /// Median goodput, bits/s.
    pub goodput_bps: f64,
    /// Coefficient of variation of the goodput between tests.
    pub cv: f64,
    /// A/A comparison: goodput ratio of the same settings in alternating tests; differs from 1 only by noise.
    pub ratio: f64,
    /// Lower limit of the ratio's confidence interval at `level`.
    pub low: f64,
    /// Upper limit of the ratio's confidence interval at `level`.
    pub high: f64,
    /// Confidence level of the interval, 0..=1.
    pub level: f64,
    /// Goodput of each test in order, bits/s.
    pub goodputs_bps: Vec<f64>,
    /// Cause that limited the initial settings.
    pub cause: Cause,
    /// Confidence in `cause`.
    pub confidence: Confidence,
    /// Verdict as one sentence.
    pub summary: String,
    /// Parameters of the tests.
    pub settings: Parameters,
}

/// A change that was tried, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupRung {
    /// The change (`write size 4 KiB → 1 MiB`).
    pub change: String,
    /// Reason for trying it.
    pub reason: String,
    /// Cause in the verdict that suggested the change; `None` if it is tried for any cause.
    pub cause: Option<Cause>,
    /// Evidence of that verdict.
    pub evidence: Vec<Evidence>,
    /// Goodput ratio of the change to the best so far: median of the ratios of all pairs of tests; `None` if it was
    /// not measured.
    pub ratio: Option<f64>,
    /// Lower limit of the ratio's confidence interval at `level`.
    pub low: Option<f64>,
    /// Upper limit of the ratio's confidence interval at `level`.
    pub high: Option<f64>,
    /// Confidence level of the interval, 0..=1; low for hopeless changes, which are dropped after a few tests.
    pub level: Option<f64>,
    /// Number of tests with the change, and of tests without it.
    pub pairs: u32,
    /// Median goodput of the best settings so far in these tests, bits/s.
    pub best_bps: Option<f64>,
    /// Median goodput with the change, bits/s.
    pub goodput_bps: Option<f64>,
    /// Latency, retransmits and CPU time, compared with their bounds.
    pub bounds: Vec<TuneupBound>,
    /// Whether the change was kept.
    pub kept: bool,
    /// Reason the change was rejected; `None` if it was kept.
    pub rejected: Option<String>,
    /// Changes of host settings at the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_changes: Vec<Change>,
    /// Changes of host settings at the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_changes: Vec<Change>,
}

/// Goodput by the core of the receiving thread (rows) and the core of the interrupts or the sending thread
/// (columns). The receiver is the server, or the client with `--reverse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupMap {
    /// Meaning of the columns.
    pub columns: TuneupMapColumns,
    /// Number of tests of each cell.
    pub rounds: u32,
    /// Cells, row by row.
    pub cells: Vec<TuneupMapCell>,
}

/// Work whose core varies over the columns of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuneupMapColumns {
    /// Receive processing: the interface's interrupts, or RPS if it has none.
    Interrupts,
    /// The sending thread.
    Sender,
}

/// Goodput of one pair of cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupMapCell {
    /// Core of the receiving thread: the row.
    pub receiver_core: u32,
    /// Core of the interrupts or of the sending thread: the column.
    pub column_core: u32,
    /// Median goodput, bits/s.
    pub goodput_bps: Option<f64>,
    /// Lowest goodput of a test, bits/s.
    pub lowest_bps: Option<f64>,
    /// Highest goodput of a test, bits/s.
    pub highest_bps: Option<f64>,
    /// CPU time of both hosts, all cores, for each Gb delivered, seconds.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU that served the flows' receive queue in all tests (`SO_INCOMING_CPU`); `None` if it was not always the
    /// same.
    pub receive_queue_cpu: Option<u32>,
    /// Reason the cell was not measured; `None` if it was.
    pub refused: Option<String>,
}

/// A cost figure that a change must keep within a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupBound {
    /// Name of the figure (`p99 RTT`).
    pub name: String,
    /// Unit (`us`, `per GB`, `s/Gb`).
    pub unit: String,
    /// Median with the best settings so far.
    pub best: f64,
    /// Median with the change.
    pub candidate: f64,
    /// Maximum allowed value.
    pub limit: f64,
    /// Whether the value with the change is within the limit.
    pub within: bool,
}

/// A setting known to be slower than the result, measured as a check of the tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupSanity {
    /// The setting (`both ends on core 0`).
    pub change: String,
    /// Goodput ratio to the final settings.
    pub ratio: f64,
    /// Lower limit of the ratio's confidence interval (level 97 % or more).
    pub low: f64,
    /// Upper limit of the ratio's confidence interval (level 97 % or more).
    pub high: f64,
    /// Whether the difference was detected: the whole interval is below 1.
    pub shows: bool,
}

/// Initial settings, measured again at the end of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupAgain {
    /// Median goodput, bits/s.
    pub goodput_bps: f64,
    /// Goodput ratio to the first measurement of the initial settings.
    pub ratio: f64,
    /// Lower limit of the ratio's confidence interval (level 97 % or more).
    pub low: f64,
    /// Upper limit of the ratio's confidence interval (level 97 % or more).
    pub high: f64,
    /// Whether hosts or path changed during the search: the interval excludes 1 and the ratio differs from 1 by 5 %
    /// or more.
    pub moved: bool,
}

/// Final settings of a search, and their goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupResult {
    /// Median goodput of the final settings, bits/s.
    pub goodput_bps: f64,
    /// Goodput ratio to the initial settings, in alternating tests at the end; `None` if the search ended early.
    pub ratio: Option<f64>,
    /// Lower limit of the ratio's confidence interval (level 97 % or more).
    pub low: Option<f64>,
    /// Upper limit of the ratio's confidence interval (level 97 % or more).
    pub high: Option<f64>,
    /// Command line of a test with these settings.
    pub command: String,
    /// Host settings that were kept, as a plan for `landspeed tune`.
    pub plan: TuneupPlan,
    /// Parameters of a test with these settings.
    pub settings: Parameters,
    /// Cause that limits the final settings; `None` if it is unknown.
    pub cause: Option<Cause>,
    /// Verdict as one sentence.
    pub summary: Option<String>,
}

/// Changes of host settings at both hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupPlan {
    /// Changes at the client.
    pub client: Vec<Change>,
    /// Changes at the server.
    pub server: Vec<Change>,
}

/// CPUs that process one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneupPlacement {
    /// Stream number.
    pub stream: u32,
    /// CPU the client's thread is pinned to; `None` if it is not pinned.
    pub client_cpu: Option<u32>,
    /// CPU the server's thread is pinned to; `None` if it is not pinned.
    pub server_cpu: Option<u32>,
    /// CPU that serves the flow's receive queue at the receiver (`SO_INCOMING_CPU`).
    pub receive_queue_cpu: Option<u32>,
    /// NAPI id of that receive queue (`SO_INCOMING_NAPI_ID`).
    pub napi_id: Option<u32>,
    /// Streams whose receive queue is served by the same CPU, although the receiver has several.
    pub collides_with: Vec<u32>,
}
