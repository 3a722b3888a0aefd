//! `landspeed.demo/1`: claims of the demo and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BuildInfo;

/// Claims that `landspeed demo` checked on this host, with their results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoDocument {
    /// Always `landspeed.demo/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Elapsed time from start to end, seconds, including a kernel build.
    pub wall_s: f64,
    /// The scenes in order, one claim each.
    pub scenes: Vec<DemoScene>,
}

/// One claim, how it was checked, and the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoScene {
    /// Stable identifier, such as `accounting`; prefix of the names of its files.
    pub name: String,
    /// Title: the measurement that is made.
    pub title: String,
    /// The claim that is checked.
    pub claim: String,
    /// Result of the check.
    pub result: DemoResult,
    /// Figures on which the result is based; empty if nothing was measured.
    pub measured: String,
    /// Reason the claim fails or was not checked; `None` if it is true.
    pub reason: Option<String>,
    /// Path of the report, relative to the directory of this document.
    pub report: Option<String>,
    /// Path of the measurement as JSON, relative to the directory of this document.
    pub document: Option<String>,
    /// The figures as a chart.
    pub chart: Option<DemoChart>,
}

/// The result of checking a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DemoResult {
    /// The measurement confirms the claim.
    Holds,
    /// The measurement contradicts the claim.
    Fails,
    /// The measurement did not start or did not finish.
    NotChecked,
}

/// Bar chart with a scale that starts at zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoChart {
    /// Description of the bars, with their unit.
    pub caption: String,
    /// The bars, top to bottom.
    pub bars: Vec<DemoBar>,
    /// A value to compare all bars with, such as a link rate.
    pub limit: Option<DemoPart>,
}

/// One bar of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoBar {
    /// Label of the bar.
    pub label: String,
    /// Parts of the bar, left to right.
    pub parts: Vec<DemoPart>,
}

/// One part of a bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoPart {
    /// Label of the part; empty if the bar's label is enough.
    pub label: String,
    /// Length of the part, in the unit of the caption.
    pub value: f64,
    /// The value as text, with its unit.
    pub text: String,
}
