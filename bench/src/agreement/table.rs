//! Table comparing lab and emulation.

use std::fmt::Write as _;

use super::cases::Case;
use super::{Record, Side, figures};

/// Median with minimum and maximum.
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

/// Returns one table per case: medians with ranges, and the difference of the medians.
pub(super) fn table(cases: &[&Case], records: &[Record]) -> String {
    let mut text = String::new();
    for case in cases {
        let of = |side| records.iter().filter(move |record| record.case == case.name && record.side == side);
        let (lab, emulated) = (of(Side::Lab).count(), of(Side::Emulate).count());
        if lab + emulated == 0 {
            continue;
        }
        let valid = of(Side::Emulate).filter(|record| record.valid).count();
        let kernel = |side| of(side).next().map_or("none", |record| record.kernel.as_str());
        let _ = writeln!(
            text,
            "\n**{}**: lab, {lab} runs, Linux {}; emulated, {valid} of {emulated} runs without an invalid second, Linux {}\n",
            case.name,
            kernel(Side::Lab),
            kernel(Side::Emulate),
        );
        text += "| figure | lab | emulated | difference |\n|---|---:|---:|---:|\n";
        for shown in case.figures.iter().filter_map(|name| figures::shown(name)) {
            let spread = |side| {
                let valid = of(side).filter(|record| record.valid);
                let values: Vec<f64> = valid.filter_map(|record| record.figures.get(shown.name).copied()).collect();
                spread(&values)
            };
            let cell = |spread: &Option<Spread>| {
                spread.as_ref().map_or_else(|| "–".to_owned(), |of| with_range(of, shown.decimals))
            };
            let (lab, emulated) = (spread(Side::Lab), spread(Side::Emulate));
            let unit = if shown.unit.is_empty() { String::new() } else { format!(", {}", shown.unit) };
            let difference = lab.as_ref().zip(emulated.as_ref()).map_or_else(|| "–".to_owned(), difference);
            let _ = writeln!(text, "| {}{unit} | {} | {} | {difference} |", shown.title, cell(&lab), cell(&emulated));
        }
    }
    text
}

fn spread(values: &[f64]) -> Option<Spread> {
    let median = landspeed_stats::median(values)?;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    Some(Spread { median, min, max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max) })
}

fn with_range(spread: &Spread, decimals: usize) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(|value| format!("{value:.decimals$}"));
    if min == max { median } else { format!("{median} ({min} to {max})") }
}

/// Formats the relative difference of the emulated median from the lab's, with an asterisk if the ranges do not
/// overlap.
fn difference((lab, emulated): (&Spread, &Spread)) -> String {
    let is_distinct = lab.max < emulated.min || emulated.max < lab.min;
    let mark = if is_distinct { " *" } else { "" };
    if lab.median == 0.0 {
        return if emulated.median == 0.0 { "0".to_owned() } else { format!("{:+.2}{mark}", emulated.median) };
    }
    format!("{:+.1} %{mark}", (emulated.median / lab.median - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_do_not_overlap_are_marked() {
        let of = |values: &[f64]| spread(values).expect("there are values");
        assert_eq!(difference((&of(&[90.0, 100.0, 110.0]), &of(&[108.0, 120.0, 130.0]))), "+20.0 %");
        assert_eq!(difference((&of(&[90.0, 100.0, 110.0]), &of(&[111.0, 120.0, 130.0]))), "+20.0 % *");
        assert_eq!(with_range(&of(&[2.0, 1.0, 4.0]), 1), "2.0 (1.0 to 4.0)");
        assert_eq!(with_range(&of(&[2.0]), 0), "2");
    }
}
