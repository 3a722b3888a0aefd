//! A scenario's reference figures and criteria beside the measured figures, as text.

use landspeed_lab::gallery::{number, reproduced, row};
use landspeed_model::{CheckedCriterion, ComparedFigure, ReferenceUnit};

use super::text::table;
use crate::text::Page;

/// Prints a row for each figure, and the reasons for those that deviate by more than 10 %.
pub fn print(page: &mut Page, figures: &[ComparedFigure]) {
    if figures.is_empty() {
        return;
    }
    let mut rows = vec![["FIGURE", "REPORTED", "MEASURED", "DEVIATION"].map(str::to_owned)];
    rows.extend(figures.iter().map(row));
    page.text.push_str(&table(&rows));
    let (good, measured) = reproduced(figures);
    let rest = figures.len() - measured;
    let rest = if rest > 0 { format!("; {rest} not run") } else { String::new() };
    page.line("figures", &format!("{good} of {measured} within 10 % of the reported value{rest}"));
    for figure in figures.iter().filter(|figure| figure.reproduced() == Some(false)) {
        let reason = figure.reason.as_deref().unwrap_or("no known reason");
        page.line("", &format!("{}: {reason}", figure.name));
    }
}

/// Prints a row for each criterion and cell, and how many are met.
pub fn print_criteria(page: &mut Page, criteria: &[CheckedCriterion]) {
    if criteria.is_empty() {
        return;
    }
    page.text.push_str(&criteria_table(criteria));
    let of = |met| criteria.iter().filter(|criterion| criterion.met == met).count();
    let (good, bad, open) = (of(Some(true)), of(Some(false)), of(None));
    let open = if open > 0 { format!("; {open} without a limit or without a complete run") } else { String::new() };
    page.line("criteria", &format!("{good} of {} met{open}", good + bad));
}

/// Returns a table with a row for each criterion and cell.
pub fn criteria_table(criteria: &[CheckedCriterion]) -> String {
    let mut rows = vec![["CRITERION", "CELL", "LIMIT", "MEASURED", "RUNS", "RESULT"].map(str::to_owned).to_vec()];
    rows.extend(criteria.iter().map(|criterion| criterion_row(criterion).to_vec()));
    if criteria.iter().all(|criterion| criterion.cell.is_empty()) {
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    table(&rows)
}

/// Formats the limits of a criterion.
pub fn limits(at_least: Option<f64>, at_most: Option<f64>, unit: ReferenceUnit) -> String {
    let with_unit = |value: f64| with_unit(value, unit);
    match (at_least, at_most) {
        (Some(least), Some(most)) => format!("{} to {}", number(least), with_unit(most)),
        (Some(least), None) => format!("≥ {}", with_unit(least)),
        (None, Some(most)) => format!("≤ {}", with_unit(most)),
        (None, None) => "no limit".to_owned(),
    }
}

fn with_unit(value: f64, unit: ReferenceUnit) -> String {
    match unit {
        ReferenceUnit::Ratio | ReferenceUnit::Segments => number(value),
        unit => format!("{} {}", number(value), unit.as_str()),
    }
}

fn criterion_row(criterion: &CheckedCriterion) -> [String; 6] {
    let with_unit = |value: f64| with_unit(value, criterion.unit);
    let measured = match (criterion.measured, criterion.min, criterion.max) {
        (Some(median), Some(min), Some(max)) if number(min) != number(max) => {
            format!("{} ({}..{})", with_unit(median), number(min), number(max))
        }
        (Some(median), ..) => with_unit(median),
        (None, ..) => "not run".to_owned(),
    };
    let result = match criterion.met {
        Some(true) => "met",
        Some(false) => "not met",
        None => "-",
    };
    let cell = criterion.cell.values().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    [
        criterion.name.clone(),
        cell.collect::<Vec<_>>().join(", "),
        limits(criterion.at_least, criterion.at_most, criterion.unit),
        measured,
        format!("{}/{}", criterion.met_runs, criterion.runs),
        result.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_model::{LabFigure, ReferenceUnit};

    use super::*;

    #[test]
    fn deviations_without_a_reason_are_marked() {
        let figure = |name: &str, measured: Option<f64>| ComparedFigure {
            name: name.to_owned(),
            unit: ReferenceUnit::Gigabits,
            figure: LabFigure::Goodput,
            flow: None,
            cell: BTreeMap::new(),
            relative: false,
            reported: 1.0,
            measured,
            min: measured,
            max: measured,
            runs: 3,
            deviation: measured.and_then(|value| landspeed_model::deviation(1.0, value)),
            source: "a deck".to_owned(),
            reason: None,
        };
        let mut page = Page::default();
        print(&mut page, &[figure("sum", Some(2.0)), figure("each", Some(1.05)), figure("other", None)]);
        assert!(page.text.contains("sum: no known reason"), "{}", page.text);
        assert!(page.text.contains("1 of 2 within 10 % of the reported value; 1 not run"), "{}", page.text);
        let mut empty = Page::default();
        print(&mut empty, &[]);
        assert_eq!(empty.text, "");
    }
}
