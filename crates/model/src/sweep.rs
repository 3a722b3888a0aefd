//! `landspeed.sweep/1`: an experiment: its design, cells and runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BuildInfo, CheckedCriterion, ComparedFigure, Confidence, ErrorEntry, FlowSeries, LabChart, Metric, Reference,
    Warning,
};

/// An experiment. Each run is a separate document, identified by [`SweepRun::document`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDocument {
    /// Always `landspeed.sweep/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// Start of the first run, RFC 3339 UTC.
    pub started: String,
    /// Command line, one argument per element.
    pub command: Vec<String>,
    /// Name of the plan.
    pub name: String,
    /// Description in the plan; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Published results for this experiment; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// Published figures next to the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_figures: Vec<ComparedFigure>,
    /// Criteria of the scenario, by cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CheckedCriterion>,
    /// Lab: charts for the scenario's question, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<LabChart>,
    /// Text of the plan file; of the scenario if `lab run` varied it; empty in documents of earlier versions of
    /// `lab run`.
    pub plan: String,
    /// SHA-256 of plan, build, and hosts or kernels, hex; the same for the same experiment.
    pub id: String,
    /// Factors, slowest varying first.
    pub factors: Vec<SweepFactor>,
    /// Selection and order of the cells.
    pub design: SweepDesign,
    /// Engine that made the runs.
    pub engine: SweepEngine,
    /// Whether all planned runs exist.
    pub status: SweepStatus,
    /// Reason the experiment ended, as text: plan complete, precision reached, budget used up, or interrupted.
    pub ended_because: String,
    /// Errors; empty if nothing failed.
    pub errors: Vec<ErrorEntry>,
    /// Conditions that reduce trust in the figures.
    pub warnings: Vec<Warning>,
    /// Metrics of the runs; the plan's metric first.
    pub metrics: Vec<SweepMetric>,
    /// Flow to which the plan's metric refers, if runs have several flows; otherwise the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// One entry per combination of levels.
    pub cells: Vec<SweepCell>,
    /// Settings and hosts of the runs apart from the factors; [`SweepFlow::environment`] is an index into this list.
    /// Most experiments have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<SweepEnvironment>,
    /// A/A control: the first cell compared with itself; differences are noise. `None` without a control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<SweepControl>,
    /// Main effects on the plan's metric: one entry for each level of a factor except its first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<SweepEffect>,
    /// Lab: runs repeated with the same seed, and whether their digests are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digests: Option<SweepDigests>,
    /// Elapsed real time of the experiment, seconds.
    pub wall_s: f64,
    /// Part of `wall_s` without a run in progress, mean over the jobs, seconds.
    pub overhead_s: f64,
}

/// Completeness of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepStatus {
    /// All planned runs exist, or the plan's stopping rule was met.
    Complete,
    /// Runs are missing; the same command resumes the experiment.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// A factor of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFactor {
    /// Name in tables and charts.
    pub name: String,
    /// Key the factor sets, as in the plan: `run.congestion`, `host.client.sysctl:net.ipv4.tcp_rmem`, or a key of a
    /// scenario such as `switch.west.queue.limit` or `kernel`. Keys that change together are separated by commas.
    pub key: String,
    /// Levels, in the order of the plan.
    pub levels: Vec<serde_json::Value>,
    /// Levels in base units (bits/s, bytes, nanoseconds) if all are quantities, for the axis of a chart; otherwise
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
    /// Unit of `numbers`: `bit/s`, `B`, `ns`, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// Selection and order of the cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDesign {
    /// `full`, or `fractional` with the fraction, such as `2^(5-2)`.
    pub kind: String,
    /// Resolution of a fractional design, such as `III`; `None` for a full design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// Aliases of a fractional design: effects that cannot be separated, such as `a = b×c`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Number of blocks; in each, every cell runs once in random order.
    pub blocks: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Precision at which the experiment ends, such as `ci<2%`. Intervals of medians are then wider than those of
    /// 95 %, because they are computed after every block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Engine that made the runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepEngine {
    /// `local` or `slurm`.
    pub name: String,
    /// Maximum number of parallel runs; 0 if unknown.
    pub jobs: u32,
    /// Names of the workers that made runs.
    pub workers: Vec<String>,
    /// Runs restarted because a worker failed.
    pub requeued: u32,
}

/// A metric of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepMetric {
    /// Name of the metric (`goodput`).
    pub name: String,
    /// Key of the metric in [`SweepFlow::figures`].
    pub field: String,
    /// Unit of the metric.
    pub unit: String,
    /// Whether higher or lower values are better.
    pub better: crate::Better,
}

impl From<Metric> for SweepMetric {
    fn from(metric: Metric) -> Self {
        Self {
            name: metric.name().to_owned(),
            field: metric.field().to_owned(),
            unit: metric.unit().to_owned(),
            better: metric.better(),
        }
    }
}

/// One combination of levels, with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// SHA-256 of levels, build, and kernel or hosts, hex; the seed is not included.
    pub id: String,
    /// Level of each factor, by factor name.
    pub levels: BTreeMap<String, serde_json::Value>,
    /// Runs of the cell, sorted by block.
    pub runs: Vec<SweepRun>,
}

/// One run of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRun {
    /// SHA-256 of cell, seed and block, hex; the document is `runs/ID.json` or `runs/ID.json.gz` in the sweep's
    /// directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Block number, from 0. Runs of one block are close in time.
    pub block: u32,
    /// Position in the block, from 0.
    pub place: u32,
    /// Whether it is the second run of this cell in its block, made for the A/A control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Seed of all random draws in the lab; without effect on hosts.
    pub seed: u64,
    /// Whether the run's figures may be used.
    pub usable: bool,
    /// Reasons the run is not usable; empty if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Lab: digest of the results, the same on every worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// SHA-256 of the document, hex, as accepted by `landspeed archive show`.
    pub document: String,
    /// Start of the run, RFC 3339 UTC.
    pub started: String,
    /// Elapsed real time, seconds.
    pub wall_s: f64,
    /// Name of the worker that made the run.
    pub worker: String,
    /// Flows of the run; a test between two hosts has one, without a name.
    pub flows: Vec<SweepFlow>,
}

/// Figures of one flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFlow {
    /// Name of the flow in the scenario, or of the pair of hosts; `None` for a single flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Figures by field name: `goodput_bps`.
    pub figures: BTreeMap<String, f64>,
    /// TCP segments retransmitted; `None` for other protocols or if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Goodput of each stream in the steady phase, bits/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams_bps: Vec<f64>,
    /// Cause that limited the flow; `None` without a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Confidence in `cause`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Lab: the flow over time, in the first run of a cell if a chart of the scenario is drawn over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<FlowSeries>,
    /// Index of the flow's environment in [`SweepDocument::environments`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<usize>,
}

/// Settings and hosts of a flow, without the values that are factor levels.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SweepEnvironment {
    /// Server as given by the user, or the hosts of a lab flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Kernel release of the sender, or of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Test parameters by name: `congestion`, `streams`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Host facts by dotted name: `client.kernel_release`, `server.nic.mtu_bytes`, `client.sysctl.net.ipv4.tcp_rmem`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, String>,
}

/// Main effect of a level: all cells with it compared with all cells with the first level of its factor, paired
/// by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepEffect {
    /// Name of the factor.
    pub factor: String,
    /// Level whose effect it is.
    pub level: serde_json::Value,
    /// Name of the flow; `None` if runs have one unnamed flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Name of the metric (`goodput`).
    pub metric: String,
    /// Number of blocks the effect was computed from.
    pub blocks: u32,
    /// Ratio to the first level: median over the blocks of ratios of geometric means over cells.
    pub ratio: f64,
    /// Lower limit of the ratio's 95 % confidence interval; `None` if there are too few blocks.
    pub low: Option<f64>,
    /// Upper limit of the ratio's 95 % confidence interval; `None` if there are too few blocks.
    pub high: Option<f64>,
}

/// Digests of runs repeated with the same seed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDigests {
    /// Number of runs made more than once.
    pub compared: u32,
    /// Description of each run whose digests differ; if there is one, none of the figures should be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub different: Vec<String>,
}

/// A/A control: a cell compared with itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepControl {
    /// Id of the cell.
    pub cell: String,
    /// Second runs compared with first runs, one entry per metric, as in [`crate::ComparisonDocument`].
    pub metrics: Vec<crate::ComparedMetric>,
}
