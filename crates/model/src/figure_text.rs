//! A reported figure next to the measured one, as text.

use crate::{CheckedCriterion, ComparedFigure, ReferenceUnit};

/// Returns name, reported value, measured value with its spread, and deviation.
#[must_use]
pub fn row(figure: &ComparedFigure) -> [String; 4] {
    let unit = match figure.unit {
        ReferenceUnit::Ratio | ReferenceUnit::Segments => "",
        unit => unit.as_str(),
    };
    let with_unit = |value: f64| format!("{} {unit}", number(value)).trim_end().to_owned();
    let measured = match (figure.measured, figure.min, figure.max) {
        (None, ..) => "not run".to_owned(),
        (Some(median), Some(min), Some(max)) if number(max) != number(min) => {
            format!("{} ({}..{})", with_unit(median), number(min), number(max))
        }
        (Some(median), ..) => with_unit(median),
    };
    [figure.name.clone(), with_unit(figure.reported), measured, deviation(figure)]
}

fn deviation(figure: &ComparedFigure) -> String {
    match figure.deviation {
        // Never `-0 %`.
        Some(deviation) if (deviation * 1000.0).round() == 0.0 => "0 %".to_owned(),
        Some(deviation) if deviation.abs() < 0.0995 => format!("{:+.1} %", rounded(deviation * 100.0, 1)),
        Some(deviation) => format!("{:+.0} %", rounded(deviation * 100.0, 0)),
        None => "-".to_owned(),
    }
}

/// Returns the number of reproduced figures, and of measured ones, among those that a source reports
/// ([`ComparedFigure::is_counted`]).
#[must_use]
pub fn reproduced(figures: &[ComparedFigure]) -> (usize, usize) {
    let counted = || figures.iter().filter(|figure| figure.is_counted());
    let measured = counted().filter(|figure| figure.measured.is_some()).count();
    (counted().filter(|figure| figure.reproduced() == Some(true)).count(), measured)
}

/// Returns how many of the reported figures are within 10 %, how many were not run, and how many are not counted.
#[must_use]
pub fn count_text(figures: &[ComparedFigure]) -> String {
    let (good, measured) = reproduced(figures);
    let counted = figures.iter().filter(|figure| figure.is_counted()).count();
    let of = |count: usize, text: &str| (count > 0).then(|| format!("{count} {text}"));
    let parts = [
        (measured > 0).then(|| format!("{good} of {measured} reported values within 10 %")),
        of(counted - measured, "not run"),
        of(figures.len() - counted, "computed or zero"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Returns the number of criteria that are met, and of those with a result.
#[must_use]
pub fn met(criteria: &[CheckedCriterion]) -> (usize, usize) {
    let of = |met| criteria.iter().filter(|criterion| criterion.met == Some(met)).count();
    (of(true), of(true) + of(false))
}

/// Formats the limits of a criterion.
#[must_use]
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

/// Returns name, cell, limits, measured value with its spread, runs that meet the criterion, and result.
#[must_use]
pub fn criterion_row(criterion: &CheckedCriterion) -> [String; 6] {
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

/// Formats a number with three significant digits, and integers in full.
#[must_use]
pub fn number(value: f64) -> String {
    if (value.fract() == 0.0 && value.abs() < 1e6) || value.abs() >= 1000.0 {
        return format!("{:.0}", rounded(value, 0));
    }
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{:.*}", usize::try_from(digits).unwrap_or(0), rounded(value, digits.max(0)));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Rounds to a number of decimals, halves away from 0. A value just below a half, by as much as an error of floating point, is a
/// half: it may have been one before it was written to a document and read.
fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale * (1.0 + 1e-12)).round() / scale
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{FigureBasis, LabFigure};

    use super::*;

    fn figure(reported: f64, measured: Option<f64>) -> ComparedFigure {
        ComparedFigure {
            name: "sum".to_owned(),
            unit: ReferenceUnit::Gigabits,
            basis: FigureBasis::Reported,
            figure: LabFigure::Goodput,
            flow: None,
            cell: BTreeMap::new(),
            relative: false,
            reported,
            measured,
            min: measured.map(|value| value - 0.1),
            max: measured.map(|value| value + 0.1),
            runs: 3,
            deviation: measured.and_then(|value| crate::deviation(reported, value)),
            source: "a deck".to_owned(),
            reason: None,
        }
    }

    #[test]
    fn a_figure_shows_its_spread_and_signed_deviation() {
        assert_eq!(row(&figure(2.83, Some(2.07))), ["sum", "2.83 Gb/s", "2.07 Gb/s (1.97..2.17)", "-27 %"]);
        assert_eq!(row(&figure(2.83, None)), ["sum", "2.83 Gb/s", "not run", "-"]);
        let deviations =
            [(2.0, 2.1), (2.0, 2.0), (2.0, 1.9999), (0.0, 1.0)].map(|(r, m)| deviation(&figure(r, Some(m))));
        assert_eq!(deviations, ["+5.0 %", "0 %", "0 %", "-"]);
    }

    #[test]
    fn halves_are_rounded_alike_despite_floating_point() {
        let text = |deviation: f64| {
            row(&ComparedFigure { deviation: Some(deviation), ..figure(60.0, Some(1520.7)) })[3].clone()
        };
        for half in [24.345_f64, 24.345_f64.next_up(), 24.345_f64.next_down()] {
            assert_eq!((text(half), text(-half)), ("+2435 %".to_owned(), "-2435 %".to_owned()));
        }
        assert_eq!((text(0.0125), text(24.344_9)), ("+1.3 %".to_owned(), "+2434 %".to_owned()));
        assert_eq!(
            (number(2.345), number(2.345_f64.next_down()), number(1520.5)),
            (number(2.345_f64.next_up()), "2.35".to_owned(), "1521".to_owned())
        );
    }

    #[test]
    fn only_measured_figures_are_counted() {
        let figures = [figure(1.0, Some(1.05)), figure(1.0, Some(1.2)), figure(1.0, None)];
        assert_eq!(reproduced(&figures), (1, 2));
    }

    #[test]
    fn computed_values_and_zeros_are_not_counted() {
        let computed = ComparedFigure { basis: FigureBasis::Computed, ..figure(1.0, Some(1.0)) };
        let figures = [computed.clone(), figure(0.0, Some(0.0)), figure(0.0, Some(1.0)), figure(2.0, Some(2.1))];
        assert_eq!(reproduced(&figures), (1, 1));
        assert_eq!(count_text(&figures), "1 of 1 reported values within 10 %; 3 computed or zero");
        assert_eq!(count_text(&[computed, figure(1.0, None)]), "1 not run; 1 computed or zero");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let texts = [0.00123, 0.967, 2.83, 15.59, 404.0, 9150.0, 12_345.6].map(number);
        assert_eq!(texts, ["0.00123", "0.967", "2.83", "15.6", "404", "9150", "12346"]);
    }
}
