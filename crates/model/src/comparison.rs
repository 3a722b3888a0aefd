//! `landspeed.comparison/1`: groups of results compared with a baseline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, BuildInfo, Warning};

/// Groups of results compared with the first group. `.metrics[].{name,ratio,low,high,verdict}` are pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonDocument {
    /// Always `landspeed.comparison/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Time of the comparison, RFC 3339 UTC.
    pub created: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Compared groups; the first is the baseline.
    pub groups: Vec<ComparedGroup>,
    /// Matching of the runs of the first metric: `paired` by block, or `unpaired`.
    pub design: ComparisonDesign,
    /// Confidence level of all verdicts together (Holm 1979), 0..=1. At 0.95, at most 5 % of comparisons without any
    /// difference have a verdict other than `no-detectable-difference`.
    pub level: f64,
    /// Seed of the bootstrap resampling.
    pub seed: u64,
    /// One entry for each metric, candidate and flow.
    pub metrics: Vec<ComparedMetric>,
    /// The baseline compared with itself (A/A control): differences here are noise. Empty if it has too few results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<ComparedMetric>,
    /// Settings and host facts that differ between the groups, the declared factors included.
    pub differences: Vec<ComparedDifference>,
    /// Conditions that reduce trust in the verdicts.
    pub warnings: Vec<Warning>,
    /// Conditions of `--fail-if` and whether each is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ComparisonCondition>,
}

/// Matching of the runs of two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonDesign {
    /// Runs of the same block are compared with each other.
    Paired,
    /// All runs of one group against all of the other; autocorrelation widens the intervals.
    Unpaired,
}

/// A group of replicate results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedGroup {
    /// Name of the group in tables.
    pub name: String,
    /// Source of the results: files, a sweep's cell, or an archive query.
    pub source: String,
    /// Number of usable results.
    pub runs: u32,
    /// Excluded results with the reason, one string each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Start of the earliest result, RFC 3339 UTC.
    pub from: String,
    /// Start of the latest result, RFC 3339 UTC.
    pub to: String,
}

/// Verdict on one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// The interval of the ratio lies on the better side of 1.
    Better,
    /// The interval of the ratio lies on the worse side of 1.
    Worse,
    /// The interval of the ratio contains 1; `minimum_detectable` is the smallest change that would have been
    /// detected.
    NoDetectableDifference,
    /// Too few runs for an interval at this level; see `runs_needed`.
    TooFewRuns,
}

/// One metric of one candidate compared with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    /// Name of the candidate group.
    pub candidate: String,
    /// Name of the metric (`goodput`).
    pub name: String,
    /// Unit of the medians.
    pub unit: String,
    /// Whether higher or lower values are better.
    pub better: Better,
    /// Name of the flow; `None` if results have one unnamed flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Number of baseline runs with this metric.
    pub baseline_runs: u32,
    /// Number of candidate runs with this metric.
    pub candidate_runs: u32,
    /// Number of independent blocks, of each group, if runs have blocks: runs of one block count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Median of the baseline.
    pub baseline_median: Option<f64>,
    /// Median of the candidate.
    pub candidate_median: Option<f64>,
    /// Candidate / baseline: ratio of the medians; paired: median of the ratios of the blocks. 1 if both are
    /// 0; `None` if only the baseline is.
    pub ratio: Option<f64>,
    /// Lower limit of the ratio's confidence interval; `None` if there is none.
    pub low: Option<f64>,
    /// Upper limit of the ratio's confidence interval; `None` if there is none.
    pub high: Option<f64>,
    /// Confidence level of this interval after Holm's correction, 0..=1: at least the document's `level`.
    pub level: f64,
    /// Verdict on this metric.
    pub verdict: ComparisonVerdict,
    /// Matching of the runs: `paired` by block, or `unpaired`.
    pub design: ComparisonDesign,
    /// p-value before Holm's correction: 1 − the highest level whose interval excludes "no change".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// p-value after Holm's correction; compared with 1 − the document's `level`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_p_value: Option<f64>,
    /// Decides the verdict instead of `ratio` if a value is 0. Unpaired: probability that a candidate run has a greater value than a
    /// baseline run, ties counting half (Mann-Whitney). Paired: share of pairs with a greater candidate value, among
    /// the pairs that differ. 0.5 is no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greater: Option<ComparedInterval>,
    /// For `too-few-runs`: smallest number of runs per group, or of blocks, for an interval at this level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
    /// Unpaired: lag-1 autocorrelation of both groups, by which the interval was widened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
    /// Smallest relative change that 4 of 5 experiments of this size would detect (power 0.8): 0.02 is 2 %.
    pub minimum_detectable: Option<f64>,
    /// Values of the baseline, one per run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_values: Vec<f64>,
    /// Values of the candidate, one per run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_values: Vec<f64>,
}

/// An estimate and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedInterval {
    /// Point estimate.
    pub estimate: f64,
    /// Lower limit; `None` if there are too few runs.
    pub low: Option<f64>,
    /// Upper limit; `None` if there are too few runs.
    pub high: Option<f64>,
}

/// A setting or host fact in which groups differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedDifference {
    /// Name: `client.kernel_release`, `settings.congestion`.
    pub what: String,
    /// Whether it is a declared factor of the comparison.
    pub declared: bool,
    /// Values by group name; several if the runs of a group differ.
    pub values: BTreeMap<String, Vec<String>>,
}

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonCondition {
    /// The condition as given: `goodput worse 3%`.
    pub condition: String,
    /// Whether the condition is true.
    pub holds: bool,
    /// Figures the result is based on.
    pub detail: String,
}
