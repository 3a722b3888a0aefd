//! What a lab scenario adds to the figures of its sweep: charts it asks for, flows over time, and reported values.

use landspeed_model::{
    ComparedFigure, Drawing, Figure, FigureAxis, FigureChart, FigureLine, FigurePanel, FigureRow, FigureRows,
    FlowSeries, LabChart, LabFigure, Metric, SweepDocument, SweepFactor, SweepFlow, figure_text,
};

use super::quantity::plain;

/// Field of the number of retransmits in documents of earlier versions.
const RETRANSMIT_COUNT: &str = "retransmits";
/// Maximum number of panels of a chart over time.
const MAX_PANELS: usize = 24;

/// A figure that the scenario's question is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lead {
    fields: Vec<&'static str>,
    /// `None` for every flow.
    flow: Option<String>,
}

/// A reported value in a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReportedValue {
    /// Field of the metric.
    pub(crate) field: &'static str,
    pub(crate) flow: String,
    /// Index of the level of each factor; `None` for all levels.
    pub(crate) levels: Vec<Option<usize>>,
    pub(crate) label: String,
    /// The value in base units.
    pub(crate) value: f64,
}

/// Returns the fields of a figure of a flow, or of all flows.
fn fields(figure: LabFigure, flow: Option<&str>) -> Vec<&'static str> {
    match figure {
        LabFigure::Goodput => vec![Metric::Goodput.field()],
        LabFigure::Loss if flow.is_none() => vec![Metric::Drops.field()],
        LabFigure::Loss => vec![Metric::Loss.field()],
        LabFigure::Rtt => vec![Metric::RttP50.field()],
        LabFigure::Retransmits => vec![Metric::Retransmits.field(), RETRANSMIT_COUNT],
        LabFigure::Balance => vec![Metric::StreamBalance.field()],
        LabFigure::LatencyP99 => vec![Metric::LatencyP99.field()],
        LabFigure::Cwnd | LabFigure::RttMax | LabFigure::Time | LabFigure::RampTime | LabFigure::Variation => {
            Vec::new()
        }
    }
}

/// Returns the figures of the scenario's charts, in order.
pub(crate) fn leads(sweep: &SweepDocument) -> Vec<Lead> {
    let charts = sweep.charts.iter().filter(|chart| chart.over.is_none());
    charts
        .map(|chart| Lead { fields: fields(chart.figure, chart.flow.as_deref()), flow: chart.flow.clone() })
        .collect()
}

/// Returns the position of a figure among the leads; those that lead nothing are last.
pub(crate) fn rank(leads: &[Lead], field: &str, flow: &str) -> usize {
    let is = |lead: &Lead| lead.fields.contains(&field) && lead.flow.as_deref().is_none_or(|name| name == flow);
    leads.iter().position(is).unwrap_or(leads.len())
}

/// Returns whether the runs are of the lab.
pub(crate) fn is_of_lab(sweep: &SweepDocument) -> bool {
    sweep.environments.iter().any(|environment| environment.hosts.keys().any(|key| key.starts_with("lab.")))
}

/// Names the kernels of a lab's runs; `None` if none is known.
pub(crate) fn kernels(sweep: &SweepDocument) -> Option<String> {
    let mut kernels: Vec<&str> =
        sweep.environments.iter().filter_map(|environment| environment.kernel.as_deref()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    (is_of_lab(sweep) && !kernels.is_empty()).then(|| format!("Linux {}", kernels.join(", Linux ")))
}

/// Returns the reported values of single flows that a chart of the cells can show.
pub(crate) fn reported_values(sweep: &SweepDocument) -> Vec<ReportedValue> {
    let of = |figure: &ComparedFigure| {
        let field = *fields(figure.figure, figure.flow.as_deref()).first()?;
        let known = |key: &String| sweep.factors.iter().any(|factor| factor.name == *key);
        // Counts of retransmits are reported, rates are drawn.
        if figure.relative || figure.figure == LabFigure::Retransmits || !figure.cell.keys().all(known) {
            return None;
        }
        let level = |factor: &SweepFactor| {
            let value = figure.cell.get(&factor.name)?;
            factor.levels.iter().position(|level| level == value)
        };
        let [name, reported, ..] = figure_text::row(figure);
        Some(ReportedValue {
            field,
            flow: figure.flow.clone()?,
            levels: sweep.factors.iter().map(level).collect(),
            label: format!("{name}: {reported}"),
            value: figure.reported * figure.unit.scale(),
        })
    };
    sweep.reference_figures.iter().filter_map(of).collect()
}

/// Returns the criteria of a scenario beside the measured figures.
pub(crate) fn criteria(sweep: &SweepDocument) -> Option<Figure> {
    (!sweep.criteria.is_empty()).then(|| super::suite::figure("criteria", "Criteria", &sweep.criteria))
}

/// Returns the reported figures beside the measured ones.
pub(crate) fn reference(sweep: &SweepDocument) -> Option<Figure> {
    let all = &sweep.reference_figures;
    if all.is_empty() {
        return None;
    }
    let count = figure_text::count_text(all);
    let counts = || all.iter().map(|figure| figure.runs).filter(|runs| *runs > 0);
    let runs = match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least < most => format!("n = {least} to {most}"),
        (_, most) => format!("n = {}", most.unwrap_or(0)),
    };
    let whole = sweep.reference.as_ref().map_or("", |reference| &reference.source);
    let row = |figure: &ComparedFigure| {
        let [label, reported, measured, deviation] = figure_text::row(figure);
        let ratio = |value: Option<f64>| value.map(|value| value / figure.reported).filter(|ratio| ratio.is_finite());
        let reason = match figure.reproduced() {
            Some(false) => figure.reason.as_deref().unwrap_or("no known reason"),
            _ => "",
        };
        let source = if figure.source == whole { "" } else { &figure.source };
        FigureRow {
            label,
            text: match figure.measured {
                Some(_) => format!("reported {reported}, measured {measured} ({deviation})"),
                None => format!("reported {reported}, {measured}"),
            },
            detail: [reason, source].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("; "),
            to: ratio(figure.measured),
            low: ratio(figure.min),
            high: ratio(figure.max),
            ..FigureRow::default()
        }
    };
    Some(Figure {
        id: "reported".to_owned(),
        title: "Reported figures".to_owned(),
        caption: format!("{count}. Points: median of the runs ({runs}); bars: min to max."),
        drawing: Drawing::Rows(FigureRows {
            axis: FigureAxis { title: "measured / reported".to_owned(), ..FigureAxis::default() },
            neutral: Some(1.0),
            rows: all.iter().map(row).collect(),
        }),
    })
}

/// Returns the charts over time, each with a panel for every cell.
pub(crate) fn over_time(sweep: &SweepDocument) -> Vec<Figure> {
    sweep.charts.iter().filter(|chart| chart.over.is_some()).filter_map(|chart| timed(sweep, chart)).collect()
}

fn timed(sweep: &SweepDocument, chart: &LabChart) -> Option<Figure> {
    let mut interval_ns = 0;
    let mut panels = Vec::new();
    for cell in &sweep.cells {
        let mut flows = cell.runs.iter().flat_map(|run| &run.flows);
        let is_drawn = |flow: &SweepFlow| chart.flow.is_none() || flow.name == chart.flow;
        let Some(series) = flows.find_map(|flow| flow.series.as_ref().filter(|_| is_drawn(flow))) else { continue };
        interval_ns = series.interval_ns;
        let values = values(series, chart.figure);
        let line = FigureLine {
            joined: true,
            x: (0..values.len()).map(|point| (point as f64 + 0.5) * interval_ns as f64).collect(),
            y: values.iter().map(|value| Some(*value as f64)).collect(),
            ..FigureLine::default()
        };
        let varied = sweep.factors.iter().filter(|factor| factor.levels.len() > 1);
        let level = |factor: &SweepFactor| Some(format!("{} {}", factor.name, plain(cell.levels.get(&factor.name)?)));
        let title = varied.filter_map(level).collect::<Vec<_>>().join(", ");
        panels.push(FigurePanel { title, lines: vec![line] });
    }
    let drawn = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.y).any(|y| *y > Some(0.0));
    if !drawn {
        return None;
    }
    let omitted = panels.len().saturating_sub(MAX_PANELS);
    panels.truncate(MAX_PANELS);
    let (title, unit) = match chart.figure {
        LabFigure::Retransmits => ("Retransmits", "segments"),
        LabFigure::Cwnd => ("Congestion window", "B"),
        _ => ("Goodput", "bit/s"),
    };
    let flow = chart.flow.as_ref().map(|flow| format!(", flow {flow}")).unwrap_or_default();
    let omitted = if omitted > 0 { format!(" {omitted} more cells are in the document.") } else { String::new() };
    Some(Figure {
        id: format!("{title}-{}-time", chart.flow.as_deref().unwrap_or_default()),
        title: format!("{title}{flow} over time"),
        caption: format!("n = 1: the first run of each cell, in steps of {} ms.{omitted}", interval_ns as f64 / 1e6),
        drawing: Drawing::Chart(FigureChart {
            x: FigureAxis {
                title: "Time after the start".to_owned(),
                unit: "ns".to_owned(),
                ..FigureAxis::default()
            },
            y: FigureAxis { title: title.to_owned(), unit: unit.to_owned(), ..FigureAxis::default() },
            series: vec![String::new()],
            panels,
            marks: Vec::new(),
        }),
    })
}

fn values(series: &FlowSeries, figure: LabFigure) -> &[u64] {
    match figure {
        LabFigure::Retransmits => &series.retransmits,
        LabFigure::Cwnd => &series.cwnd_bytes,
        _ => &series.goodput_bps,
    }
}
