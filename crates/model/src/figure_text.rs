//! A reported figure next to the measured one, as text.

use crate::{ComparedFigure, ReferenceUnit};

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
        Some(deviation) if deviation.abs() < 0.0995 => format!("{:+.1} %", deviation * 100.0),
        Some(deviation) => format!("{:+.0} %", deviation * 100.0),
        None => "-".to_owned(),
    }
}

/// Returns the number of reproduced figures, and of measured ones.
#[must_use]
pub fn reproduced(figures: &[ComparedFigure]) -> (usize, usize) {
    let measured = figures.iter().filter(|figure| figure.measured.is_some()).count();
    (figures.iter().filter(|figure| figure.reproduced() == Some(true)).count(), measured)
}

/// Formats a number with three significant digits, and integers in full.
#[must_use]
pub fn number(value: f64) -> String {
    if (value.fract() == 0.0 && value.abs() < 1e6) || value.abs() >= 1000.0 {
        return format!("{value:.0}");
    }
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::LabFigure;

    use super::*;

    fn figure(reported: f64, measured: Option<f64>) -> ComparedFigure {
        ComparedFigure {
            name: "sum".to_owned(),
            unit: ReferenceUnit::Gigabits,
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
    fn only_measured_figures_are_counted() {
        let figures = [figure(1.0, Some(1.05)), figure(1.0, Some(1.2)), figure(1.0, None), figure(0.0, Some(1.0))];
        assert_eq!(reproduced(&figures), (1, 3));
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let texts = [0.00123, 0.967, 2.83, 15.59, 404.0, 9150.0, 12_345.6].map(number);
        assert_eq!(texts, ["0.00123", "0.967", "2.83", "15.6", "404", "9150", "12346"]);
    }
}
