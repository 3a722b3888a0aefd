//! `landspeed.comparison/1`: groups of results against each other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, BuildInfo, Warning};

/// Groups of results against the first group. `.metrics[].{name,ratio,low,high,verdict}` are pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonDocument {
    /// Always `landspeed.comparison/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// When, RFC 3339 UTC.
    pub created: String,
    /// Command line.
    pub command: Vec<String>,
    /// The groups; the first is the baseline.
    pub groups: Vec<ComparedGroup>,
    /// How runs were matched: `paired` by block, or `unpaired`; of the first metric.
    pub design: ComparisonDesign,
    /// Level of all verdicts together (Holm 1979), 0..=1. At 0.95, at most 5 % of comparisons without any difference have a
    /// verdict other than `no-detectable-difference`.
    pub level: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// One entry for each metric and candidate.
    pub metrics: Vec<ComparedMetric>,
    /// The baseline against itself, where the results allow it: what differs here is noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<ComparedMetric>,
    /// What differs between the groups: the declared factor, and everything else.
    pub differences: Vec<ComparedDifference>,
    /// What a reader should know before trusting a verdict.
    pub warnings: Vec<Warning>,
    /// `--fail-if`: each condition and whether it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ComparisonCondition>,
}

/// How runs of two groups were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonDesign {
    /// Runs of one block against each other.
    Paired,
    /// All against all; correlation in time widens the intervals.
    Unpaired,
}

/// A group of results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedGroup {
    /// The name in tables.
    pub name: String,
    /// Where its results came from: files, a sweep's cell, an archive query.
    pub source: String,
    /// Usable results.
    pub runs: u32,
    /// Results left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// First and last start, RFC 3339 UTC.
    pub from: String,
    /// See `from`.
    pub to: String,
}

/// The answer for one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// The interval lies on the better side of 1.
    Better,
    /// The interval lies on the worse side of 1.
    Worse,
    /// The interval contains 1: `minimum_detectable` says what would have been seen.
    NoDetectableDifference,
    /// No interval at this level exists for so few runs.
    TooFewRuns,
}

/// One metric of one candidate against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    /// Name of the candidate's group.
    pub candidate: String,
    /// [`crate::Metric::name`].
    pub name: String,
    /// Unit of the medians.
    pub unit: String,
    /// Which values are better.
    pub better: Better,
    /// Flow, where results have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Runs of the baseline with this metric.
    pub baseline_runs: u32,
    /// Runs of the candidate with this metric; paired: pairs.
    pub candidate_runs: u32,
    /// Median of the baseline.
    pub baseline_median: Option<f64>,
    /// Median of the candidate.
    pub candidate_median: Option<f64>,
    /// Candidate over baseline: ratio of medians. `None` where the baseline is 0.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Level of this interval: after Holm's correction at least the document's.
    pub level: f64,
    /// The answer.
    pub verdict: ComparisonVerdict,
    /// How runs were matched.
    pub design: ComparisonDesign,
    /// 1 − the highest level whose interval excludes "no change", before Holm's correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same after Holm's correction: held to 1 − the document's level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_p_value: Option<f64>,
    /// Where values are 0, so that their ratio does not exist, this decides: the probability that a run of the candidate has more
    /// than one of the baseline, ties counting half; 0.5 is no change. Paired: the share of the blocks that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greater: Option<ComparedInterval>,
    /// For `too-few-runs`: the fewest runs of each group, or pairs, that carry an interval of this level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
    /// Unpaired: correlation of each run with the next, of both groups; it widened the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
    /// The smallest relative change that these runs would show in 4 of 5 experiments: 0.02 is 2 %.
    pub minimum_detectable: Option<f64>,
    /// The values, for a chart: the baseline's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_values: Vec<f64>,
    /// The candidate's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_values: Vec<f64>,
}

/// An estimate and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedInterval {
    /// From the values themselves.
    pub estimate: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Something in which groups differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedDifference {
    /// What: `client.kernel_release`, `settings.congestion`.
    pub what: String,
    /// Whether it is the factor that the comparison is about.
    pub declared: bool,
    /// Its values by group; several where a group is not alike in itself.
    pub values: BTreeMap<String, Vec<String>>,
}

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonCondition {
    /// As it was given: `goodput worse 3%`.
    pub condition: String,
    /// Whether it holds.
    pub holds: bool,
    /// The figures.
    pub detail: String,
}
