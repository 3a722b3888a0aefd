//! `landspeed.mesh/1`: scheduled tests among many hosts, and the latest result of each pair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Cause, Confidence, ErrorEntry, Protocol, Status, Warning};

/// State of a mesh: hosts, links, tests, and a cell for each test of each pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshDocument {
    /// Always `landspeed.mesh/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Name of the mesh.
    pub name: String,
    /// Start of the program, RFC 3339 UTC.
    pub started: String,
    /// Time of the document, RFC 3339 UTC.
    pub written: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Complete if every pair has a result of its latest test; partial if some have; failed without a result.
    pub status: Status,
    /// Failures of the mesh itself, such as results that could not be stored.
    pub errors: Vec<ErrorEntry>,
    /// Conditions that a person should look at: other versions, hosts that do not answer, budgets that are too small.
    pub warnings: Vec<Warning>,
    /// Seed of jitter and phases.
    pub seed: u64,
    /// Hosts, in the order of the inventory.
    pub hosts: Vec<MeshHost>,
    /// Shared links, in the order of the inventory.
    pub links: Vec<MeshLink>,
    /// Tests, in the order of the inventory.
    pub tests: Vec<MeshTest>,
    /// Every test of every pair, in the order of the tests and their pairs.
    pub cells: Vec<MeshCell>,
}

/// Whether a host of a mesh answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeshHostState {
    /// No test has told yet.
    Unknown,
    /// It took part in the latest test that told.
    Reachable,
    /// It does not answer; its tests are skipped until the next attempt.
    Unreachable,
}

/// A host of a mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshHost {
    /// Name in the inventory.
    pub name: String,
    /// Address in the inventory; `None` for a local host without one.
    pub address: Option<String>,
    /// Whether the mesh runs on it.
    pub local: bool,
    /// Reachability by the latest attempt.
    pub state: MeshHostState,
    /// Version of landspeed on it; `None` until a test has told.
    pub version: Option<String>,
    /// Error of the latest attempt; `None` while it answers.
    pub error: Option<String>,
    /// Time until the next attempt, seconds; `None` while it answers.
    pub retry_s: Option<u64>,
    /// Use of the host in the last 24 h, and its budget.
    #[serde(flatten)]
    pub usage: MeshUsage,
}

/// A link of a mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshLink {
    /// Name in the inventory.
    pub name: String,
    /// Names of the hosts behind it.
    pub hosts: Vec<String>,
    /// Use of the link in the last 24 h, and its budget.
    #[serde(flatten)]
    pub usage: MeshUsage,
}

/// Use of a host or a link in the last 24 h, and its budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshUsage {
    /// Payload bytes sent and received by tests in the last 24 h. A test whose bytes are unknown counts with its worst case.
    pub bytes_24h: u64,
    /// Time in tests in the last 24 h, nanoseconds.
    pub time_24h_ns: u64,
    /// Most bytes in any 24 h; `None` without a budget.
    pub bytes_per_day: Option<u64>,
    /// Most time in any 24 h, nanoseconds; `None` without a budget.
    pub time_per_day_ns: Option<u64>,
}

/// A test of a mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshTest {
    /// Name in the inventory.
    pub name: String,
    /// Transport and kind of the test.
    pub protocol: Protocol,
    /// Time between two tests of a pair, nanoseconds.
    pub interval_ns: u64,
    /// Width of the random part of the interval, nanoseconds.
    pub jitter_ns: u64,
    /// Number of ordered pairs.
    pub pairs: u64,
}

/// A test of one pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshCell {
    /// Name of the test.
    pub test: String,
    /// Name of the client, which sends unless the test's options say otherwise.
    pub from: String,
    /// Name of the server.
    pub to: String,
    /// Tests of this pair that measured, in the last two weeks.
    pub measured: u64,
    /// Failed tests since the last that measured.
    pub failures: u32,
    /// Whether the latest due test was skipped, or not reached before the end: `latest` is an earlier one.
    #[serde(default)]
    pub skipped: bool,
    /// The latest test; `None` if none has ended.
    pub latest: Option<MeshResult>,
    /// Change of the goodput since last week; `None` if one of the two weeks has no result.
    pub change: Option<MeshChange>,
    /// Reason why `change` is unknown; `None` if it is known.
    pub change_unknown: Option<String>,
    /// Reason why the pair waits or was skipped; `None` if it does not.
    pub waiting: Option<String>,
}

impl MeshCell {
    /// Whether the latest due test of the pair measured.
    pub fn is_measured(&self) -> bool {
        let measured = self.latest.as_ref().is_some_and(|result| result.status != Status::Failed);
        measured && self.failures == 0 && !self.skipped
    }
}

/// The latest test of a pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshResult {
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Id of the run document, which is in the archive; `None` if the test did not start.
    pub run: Option<String>,
    /// Outcome of the test.
    pub status: Status,
    /// Goodput measured by the receiver, bits/s; `None` if unknown.
    pub goodput_bps: Option<f64>,
    /// UDP: share of packets lost, 0..=1; `None` for other protocols, or if unknown.
    pub loss_ratio: Option<f64>,
    /// TCP segments retransmitted; `None` for UDP, or if unknown.
    pub retransmits: Option<u64>,
    /// Minimum RTT of TCP, or the median of requests, or the RTT of the control connection, nanoseconds; `None` if
    /// unknown.
    pub rtt_ns: Option<u64>,
    /// Cause that limited the test; `None` if it failed.
    pub verdict: Option<Cause>,
    /// Confidence of the verdict; `None` with it.
    pub confidence: Option<Confidence>,
    /// Other tests that ran on one of the hosts at the same time, the larger number of both; `None` if unknown.
    pub other_tests: Option<u32>,
    /// First error of the test; `None` if it has none.
    pub error: Option<ErrorEntry>,
}

/// Change of the goodput of a pair. The unit of replication is the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshChange {
    /// Median of the last seven days over the median of the seven days before, minus 1.
    pub ratio: f64,
    /// Tests of the last seven days.
    pub tests: u64,
    /// Tests of the seven days before.
    pub tests_before: u64,
}
