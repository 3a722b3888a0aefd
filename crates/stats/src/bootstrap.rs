//! Bootstrap confidence intervals.

use crate::SplitMix64;
use crate::quantile::quantile_of_sorted;

/// Percentile bootstrap (Efron 1979) of a difference of rates. For medians see [`crate::Contrast`].
///
/// Deterministic: the same values, settings and seed give the same interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Confidence level, between 0 and 1 exclusive.
    pub level: f64,
    /// Number of resamples; at least one is drawn.
    pub resamples: u32,
    /// Seed of the random sequence; print it with the result.
    pub seed: u64,
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Point estimate from the values, without resampling.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Reason why no interval can be computed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BootstrapError {
    /// Too few runs for the level.
    #[error("{have} runs are too few: an interval at the {} % level needs at least {need}", level * 100.0)]
    TooFew {
        /// Number of values given.
        have: usize,
        /// Minimum number of values.
        need: usize,
        /// Requested confidence level.
        level: f64,
    },
    /// The level is not between 0 and 1.
    #[error("{level} is not a confidence level: give one between 0 and 1, for example 0.95")]
    InvalidLevel {
        /// The requested level.
        level: f64,
    },
    /// A value is NaN or infinite.
    #[error("a value is not a finite number")]
    NotFinite,
    /// A denominator is not positive.
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
    /// Returns the difference of rates `b` − `a` and its interval. A rate is the sum of the numerators divided by
    /// the sum of the denominators (such as events and exposure). Whole pairs are resampled, each group separately.
    /// If successive values are correlated, as in time series, each pair must be a block long enough for blocks to
    /// be independent (Künsch 1989).
    ///
    /// # Errors
    /// Too few or invalid values; [`BootstrapError::NotPositive`] if a group's denominators sum to 0.
    pub fn difference_of_rates(&self, a: &[(f64, f64)], b: &[(f64, f64)]) -> Result<Interval, BootstrapError> {
        let rate = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
            let (above, below) = pairs.fold((0.0, 0.0), |(above, below), pair| (above + pair.0, below + pair.1));
            (below > 0.0).then(|| above / below)
        };
        for side in [a, b] {
            self.check(side)?;
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

    fn check(&self, side: &[(f64, f64)]) -> Result<(), BootstrapError> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(BootstrapError::InvalidLevel { level: self.level });
        }
        let need = crate::min_values(self.level);
        if side.len() < need {
            return Err(BootstrapError::TooFew { have: side.len(), need, level: self.level });
        }
        let finite = side.iter().all(|pair| pair.0.is_finite() && pair.1.is_finite() && pair.1 >= 0.0);
        if finite { Ok(()) } else { Err(BootstrapError::NotFinite) }
    }

    fn interval(&self, estimate: f64, mut draw: impl FnMut() -> f64) -> Interval {
        let mut draws: Vec<f64> = (0..self.resamples.max(1)).map(|_| draw()).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        let at = |p| quantile_of_sorted(&draws, p).expect("there is at least one draw and p is a share");
        Interval { estimate, low: at(tail), high: at(1.0 - tail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_intervals_cover_the_true_difference_95_percent() {
        // Events in blocks of different size, at 0.3 and 0.4 per unit; 300 experiments of 20 blocks.
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
        let few = bootstrap.difference_of_rates(&[(1.0, 1.0); 5], &[(1.0, 1.0); 9]).unwrap_err();
        assert_eq!(few.to_string(), "5 runs are too few: an interval at the 95 % level needs at least 6");
        let bad = bootstrap.difference_of_rates(&[(f64::NAN, 1.0); 6], &[(1.0, 1.0); 9]);
        assert_eq!(bad, Err(BootstrapError::NotFinite));
        for level in [0.0, 1.0, -1.0, f64::NAN] {
            let error = Bootstrap { level, ..bootstrap }.difference_of_rates(&[(1.0, 1.0); 9], &[(1.0, 1.0); 9]);
            assert!(matches!(error, Err(BootstrapError::InvalidLevel { .. })));
        }
    }
}
