//! `landspeed.suite/1`: results of a suite of scenarios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, CheckedCriterion};

/// Results of a suite: one entry for each case, in the order of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteDocument {
    /// `landspeed.suite/1`.
    pub schema: String,
    /// Program that wrote the document.
    pub landspeed: BuildInfo,
    /// Start of the first run, RFC 3339 UTC.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Name of the suite.
    pub suite: String,
    /// Title of the suite.
    pub title: String,
    /// Document that defines the cases.
    pub source: String,
    /// What the suite shows, and where its limits come from.
    pub about: String,
    /// Congestion controls that were tested.
    pub congestion: Vec<String>,
    /// Number of runs of each case and congestion control, with different seeds.
    pub runs: u32,
    /// Kernels, each as release and build id.
    pub kernels: Vec<String>,
    /// Real time of all runs, seconds.
    pub wall_s: f64,
    /// Results by case, in the order of the suite.
    pub cases: Vec<SuiteCase>,
}

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteCase {
    /// Name of the case.
    pub name: String,
    /// One-line description.
    pub title: String,
    /// Section of the suite's source.
    pub section: String,
    /// Conditions of the source that cannot be seen from outside the sender; `None` without any.
    pub hidden: Option<String>,
    /// Criteria by congestion control; empty if the case has none that can be seen.
    pub criteria: Vec<CheckedCriterion>,
    /// Number of runs that are not complete.
    pub unusable: u32,
    /// Errors and doubts of the runs.
    pub problems: Vec<String>,
}
