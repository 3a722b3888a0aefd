//! Figures of a reference (flow, unit, time window), and charts, which also name flows.

use landspeed_model::{LabChartAxis, LabFigure, Reference, ReferenceUnit};
use landspeed_problems::{Problem, suggest_or_list};

use super::Judgement;
use crate::scenario::Scenario;

/// Maximum number of figures in a scenario.
const MAX_FIGURES: usize = 200;

pub(super) fn judge(scenario: &Scenario, judgement: &mut Judgement) {
    charts(scenario, judgement);
    let Some(reference) = &scenario.reference else { return };
    if reference.figures.len() > MAX_FIGURES {
        judgement.refuse("reference.figures", format!("more than {MAX_FIGURES} figures"));
    }
    for (i, figure) in reference.figures.iter().take(MAX_FIGURES).enumerate() {
        let key = |name: &str| format!("reference.figures.{i}.{name}");
        if figure.name.trim().is_empty() || figure.name.chars().count() > 60 {
            judgement.refuse_with(key("name"), "the name is empty or too long", "use 1 to 60 characters");
        }
        if !figure.value.is_finite() {
            judgement.refuse_with(key("value"), "not a number", "use the value as it was reported, in `unit`");
        }
        if let Some(flow) = &figure.flow {
            known_flow(&key("flow"), flow, scenario, judgement);
        } else if scenario.flow.len() > 1 && is_single_flow(figure.figure) {
            judgement.refuse_with(key("flow"), "this figure is of one flow", "name it: flow = \"NAME\"");
        }
        let units = if figure.over.is_some() { &[ReferenceUnit::Ratio][..] } else { units(figure.figure) };
        if !units.contains(&figure.unit) {
            let names: Vec<&str> = units.iter().map(|unit| unit.as_str()).collect();
            judgement.refuse_with(
                key("unit"),
                format!("`{}` is not a unit of this figure", figure.unit.as_str()),
                format!("use {}", names.join(" or ")),
            );
        }
        if figure.minus.is_some() && figure.over.is_some() {
            judgement.refuse_with(
                key("over"),
                "`minus` and `over` exclude each other",
                "a figure is a difference or a ratio",
            );
        }
        let (from_s, until_s) = (figure.from_s.unwrap_or(0.0), figure.until_s.unwrap_or(f64::MAX));
        if !(0.0..until_s).contains(&from_s) {
            judgement.refuse_with(key("from_s"), "no time lies in this window", "use 0 <= from_s < until_s");
        }
        if from_s > 0.0 && matches!(figure.figure, LabFigure::Loss | LabFigure::Rtt) {
            judgement.refuse_with(key("from_s"), "this figure is of the whole run", "leave `from_s` out");
        }
    }
}

/// Returns a problem for each label that is not varied.
pub(in crate::scenario) fn labels(reference: &Reference, labels: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (i, figure) in reference.figures.iter().enumerate() {
        let none = std::collections::BTreeMap::new();
        let parts = [
            ("cell", &figure.cell),
            ("minus", figure.minus.as_ref().unwrap_or(&none)),
            ("over", figure.over.as_ref().unwrap_or(&none)),
        ];
        for (part, levels) in parts {
            for label in levels.keys().filter(|label| !labels.contains(&label.as_str())) {
                let hint = suggest_or_list(label, labels.iter().copied());
                let hint = hint.unwrap_or_else(|| "leave it out: the scenario varies nothing".to_owned());
                problems.push(
                    Problem::new(format!("reference.figures.{i}.{part}"), format!("`{label}` is not varied"))
                        .hint(hint),
                );
            }
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
        if chart.over.is_none() && matches!(chart.figure, LabFigure::Cwnd | LabFigure::Balance) {
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
    matches!(figure, LabFigure::Loss | LabFigure::Rtt | LabFigure::Cwnd)
}

/// Returns the units of a figure that is not a ratio of cells.
fn units(figure: LabFigure) -> &'static [ReferenceUnit] {
    match figure {
        LabFigure::Goodput => &[ReferenceUnit::Gigabits, ReferenceUnit::Megabits],
        LabFigure::Retransmits => &[ReferenceUnit::Segments],
        LabFigure::Cwnd => &[ReferenceUnit::Megabytes],
        LabFigure::Rtt => &[ReferenceUnit::Milliseconds],
        LabFigure::Loss => &[ReferenceUnit::Percent],
        LabFigure::Balance => &[ReferenceUnit::Ratio],
    }
}
