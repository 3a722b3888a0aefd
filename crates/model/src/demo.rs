//! `landspeed.demo/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BuildInfo;

/// What `landspeed demo` claimed about this machine, and whether it was right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoDocument {
    /// Always `landspeed.demo/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Time from start to end, seconds, including a kernel build.
    pub wall_s: f64,
    /// The scenes, in order; each holds one claim.
    pub scenes: Vec<DemoScene>,
}

/// One claim, how it was checked, and the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoScene {
    /// Stable word, such as `accounting`; the names of its files begin with it.
    pub name: String,
    /// What is done.
    pub title: String,
    /// What must be true.
    pub claim: String,
    /// Whether it is.
    pub result: DemoResult,
    /// The figures the result rests on; empty if nothing was measured.
    pub measured: String,
    /// Why the claim fails, or why it was not checked.
    pub reason: Option<String>,
    /// The report, relative to the directory of this document.
    pub report: Option<String>,
    /// The measurement as JSON, relative to the directory of this document.
    pub document: Option<String>,
    /// The figures as a chart.
    pub chart: Option<DemoChart>,
}

/// The result of checking a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DemoResult {
    /// The claim holds.
    Holds,
    /// The measurement contradicts the claim.
    Fails,
    /// Nothing was measured, or not to the end.
    NotChecked,
}

/// Bars on one scale that begins at zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoChart {
    /// What the bars show, with their unit.
    pub caption: String,
    /// The bars, top to bottom.
    pub bars: Vec<DemoBar>,
    /// A value to compare all bars with, such as a link rate.
    pub limit: Option<DemoPart>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoBar {
    /// What it stands for.
    pub label: String,
    /// Its parts, left to right.
    pub parts: Vec<DemoPart>,
}

/// One part of a bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemoPart {
    /// What it stands for; empty if the bar's label says it.
    pub label: String,
    /// Its length, in the unit of the caption.
    pub value: f64,
    /// The value as text, with its unit.
    pub text: String,
}
