//! Heat maps and matrices: two factors, or labels that combine several, against each other.

use std::collections::BTreeMap;

use landspeed_model::{Drawing, Figure, FigureAxis, FigureGap, FigureGrid, FigureScale, SweepMetric};

use super::samples::{Cell, Factor, Samples};
use super::spread::{self, Spread};
use super::sweep::{figure_id, figure_title};
use super::{Limit, plural};

/// Maximum number of figures of one metric: further combinations of factors are mentioned, not drawn.
const MOST: usize = 6;

/// Factors by use: rows, columns, and separate figures.
pub(crate) struct Table<'a> {
    pub(crate) rows: &'a [usize],
    pub(crate) columns: &'a [usize],
    pub(crate) panels: &'a [usize],
}

/// Returns a grid for each combination of the factors that are neither rows nor columns.
pub(crate) fn grids(
    samples: &Samples,
    metric: &SweepMetric,
    flow: &str,
    table: &Table<'_>,
    limits: &[Limit],
) -> Vec<Figure> {
    let mut parts: BTreeMap<Vec<usize>, Vec<&Cell>> = BTreeMap::new();
    for cell in &samples.cells {
        parts.entry(table.panels.iter().map(|at| cell.levels[*at]).collect()).or_default().push(cell);
    }
    let all = parts.len();
    let mut figures: Vec<Figure> = parts
        .into_iter()
        .take(MOST)
        .map(|(levels, cells)| {
            let place: Vec<String> =
                table.panels.iter().zip(levels).map(|(at, level)| samples.factors[*at].named(level)).collect();
            let mut figure = one(samples, metric, flow, table, &cells, limits);
            if !place.is_empty() {
                figure.title = format!("{}, {}", figure.title, place.join(", "));
            }
            figure
        })
        .collect();
    if all > MOST
        && let Some(first) = figures.first_mut()
    {
        first.caption.push_str(&format!(" Drawn: the first {MOST} of {all} combinations of the other factors."));
    }
    figures
}

fn one(
    samples: &Samples,
    metric: &SweepMetric,
    flow: &str,
    table: &Table<'_>,
    cells: &[&Cell],
    limits: &[Limit],
) -> Figure {
    let (rows, columns) = (combined(samples, table.rows), combined(samples, table.columns));
    let size = rows.labels.len() * columns.labels.len();
    let limited = metric.unit == "bit/s" && !limits.is_empty();
    let mut grid = FigureGrid {
        rows,
        columns,
        value: figure_title(metric, flow),
        unit: metric.unit.clone(),
        better: Some(metric.better),
        cells: vec![None; size],
        runs: vec![0; size],
        low: vec![None; size],
        high: vec![None; size],
        shares: if limited { vec![None; size] } else { Vec::new() },
        missing: Vec::new(),
    };
    let mut planned = vec![false; size];
    for cell in cells {
        let at = index(samples, table.rows, cell) * grid.columns.labels.len() + index(samples, table.columns, cell);
        planned[at] = true;
        let values = Samples::values(cell, flow, &metric.field);
        grid.runs[at] = values.len() as u32;
        let Some(spread) = Spread::of(values, samples.stopping) else {
            let why = cell.problems.first().map_or("no usable run", String::as_str);
            grid.missing.push(FigureGap { cell: at, why: why.to_owned() });
            continue;
        };
        grid.cells[at] = Some(spread.median);
        grid.low[at] = spread.interval.map(|(low, _)| low);
        grid.high[at] = spread.interval.map(|(_, high)| high);
        if limited {
            grid.shares[at] = limit_of(samples, cell, limits).map(|limit| spread.median / limit);
        }
    }
    let not_planned = planned.iter().filter(|planned| !**planned).count();
    let runs: Vec<usize> = grid.runs.iter().map(|runs| *runs as usize).collect();
    if runs.iter().all(|runs| *runs < spread::MIN_RUNS) {
        (grid.low, grid.high) = (Vec::new(), Vec::new());
    }
    let gaps = grid.missing.len();
    let mut caption = caption(&runs);
    if limited {
        caption.push_str(" Percentages: share of the limit.");
    }
    if gaps > 0 {
        caption.push_str(&format!(" {} without a usable run: –.", plural(gaps, "cell")));
    }
    if not_planned > 0 {
        caption.push_str(&format!(" {} not part of the design: empty.", plural(not_planned, "cell")));
    }
    Figure {
        id: figure_id(metric, flow, "map"),
        title: format!("{} by {} and {}", figure_title(metric, flow), grid.rows.title, grid.columns.title),
        caption,
        drawing: Drawing::Grid(grid),
    }
}

fn caption(runs: &[usize]) -> String {
    let counted: Vec<usize> = runs.iter().copied().filter(|n| *n > 0).collect();
    let (least, most) = (counted.iter().min().copied().unwrap_or(0), counted.iter().max().copied().unwrap_or(0));
    match (least, most) {
        (_, 0) => "No usable run.".to_owned(),
        (1, 1) => "n = 1: one run per cell.".to_owned(),
        (least, most) if least == most => format!("Median of n = {most} runs per cell."),
        (least, most) => format!("Median of n = {least} to {most} runs per cell."),
    }
}

/// Combines factors into one axis: the last one changes fastest.
fn combined(samples: &Samples, factors: &[usize]) -> FigureAxis {
    let factors: Vec<&Factor> = factors.iter().map(|at| &samples.factors[*at]).collect();
    if let [factor] = factors[..] {
        return factor.places();
    }
    let mut labels = vec![String::new()];
    for factor in &factors {
        labels = labels
            .iter()
            .flat_map(|before| {
                factor
                    .labels
                    .iter()
                    .map(move |label| if before.is_empty() { label.clone() } else { format!("{before} · {label}") })
            })
            .collect();
    }
    FigureAxis {
        title: factors.iter().map(|factor| factor.name.as_str()).collect::<Vec<_>>().join(" · "),
        scale: FigureScale::Category,
        labels,
        ..FigureAxis::default()
    }
}

fn index(samples: &Samples, factors: &[usize], cell: &Cell) -> usize {
    factors.iter().fold(0, |at, factor| at * samples.factors[*factor].labels.len() + cell.levels[*factor])
}

/// Returns the limit of a cell, bits/s: that of one of its levels if there is one, else the general one.
fn limit_of(samples: &Samples, cell: &Cell, limits: &[Limit]) -> Option<f64> {
    let own = limits.iter().find(|limit| {
        limit.level.as_ref().is_some_and(|(name, level)| {
            let at = samples.factors.iter().position(|factor| factor.name == *name);
            at.is_some_and(|at| samples.factors[at].labels[cell.levels[at]] == *level)
        })
    });
    own.or_else(|| limits.iter().find(|limit| limit.level.is_none())).map(|limit| limit.rate.bps() as f64)
}
