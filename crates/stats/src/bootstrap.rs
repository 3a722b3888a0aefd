//! Confidence intervals by resampling.

use crate::SplitMix64;
use crate::quantile::{median, quantile_of_sorted};

/// The percentile bootstrap (Efron 1979) of a median or a ratio of medians.
///
/// Deterministic: the same values, settings and seed give the same interval. For few runs the percentile interval is
/// slightly narrow; where even the whole range of the runs cannot reach the level, there is an error and no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The confidence level, between 0 and 1 exclusive.
    pub level: f64,
    /// How many resamples are drawn; at least one is.
    pub resamples: u32,
    /// Where the random sequence starts; print it beside the result.
    pub seed: u64,
}

/// An estimate and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The figure from the values themselves.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BootstrapError {
    /// Too few runs for the level.
    #[error("{have} runs are too few: an interval at the {} % level needs at least {need}", level * 100.0)]
    TooFew {
        /// How many values there are.
        have: usize,
        /// How many there should be.
        need: usize,
        /// The level asked for.
        level: f64,
    },
    /// The level is not between 0 and 1.
    #[error("{level} is not a confidence level: give one between 0 and 1, for example 0.95")]
    NoLevel {
        /// The level asked for.
        level: f64,
    },
    /// A value is NaN or infinite.
    #[error("a value is not a finite number")]
    NotFinite,
    /// The values below the line are not all positive.
    #[error("a ratio needs positive values below the line")]
    NotPositive,
}

impl Default for Bootstrap {
    /// 95 %, 10,000 resamples, a fixed seed.
    fn default() -> Self {
        Self { level: 0.95, resamples: 10_000, seed: 0x6c61_6e64_7370_6565 }
    }
}

impl Bootstrap {
    /// The median of `values` and its interval.
    pub fn median(&self, values: &[f64]) -> Result<Interval, BootstrapError> {
        let estimate = self.checked_median(values)?;
        let mut random = SplitMix64::new(self.seed);
        let mut scratch = values.to_vec();
        Ok(self.interval(estimate, || resampled_median(values, &mut scratch, &mut random)))
    }

    /// How much greater the rate of `b` is than that of `a`, and its interval. A rate is a sum over a sum, of pairs of what
    /// happened and how much it could happen in; the pairs are resampled whole, each side by itself. Where neighbours are
    /// alike, as in time, a pair is to be a block long enough that blocks are not (Künsch 1989).
    ///
    /// # Errors
    /// As for the median; [`BootstrapError::NotPositive`] where there was nothing for it to happen in.
    pub fn difference_of_rates(&self, a: &[(f64, f64)], b: &[(f64, f64)]) -> Result<Interval, BootstrapError> {
        let rate = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
            let (above, below) = pairs.fold((0.0, 0.0), |(above, below), pair| (above + pair.0, below + pair.1));
            (below > 0.0).then(|| above / below)
        };
        for side in [a, b] {
            self.checked_median(&side.iter().map(|pair| pair.0).collect::<Vec<_>>())?;
            if side.iter().any(|pair| !pair.1.is_finite() || pair.1 < 0.0) {
                return Err(BootstrapError::NotFinite);
            }
        }
        let whole = |side: &[(f64, f64)]| rate(&mut side.iter().copied()).ok_or(BootstrapError::NotPositive);
        let (rate_a, rate_b) = (whole(a)?, whole(b)?);
        let mut random = SplitMix64::new(self.seed);
        let mut drawn = |side: &[(f64, f64)], otherwise: f64| {
            let mut pairs = (0..side.len()).map(|_| side[random.below(side.len() as u64) as usize]);
            rate(&mut pairs).unwrap_or(otherwise)
        };
        Ok(self.interval(rate_b - rate_a, || {
            let a = drawn(a, rate_a);
            drawn(b, rate_b) - a
        }))
    }

    /// The fewest values that can carry an interval at this level: the range of n values covers the true median with
    /// probability `1 − 2^(1−n)` (David and Nagaraja, Order Statistics, section 7.1), and no resample leaves the range.
    fn fewest(&self) -> usize {
        (1.0 - (1.0 - self.level).log2()).ceil().max(2.0) as usize
    }

    fn checked_median(&self, values: &[f64]) -> Result<f64, BootstrapError> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(BootstrapError::NoLevel { level: self.level });
        }
        let need = self.fewest();
        if values.len() < need {
            return Err(BootstrapError::TooFew { have: values.len(), need, level: self.level });
        }
        median(values).ok_or(BootstrapError::NotFinite)
    }

    fn interval(&self, estimate: f64, mut draw: impl FnMut() -> f64) -> Interval {
        let mut draws: Vec<f64> = (0..self.resamples.max(1)).map(|_| draw()).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        let at = |p| quantile_of_sorted(&draws, p).expect("there is at least one draw and p is a share");
        Interval { estimate, low: at(tail), high: at(1.0 - tail) }
    }
}

/// The median of as many values as there are, drawn with replacement into `scratch`.
pub(crate) fn resampled_median(values: &[f64], scratch: &mut [f64], random: &mut SplitMix64) -> f64 {
    for slot in scratch.iter_mut() {
        *slot = values[random.below(values.len() as u64) as usize];
    }
    let middle = scratch.len() / 2;
    let (lower, &mut upper_middle, _) = scratch.select_nth_unstable_by(middle, f64::total_cmp);
    if values.len() % 2 == 1 {
        return upper_middle;
    }
    let lower_middle = lower.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower_middle, upper_middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: [f64; 9] = [9.1, 9.4, 9.2, 9.5, 9.3, 8.9, 9.6, 9.0, 9.7];

    #[test]
    fn the_interval_holds_the_median_and_stays_within_the_runs() {
        let interval = Bootstrap::default().median(&RUNS).unwrap();
        assert!((interval.estimate - 9.3).abs() < 1e-12);
        assert!(8.9 <= interval.low && interval.low < 9.3 && 9.3 < interval.high && interval.high <= 9.7);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let bootstrap = Bootstrap { resamples: 50, ..Bootstrap::default() };
        assert_eq!(bootstrap.median(&RUNS), bootstrap.median(&RUNS));
    }

    #[test]
    fn bootstrap_intervals_cover_the_true_difference_95_percent() {
        // Events in blocks of different size, at 0.3 and 0.4 for each unit; 300 experiments of 20 blocks.
        let mut random = SplitMix64::new(11);
        let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
        let mut blocks = |share: u64| -> Vec<(f64, f64)> {
            (0..20)
                .map(|_| {
                    let units = 20 + random.below(60);
                    ((0..units).filter(|_| random.below(100) < share).count() as f64, units as f64)
                })
                .collect()
        };
        let hits = (0..300)
            .filter(|_| {
                let (a, b) = (blocks(30), blocks(40));
                let interval = bootstrap.difference_of_rates(&a, &b).unwrap();
                interval.low <= 0.1 && 0.1 <= interval.high
            })
            .count();
        assert!((264..=299).contains(&hits), "{hits} of 300");
        assert_eq!(
            bootstrap.difference_of_rates(&[(0.0, 0.0); 9], &[(1.0, 1.0); 9]),
            Err(BootstrapError::NotPositive)
        );
        assert!(bootstrap.difference_of_rates(&[(1.0, 1.0); 5], &[(1.0, 1.0); 9]).is_err());
    }

    #[test]
    fn five_runs_carry_no_95_percent_interval_and_six_do() {
        let error = Bootstrap::default().median(&RUNS[..5]).unwrap_err();
        assert_eq!(error.to_string(), "5 runs are too few: an interval at the 95 % level needs at least 6");
        assert!(Bootstrap::default().median(&RUNS[..6]).is_ok());
        assert!(matches!(Bootstrap::default().median(&[]), Err(BootstrapError::TooFew { .. })));
    }

    #[test]
    fn bad_input_is_an_error_and_never_a_nan() {
        let bootstrap = Bootstrap::default();
        let mut runs = RUNS;
        runs[0] = f64::NAN;
        assert_eq!(bootstrap.median(&runs), Err(BootstrapError::NotFinite));
        for level in [0.0, 1.0, -1.0, f64::NAN] {
            let error = Bootstrap { level, ..bootstrap }.median(&RUNS).unwrap_err();
            assert!(matches!(error, BootstrapError::NoLevel { .. }));
        }
    }

    #[test]
    fn about_95_of_100_intervals_hold_the_true_median() {
        // Uniform values on 0..1 have the median 0.5; 400 experiments of 15 runs each.
        let mut random = SplitMix64::new(7);
        let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
        let hits = (0..400)
            .filter(|_| {
                let runs: Vec<f64> = (0..15).map(|_| random.unit()).collect();
                let interval = bootstrap.median(&runs).unwrap();
                interval.low <= 0.5 && 0.5 <= interval.high
            })
            .count();
        assert!((360..=398).contains(&hits), "{hits} of 400");
    }
}
