//! Summarizes the runs of one cell as a point: median and its confidence interval.

use landspeed_model::FigureLine;
use landspeed_stats::{median, median_interval, stopping_level};

/// Confidence level of every interval.
pub(crate) const LEVEL: f64 = 0.95;
/// Minimum number of runs for an interval of the median at that level.
pub(crate) const MIN_RUNS: usize = 6;
/// The same for an experiment that ends by precision, at [`stopping_level`].
const STOPPING_MIN_RUNS: usize = 9;

/// Median with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) runs: usize,
}

impl Spread {
    /// Summarizes values; `None` without values. `stopping`: of an experiment that ended by precision.
    pub(crate) fn of(values: &[f64], stopping: bool) -> Option<Self> {
        let level = if stopping { stopping_level(values.len()) } else { LEVEL };
        Some(Self {
            median: median(values)?,
            interval: median_interval(values, level).map(|interval| (interval.low, interval.high)),
            runs: values.len(),
        })
    }
}

/// Adds a point to a line: its median, its interval if there is one, and each run as a dot.
pub(crate) fn add(line: &mut FigureLine, x: f64, values: &[f64], stopping: bool) {
    let spread = Spread::of(values, stopping);
    line.x.push(x);
    line.y.push(spread.map(|s| s.median));
    line.low.push(spread.and_then(|s| Some(s.interval?.0)));
    line.high.push(spread.and_then(|s| Some(s.interval?.1)));
    line.runs.push(values.len() as u32);
    if values.len() > 1 {
        line.dots.extend(values.iter().map(|value| [x, *value]));
    }
}

/// Describes points, bands and dots, for cells with these numbers of runs. `stopping`: of an experiment that ended by
/// precision.
pub(crate) fn caption(runs: &[usize], stopping: bool) -> String {
    let needed = if stopping { STOPPING_MIN_RUNS } else { MIN_RUNS };
    let how = if stopping {
        "order statistics, wider because it is computed after every block"
    } else {
        "order statistics"
    };
    let counted: Vec<usize> = runs.iter().copied().filter(|n| *n > 0).collect();
    let (least, most) = (counted.iter().min().copied().unwrap_or(0), counted.iter().max().copied().unwrap_or(0));
    let n = if least == most { format!("n = {most}") } else { format!("n = {least} to {most}") };
    match (least, most) {
        (_, 0) => "No usable run.".to_owned(),
        (1, 1) => "n = 1: one run per point, without an interval.".to_owned(),
        (_, most) if most < needed => format!(
            "Points: median of the runs ({n}). Small dots: each run. A 95 % interval of a median needs {needed} runs."
        ),
        (least, _) => {
            let some = if least < needed { format!(", where n ≥ {needed}") } else { String::new() };
            format!(
                "Points: median of the runs ({n}). Bands and bars: its 95 % interval ({how}){some}. Small dots: each run."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_have_a_median_without_an_interval() {
        let spread = Spread::of(&[1.0, 3.0, 2.0], false).unwrap();
        assert_eq!((spread.median, spread.interval, spread.runs), (2.0, None, 3));
        assert_eq!(Spread::of(&[], false), None);
        let (low, high) = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], false).unwrap().interval.unwrap();
        assert!(1.0 < low && low < 2.0 && 5.0 < high && high < 6.0, "{low} {high}");
    }

    #[test]
    fn a_point_without_runs_is_missing() {
        let mut line = FigureLine::default();
        add(&mut line, 1.0, &[], false);
        add(&mut line, 2.0, &[5.0], false);
        assert_eq!((line.y, line.runs, line.dots), (vec![None, Some(5.0)], vec![0, 1], vec![]));
    }

    #[test]
    fn the_caption_states_the_number_of_runs() {
        assert!(caption(&[15, 15], false).starts_with("Points: median of the runs (n = 15). Bands"));
        assert!(caption(&[3, 4], false).contains("n = 3 to 4") && caption(&[3, 4], false).contains("needs 6 runs"));
        assert!(caption(&[6, 8], true).contains("needs 9 runs") && caption(&[6, 9], true).contains("where n ≥ 9"));
        assert_eq!(landspeed_stats::min_values(stopping_level(STOPPING_MIN_RUNS)), STOPPING_MIN_RUNS);
        assert!(caption(&[1], false).starts_with("n = 1"));
    }
}
