//! Stopping rules.

use std::fmt;
use std::str::FromStr;

use landspeed_stats::{Interval, median_interval, stopping_level};
use landspeed_units::Ratio;

/// Confidence level of all intervals.
pub const LEVEL: f64 = 0.95;

/// Stopping rules. At least one of them is set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rules {
    /// Maximum number of blocks.
    pub blocks: Option<u32>,
    /// Precision at which the experiment ends.
    pub until: Option<PrecisionTarget>,
    /// Time after which no run starts, nanoseconds.
    pub budget_ns: Option<u64>,
}

/// `ci<2%`: the interval of every cell's median must lie within this share of the median. The interval holds 95 % of
/// true medians although it is computed after every block: see [`landspeed_stats::stopping_level`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionTarget(f64);

/// A precision that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a precision")]
pub struct NotAPrecision(String);

impl FromStr for PrecisionTarget {
    type Err = NotAPrecision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || NotAPrecision(text.chars().take(40).collect());
        let share = text.trim().strip_prefix("ci").and_then(|rest| rest.trim().strip_prefix('<')).ok_or_else(bad)?;
        let share: Ratio = share.trim().parse().map_err(|_| bad())?;
        if share.get() > 0.0 && share.get() < 1.0 { Ok(Self(share.get())) } else { Err(bad()) }
    }
}

impl fmt::Display for PrecisionTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ci<{}%", (self.0 * 1e4).round() / 100.0)
    }
}

impl Rules {
    /// The median and its 95 % interval in an experiment with these rules; `None` with too few values.
    pub fn interval(&self, values: &[f64]) -> Option<Interval> {
        if self.until.is_some() { stopping_interval(values) } else { interval(values) }
    }
}

impl PrecisionTarget {
    /// The largest allowed half-width of the interval, as a share of the median.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Whether the values of a cell reach the precision.
    pub fn is_met(self, values: &[f64]) -> bool {
        spread(values).is_some_and(|spread| spread < self.0)
    }
}

/// The median and its interval in an experiment that stops by precision; `None` with too few values.
pub fn stopping_interval(values: &[f64]) -> Option<Interval> {
    finite(values)?;
    median_interval(values, stopping_level(values.len()))
}

/// The larger distance from the median to a bound of [`stopping_interval`], as a share of the median; `None` if
/// there are too few values for an interval.
pub fn spread(values: &[f64]) -> Option<f64> {
    let interval = stopping_interval(values)?;
    let distance = (interval.estimate - interval.low).max(interval.high - interval.estimate);
    if distance == 0.0 {
        Some(0.0)
    } else {
        Some(distance / interval.estimate.abs()).filter(|share| share.is_finite())
    }
}

/// The median and its 95 % interval; `None` with fewer than 6 values, or if one is not finite.
pub fn interval(values: &[f64]) -> Option<Interval> {
    finite(values)?;
    median_interval(values, LEVEL)
}

fn finite(values: &[f64]) -> Option<()> {
    values.iter().all(|value| value.is_finite()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_parsed_and_printed() {
        assert_eq!("ci<2%".parse::<PrecisionTarget>().expect("a precision").to_string(), "ci<2%");
        assert_eq!("ci < 0.5%".parse::<PrecisionTarget>().expect("a precision").to_string(), "ci<0.5%");
        for bad in ["", "2%", "ci>2%", "ci<0", "ci<200%", "ci<x"] {
            assert!(bad.parse::<PrecisionTarget>().is_err(), "{bad}");
        }
    }

    #[test]
    fn nine_equal_values_reach_any_precision() {
        let until: PrecisionTarget = "ci<1%".parse().expect("a precision");
        assert!(!until.is_met(&[5.0; 8]));
        assert!(until.is_met(&[5.0; 9]));
        assert!(!until.is_met(&[5.0, 5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0]));
        assert_eq!(landspeed_stats::min_values(stopping_level(9)), crate::schedule::MIN_BLOCKS as usize);
    }

    /// Experiments with values of the true median 1, stopped by `target`: mean number of blocks, coverage, and share
    /// and coverage of the experiments that stop within 12 blocks.
    fn stopped(target: f64, skewed: bool, experiments: u64) -> [f64; 4] {
        let mut random = landspeed_stats::SplitMix64::new(3);
        let mut value = || {
            if skewed {
                1.0 - 0.05 * ((1.0 - random.unit()).ln() + std::f64::consts::LN_2)
            } else {
                1.0 + 0.05 * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)
            }
        };
        let (mut blocks, mut covered, mut early, mut covered_early) = (0, 0, 0, 0);
        for _ in 0..experiments {
            let mut values = Vec::new();
            while values.len() < crate::schedule::MAX_BLOCKS as usize {
                values.push(value());
                if PrecisionTarget(target).is_met(&values) {
                    break;
                }
            }
            let interval = stopping_interval(&values).expect("an interval");
            let holds = u64::from(interval.low <= 1.0 && 1.0 <= interval.high);
            blocks += values.len() as u64;
            covered += holds;
            if values.len() <= 12 {
                early += 1;
                covered_early += holds;
            }
        }
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        [
            share(blocks, experiments),
            share(covered, experiments),
            share(early, experiments),
            share(covered_early, early),
        ]
    }

    #[test]
    fn stopping_keeps_the_coverage() {
        for (target, skewed) in [(0.03, false), (0.05, false), (0.05, true)] {
            let [blocks, covered, early, covered_early] = stopped(target, skewed, 250);
            // Two standard errors of 95 % are 2.8 % of 250 experiments.
            assert!(covered >= 0.93, "ci<{target}: {covered} after {blocks} blocks");
            assert!(
                early < 0.1 || covered_early >= 0.9,
                "ci<{target}: {covered_early} of the {early} that stop early"
            );
        }
    }

    /// Prints the table of docs/sweeping.md: `cargo test -p landspeed-sweep -- --ignored --nocapture coverage`.
    #[test]
    #[ignore = "takes minutes; prints the table of docs/sweeping.md"]
    fn table_of_coverage() {
        for skewed in [false, true] {
            for target in [0.02, 0.03, 0.05] {
                let [blocks, covered, early, covered_early] = stopped(target, skewed, 2000);
                let shape = if skewed { "exponential" } else { "normal" };
                println!(
                    "| {shape} | ci<{}% | {blocks:.0} | {:.1} % | {:.1} % | {:.1} % |",
                    target * 100.0,
                    covered * 100.0,
                    early * 100.0,
                    covered_early * 100.0
                );
            }
        }
    }
}
