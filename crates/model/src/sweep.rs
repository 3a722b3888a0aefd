//! `landspeed.sweep/1`: an experiment: cells, their runs, and how they were drawn.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BuildInfo, Confidence, ErrorEntry, Reference, Warning};

/// An experiment. Every run of it is a separate document, found by [`SweepRun::document`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDocument {
    /// Always `landspeed.sweep/1`.
    pub schema: String,
    /// The program that wrote it.
    pub landspeed: BuildInfo,
    /// When the first run began, RFC 3339 UTC.
    pub started: String,
    /// Command line.
    pub command: Vec<String>,
    /// Name of the plan.
    pub name: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Published results of this experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// The plan's text.
    pub plan: String,
    /// SHA-256 of plan, build, and hosts or kernels, hex: the same for the same experiment.
    pub id: String,
    /// What is varied, the slowest first.
    pub factors: Vec<SweepFactor>,
    /// How the cells were chosen and ordered.
    pub design: SweepDesign,
    /// Where the runs were made.
    pub engine: SweepEngine,
    /// Whether every planned run is there.
    pub status: SweepStatus,
    /// Why no more runs were made, in words: the plan is done, the precision is reached, the budget is spent, Ctrl-C.
    pub ended_because: String,
    /// What went wrong.
    pub errors: Vec<ErrorEntry>,
    /// What a reader should know before trusting a figure.
    pub warnings: Vec<Warning>,
    /// Metrics that the runs have, the one in question first.
    pub metrics: Vec<SweepMetric>,
    /// The flow that the metric in question is of, where runs have several; else the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The cells.
    pub cells: Vec<SweepCell>,
    /// What the runs were made with and on, beside the levels; [`SweepFlow::environment`] is an index into it. Most experiments
    /// have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<SweepEnvironment>,
    /// The A/A control: the first cell against itself. What differs here is noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<SweepControl>,
    /// What each level does by itself, for the metric in question: one entry for each level but the first of a factor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<SweepEffect>,
    /// Lab: runs that were made twice with the same seed, and whether their digests are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digests: Option<SweepDigests>,
    /// Real time of the experiment, seconds.
    pub wall_s: f64,
    /// Of that, in which no run was under way, seconds for each job.
    pub overhead_s: f64,
}

/// Whether an experiment is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepStatus {
    /// Every run that the plan asks for is there, or its rule to stop was met.
    Complete,
    /// Some are missing: the same command resumes.
    Partial,
    /// Nothing was measured.
    Failed,
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFactor {
    /// The name in tables and charts.
    pub name: String,
    /// What it sets, as the plan has it: `run.congestion`, `host.client.sysctl:net.ipv4.tcp_rmem`, or a scenario's key such as
    /// `switch.west.queue.limit` or `kernel`. Several keys that change together are separated by commas.
    pub key: String,
    /// Its values, in the order of the plan.
    pub levels: Vec<serde_json::Value>,
    /// The same as numbers in their base unit (bits/s, bytes, nanoseconds), where all are quantities: the axis of a chart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
    /// The unit of `numbers`: `bit/s`, `B`, `ns`, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// How cells were chosen and ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDesign {
    /// `full`, or `fractional` with its fraction, such as `2^(5-2)`.
    pub kind: String,
    /// Resolution of a fractional design, such as `III`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// Effects that a fractional design cannot separate, such as `a = b×c`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Blocks: in each, every cell runs once in random order.
    pub blocks: u32,
    /// Seed of the order.
    pub seed: u64,
}

/// Where runs were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepEngine {
    /// `local` or `slurm`.
    pub name: String,
    /// Runs at once.
    pub jobs: u32,
    /// Workers that made runs, by name.
    pub workers: Vec<String>,
    /// Runs that were started again because a worker failed.
    pub requeued: u32,
}

/// A metric of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepMetric {
    /// [`crate::Metric::name`].
    pub name: String,
    /// Its key in [`SweepFlow::figures`].
    pub field: String,
    /// Its unit.
    pub unit: String,
    /// Which values are better.
    pub better: crate::Better,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// SHA-256 of what is measured (levels, build, kernel or hosts), hex; without the seed.
    pub id: String,
    /// The level of each factor, by the factor's name.
    pub levels: BTreeMap<String, serde_json::Value>,
    /// Its runs, by block.
    pub runs: Vec<SweepRun>,
}

/// One run of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRun {
    /// SHA-256 of cell, seed and block, hex; its document is `runs/ID.json`, or `.json.gz`, in the sweep's directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The block, from 0. Runs of one block are neighbours in time.
    pub block: u32,
    /// Its place in the block, from 0.
    pub place: u32,
    /// Whether it is the second run of this cell in its block, for the A/A control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// The seed: of a lab, all random draws; on hosts, a number only.
    pub seed: u64,
    /// Whether its figures may be used.
    pub usable: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Lab: digest of its results, the same on every worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// SHA-256 of its document, hex: `landspeed archive show`.
    pub document: String,
    /// When it began, RFC 3339 UTC.
    pub started: String,
    /// Real time, seconds.
    pub wall_s: f64,
    /// Who made it.
    pub worker: String,
    /// Its flows; a run has one, without a name.
    pub flows: Vec<SweepFlow>,
}

/// The figures of one flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFlow {
    /// Name in the scenario, or of the pair of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Figures by [`crate::Metric::field`].
    pub figures: BTreeMap<String, f64>,
    /// Goodput of each stream, bits/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams_bps: Vec<f64>,
    /// What limited it, where a verdict was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How sure that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Index of its environment in [`SweepDocument::environments`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<usize>,
}

/// Settings and hosts of a flow. Values that follow the cells are left out: the levels stand for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SweepEnvironment {
    /// The server as it was given, or the hosts of a lab's flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Kernel of the sender, or of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Parameters of the test by name: `congestion`, `streams`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Facts of the hosts by dotted name: `client.kernel_release`, `server.nic.mtu_bytes`, `client.sysctl.net.ipv4.tcp_rmem`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, String>,
}

/// What a level does by itself: all cells with it against all cells with the first level of its factor, paired by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepEffect {
    /// Name of the factor.
    pub factor: String,
    /// The level.
    pub level: serde_json::Value,
    /// Flow, where runs have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// [`crate::Metric::name`].
    pub metric: String,
    /// Blocks that it was computed from.
    pub blocks: u32,
    /// The median over the blocks of the ratio to the first level (of geometric means over cells).
    pub ratio: f64,
    /// Lower end of its 95 % interval; `None` where the blocks are too few for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Equal runs with equal digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDigests {
    /// Runs that were made more than once.
    pub compared: u32,
    /// Those whose digests differ, in words: a reader should use none of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub different: Vec<String>,
}

/// The same cell against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepControl {
    /// The cell.
    pub cell: String,
    /// Second runs over first runs, for each metric, as [`crate::ComparisonDocument`] has it.
    pub metrics: Vec<crate::ComparedMetric>,
}
