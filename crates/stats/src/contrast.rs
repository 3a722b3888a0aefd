//! How one group of values differs from another: estimate, interval at any level, p-value.

use crate::quantile::{median, quantile_of_sorted};
use crate::{BootstrapError, SplitMix64};

/// Resamples of a contrast. At 0.995, 10 of them lie beyond each end.
const RESAMPLES: usize = 4_000;

/// An estimate with its bootstrap distribution, on a scale where 0 is "no change": the logarithm of a ratio, or a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    estimate: f64,
    /// Resampled estimates, ascending.
    draws: Vec<f64>,
    runs: (usize, usize),
}

impl Contrast {
    /// The median of `of(a, b)` over pairs; pairs are resampled whole.
    pub fn paired(pairs: &[f64], seed: u64) -> Option<Self> {
        let estimate = median(pairs)?;
        let mut random = SplitMix64::new(seed);
        let mut scratch = vec![0.0; pairs.len()];
        let draws = (0..RESAMPLES).map(|_| resampled(pairs, &mut scratch, &mut random)).collect();
        Some(Self::new(estimate, draws, (pairs.len(), pairs.len())))
    }

    /// Median of `b` − median of `a`; each is resampled by itself.
    pub fn unpaired(a: &[f64], b: &[f64], seed: u64) -> Option<Self> {
        let estimate = median(b)? - median(a)?;
        let mut random = SplitMix64::new(seed);
        let (mut left, mut right) = (vec![0.0; a.len()], vec![0.0; b.len()]);
        let draws = (0..RESAMPLES)
            .map(|_| resampled(b, &mut right, &mut random) - resampled(a, &mut left, &mut random))
            .collect();
        Some(Self::new(estimate, draws, (a.len(), b.len())))
    }

    fn new(estimate: f64, mut draws: Vec<f64>, runs: (usize, usize)) -> Self {
        draws.sort_unstable_by(f64::total_cmp);
        Self { estimate, draws, runs }
    }

    /// From the values themselves.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// The interval at `level`.
    ///
    /// # Errors
    /// There are too few values for the level.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), BootstrapError> {
        let need = fewest(level);
        let have = self.runs.0.min(self.runs.1);
        if have < need {
            return Err(BootstrapError::TooFew { have, need, level });
        }
        let at = |p| quantile_of_sorted(&self.draws, p).unwrap_or(self.estimate);
        let tail = (1.0 - level) / 2.0;
        Ok((at(tail), at(1.0 - tail)))
    }

    /// 1 − the highest level whose interval excludes 0.
    pub fn p_value(&self) -> f64 {
        let count = |side: &dyn Fn(f64) -> bool| self.draws.iter().filter(|draw| side(**draw)).count();
        let beyond = count(&|draw| draw <= 0.0).min(count(&|draw| draw >= 0.0));
        (2.0 * (beyond + 1) as f64 / (self.draws.len() + 1) as f64).min(1.0)
    }
}

/// The fewest values that carry an interval of the median at this level: the range of n values covers the median with
/// probability `1 − 2^(1−n)` (David and Nagaraja, Order Statistics, section 7.1).
pub fn fewest(level: f64) -> usize {
    (1.0 - (1.0 - level).log2() - 1e-9).ceil().max(2.0) as usize
}

fn resampled(values: &[f64], scratch: &mut [f64], random: &mut SplitMix64) -> f64 {
    crate::bootstrap::resampled_median(values, scratch, random)
}
