//! The latest results of the exhibits, kept in `gallery.json`, which `cargo xtask gallery` writes.

use landspeed_model::{
    CheckedCriterion, ComparedFigure, LabDocument, LabFlow, LabStatus, Metric, QueueRole, SweepCell, SweepDocument,
    SweepEnvironment, SweepRun,
};
use serde::{Deserialize, Serialize};

/// The latest results of one exhibit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredExhibit {
    /// Name of the exhibit.
    pub exhibit: String,
    /// Start time, RFC 3339 UTC.
    pub started: String,
    /// Kernels, each as release and build id.
    pub kernels: Vec<String>,
    /// Hash of its first cell's scenario (see [`crate::scenario::hash`]). If it differs, the results are of another
    /// version of the scenario.
    pub hash: String,
    /// Real time of all cells together, seconds.
    pub wall_s: f64,
    /// Number of incomplete cells, which are not part of any figure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unusable: usize,
    /// The varied keys.
    pub varied: Vec<String>,
    /// The cells; those that differ only by seed are one row.
    pub rows: Vec<MeasuredRow>,
    /// The reported figures, with the measured ones.
    pub figures: Vec<ComparedFigure>,
    /// Claims of the source without a number, as limits, in each cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CheckedCriterion>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Results of a cell over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRow {
    /// Values of the varied keys.
    pub values: Vec<String>,
    /// Number of runs, one per seed.
    pub runs: usize,
    /// Figures of each flow.
    pub flows: Vec<MeasuredFlow>,
    /// Packets dropped by the switches.
    pub drops: Spread,
}

/// The figures of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFlow {
    /// Name of the flow.
    pub name: String,
    /// Payload rate in the steady phase, bits/s.
    pub goodput_bps: Option<Spread>,
    /// TCP segments retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<Spread>,
    /// UDP: share of packets lost, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<Spread>,
}

/// Median, minimum and maximum over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread(pub f64, pub f64, pub f64);

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let median = landspeed_stats::median(&values)?;
        let min = values.iter().copied().fold(f64::MAX, f64::min);
        Some(Self(median, min, values.iter().copied().fold(f64::MIN, f64::max)))
    }
}

/// Returns the latest results of the exhibits that have any.
#[must_use]
pub fn measured() -> Vec<MeasuredExhibit> {
    serde_json::from_str(include_str!("../../gallery.json")).unwrap_or_default()
}

impl MeasuredExhibit {
    /// Returns the results of an exhibit from the sweep of its cells.
    #[must_use]
    pub fn of_sweep(exhibit: &str, hash: &str, sweep: &SweepDocument) -> Self {
        let runs = || sweep.cells.iter().flat_map(|cell| &cell.runs).filter(|run| !run.control);
        let varied = || sweep.factors.iter().filter(|factor| factor.levels.len() > 1);
        let mut kernels: Vec<String> = sweep.environments.iter().map(kernel_text).collect();
        kernels.sort_unstable();
        kernels.dedup();
        Self {
            exhibit: exhibit.to_owned(),
            started: sweep.started.clone(),
            kernels,
            hash: hash.to_owned(),
            wall_s: sweep.wall_s.round(),
            unusable: runs().filter(|run| !run.usable).count(),
            varied: varied().map(|factor| factor.name.clone()).collect(),
            rows: sweep
                .cells
                .iter()
                .filter_map(|cell| row(cell, varied().map(|factor| value_text(&cell.levels[&factor.name])).collect()))
                .collect(),
            figures: sweep.reference_figures.clone(),
            criteria: sweep.criteria.clone(),
        }
    }

    /// Returns the results of an exhibit with one cell.
    #[must_use]
    pub fn of_run(exhibit: &str, hash: &str, run: &LabDocument) -> Self {
        let is_good = run.status == LabStatus::Complete;
        let spread = |value: f64| Spread(value, value, value);
        let flow = |flow: &LabFlow| MeasuredFlow {
            name: flow.name.clone(),
            goodput_bps: flow.goodput_bps.map(|bps| spread(bps.round())),
            retransmits: flow.retransmits.map(|count| spread(count as f64)),
            loss_ratio: flow.run.as_ref().and_then(|run| run.summary.loss_ratio).map(spread),
        };
        let switches = run.queues.iter().filter(|queue| queue.role == QueueRole::Switch);
        let row = MeasuredRow {
            values: Vec::new(),
            runs: 1,
            flows: run.flows.iter().map(flow).collect(),
            drops: spread(switches.map(|queue| queue.drops).sum::<u64>() as f64),
        };
        Self {
            exhibit: exhibit.to_owned(),
            started: run.started.clone(),
            kernels: vec![format!("{} {}", run.kernel.release, run.kernel.build_id)],
            hash: hash.to_owned(),
            wall_s: run.wall_s.round(),
            unusable: usize::from(!is_good),
            varied: Vec::new(),
            rows: if is_good { vec![row] } else { Vec::new() },
            figures: run.reference_figures.clone(),
            criteria: run.criteria.clone(),
        }
    }
}

/// Returns a cell's results; `None` without a usable run.
fn row(cell: &SweepCell, values: Vec<String>) -> Option<MeasuredRow> {
    let runs: Vec<&SweepRun> = cell.runs.iter().filter(|run| run.usable && !run.control).collect();
    let flows = runs.first()?.flows.iter().enumerate().map(|(i, first)| {
        let figure =
            |metric: Metric| runs.iter().filter_map(move |run| run.flows.get(i)?.figures.get(metric.field()));
        let retransmits = runs.iter().filter_map(|run| run.flows.get(i)?.retransmits);
        MeasuredFlow {
            name: first.name.clone().unwrap_or_default(),
            goodput_bps: Spread::of(figure(Metric::Goodput).map(|bps| bps.round())),
            retransmits: Spread::of(retransmits.map(|count| count as f64)),
            loss_ratio: Spread::of(figure(Metric::Loss).copied()),
        }
    });
    let drops = runs.iter().filter_map(|run| run.flows.first()?.figures.get(Metric::Drops.field()).copied());
    Some(MeasuredRow {
        flows: flows.collect(),
        runs: runs.len(),
        drops: Spread::of(drops).unwrap_or(Spread(0.0, 0.0, 0.0)),
        values,
    })
}

/// Returns a kernel as release and build id; only the release if the kernel is a factor.
pub fn kernel_text(environment: &SweepEnvironment) -> String {
    let release = environment.kernel.as_deref().unwrap_or_default();
    let build = environment.hosts.get("lab.kernel_build").map(String::as_str).unwrap_or_default();
    format!("{release} {build}").trim_end().to_owned()
}

fn value_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        other => other.to_string(),
    }
}
