//! Figures of a reference (flow, unit, time window), and charts, which also name flows.

use landspeed_model::{Criterion, LabChartAxis, LabFigure, Reference, ReferenceUnit};
use landspeed_problems::{Problem, suggest_or_list};

use crate::scenario::Scenario;
use crate::scenario::judgement::Judgement;

/// Maximum number of figures in a scenario.
const MAX_FIGURES: usize = 200;

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    charts(scenario, judgement);
    let Some(reference) = &scenario.reference else { return };
    for (key, count) in
        [("reference.figures", reference.figures.len()), ("reference.criteria", reference.criteria.len())]
    {
        if count > MAX_FIGURES {
            judgement.refuse(key, format!("more than {MAX_FIGURES} figures"));
        }
    }
    for (i, criterion) in reference.criteria.iter().take(MAX_FIGURES).enumerate() {
        judge_criterion(i, criterion, scenario, judgement);
    }
    for (i, figure) in reference.figures.iter().take(MAX_FIGURES).enumerate() {
        let key = |name: &str| format!("reference.figures.{i}.{name}");
        judge_name(key("name"), &figure.name, judgement);
        if !figure.value.is_finite() {
            judgement.refuse_with(key("value"), "not a number", "use the value as it was reported, in `unit`");
        }
        if let Some(flow) = &figure.flow {
            known_flow(&key("flow"), flow, scenario, judgement);
        } else if scenario.flow.len() > 1 && is_single_flow(figure.figure) {
            judgement.refuse_with(key("flow"), "this figure is of one flow", "name it: flow = \"NAME\"");
        }
        judge_unit(key("unit"), figure.unit, figure.figure, figure.over.is_some(), judgement);
        if figure.minus.is_some() && figure.over.is_some() {
            judgement.refuse_with(
                key("over"),
                "`minus` and `over` exclude each other",
                "a figure is a difference or a ratio",
            );
        }
        judge_window(key("from_s"), (figure.from_s, figure.until_s), figure.figure, judgement);
    }
}

fn judge_criterion(i: usize, criterion: &Criterion, scenario: &Scenario, judgement: &mut Judgement) {
    let key = |name: &str| format!("reference.criteria.{i}.{name}");
    judge_name(key("name"), &criterion.name, judgement);
    for (name, flow) in [("flow", &criterion.flow), ("beside", &criterion.beside)] {
        if let Some(flow) = flow {
            known_flow(&key(name), flow, scenario, judgement);
        }
    }
    if criterion.flow.is_none() && scenario.flow.len() > 1 && is_single_flow(criterion.figure) {
        judgement.refuse_with(key("flow"), "this figure is of one flow", "name it: flow = \"NAME\"");
    }
    let is_ratio = criterion.over.is_some() || criterion.beside.is_some();
    judge_unit(key("unit"), criterion.unit, criterion.figure, is_ratio, judgement);
    let limits = [("at_least", criterion.at_least), ("at_most", criterion.at_most)];
    for (name, limit) in limits {
        if limit.is_some_and(|limit| !limit.is_finite()) {
            judgement.refuse_with(key(name), "not a number", "use the limit in `unit`");
        }
    }
    if criterion.at_least.zip(criterion.at_most).is_some_and(|(least, most)| least > most) {
        judgement.refuse_with(key("at_most"), "no value is within these limits", "use at_least <= at_most");
    }
    judge_window(key("from_s"), (criterion.from_s, criterion.until_s), criterion.figure, judgement);
}

fn judge_name(key: String, name: &str, judgement: &mut Judgement) {
    if name.trim().is_empty() || name.chars().count() > 60 {
        judgement.refuse_with(key, "the name is empty or too long", "use 1 to 60 characters");
    }
}

fn judge_unit(key: String, unit: ReferenceUnit, figure: LabFigure, is_ratio: bool, judgement: &mut Judgement) {
    let units = if is_ratio { &[ReferenceUnit::Ratio][..] } else { units(figure) };
    if !units.contains(&unit) {
        let names: Vec<&str> = units.iter().map(|unit| unit.as_str()).collect();
        judgement.refuse_with(
            key,
            format!("`{}` is not a unit of this figure", unit.as_str()),
            format!("use {}", names.join(" or ")),
        );
    }
}

fn judge_window(key: String, window: (Option<f64>, Option<f64>), figure: LabFigure, judgement: &mut Judgement) {
    let (from_s, until_s) = (window.0.unwrap_or(0.0), window.1.unwrap_or(f64::MAX));
    if !(0.0..until_s).contains(&from_s) {
        judgement.refuse_with(key.clone(), "no time lies in this window", "use 0 <= from_s < until_s");
    }
    if from_s > 0.0
        && matches!(figure, LabFigure::Loss | LabFigure::Time | LabFigure::LatencyP99 | LabFigure::RampTime)
    {
        judgement.refuse_with(key, "this figure is of the whole run", "leave `from_s` out");
    }
}

/// Returns a problem for each label that is not varied.
pub(in crate::scenario) fn labels(reference: &Reference, labels: &[&str]) -> Vec<Problem> {
    let figures = reference.figures.iter().enumerate().flat_map(|(i, figure)| {
        [("cell", Some(&figure.cell)), ("minus", figure.minus.as_ref()), ("over", figure.over.as_ref())]
            .map(|(part, levels)| (format!("reference.figures.{i}.{part}"), levels))
    });
    let criteria = reference.criteria.iter().enumerate().flat_map(|(i, criterion)| {
        [("cell", Some(&criterion.cell)), ("over", criterion.over.as_ref())]
            .map(|(part, levels)| (format!("reference.criteria.{i}.{part}"), levels))
    });
    let mut problems = Vec::new();
    for (key, levels) in figures.chain(criteria) {
        for label in
            levels.into_iter().flatten().map(|(label, _)| label).filter(|label| !labels.contains(&label.as_str()))
        {
            let hint = suggest_or_list(label, labels.iter().copied());
            let hint = hint.unwrap_or_else(|| "leave it out: the scenario varies nothing".to_owned());
            problems.push(Problem::new(key.clone(), format!("`{label}` is not varied")).hint(hint));
        }
    }
    problems
}

fn charts(scenario: &Scenario, judgement: &mut Judgement) {
    for (i, chart) in scenario.charts.iter().enumerate() {
        if chart.over == Some(LabChartAxis::Time)
            && !matches!(chart.figure, LabFigure::Goodput | LabFigure::Retransmits | LabFigure::Cwnd)
        {
            judgement.refuse_with(
                format!("charts.{i}.figure"),
                "this figure is not recorded over time",
                "use goodput, retransmits or cwnd",
            );
        }
        if chart.over.is_none()
            && matches!(
                chart.figure,
                LabFigure::Cwnd
                    | LabFigure::Balance
                    | LabFigure::RttMax
                    | LabFigure::Time
                    | LabFigure::LatencyP99
                    | LabFigure::RampTime
                    | LabFigure::Variation
            )
        {
            judgement.refuse_with(
                format!("charts.{i}.figure"),
                "this figure is drawn over time only, or not at all",
                "add over = \"time\" for cwnd, or use goodput, loss, rtt or retransmits",
            );
        }
        if let Some(flow) = &chart.flow {
            known_flow(&format!("charts.{i}.flow"), flow, scenario, judgement);
        }
    }
}

fn known_flow(key: &str, flow: &str, scenario: &Scenario, judgement: &mut Judgement) {
    if !scenario.flow.iter().any(|named| named.name.as_deref() == Some(flow)) {
        judgement.refuse_with(key, format!("no flow has the name `{flow}`"), "use a flow's `name`");
    }
}

/// Returns whether the figure is always that of a single flow.
fn is_single_flow(figure: LabFigure) -> bool {
    matches!(
        figure,
        LabFigure::Loss
            | LabFigure::Rtt
            | LabFigure::RttMax
            | LabFigure::Cwnd
            | LabFigure::Time
            | LabFigure::LatencyP99
            | LabFigure::RampTime
            | LabFigure::Variation
    )
}

/// Returns the units of a figure that is not a ratio of cells.
fn units(figure: LabFigure) -> &'static [ReferenceUnit] {
    match figure {
        LabFigure::Goodput => &[ReferenceUnit::Gigabits, ReferenceUnit::Megabits],
        LabFigure::Retransmits => &[ReferenceUnit::Segments],
        LabFigure::Cwnd => &[ReferenceUnit::Megabytes],
        LabFigure::Rtt | LabFigure::RttMax | LabFigure::Time | LabFigure::LatencyP99 | LabFigure::RampTime => {
            &[ReferenceUnit::Milliseconds]
        }
        LabFigure::Loss | LabFigure::Variation => &[ReferenceUnit::Percent],
        LabFigure::Balance => &[ReferenceUnit::Ratio],
    }
}
