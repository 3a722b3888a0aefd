//! The sweep document, made from the runs of an experiment.

mod effects;
mod environments;

use std::collections::{BTreeMap, BTreeSet};

use landspeed_compare::{Options, noise};
use landspeed_model::{
    BuildInfo, ErrorEntry, Metric, SWEEP_SCHEMA, SweepCell, SweepControl, SweepDigests, SweepDocument, SweepEngine,
    SweepEnvironment, SweepFactor, SweepFlow, SweepMetric, SweepRun, SweepStatus, Warning,
};
use landspeed_results::{Document, RecordStatus};

use crate::rules::LEVEL;
use crate::{Design, Ended, Plan, PlannedRun, Rules, RunKind, id};

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun {
    /// Id of the run; see [`crate::id::run`].
    pub id: String,
    /// The planned run.
    pub planned: PlannedRun,
    /// Name of the worker that made it.
    pub worker: String,
    /// Wall-clock time, seconds.
    pub wall_s: f64,
    /// SHA-256 of its document, hex; empty if there is no document.
    pub document: String,
    /// The facts taken from its document.
    pub facts: RunFacts,
}

/// The parts of a run's document that a sweep document contains.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFacts {
    /// Start time, RFC 3339 UTC.
    pub started: String,
    /// Whether its figures can be used.
    pub usable: bool,
    /// Errors and failed checks.
    pub problems: Vec<String>,
    /// Digest of the results, in the lab only.
    pub digest: Option<String>,
    /// The flows, with their figures.
    pub flows: Vec<SweepFlow>,
    /// The environment of each flow, in the order of `flows`.
    pub environments: Vec<SweepEnvironment>,
    /// Lab: conditions that reduce trust in this run.
    pub warnings: Vec<Warning>,
}

impl RunFacts {
    /// Takes the facts from a run or lab document.
    pub fn of(document: &Document) -> Self {
        let records = document.records();
        let mut warnings = Vec::new();
        let (started, problems, retransmits) = match document {
            Document::Run(run) => (
                run.started.clone(),
                run.errors.iter().map(|error| error.message.clone()).collect(),
                vec![run.summary.retransmits],
            ),
            Document::Lab(lab) => {
                let failed = lab.checks.iter().filter(|check| !check.passed);
                let failed = failed.map(|check| format!("{}: {}", check.name, check.detail));
                // That a run is one of few is a warning about the sweep.
                warnings = lab.warnings.iter().filter(|warning| warning.code != "one-draw").cloned().collect();
                let problems = lab.errors.iter().map(|error| error.message.clone()).chain(failed).collect();
                (lab.started.clone(), problems, lab.flows.iter().map(|flow| flow.retransmits).collect())
            }
            other => (String::new(), vec![format!("a `{}` document is not a run", other.kind())], Vec::new()),
        };
        Self {
            started,
            usable: !records.is_empty() && records.iter().all(|record| record.status == RecordStatus::Complete),
            problems,
            warnings,
            digest: records.iter().find_map(|record| record.digest.clone()),
            environments: records.iter().map(environments::environment_of).collect(),
            flows: records
                .into_iter()
                .zip(retransmits.into_iter().chain(std::iter::repeat(None)))
                .map(|(record, retransmits)| SweepFlow {
                    name: record.flow,
                    figures: record.figures.fields(),
                    retransmits,
                    streams_bps: record.streams_bps,
                    cause: record.cause,
                    confidence: record.confidence,
                    series: None,
                    environment: None,
                })
                .collect(),
        }
    }

    /// The facts of a run that failed before it had a document.
    pub fn failed(started: String, why: String) -> Self {
        Self { started, problems: vec![why], ..Self::default() }
    }

    /// A figure of the flow with this name, or of the first flow if `flow` is `None`.
    pub fn figure(&self, flow: Option<&str>, metric: Metric) -> Option<f64> {
        figure(&self.flows, flow, metric)
    }
}

fn figure(flows: &[SweepFlow], flow: Option<&str>, metric: Metric) -> Option<f64> {
    let found = match flow {
        Some(name) => flows.iter().find(|flow| flow.name.as_deref() == Some(name)),
        None => flows.first(),
    };
    found?.figures.get(metric.field()).copied()
}

/// The parts of a sweep document that do not come from its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepMetadata {
    /// Version of landspeed.
    pub landspeed: BuildInfo,
    /// Start of the first run, RFC 3339 UTC.
    pub started: String,
    /// One argument per element.
    pub command: Vec<String>,
    /// Name of the flow that the plan's metric is taken from; `None` for the first.
    pub flow: Option<String>,
    /// Ids of the cells, in the order of the design.
    pub cells: Vec<String>,
    /// The stopping rules.
    pub rules: Rules,
    /// Number of blocks started.
    pub blocks: u32,
    /// Engine that made the runs: local or Slurm.
    pub engine: SweepEngine,
    /// Reason for the end of the experiment; `None` while it is running.
    pub ended: Option<Ended>,
    /// Errors of the experiment as a whole.
    pub errors: Vec<ErrorEntry>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Wall-clock time, seconds.
    pub wall_s: f64,
    /// Part of `wall_s` without a run in progress, seconds per job.
    pub overhead_s: f64,
}

/// Builds the sweep document.
pub fn document(plan: &Plan, design: &Design, frame: SweepMetadata, runs: &[FinishedRun]) -> SweepDocument {
    let usable = |cell: usize| {
        runs.iter().any(|run| run.planned.cell == cell && run.facts.usable && run.planned.kind == RunKind::Cell)
    };
    let measured = (0..design.cells.len()).filter(|&cell| usable(cell)).count();
    let digests = digests(runs);
    let mut errors = frame.errors;
    if let Some(different) = digests.as_ref().filter(|digests| !digests.different.is_empty()) {
        errors.push(ErrorEntry {
            code: "digest".to_owned(),
            message: format!("the same run gave different results: {}", different.different.join("; ")),
            advice: Some("do not use these figures; run them again on one machine".to_owned()),
        });
    }
    // A failed run counts as missing.
    let is_whole = measured == design.cells.len() && runs.iter().all(|run| run.facts.usable) && errors.is_empty();
    let status = match frame.ended {
        _ if measured == 0 => SweepStatus::Failed,
        Some(Ended::Blocks | Ended::Precision | Ended::Budget) if is_whole => SweepStatus::Complete,
        _ => SweepStatus::Partial,
    };
    let mut cells = cells(plan, design, &frame.cells, runs);
    let (environments, changed) = environments::assign(&mut cells, runs);
    let mut warnings = frame.warnings;
    warnings.extend(warnings_of_runs(runs));
    warnings.extend(changed);
    warnings.extend(missing_values(plan, frame.flow.as_deref(), &cells));
    let mut design_text = design.describe(plan, &frame.rules);
    design_text.blocks = frame.blocks;
    let mut document = SweepDocument {
        schema: SWEEP_SCHEMA.to_owned(),
        landspeed: frame.landspeed,
        started: frame.started,
        command: frame.command,
        name: plan.name.clone(),
        description: plan.description.clone(),
        reference: plan.reference.clone(),
        reference_figures: Vec::new(),
        criteria: Vec::new(),
        charts: Vec::new(),
        plan: plan.text.clone(),
        id: id::sweep(&plan.text, frame.cells.iter().map(String::as_str)),
        factors: plan.factors.iter().map(factor).collect(),
        design: design_text,
        status,
        ended_because: end_reason(frame.ended, &frame.rules, frame.blocks),
        engine: SweepEngine { workers: workers(runs), ..frame.engine },
        errors,
        warnings,
        metrics: metrics(plan, &cells),
        flow: frame.flow.clone(),
        control: None,
        effects: effects::of(plan, &frame.rules, frame.flow.as_deref(), design, &cells),
        digests,
        cells,
        environments,
        wall_s: frame.wall_s,
        overhead_s: frame.overhead_s,
    };
    document.control = control(&document);
    document
}

/// Returns the first warning of each kind, with the number of runs that have one.
fn warnings_of_runs(runs: &[FinishedRun]) -> Vec<Warning> {
    let mut kinds: Vec<(Warning, usize)> = Vec::new();
    for warning in runs.iter().filter(|run| run.facts.usable).flat_map(|run| &run.facts.warnings) {
        match kinds.iter_mut().find(|(known, _)| known.code == warning.code) {
            Some((_, count)) => *count += 1,
            None => kinds.push((warning.clone(), 1)),
        }
    }
    let of = |(warning, count): (Warning, usize)| match count {
        1 => warning,
        count => Warning { message: format!("{}, in {count} runs", warning.message), ..warning },
    };
    kinds.into_iter().map(of).collect()
}

fn factor(factor: &crate::Factor) -> SweepFactor {
    let (numbers, unit) = numbers(factor).unwrap_or_default();
    SweepFactor {
        name: factor.name.clone(),
        key: factor.key(),
        levels: factor.levels.iter().map(|level| level.label.clone()).collect(),
        numbers,
        unit,
    }
}

/// The levels of a factor as numbers; `None` if one of them sets several keys.
fn numbers(factor: &crate::Factor) -> Option<(Vec<f64>, String)> {
    let [key] = factor.keys.as_slice() else { return None };
    let values = factor.levels.iter().map(|level| serde_json::to_value(level.values.first()?).ok());
    landspeed_results::numbers(&key.value, &values.collect::<Option<Vec<_>>>()?)
}

/// The reason for the end, as a sentence.
fn end_reason(ended: Option<Ended>, rules: &Rules, blocks: u32) -> String {
    match ended {
        None => "runs are still missing".to_owned(),
        Some(Ended::Blocks) if rules.until.is_some() => {
            format!("all {blocks} blocks are there; the precision is not reached in every cell")
        }
        Some(Ended::Blocks) => format!("all {blocks} blocks are there"),
        Some(Ended::Precision) => {
            let until = rules.until.map(|until| until.to_string()).unwrap_or_default();
            format!("{until} holds for every cell after {blocks} blocks")
        }
        Some(Ended::Budget) => format!("the budget is spent, in block {blocks}"),
        Some(Ended::NoMetricValues) => "no run has the metric in question".to_owned(),
        Some(Ended::AllCellsFailed) => "every cell failed several times in a row".to_owned(),
        Some(Ended::Stopped) => "interrupted".to_owned(),
    }
}

fn cells(plan: &Plan, design: &Design, ids: &[String], runs: &[FinishedRun]) -> Vec<SweepCell> {
    let levels = |cell: &[usize]| {
        let levels = plan.factors.iter().zip(cell);
        levels.map(|(factor, &level)| (factor.name.clone(), factor.levels[level].label.clone())).collect()
    };
    let mut cells: Vec<SweepCell> = design
        .cells
        .iter()
        .zip(ids)
        .map(|(cell, id)| SweepCell { id: id.clone(), levels: levels(cell), runs: Vec::new() })
        .collect();
    for run in runs.iter().filter(|run| run.planned.kind != RunKind::Repeat) {
        cells[run.planned.cell].runs.push(SweepRun {
            id: run.id.clone(),
            block: run.planned.block,
            place: run.planned.place,
            control: run.planned.kind == RunKind::Control,
            seed: run.planned.seed,
            usable: run.facts.usable,
            problems: run.facts.problems.clone(),
            digest: run.facts.digest.clone(),
            document: run.document.clone(),
            started: run.facts.started.clone(),
            wall_s: run.wall_s,
            worker: run.worker.clone(),
            flows: run.facts.flows.clone(),
        });
    }
    cells.iter_mut().for_each(|cell| cell.runs.sort_by_key(|run| (run.block, run.place)));
    cells
}

/// Names the usable runs without the plan's metric: they are not in its median.
fn missing_values(plan: &Plan, flow: Option<&str>, cells: &[SweepCell]) -> Option<Warning> {
    let mut described = Vec::new();
    for cell in cells {
        let usable = || cell.runs.iter().filter(|run| run.usable && !run.control);
        let without: Vec<String> = usable()
            .filter(|run| figure(&run.flows, flow, plan.metric).is_none())
            .map(|run| short(&run.id).to_owned())
            .collect();
        if let Some(first) = without.first() {
            let levels: Vec<String> =
                cell.levels.iter().map(|(name, level)| format!("{name}={}", crate::plan::plain(level))).collect();
            let (some, all) = (without.len(), usable().count());
            described.push(format!("{some} of {all} runs of {} (such as {first})", levels.join(" ")));
        }
    }
    let name = plan.metric.name();
    (!described.is_empty()).then(|| Warning {
        code: "missing-values".to_owned(),
        message: format!("no {name}, so not in its median: {}", described.join("; ")),
    })
}

fn workers(runs: &[FinishedRun]) -> Vec<String> {
    runs.iter().map(|run| run.worker.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The metrics that the runs contain, the plan's metric first.
fn metrics(plan: &Plan, cells: &[SweepCell]) -> Vec<SweepMetric> {
    let flows = || cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
    let has =
        |metric: &Metric| *metric == plan.metric || flows().any(|flow| flow.figures.contains_key(metric.field()));
    let mut metrics: Vec<Metric> = Metric::ALL.into_iter().filter(has).collect();
    metrics.sort_by_key(|metric| *metric != plan.metric);
    metrics.into_iter().map(SweepMetric::from).collect()
}

/// Compares the digests of runs made twice with the same seed; `None` if there are none.
fn digests(runs: &[FinishedRun]) -> Option<SweepDigests> {
    let mut seen: BTreeMap<(usize, u64), &FinishedRun> = BTreeMap::new();
    let mut digests = SweepDigests::default();
    for run in runs {
        let Some(digest) = &run.facts.digest else { continue };
        let Some(first) = seen.get(&(run.planned.cell, run.planned.seed)) else {
            seen.insert((run.planned.cell, run.planned.seed), run);
            continue;
        };
        digests.compared += 1;
        if first.facts.digest.as_ref() != Some(digest) {
            digests.different.push(format!(
                "seed {} on {} and {}: runs {} and {}",
                run.planned.seed,
                first.worker,
                run.worker,
                short(&first.id),
                short(&run.id)
            ));
        }
    }
    (digests.compared > 0).then_some(digests)
}

/// The first 12 characters of an id, for display.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Compares the first cell with itself, paired by block.
fn control(document: &SweepDocument) -> Option<SweepControl> {
    let first = document.cells.first()?;
    let alone = SweepDocument { cells: vec![first.clone()], effects: Vec::new(), ..document.clone() };
    let records = Document::Sweep(Box::new(alone)).records();
    if !records.iter().any(|record| record.control && record.status == RecordStatus::Complete) {
        return None;
    }
    let of = |metric: Metric| {
        // Separately, so that each interval has its own level.
        let options = Options { level: LEVEL, metrics: vec![metric], ..Options::default() };
        let all = noise(&records, &options).into_iter();
        all.filter(move |compared| compared.name == metric.name()).collect::<Vec<_>>()
    };
    Some(SweepControl { cell: first.id.clone(), metrics: Metric::ALL.into_iter().flat_map(of).collect() })
}

#[cfg(test)]
mod tests;
