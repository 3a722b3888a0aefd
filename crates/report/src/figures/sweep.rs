//! Figures of a sweep: curves, heat maps, matrices, small multiples, stream balance.

use std::collections::BTreeMap;

use landspeed_model::{
    Drawing, Figure, FigureAxis, FigureChart, FigureLine, FigureMark, FigureNote, FigurePanel, FigureScale,
    FiguresDocument, Metric, SweepDocument, SweepMetric, SweepStatus,
};

use super::grid::{self, Table};
use super::samples::{self, Cell, Samples};
use super::spread::{self, Spread};
use super::{Limit, charts, comparison, plural, quantity, record};

/// Maximum number of lines in one chart; a factor with more levels becomes the rows of a heat map.
const MAX_LINES: usize = 8;
/// Maximum number of panels in one figure.
const MAX_PANELS: usize = 12;
/// Maximum number of metrics that are drawn.
const MAX_METRICS: usize = 10;
const MAX_FLOWS: usize = 4;
/// Number of levels of both factors from which a heat map is drawn before the curves.
const MIN_HEAT_MAP_LEVELS: usize = 6;
/// Maximum number of positions in a stream balance chart.
const MAX_POSITIONS: usize = 30;

/// Returns the page of a sweep.
pub(crate) fn figures(sweep: &SweepDocument, limits: &[Limit]) -> FiguresDocument {
    let samples = Samples::of_sweep(sweep);
    let mut figures = charts::over_time(sweep);
    figures.extend(drawn(&samples, limits));
    figures.extend(charts::reference(sweep));
    figures.extend(charts::criteria(sweep));
    if let Some(control) = &sweep.control {
        figures.extend(comparison::control(control));
    }
    if let Some(records) = record::of_sweep(sweep) {
        figures.push(records);
    }
    FiguresDocument {
        about: "sweep".to_owned(),
        title: sweep.name.clone(),
        description: sweep.description.clone(),
        answer: answer(&samples),
        started: sweep.started.clone(),
        facts: facts(sweep),
        notes: notes(sweep),
        figures,
        ..FiguresDocument::default()
    }
}

fn facts(sweep: &SweepDocument) -> Vec<[String; 2]> {
    let runs = || sweep.cells.iter().flat_map(|cell| &cell.runs);
    let usable = runs().filter(|run| run.usable).count();
    let design = match &sweep.design.resolution {
        Some(resolution) => format!("{} (resolution {resolution})", sweep.design.kind),
        None => sweep.design.kind.clone(),
    };
    let mut facts = vec![
        ["cells".to_owned(), sweep.cells.len().to_string()],
        ["runs".to_owned(), format!("{usable} usable of {}", runs().count())],
        ["design".to_owned(), design],
        ["blocks".to_owned(), format!("{}, order by seed {}", sweep.design.blocks, sweep.design.seed)],
        [
            "engine".to_owned(),
            match sweep.engine.jobs as usize {
                0 => sweep.engine.name.clone(),
                jobs => format!("{}, {}", sweep.engine.name, plural(jobs, "job")),
            },
        ],
        ["real time".to_owned(), quantity::text(sweep.wall_s * 1e9, "ns")],
        ["ended because".to_owned(), sweep.ended_because.clone()],
    ];
    facts.extend(charts::kernels(sweep).map(|kernels| ["kernel".to_owned(), kernels]));
    if let Some(reference) = &sweep.reference {
        facts.push(["reported".to_owned(), format!("{} ({})", reference.reported, reference.source)]);
        facts.extend(reference.why_different.clone().map(|why| ["why it may differ".to_owned(), why]));
    }
    facts.extend(sweep.factors.iter().map(|factor| [factor.name.clone(), plural(factor.levels.len(), "level")]));
    facts
}

fn notes(sweep: &SweepDocument) -> Vec<FigureNote> {
    let mut notes = Vec::new();
    let mut note = |serious: bool, text: String| notes.push(FigureNote { serious, text });
    match sweep.status {
        SweepStatus::Complete => {}
        SweepStatus::Partial => {
            note(true, format!("The sweep is not complete: {}.", sweep.ended_because.trim_end_matches('.')));
        }
        SweepStatus::Failed => note(true, "Nothing was measured.".to_owned()),
    }
    let out: Vec<_> = sweep.cells.iter().flat_map(|cell| &cell.runs).filter(|run| !run.usable).collect();
    if !out.is_empty() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for problem in out.iter().flat_map(|run| &run.problems) {
            *counts.entry(problem).or_default() += 1;
        }
        let mut why: Vec<(&str, usize)> = counts.into_iter().collect();
        why.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let why: Vec<String> = why.iter().take(3).map(|(problem, count)| format!("{problem} ({count})")).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        note(true, format!("{} cannot be used and are not in the figures{why}.", plural(out.len(), "run")));
    }
    for error in &sweep.errors {
        note(true, error.message.clone());
    }
    for alias in &sweep.design.aliases {
        note(false, format!("The design cannot separate these effects: {alias}."));
    }
    for warning in &sweep.warnings {
        note(false, warning.message.clone());
    }
    if charts::is_of_lab(sweep) {
        note(
            false,
            "A network-limited prediction: the lab's hosts have infinite CPU and no NIC, unless a host sets cpu."
                .to_owned(),
        );
    }
    notes
}

/// Returns the answer to the plan's question: the best and worst medians of the first metric, with their cells.
pub(crate) fn answer(samples: &Samples) -> String {
    let Some(metric) = samples.metrics.iter().find(|metric| samples.has(&metric.field)) else {
        return "No run can be used.".to_owned();
    };
    let mut all: Vec<(&Cell, &str, Spread)> = Vec::new();
    for flow in &samples.flows {
        for cell in &samples.cells {
            if let Some(spread) = Spread::of(Samples::values(cell, flow, &metric.field), samples.stopping) {
                all.push((cell, flow, spread));
            }
        }
    }
    let title = samples::title(metric);
    let by = |a: &&(&Cell, &str, Spread), b: &&(&Cell, &str, Spread)| a.2.median.total_cmp(&b.2.median);
    let (Some(low), Some(high)) = (all.iter().min_by(by), all.iter().max_by(by)) else {
        return "No run can be used.".to_owned();
    };
    let said = |(cell, flow, spread): &(&Cell, &str, Spread)| {
        let value = quantity::text(spread.median, &metric.unit);
        let place = [samples.place(cell), if flow.is_empty() { String::new() } else { format!("flow {flow}") }];
        let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
        if place.is_empty() { value } else { format!("{value} ({})", place.join(", ")) }
    };
    if all.len() == 1 || low.2.median.total_cmp(&high.2.median).is_eq() {
        let everywhere = if all.len() > 1 { " in every cell" } else { "" };
        return format!("{title}: median {}{everywhere}.", quantity::text(high.2.median, &metric.unit));
    }
    let (best, worst) = if samples::higher(metric.better) { (high, low) } else { (low, high) };
    let apart = match (low.2.interval, high.2.interval) {
        (Some((_, low)), Some((high, _))) if low < high => "",
        (Some(_), Some(_)) => " Their 95 % intervals overlap: no difference is shown.",
        _ => " Too few runs for 95 % intervals.",
    };
    let missing = samples
        .cells
        .iter()
        .filter(|cell| samples.flows.iter().all(|flow| Samples::values(cell, flow, &metric.field).is_empty()))
        .count();
    let missing = if missing > 0 { format!(" {} without a value.", plural(missing, "cell")) } else { String::new() };
    format!("{title}: best median {}, worst {}.{apart}{missing}", said(best), said(worst))
}

/// Layout of the factors in a figure.
enum Layout {
    /// Curves over factor `x`, a line for each level of `lines`, a panel for each combination of the others.
    Curves { x: usize, lines: Option<usize>, panels: Vec<usize> },
    /// Heat map of two factors, a figure for each combination of the others.
    HeatMap { rows: usize, columns: usize, panels: Vec<usize> },
    /// Labels that combine several factors for rows and columns.
    Matrix { rows: Vec<usize>, columns: Vec<usize> },
}

/// Returns the layouts of an experiment, the one that answers its question first.
fn layouts(samples: &Samples) -> Vec<Layout> {
    let varied = samples.varied();
    let levels = |at: usize| samples.factors[at].labels.len();
    let others = |used: &[usize]| varied.iter().copied().filter(|at| !used.contains(at)).collect::<Vec<_>>();
    let cores: Vec<usize> = varied.iter().copied().filter(|at| samples.factors[*at].is_cores()).collect();
    if let [rows, columns] = cores[..] {
        return vec![Layout::HeatMap { rows, columns, panels: others(&cores) }];
    }
    let numeric = varied.iter().copied().filter(|at| samples.factors[*at].is_numeric());
    // Of factors with equally many levels, the first.
    let Some(x) = numeric.max_by_key(|at| (levels(*at), std::cmp::Reverse(*at))) else {
        return if varied.len() < 2 {
            vec![Layout::Curves { x: varied.first().copied().unwrap_or(0), lines: None, panels: Vec::new() }]
        } else {
            // As square as possible.
            let size = |part: &[usize]| part.iter().map(|at| levels(*at)).product::<usize>();
            let cut = (1..varied.len()).min_by_key(|cut| size(&varied[..*cut]).max(size(&varied[*cut..])));
            let (rows, columns) = varied.split_at(cut.unwrap_or(1));
            vec![Layout::Matrix { rows: rows.to_vec(), columns: columns.to_vec() }]
        };
    };
    let rest = others(&[x]);
    let dense =
        rest.iter().copied().find(|at| levels(*at) >= MIN_HEAT_MAP_LEVELS && levels(x) >= MIN_HEAT_MAP_LEVELS);
    let map = dense.map(|rows| Layout::HeatMap { rows, columns: x, panels: others(&[x, rows]) });
    if dense.is_some_and(|rows| levels(rows) > MAX_LINES) {
        return map.into_iter().collect();
    }
    let lines = rest.iter().copied().find(|at| levels(*at) <= MAX_LINES);
    let panels = others(&[Some(x), lines].into_iter().flatten().collect::<Vec<_>>());
    map.into_iter().chain([Layout::Curves { x, lines, panels }]).collect()
}

/// Returns the figures of an experiment.
pub(crate) fn drawn(samples: &Samples, limits: &[Limit]) -> Vec<Figure> {
    if samples.cells.is_empty() {
        return Vec::new();
    }
    let mut figures = Vec::new();
    let metrics = samples.metrics.iter().filter(|metric| samples.has(&metric.field)).take(MAX_METRICS);
    let layouts = layouts(samples);
    let mut pairs: Vec<(&SweepMetric, &String)> =
        metrics.flat_map(|metric| samples.flows.iter().take(MAX_FLOWS).map(move |flow| (metric, flow))).collect();
    // Switches drop packets of all flows: every flow has the same number.
    pairs.retain(|(metric, flow)| metric.field != Metric::Drops.field() || samples.flows.first() == Some(*flow));
    pairs.sort_by_key(|(metric, flow)| charts::rank(&samples.leads, &metric.field, flow));
    for (metric, flow) in pairs {
        if samples.cells.iter().all(|cell| Samples::values(cell, flow, &metric.field).is_empty()) {
            continue;
        }
        for layout in &layouts {
            match layout {
                Layout::Curves { x, lines, panels } => {
                    figures.push(curves(samples, metric, flow, (*x, *lines, panels), limits));
                }
                Layout::HeatMap { rows, columns, panels } => {
                    let table = Table { rows: &[*rows], columns: &[*columns], panels };
                    figures.extend(grid::grids(samples, metric, flow, &table, limits));
                }
                Layout::Matrix { rows, columns } => {
                    let table = Table { rows, columns, panels: &[] };
                    figures.extend(grid::grids(samples, metric, flow, &table, limits));
                }
            }
        }
    }
    if samples.flows.len() > MAX_FLOWS
        && let Some(first) = figures.first_mut()
    {
        first.caption.push_str(&format!(" Drawn: the first {MAX_FLOWS} of {} flows.", samples.flows.len()));
    }
    figures.extend(balance(samples));
    figures
}

/// Returns the title of a metric's figure.
pub(crate) fn figure_title(metric: &SweepMetric, flow: &str) -> String {
    let title = samples::title(metric);
    if flow.is_empty() { title } else { format!("{title}, flow {flow}") }
}

/// Returns the name of a figure: metric, flow, kind.
pub(crate) fn figure_id(metric: &SweepMetric, flow: &str, what: &str) -> String {
    [metric.name.as_str(), flow, what].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("-")
}

/// Returns the axis of a metric.
pub(crate) fn metric_axis(metric: &SweepMetric) -> FigureAxis {
    FigureAxis { title: samples::title(metric), unit: metric.unit.clone(), ..FigureAxis::default() }
}

fn curves(
    samples: &Samples,
    metric: &SweepMetric,
    flow: &str,
    (x, lines, panels): (usize, Option<usize>, &[usize]),
    limits: &[Limit],
) -> Figure {
    let factor = &samples.factors[x];
    let mut shown: BTreeMap<Vec<usize>, BTreeMap<usize, Vec<&Cell>>> = BTreeMap::new();
    for cell in &samples.cells {
        let panel = panels.iter().map(|at| cell.levels[*at]).collect();
        let line = lines.map_or(0, |at| cell.levels[at]);
        shown.entry(panel).or_default().entry(line).or_default().push(cell);
    }
    let all = shown.len();
    let mut runs = Vec::new();
    let mut missing = 0;
    let panels: Vec<FigurePanel> = shown
        .into_iter()
        .take(MAX_PANELS)
        .map(|(levels, lines)| FigurePanel {
            title: panels
                .iter()
                .zip(levels)
                .map(|(at, level)| samples.factors[*at].named(level))
                .collect::<Vec<_>>()
                .join(", "),
            lines: lines
                .into_iter()
                .map(|(series, mut cells)| {
                    cells.sort_by(|a, b| factor.at(a.levels[x]).total_cmp(&factor.at(b.levels[x])));
                    let mut line = FigureLine { series, joined: factor.is_numeric(), ..FigureLine::default() };
                    for cell in cells {
                        let values = Samples::values(cell, flow, &metric.field);
                        runs.push(values.len());
                        missing += usize::from(values.is_empty());
                        spread::add(&mut line, factor.at(cell.levels[x]), values, samples.stopping);
                    }
                    line
                })
                .collect(),
        })
        .collect();
    let mut caption = spread::caption(&runs, samples.stopping);
    if missing > 0 {
        caption.push_str(&format!(" {} without a value: gaps.", plural(missing, "cell")));
    }
    if all > MAX_PANELS {
        caption.push_str(&format!(" Drawn: the first {MAX_PANELS} of {all} combinations."));
    }
    let series = lines.map_or_else(
        || vec![String::new()],
        |at| {
            let factor = &samples.factors[at];
            (0..factor.labels.len()).map(|level| factor.named(level)).collect()
        },
    );
    let rate = metric.unit == "bit/s";
    let marks = limits.iter().filter(|limit| rate && limit.level.is_none()).map(|limit| FigureMark {
        label: format!("limit {}", limit.rate),
        x: None,
        y: limit.rate.bps() as f64,
    });
    let reported =
        samples.reported.iter().filter(|value| all == 1 && value.field == metric.field && value.flow == flow);
    let marks = marks.chain(reported.filter_map(|value| {
        Some(FigureMark {
            label: value.label.clone(),
            x: Some(factor.at(value.levels.get(x).copied().flatten()?)),
            y: value.value,
        })
    }));
    Figure {
        id: figure_id(metric, flow, "curves"),
        title: if factor.name.is_empty() {
            figure_title(metric, flow)
        } else {
            format!("{} by {}", figure_title(metric, flow), factor.name)
        },
        caption,
        drawing: Drawing::Chart(FigureChart {
            x: factor.axis(),
            y: metric_axis(metric),
            series,
            panels,
            marks: marks.collect(),
        }),
    }
}

/// Returns the goodput of each stream, cell by cell: its balance, and the variation from run to run.
fn balance(samples: &Samples) -> Vec<Figure> {
    let mut figures = Vec::new();
    for flow in samples.flows.iter().take(MAX_FLOWS) {
        let cells: Vec<(&Cell, &Vec<Vec<f64>>)> =
            samples.cells.iter().filter_map(|cell| Some((cell, cell.streams.get(flow)?))).collect();
        if cells.is_empty() {
            continue;
        }
        let places = cells.iter().take(MAX_POSITIONS).map(|(cell, runs)| (samples.place(cell), runs.as_slice()));
        let mut figure = stream_balance(&places.collect::<Vec<_>>(), if flow.is_empty() { "" } else { flow });
        if cells.len() > MAX_POSITIONS {
            figure.caption.push_str(&format!(" Drawn: the first {MAX_POSITIONS} of {} cells.", cells.len()));
        }
        figures.push(figure);
    }
    figures
}

/// Returns a chart of the goodput of every stream of every run at each position, with their median, minimum and
/// maximum.
pub(crate) fn stream_balance(places: &[(String, &[Vec<f64>])], flow: &str) -> Figure {
    let mut lines: Vec<FigureLine> = (0..1).map(|series| FigureLine { series, ..FigureLine::default() }).collect();
    let mut indices = Vec::new();
    let mut counts = Vec::new();
    for (at, (_, runs)) in places.iter().enumerate() {
        let all: Vec<f64> = runs.iter().flatten().copied().collect();
        let line = &mut lines[0];
        line.x.push(at as f64);
        line.y.push(landspeed_stats::median(&all));
        line.low.push(all.iter().copied().reduce(f64::min));
        line.high.push(all.iter().copied().reduce(f64::max));
        line.runs.push(runs.len() as u32);
        line.dots.extend(all.iter().map(|rate| [at as f64, *rate]));
        counts.push(runs.len());
        indices.extend(runs.iter().filter_map(|run| landspeed_results::balance(run)));
    }
    let (least, most) =
        (indices.iter().copied().fold(f64::MAX, f64::min), indices.iter().copied().fold(f64::MIN, f64::max));
    let jain = if indices.is_empty() {
        String::new()
    } else {
        format!(
            " Jain's index of a run: {} to {} (1: all streams alike).",
            quantity::significant(least),
            quantity::significant(most)
        )
    };
    let (few, many) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    let n = if few == many { format!("n = {few}") } else { format!("n = {few} to {many}") };
    let metric = SweepMetric::from(Metric::Goodput);
    Figure {
        id: figure_id(&SweepMetric::from(Metric::StreamBalance), flow, "streams"),
        title: if flow.is_empty() {
            "Goodput of each stream".to_owned()
        } else {
            format!("Goodput of each stream, flow {flow}")
        },
        caption: format!(
            "Small dots: each stream of each run ({n} runs). Points: median stream; bars: min to max stream.{jain}"
        ),
        drawing: Drawing::Chart(FigureChart {
            x: FigureAxis {
                scale: FigureScale::Category,
                labels: places.iter().map(|(name, _)| name.clone()).collect(),
                ..FigureAxis::default()
            },
            y: FigureAxis { title: "Goodput of a stream".to_owned(), unit: metric.unit, ..FigureAxis::default() },
            series: vec![String::new()],
            panels: vec![FigurePanel { title: String::new(), lines }],
            marks: Vec::new(),
        }),
    }
}
