//! Comparison of a scenario's reference figures with the measured ones, as text.

use landspeed_lab::gallery::{reproduced, row};
use landspeed_model::ComparedFigure;

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
