//! A scenario's reference figures and criteria beside the measured figures, as text.

use landspeed_lab::gallery::{count_text, criterion_row, met, row};
use landspeed_model::{CheckedCriterion, ComparedFigure};

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
    page.line("figures", &count_text(figures));
    for figure in figures.iter().filter(|figure| figure.reproduced() == Some(false)) {
        let reason = figure.reason.as_deref().unwrap_or("no known reason");
        page.line("", &format!("{}: {reason}", figure.name));
    }
}

/// Prints a row for each criterion and cell, how many are met, and the reasons for those that are not.
pub fn print_criteria(page: &mut Page, criteria: &[CheckedCriterion]) {
    if criteria.is_empty() {
        return;
    }
    page.text.push_str(&criteria_table(criteria));
    let (good, decided) = met(criteria);
    let open = criteria.len() - decided;
    let open = if open > 0 { format!("; {open} without a limit or without a complete run") } else { String::new() };
    page.line("criteria", &format!("{good} of {decided} met{open}"));
    for criterion in criteria.iter().filter(|criterion| criterion.met == Some(false)) {
        if let Some(reason) = &criterion.reason {
            page.line("", &format!("{}: {reason}", criterion.name));
        }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_model::{FigureBasis, LabFigure, ReferenceUnit};

    use super::*;

    #[test]
    fn deviations_without_a_reason_are_marked() {
        let figure = |name: &str, measured: Option<f64>| ComparedFigure {
            name: name.to_owned(),
            unit: ReferenceUnit::Gigabits,
            basis: FigureBasis::Reported,
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
        assert!(page.text.contains("1 of 2 reported values within 10 %; 1 not run"), "{}", page.text);
        let mut empty = Page::default();
        print(&mut empty, &[]);
        assert_eq!(empty.text, "");
    }
}
