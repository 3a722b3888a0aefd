//! Published results of a set-up as numbers, and the same figures measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LabFigure;

/// What a deck or paper reported, and why it may differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Where.
    pub source: String,
    /// What it reported.
    pub reported: String,
    /// Why this differs.
    pub why_different: Option<String>,
    /// Its figures, each with what it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<ReferenceFigure>,
}

/// One figure of a source, and which figure of ours it corresponds to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFigure {
    /// What it is, such as `two streams, sum`.
    pub name: String,
    /// The value that was reported, in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: ReferenceUnit,
    /// The figure of the flow; default `goodput`.
    #[serde(default)]
    pub figure: LabFigure,
    /// The flow, by name; default: all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Which cells: varied keys (their labels, where they have one) and values; default all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// The value is the difference from the cells in which these keys have these values instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<BTreeMap<String, serde_json::Value>>,
    /// The value is the ratio to the cells in which these keys have these values instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<BTreeMap<String, serde_json::Value>>,
    /// Only from this time on, seconds after the flow's start; default: its steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// Only until this time, seconds after the flow's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Where it was reported, if not at the source of the whole; or the formula it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why the measured value differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Unit of a reported value.
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
    /// Hundredths.
    #[serde(rename = "%")]
    Percent,
    /// A quotient.
    #[serde(rename = "ratio")]
    Ratio,
}

impl ReferenceUnit {
    /// The unit as it is written.
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

    /// How many base units (bits/s, bytes, nanoseconds, segments, 1) one of it is.
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

/// A reported figure beside the measured one. `reported`, `measured`, `min` and `max` are in `unit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// What it is.
    pub name: String,
    /// The unit of all its values.
    pub unit: ReferenceUnit,
    /// The figure of the flow.
    pub figure: LabFigure,
    /// The flow; `None`: all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The varied keys that select its cells, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, serde_json::Value>,
    /// Whether it compares two sets of cells: it is a difference or a ratio.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relative: bool,
    /// What the source reported.
    pub reported: f64,
    /// Median over the seeds; `None`: no such run is complete.
    pub measured: Option<f64>,
    /// Least over the seeds.
    pub min: Option<f64>,
    /// Most over the seeds.
    pub max: Option<f64>,
    /// Seeds.
    pub runs: u32,
    /// `measured / reported - 1`; 0 if both are 0; `None` if only `reported` is 0, or nothing was measured.
    pub deviation: Option<f64>,
    /// Where it was reported.
    pub source: String,
    /// Why the measured value differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ComparedFigure {
    /// Largest absolute deviation that counts as reproduced.
    pub const TOLERANCE: f64 = 0.1;

    /// Whether the measured value is within 10 % of the reported one; `None` if nothing was measured.
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
