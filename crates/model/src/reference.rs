//! Published results of a setup, and the same figures as measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LabFigure;

/// Published results, and why measured results may differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Citation of the published results.
    pub source: String,
    /// Summary of the published results.
    pub reported: String,
    /// Reason measured results may differ; `None` if none is known.
    pub why_different: Option<String>,
    /// Published figures, each with the measured figure it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<ReferenceFigure>,
    /// Limits that measured figures have to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
}

/// Limits of a measured figure. A run meets the criterion if its figure is within them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Description, such as `goodput after start-up`.
    pub name: String,
    /// Smallest value that meets the criterion, in `unit`; `None` without a lower limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Largest value that meets the criterion, in `unit`; `None` without an upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Unit of the limits; `ratio` with `over` or `beside`.
    pub unit: ReferenceUnit,
    /// Measured figure; default `goodput`.
    #[serde(default)]
    pub figure: LabFigure,
    /// Name of the flow; default: all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Name of a flow of the same run: the value is the ratio to its figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Cells that the criterion is about: varied keys (their labels, if they have one) and values; default: all cells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// The value is the ratio to the cells where these keys have these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<BTreeMap<String, serde_json::Value>>,
    /// Start of the time range, seconds after the start of the flow; default: the steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// End of the time range, seconds after the start of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Source of the limits: document and section, or why they were chosen.
    pub source: String,
    /// Known reason why measured values are not within the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A criterion next to the measured figure of one cell. Values and limits are in `unit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedCriterion {
    /// Description of the criterion.
    pub name: String,
    /// Varied keys and values of the cell; empty if nothing is varied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// Smallest value that meets the criterion; `None` without a lower limit.
    pub at_least: Option<f64>,
    /// Largest value that meets the criterion; `None` without an upper limit.
    pub at_most: Option<f64>,
    /// Unit of all values.
    pub unit: ReferenceUnit,
    /// Median of the measured values over the seeds; `None` without a complete run.
    pub measured: Option<f64>,
    /// Minimum of the measured values over the seeds.
    pub min: Option<f64>,
    /// Maximum of the measured values over the seeds.
    pub max: Option<f64>,
    /// Number of measured values, one per complete run.
    pub runs: u32,
    /// Number of runs that meet the criterion.
    pub met_runs: u32,
    /// Whether the median meets the criterion; `None` without a complete run, or without limits.
    pub met: Option<bool>,
    /// Source of the limits.
    pub source: String,
    /// Known reason why measured values are not within the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A published figure, and the measured figure it corresponds to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFigure {
    /// Description, such as `two streams, sum`.
    pub name: String,
    /// Published value, in `unit`.
    pub value: f64,
    /// Unit of the published value.
    pub unit: ReferenceUnit,
    /// Origin of the value; default `reported`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub basis: FigureBasis,
    /// Measured figure; default `goodput`.
    #[serde(default)]
    pub figure: LabFigure,
    /// Name of the flow; default: all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Cells to compare with: varied keys (their labels, if they have one) and values; default: all cells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// The value is the difference from the cells where these keys have these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<BTreeMap<String, serde_json::Value>>,
    /// The value is the ratio to the cells where these keys have these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<BTreeMap<String, serde_json::Value>>,
    /// Start of the time range, seconds after the start of the flow; default: the steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// End of the time range, seconds after the start of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Source of this figure if it differs from that of the reference; or the formula it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Known reason for a difference between the measured and the published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Origin of the value that a measured figure is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureBasis {
    /// The source prints the value, or the two values whose difference or ratio it is.
    #[default]
    Reported,
    /// The value follows from a set-up, a formula or other values.
    Computed,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Unit of a published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReferenceUnit {
    /// 10^9 bits/s.
    #[serde(rename = "Gb/s")]
    Gigabits,
    /// 10^6 bits/s.
    #[serde(rename = "Mb/s")]
    Megabits,
    /// 10^6 bytes.
    #[serde(rename = "MB")]
    Megabytes,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// TCP segments.
    #[serde(rename = "segments")]
    Segments,
    /// Hundredths (%).
    #[serde(rename = "%")]
    Percent,
    /// Dimensionless ratio.
    #[serde(rename = "ratio")]
    Ratio,
}

impl ReferenceUnit {
    /// Returns the unit symbol: `Gb/s`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gigabits => "Gb/s",
            Self::Megabits => "Mb/s",
            Self::Megabytes => "MB",
            Self::Milliseconds => "ms",
            Self::Segments => "segments",
            Self::Percent => "%",
            Self::Ratio => "ratio",
        }
    }

    /// Returns the number of base units (bits/s, bytes, nanoseconds, segments, 1) in this unit.
    #[must_use]
    pub fn scale(self) -> f64 {
        match self {
            Self::Gigabits => 1e9,
            Self::Megabits | Self::Megabytes | Self::Milliseconds => 1e6,
            Self::Segments | Self::Ratio => 1.0,
            Self::Percent => 0.01,
        }
    }
}

/// A published figure next to the measured one. `reported`, `measured`, `min` and `max` are in `unit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Description of the figure.
    pub name: String,
    /// Unit of all values.
    pub unit: ReferenceUnit,
    /// Origin of `reported`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub basis: FigureBasis,
    /// Measured figure.
    pub figure: LabFigure,
    /// Name of the flow; `None`: all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Varied keys and values that select the compared cells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// Whether the value compares two sets of cells as a difference or ratio.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relative: bool,
    /// Published value.
    pub reported: f64,
    /// Median of the measured values over the seeds; `None` without a complete run.
    pub measured: Option<f64>,
    /// Minimum of the measured values over the seeds.
    pub min: Option<f64>,
    /// Maximum of the measured values over the seeds.
    pub max: Option<f64>,
    /// Number of measured values, one per complete run.
    pub runs: u32,
    /// `measured / reported - 1`; 0 if both are 0; `None` if only `reported` is 0, or nothing was measured.
    pub deviation: Option<f64>,
    /// Source of the published value.
    pub source: String,
    /// Known reason for a difference between the measured and the published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ComparedFigure {
    /// Largest absolute deviation that counts as reproduced.
    pub const TOLERANCE: f64 = 0.1;

    /// Whether the figure counts among those that a source reports: not a computed value, and not 0, from which no
    /// relative deviation exists.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.basis == FigureBasis::Reported && self.reported != 0.0
    }

    /// Returns whether the measured value is within 10 % of the published one; `None` if nothing was measured.
    #[must_use]
    pub fn reproduced(&self) -> Option<bool> {
        self.measured.map(|_| self.deviation.is_some_and(|deviation| deviation.abs() <= Self::TOLERANCE))
    }
}

/// Returns `measured / reported - 1`; 0 if both are 0, `None` if only `reported` is.
#[must_use]
pub fn deviation(reported: f64, measured: f64) -> Option<f64> {
    if reported == 0.0 { (measured == 0.0).then_some(0.0) } else { Some(measured / reported - 1.0) }
}
