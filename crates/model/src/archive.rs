//! Archive documents: a list of records, the trend of one metric, and the result of verifying the archive.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, BuildInfo, Confidence};

/// Archived records that match a query, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveListDocument {
    /// Always `landspeed.archivelist/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// The query in the form other commands accept after `archive:`.
    pub query: String,
    /// Number of records that match; `records` contains the newest of them.
    pub total: u64,
    /// The newest matching records, newest first; one per flow of a document.
    pub records: Vec<ArchivedRecord>,
}

/// One flow of one archived document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchivedRecord {
    /// Id of the document: SHA-256 of its bytes, hex.
    pub id: String,
    /// Kind of the document: `run`, `lab`, `iperf3` and so on.
    pub kind: String,
    /// Start, RFC 3339 UTC; empty if the document has no start time.
    pub started: String,
    /// Title of a run, or name of a scenario or plan; `None` if it has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Flow of a lab run, or pair of hosts; `None` for a document with one unnamed flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Server as the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Host name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Host name of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Kernel release of the sender, or of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Cause that limited the flow (`.verdict.cause` of a run); `None` without a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Confidence in `cause`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Status of the measurement: `complete`, `partial`, `invalid` or `failed`.
    pub status: String,
    /// Program and version that measured it.
    pub tool: String,
    /// Seed of a lab run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Digest of a lab run's results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Figures by field name, which ends with the unit: `goodput_bps`.
    pub figures: BTreeMap<String, f64>,
    /// Tags of the document.
    pub tags: Vec<String>,
}

/// One metric over time and its change points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendDocument {
    /// Always `landspeed.trend/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// The query in the form other commands accept after `archive:`.
    pub query: String,
    /// Name of the metric (`goodput`).
    pub metric: String,
    /// Field of a record's `figures` that contains the metric (`goodput_bps`).
    pub field: String,
    /// Unit of the values (`bit/s`).
    pub unit: String,
    /// Whether higher or lower values are better.
    pub better: Better,
    /// Significance level of each change-point test, 0..=1: the probability that a change is reported in a series
    /// without one.
    pub level: f64,
    /// Values, oldest first.
    pub points: Vec<TrendPoint>,
    /// Segments without a change, in order of time.
    pub segments: Vec<TrendSegment>,
    /// Changes between the segments: one fewer than segments.
    pub changes: Vec<TrendChange>,
}

/// The metric in one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendPoint {
    /// Id of the document.
    pub id: String,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Flow of a lab run, or pair of hosts; `None` for a document with one unnamed flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Value of the metric, in the unit of the trend.
    pub value: f64,
}

/// A segment: consecutive values without a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendSegment {
    /// Index in `points` of the first value.
    pub first: u64,
    /// Number of values.
    pub values: u64,
    /// Median of the values.
    pub median: f64,
    /// 10th percentile of the values.
    pub p10: f64,
    /// 90th percentile of the values.
    pub p90: f64,
}

/// A change between two segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// Index in `points` of the first value after the change.
    pub index: u64,
    /// Id of the document with the first value after the change.
    pub id: String,
    /// Start of that document, RFC 3339 UTC.
    pub started: String,
    /// Median after the change divided by median before it; `None` if the median before is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// p-value of the change (permutation test).
    pub p_value: f64,
    /// Settings and host facts that differ between the two segments, by name: the value most records had before, and
    /// after.
    pub differences: BTreeMap<String, (String, String)>,
}

/// Result of verifying the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveCheckDocument {
    /// Always `landspeed.archivecheck/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Documents whose bytes match their id.
    pub intact: u64,
    /// Intact documents that were missing from the index and were added to it (interrupted writes).
    pub adopted: u64,
    /// Temporary files of interrupted writes that were removed.
    pub unfinished: u64,
    /// Series files that were rebuilt from their documents.
    pub series_rebuilt: u64,
    /// Documents that are damaged or missing.
    pub damaged: Vec<ArchiveDamage>,
    /// Files and directories that could not be read; their documents stay in the index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<ArchiveUnreadable>,
}

/// A file or directory of the archive that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveUnreadable {
    /// Its path, relative to the archive.
    pub path: String,
    /// Error of the operating system.
    pub why: String,
}

/// A document that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveDamage {
    /// Id of the document, or the file name if that is not an id.
    pub id: String,
    /// Description of the damage.
    pub why: String,
    /// New path of the file, relative to the archive; `None` if the file is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}
