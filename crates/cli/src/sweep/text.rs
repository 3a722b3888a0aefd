//! Terminal output of a sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use landspeed_experiment::setup::{CostEstimate, Setup};
use landspeed_experiment::slurm::ClusterProgress;
use landspeed_model::{
    ComparedMetric, ComparisonVerdict, Metric, SweepCell, SweepDocument, SweepFactor, SweepFlow, SweepRun,
    SweepStatus,
};
use landspeed_stats::Interval;
use landspeed_sweep::rules;
use landspeed_units::{BitRate, Bytes, Nanos, Ratio};

use crate::board::duration;
use crate::lab::figures;
use crate::lab::text::table;
use crate::text::Page;

/// Maximum number of table rows printed; the document has all.
const MAX_ROWS: usize = 60;
/// Preferred maximum width of a table, columns.
const WIDTH: usize = 80;

/// Formats plan, stopping rules and estimate.
pub fn need(need: &CostEstimate, setup: &Setup) -> String {
    let mut page = Page::default();
    let cells = setup.cells.len();
    let design = setup.design.describe(&setup.plan, &setup.rules);
    let kind = design
        .resolution
        .map_or(design.kind.clone(), |resolution| format!("{}, resolution {resolution}", design.kind));
    page.line("plan", &format!("{}: {cells} {} ({kind})", setup.plan.name, plural(cells, "cell")));
    page.line("stops", &stops(setup));
    for alias in &design.aliases {
        page.line("alias", alias);
    }
    let present = need.runs - need.missing;
    let mut runs = format!("{} runs", need.runs);
    if present > 0 {
        let _ = write!(runs, ", {present} of them there already");
    }
    if need.others > 0 {
        let _ = write!(
            runs,
            "; {} in {} are of another plan, build or host state",
            need.others,
            setup.directory.root().display()
        );
    }
    page.line("runs", &runs);
    let memory = if need.memory_bytes > 0 {
        format!(", {} of memory each", Bytes::new(need.memory_bytes))
    } else {
        String::new()
    };
    page.line(
        "estimate",
        &format!("{} for {} runs, {} at once{memory}", duration(need.wall_s), need.missing, setup.jobs),
    );
    page.line("seed", &format!("{} (order and runs)", setup.plan.seed));
    page.text
}

/// Describes the stopping rules.
fn stops(setup: &Setup) -> String {
    let rules = &setup.rules;
    let mut parts = Vec::new();
    if let Some(until) = rules.until {
        parts.push(format!(
            "{until} for {} in every cell, judged from block {} on",
            setup.plan.metric.name(),
            setup.expected_blocks()
        ));
    }
    if let Some(blocks) = rules.blocks {
        parts.push(format!(
            "{}{blocks} {}",
            if rules.until.is_some() { "at most " } else { "after " },
            plural(blocks as usize, "block")
        ));
    }
    if let Some(budget_ns) = rules.budget_ns {
        parts.push(format!("after {}", duration(budget_ns as f64 / 1e9)));
    }
    format!("{}; each block runs every cell once and one cell twice", parts.join(", "))
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// Formats the progress line of a cluster's jobs.
pub fn cluster(progress: &ClusterProgress) -> String {
    let ClusterProgress { runs, done, wall_s, jobs, reason } = progress;
    let left_s = wall_s * runs.saturating_sub(*done) as f64 / (*done).max(1) as f64;
    let left = if *done > 0 { format!(", about {} left", duration(left_s)) } else { String::new() };
    let pending = if reason.is_empty() { String::new() } else { format!(", pending: {reason}") };
    let jobs = if jobs.is_empty() { String::new() } else { format!(" (Slurm job {})", jobs.join(", ")) };
    format!("{done} of {} runs done{jobs}, {} elapsed{left}{pending}", runs.max(done), duration(*wall_s))
}

/// Formats the cells of a plan as a table.
pub fn cells(setup: &Setup) -> String {
    let mut rows = vec![head(setup.plan.factors.iter().map(|factor| factor.name.clone()), &["EACH RUN"])];
    for (cell, info) in setup.design.cells.iter().zip(&setup.cells).take(MAX_ROWS) {
        let mut row: Vec<String> =
            setup.plan.factors.iter().zip(cell).map(|(factor, &level)| factor.levels[level].name()).collect();
        row.push(duration(info.wall_s));
        rows.push(row);
    }
    let mut text = table(&rows);
    if setup.cells.len() > MAX_ROWS {
        let _ = writeln!(text, "  and {} more cells", setup.cells.len() - MAX_ROWS);
    }
    text
}

/// Lists the host settings that would change.
pub fn changes(changes: &[String]) -> String {
    let mut page = Page::default();
    for change in changes {
        page.line("changes", change);
    }
    if !changes.is_empty() {
        page.line("", "each is held for the runs of a block that need it, and rolled back; this needs root, and servers with `--allow-host-changes`");
    }
    page.text
}

fn head(factors: impl Iterator<Item = String>, columns: &[&str]) -> Vec<String> {
    let mut head: Vec<String> = factors.collect();
    if head.is_empty() {
        head.push("cell".to_owned());
    }
    head.extend(columns.iter().map(|&column| column.to_owned()));
    head
}

/// Formats the result.
pub fn summary(document: &SweepDocument, directory: Option<&Path>) -> String {
    let mut page = Page::default();
    let runs: usize = document.cells.iter().map(|cell| cell.runs.len()).sum();
    let usable = document.cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.usable).count();
    let of = if usable == runs { String::new() } else { format!(", {usable} usable") };
    page.line("sweep", &format!("{}: {} cells, {runs} runs{of}", document.name, document.cells.len()));
    if let Some(reference) = &document.reference {
        page.line("reported", &format!("{} ({})", reference.reported, reference.source));
        if let Some(why) = &reference.why_different {
            page.line("", why);
        }
    }
    let metric = document.metrics.first().and_then(|metric| Metric::find(&metric.name)).unwrap_or(Metric::Goodput);
    let flow = document.flow.as_deref();
    let name = metric.name();
    let of_flow = flow.map(|flow| format!(", flow {flow}")).unwrap_or_default();
    page.line(
        "table",
        &match Precision::of(document, metric, flow) {
            Precision::Interval(_) if document.design.until.is_some() => {
                format!("median {name} of each cell with its 95 % interval (after every block){of_flow}")
            }
            Precision::Interval(_) => format!("median {name} of each cell with its 95 % interval{of_flow}"),
            Precision::Range => format!("median {name} of each cell with minimum and maximum{of_flow}"),
            Precision::None => format!("{name} of each cell, one run each{of_flow}"),
        },
    );
    page.text.push_str(&table(&fit_columns(document, metric, flow)));
    if document.cells.len() > MAX_ROWS {
        page.line("", &format!("{} more cells in the document", document.cells.len() - MAX_ROWS));
    }
    figures::print(&mut page, &document.reference_figures);
    figures::print_criteria(&mut page, &document.criteria);
    for effect in &document.effects {
        let level = plain(&effect.level);
        let first = document
            .factors
            .iter()
            .find(|factor| factor.name == effect.factor)
            .and_then(|factor| factor.levels.first());
        let interval = interval(effect.ratio, effect.low, effect.high);
        page.line(
            "effect",
            &format!("{} {level} / {}: {interval}", effect.factor, first.map(plain).unwrap_or_default()),
        );
    }
    if let Some(metric) = document.control.as_ref().and_then(|control| own_metric(&control.metrics, metric, flow)) {
        page.line("A/A", &control_line(metric));
    }
    for (problem, count) in problems(document).into_iter().take(10) {
        page.line("FAILED", &format!("{count} {}: {problem}", plural(count, "run")));
    }
    if let Some(digests) = &document.digests {
        if digests.different.is_empty() {
            page.line(
                "digests",
                &format!(
                    "{} {} made twice with the same seed: equal",
                    digests.compared,
                    plural(digests.compared as usize, "run")
                ),
            );
        }
        for different in &digests.different {
            page.line("DIGESTS", different);
        }
    }
    for warning in &document.warnings {
        page.line("doubt", &warning.message);
    }
    let status = match document.status {
        SweepStatus::Complete => "complete",
        SweepStatus::Partial => "partial",
        SweepStatus::Failed => "failed",
    };
    page.line("status", &format!("{status}: {}", document.ended_because));
    if let Some(kernels) = kernels(document) {
        page.line("kernel", &kernels);
    }
    let jobs = match document.engine.jobs as usize {
        0 => String::new(),
        jobs => format!(" on {jobs} {}", plural(jobs, "job")),
    };
    page.line("took", &format!("{}{jobs}", duration(document.wall_s)));
    if is_of_lab(document) {
        page.line(
            "note",
            "a network-limited prediction: the lab's hosts have infinite CPU and no NIC, unless a host sets cpu",
        );
    }
    if let Some(directory) = directory {
        page.line("results", &directory.join("sweep.json").display().to_string());
    }
    page.text
}

fn is_of_lab(document: &SweepDocument) -> bool {
    document.environments.iter().any(|environment| environment.hosts.keys().any(|key| key.starts_with("lab.")))
}

/// Names a lab's kernels by release and build id, which are needed to reproduce a result. `None` for hosts.
fn kernels(document: &SweepDocument) -> Option<String> {
    let kernels: BTreeSet<String> = document
        .environments
        .iter()
        .filter_map(|environment| {
            let build = environment.hosts.get("lab.kernel_build").map(|build| format!(" (build {build})"));
            Some(format!("Linux {}{}", environment.kernel.as_ref()?, build.unwrap_or_default()))
        })
        .collect();
    (is_of_lab(document) && !kernels.is_empty()).then(|| kernels.into_iter().collect::<Vec<_>>().join(", "))
}

/// What the table says about the spread of the runs.
#[derive(Clone, Copy)]
enum Precision {
    /// A cell has enough runs for an interval, which this function computes.
    Interval(fn(&[f64]) -> Option<Interval>),
    /// A cell has several runs.
    Range,
    /// Every cell has one run.
    None,
}

impl Precision {
    fn of(document: &SweepDocument, metric: Metric, flow: Option<&str>) -> Self {
        let interval = if document.design.until.is_some() { rules::stopping_interval } else { rules::interval };
        let runs = document.cells.iter().map(|cell| values(cell, metric, flow));
        runs.map(|values| match (interval(&values), values.len()) {
            (Some(_), _) => (2, Self::Interval(interval)),
            (None, 2..) => (1, Self::Range),
            _ => (0, Self::None),
        })
        .max_by_key(|(rank, _)| *rank)
        .map_or(Self::None, |(_, precision)| precision)
    }

    fn title(self) -> Option<&'static str> {
        match self {
            Self::Interval(_) => Some("INTERVAL"),
            Self::Range => Some("RANGE"),
            Self::None => None,
        }
    }

    fn show(self, metric: Metric, values: &[f64]) -> Option<String> {
        let bounds = match self {
            Self::Interval(interval) => interval(values).map(|interval| (interval.low, interval.high)),
            Self::Range => values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max)),
            Self::None => return None,
        };
        Some(bounds.map_or_else(|| "-".to_owned(), |(low, high)| range(metric, low, high)))
    }
}

/// A further column of the table: the median of a figure of a flow.
struct Column<'a> {
    title: String,
    flow: Option<&'a str>,
    /// `None` is the number of retransmits.
    metric: Option<Metric>,
}

impl Column<'_> {
    fn show(&self, cell: &SweepCell) -> String {
        let values = match self.metric {
            Some(metric) => values(cell, metric, self.flow),
            None => {
                own_flows(cell, self.flow).filter_map(|flow| flow.retransmits).map(|count| count as f64).collect()
            }
        };
        let Some(median) = landspeed_stats::median(&values) else { return "-".to_owned() };
        self.metric.map_or_else(|| format!("{median:.0}"), |metric| figure(metric, median))
    }
}

/// Returns the table's rows with as many columns as fit.
fn fit_columns(document: &SweepDocument, metric: Metric, flow: Option<&str>) -> Vec<Vec<String>> {
    let mut others = others(document, metric, flow);
    loop {
        let rows = rows(document, metric, flow, &others);
        let widest = table(&rows).lines().map(|line| line.chars().count()).max().unwrap_or(0);
        if widest <= WIDTH || others.pop().is_none() {
            return rows;
        }
    }
}

/// Returns the heading and one row per cell.
fn rows(document: &SweepDocument, metric: Metric, flow: Option<&str>, others: &[Column<'_>]) -> Vec<Vec<String>> {
    let title = metric.name().to_uppercase().replace('_', " ");
    let precision = Precision::of(document, metric, flow);
    let mut columns = vec!["RUNS", title.as_str()];
    columns.extend(precision.title());
    columns.extend(others.iter().map(|column| column.title.as_str()));
    let has_cause = document.cells.iter().any(|cell| cause(cell, flow) != "-");
    columns.extend(has_cause.then_some("CAUSE"));
    let varied: Vec<&SweepFactor> = document.factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    let mut rows = vec![head(varied.iter().map(|factor| factor.name.clone()), &columns)];
    for (number, cell) in document.cells.iter().enumerate().take(MAX_ROWS) {
        // The document may come from elsewhere, and a cell lack a level.
        let level = |name: &String| cell.levels.get(name).map_or_else(|| "-".to_owned(), plain);
        let mut row: Vec<String> = varied.iter().map(|factor| level(&factor.name)).collect();
        if row.is_empty() {
            row.push((number + 1).to_string());
        }
        let values = values(cell, metric, flow);
        row.push(values.len().to_string());
        row.push(landspeed_stats::median(&values).map_or_else(|| "-".to_owned(), |value| figure(metric, value)));
        row.extend(precision.show(metric, &values));
        row.extend(others.iter().map(|column| column.show(cell)));
        row.extend(has_cause.then(|| cause(cell, flow)));
        rows.push(row);
    }
    rows
}

/// Formats an interval: `48.1 to 77.0 Gb/s`.
fn range(metric: Metric, low: f64, high: f64) -> String {
    let (low, high) = (figure(metric, low), figure(metric, high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Selects further columns, most important first: goodput, retransmits or loss; CPU, RTT or latency; the other flows;
/// drops in switches.
fn others<'a>(document: &'a SweepDocument, metric: Metric, flow: Option<&'a str>) -> Vec<Column<'a>> {
    let has =
        |metric: Metric, flow: Option<&str>| document.cells.iter().any(|cell| !values(cell, metric, flow).is_empty());
    let first = [
        (Some(Metric::Goodput), "GOODPUT"),
        (Some(Metric::Retransmits), "RETR/GB"),
        (None, "RETRANS"),
        (Some(Metric::Loss), "LOSS"),
    ];
    let second =
        [(Some(Metric::Cpu), "CPU/Gb"), (Some(Metric::RttP50), "RTT p50"), (Some(Metric::LatencyP50), "LATENCY")];
    let counted = document.cells.iter().flat_map(|cell| own_flows(cell, flow)).any(|flow| flow.retransmits.is_some());
    let pick = |columns: &[(Option<Metric>, &str)]| {
        let found = columns.iter().find(|(other, _)| match *other {
            Some(other) => other != metric && has(other, flow),
            None => metric != Metric::Retransmits && counted,
        });
        found.map(|(metric, title)| Column { title: (*title).to_owned(), flow, metric: *metric })
    };
    let mut columns: Vec<Column<'_>> = [pick(&first), pick(&second)].into_iter().flatten().collect();
    let flows = document.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
    let mut names: Vec<&str> = Vec::new();
    for name in flows.filter_map(|flow| flow.name.as_deref()) {
        if flow.is_some() && flow != Some(name) && !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let shown = [metric, Metric::Goodput, Metric::LatencyP50].into_iter().find(|metric| has(*metric, Some(name)));
        let column = |title, metric| Column { title, flow: Some(name), metric: Some(metric) };
        columns.extend(shown.map(|metric| column(name.to_owned(), metric)));
        if shown != Some(Metric::Loss) && has(Metric::Loss, Some(name)) {
            columns.push(column(format!("{name} LOSS"), Metric::Loss));
        }
    }
    if metric != Metric::Drops && has(Metric::Drops, flow) {
        columns.push(Column { title: "DROPS".to_owned(), flow, metric: Some(Metric::Drops) });
    }
    columns
}

/// Returns the metric of a cell's usable runs, without control runs.
fn values(cell: &SweepCell, metric: Metric, flow: Option<&str>) -> Vec<f64> {
    own_flows(cell, flow).filter_map(|flow| flow.figures.get(metric.field()).copied()).collect()
}

/// Returns the flow of a cell's usable runs, without control runs.
fn own_flows<'a>(cell: &'a SweepCell, flow: Option<&'a str>) -> impl Iterator<Item = &'a SweepFlow> {
    let runs = cell.runs.iter().filter(|run| run.usable && !run.control);
    runs.filter_map(move |run| own_flow(run, flow))
}

fn own_flow<'a>(run: &'a SweepRun, flow: Option<&str>) -> Option<&'a SweepFlow> {
    match flow {
        Some(name) => run.flows.iter().find(|flow| flow.name.as_deref() == Some(name)),
        None => run.flows.first(),
    }
}

/// Returns the most frequent cause in a cell.
fn cause(cell: &SweepCell, flow: Option<&str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in cell.runs.iter().filter(|run| run.usable) {
        if let Some(cause) = own_flow(run, flow).and_then(|flow| flow.cause.as_deref()) {
            *counts.entry(cause).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or_else(|| "-".to_owned(), |(cause, _)| cause.replace(['_', '-'], " "))
}

fn own_metric<'a>(metrics: &'a [ComparedMetric], metric: Metric, flow: Option<&str>) -> Option<&'a ComparedMetric> {
    let named = |compared: &&ComparedMetric| compared.name == metric.name();
    metrics
        .iter()
        .filter(named)
        .find(|compared| flow.is_none() || compared.flow.as_deref() == flow || compared.flow.is_none())
}

fn control_line(metric: &ComparedMetric) -> String {
    let ratio = metric.ratio.map_or_else(|| "-".to_owned(), |ratio| interval(ratio, metric.low, metric.high));
    let pairs = metric.candidate_runs;
    let reading = match metric.verdict {
        ComparisonVerdict::TooFewRuns => "too few pairs for an interval",
        ComparisonVerdict::NoDetectableDifference => {
            "the interval contains 1: smaller differences between cells are noise"
        }
        ComparisonVerdict::Better | ComparisonVerdict::Worse => {
            "the interval does not contain 1: something changes between runs of one cell"
        }
    };
    format!("the first cell against itself, {pairs} {}: {ratio}; {reading}", plural(pairs as usize, "pair"))
}

/// Formats a ratio with its interval: `× 1.020 (0.980 to 1.050)`.
fn interval(ratio: f64, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("× {ratio:.3} ({low:.3} to {high:.3})"),
        _ => format!("× {ratio:.3}"),
    }
}

fn problems(document: &SweepDocument) -> BTreeMap<String, usize> {
    let failed = document.cells.iter().flat_map(|cell| &cell.runs).filter(|run| !run.usable);
    let mut problems = BTreeMap::new();
    for run in failed {
        let problem = run.problems.first().cloned().unwrap_or_else(|| "it has no usable figures".to_owned());
        *problems.entry(problem).or_default() += 1;
    }
    problems
}

/// Formats a value with its unit.
pub fn figure(metric: Metric, value: f64) -> String {
    match metric.unit() {
        "bit/s" => BitRate::from_bps(value.max(0.0) as u64).to_string(),
        "ns" => Nanos::new(value.max(0.0) as u64).to_string(),
        "ratio" if metric == Metric::StreamBalance => format!("{value:.3}"),
        "ratio" => Ratio::new(value).map_or_else(|| format!("{value:.3}"), |ratio| ratio.to_string()),
        "s/Gb" => Nanos::new((value * 1e9).max(0.0) as u64).to_string(),
        _ if value >= 1000.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
