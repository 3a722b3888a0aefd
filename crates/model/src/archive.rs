//! What the archive answers: lists of records, a metric over time, and the result of a verification.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, BuildInfo, Confidence};

/// Records that a query found, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveListDocument {
    /// Always `landspeed.archivelist/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// The query, as an operand of other commands has it after `archive:`.
    pub query: String,
    /// Records that match, of which `records` has the newest.
    pub total: u64,
    /// The records.
    pub records: Vec<ArchivedRecord>,
}

/// One flow of one archived document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchivedRecord {
    /// Id of the document: SHA-256 of its bytes, hex.
    pub id: String,
    /// Kind of the document: `run`, `lab`, `iperf3` and so on.
    pub kind: String,
    /// Start, RFC 3339 UTC; empty where the document does not say.
    pub started: String,
    /// Title of a run, name of a scenario or a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Flow of a lab, or pair of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The server as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Host name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Host name of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Kernel of the sender, or of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How sure that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// `complete`, `partial`, `invalid`, `failed`.
    pub status: String,
    /// Program and version that measured it.
    pub tool: String,
    /// Seed of a lab's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Digest of a lab's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Figures by field name, with its unit last: `goodput_bps`.
    pub figures: BTreeMap<String, f64>,
    /// Tags of the document.
    pub tags: Vec<String>,
}

/// One metric over time, and where it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendDocument {
    /// Always `landspeed.trend/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// The query, as an operand of other commands has it after `archive:`.
    pub query: String,
    /// [`crate::Metric::name`].
    pub metric: String,
    /// The field of records that holds it.
    pub field: String,
    /// Its unit.
    pub unit: String,
    /// Which values are better.
    pub better: Better,
    /// Level of each test for a change: the share of series without a change in which one is reported.
    pub level: f64,
    /// Values, the oldest first.
    pub points: Vec<TrendPoint>,
    /// Stretches without a change.
    pub segments: Vec<TrendSegment>,
    /// Changes between them: one fewer than segments.
    pub changes: Vec<TrendChange>,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendPoint {
    /// Id of the document.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Flow of a lab, or pair of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The metric, in its unit.
    pub value: f64,
}

/// A stretch of values without a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendSegment {
    /// Index of the first value.
    pub first: u64,
    /// Number of values.
    pub values: u64,
    /// Their median.
    pub median: f64,
    /// Their 10th percentile.
    pub p10: f64,
    /// Their 90th percentile.
    pub p90: f64,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// Index of the first value after it.
    pub index: u64,
    /// Document of the first value after it.
    pub id: String,
    /// Its start, RFC 3339 UTC.
    pub started: String,
    /// Median after, divided by median before; absent where that is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Probability of a difference as large where nothing changed (permutation test).
    pub p_value: f64,
    /// Settings and facts of hosts that differ between the stretches, by name: usual value before, and after.
    pub differences: BTreeMap<String, (String, String)>,
}

/// What a verification of the archive found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveCheckDocument {
    /// Always `landspeed.archivecheck/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Documents whose bytes match their id.
    pub intact: u64,
    /// Documents that were not in the index and now are: writes that were cut off before it.
    pub adopted: u64,
    /// Unfinished files that were removed.
    pub unfinished: u64,
    /// Series that were written again from their documents.
    pub series_rebuilt: u64,
    /// Documents that are damaged or missing.
    pub damaged: Vec<ArchiveDamage>,
}

/// A document that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveDamage {
    /// Its id, or the file's name where that is no id.
    pub id: String,
    /// What is wrong.
    pub why: String,
    /// Where the file was moved to, if it is there, relative to the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}
