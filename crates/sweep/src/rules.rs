//! Stopping rules.

use std::fmt;
use std::str::FromStr;

use landspeed_stats::{Interval, median_interval};
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

/// `ci<2%`: the 95 % interval of every cell's median must lie within this share of the median.
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

/// The larger distance from the median to a bound of its 95 % interval, as a share of the median; `None` if
/// there are too few values for an interval.
pub fn spread(values: &[f64]) -> Option<f64> {
    let interval = interval(values)?;
    let distance = (interval.estimate - interval.low).max(interval.high - interval.estimate);
    if distance == 0.0 {
        Some(0.0)
    } else {
        Some(distance / interval.estimate.abs()).filter(|share| share.is_finite())
    }
}

/// The median and its 95 % interval; `None` with fewer than 6 values, or if one is not finite.
pub fn interval(values: &[f64]) -> Option<Interval> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    median_interval(values, LEVEL)
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
    fn six_equal_values_reach_any_precision() {
        let until: PrecisionTarget = "ci<1%".parse().expect("a precision");
        assert!(!until.is_met(&[5.0; 5]));
        assert!(until.is_met(&[5.0; 6]));
        assert!(!until.is_met(&[5.0, 5.0, 5.0, 6.0, 6.0, 6.0]));
    }
}
