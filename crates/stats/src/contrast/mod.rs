//! How one group of values differs from another: an estimate, its interval at any level, and the p-value that follows from it.
//!
//! Which interval is used where was decided by simulation (docs/decisions/0018-comparison-statistics.md).

use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF, Normal};

use crate::correlation::variance_of_median;
use crate::quantile::{median, quantile_of_sorted};
use crate::{BootstrapError, Interval, SplitMix64};

/// Resamples for few values: at 0.995, 25 of them lie beyond each end.
const MOST_RESAMPLES: usize = 10_000;
/// Resamples for many values: at 0.995, 5 of them lie beyond each end.
const FEWEST_RESAMPLES: usize = 2_000;
/// Values that all resamples of one contrast draw, about.
const MOST_DRAWN: usize = 4_000_000;
/// The share of experiments in which the smallest detectable change is detected.
const POWER: f64 = 0.8;

/// A contrast between two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    estimate: f64,
    /// The value that means "no change".
    null: f64,
    /// Values of the smaller group, or pairs.
    runs: usize,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Differences within pairs, ascending.
    Ordered(Vec<f64>),
    /// Resampled estimates, ascending, and how much further from the estimate than they the ends lie.
    Resampled { draws: Vec<f64>, wider: f64 },
    /// Pairs in which the second is greater, of those that differ.
    Counted { greater: usize, decided: usize },
}

/// The median of values that do not depend on each other, and its interval, as [`Contrast::of_pairs`] has it; `None` where they are too few
/// for `level`.
pub fn median_interval(values: &[f64], level: f64) -> Option<Interval> {
    let contrast = Contrast::of_pairs(values)?;
    let (low, high) = contrast.interval(level).ok()?;
    Some(Interval { estimate: contrast.estimate(), low, high })
}

impl Contrast {
    /// The median of differences within pairs, or of any values that do not depend on each other; `None` of nothing.
    ///
    /// The interval holds whatever the distribution of the differences is: its ends are order statistics, whose coverage is
    /// binomial, interpolated where no pair of them has the level (Hettmansperger and Sheather 1986, Statistics and Probability
    /// Letters 4, 75–79).
    pub fn of_pairs(differences: &[f64]) -> Option<Self> {
        let estimate = median(differences)?;
        let mut sorted = differences.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self { estimate, null: 0.0, runs: sorted.len(), shape: Shape::Ordered(sorted) })
    }

    /// The logarithm of the ratio of medians, b over a, of positive values; `None` where a group is empty or a value is not positive.
    ///
    /// Percentile bootstrap (Efron 1979), each group resampled by itself. `correlation` is that of neighbours in time, as
    /// [`crate::autocorrelation`] gives it: it widens the interval as much as it increases the variance of a median.
    pub fn of_groups(a: &[f64], b: &[f64], correlation: f64, seed: u64) -> Option<Self> {
        if a.iter().chain(b).any(|value| *value <= 0.0) {
            return None;
        }
        let estimate = (median(b)? / median(a)?).ln();
        let (mut left, mut right) = (vec![0.0; a.len()], vec![0.0; b.len()]);
        let draws = resamples(a.len() + b.len(), seed, |random| {
            (resampled_median(b, &mut right, random) / resampled_median(a, &mut left, random)).ln()
        });
        let wider = variance_of_median(correlation).sqrt();
        Some(Self { estimate, null: 0.0, runs: a.len().min(b.len()), shape: Shape::Resampled { draws, wider } })
    }

    /// The share of pairs `(a, b)` with b > a among those that differ; ½ is "no change", and also where none differ.
    ///
    /// The sign test's interval (Clopper and Pearson 1934): for values with zeros, of which there is no ratio.
    pub fn share_of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let greater = pairs.iter().filter(|(a, b)| b > a).count();
        let decided = pairs.iter().filter(|(a, b)| a.partial_cmp(b).is_some_and(std::cmp::Ordering::is_ne)).count();
        let estimate = if decided == 0 { 0.5 } else { greater as f64 / decided as f64 };
        let shape = Shape::Counted { greater, decided };
        (!pairs.is_empty()).then_some(Self { estimate, null: 0.5, runs: pairs.len(), shape })
    }

    /// The probability that a value of `b` is greater than one of `a`, ties counting half (Mann and Whitney 1947); ½ is "no
    /// change". Bootstrap as in [`Contrast::of_groups`].
    pub fn share_of_groups(a: &[f64], b: &[f64], correlation: f64, seed: u64) -> Option<Self> {
        if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| !value.is_finite()) {
            return None;
        }
        let (mut left, mut right) = (a.to_vec(), b.to_vec());
        let estimate = share_greater(&mut left, &mut right);
        // Sorting makes a resample some ten times as dear as a median.
        let draws = resamples(10 * (a.len() + b.len()), seed, |random| {
            for (from, to) in [(a, &mut left), (b, &mut right)] {
                to.fill_with(|| from[random.below(from.len() as u64) as usize]);
            }
            share_greater(&mut left, &mut right)
        });
        let wider = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
        Some(Self { estimate, null: 0.5, runs: a.len().min(b.len()), shape: Shape::Resampled { draws, wider } })
    }

    /// From the values themselves.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// The interval at `level`, 0..1.
    ///
    /// # Errors
    /// [`BootstrapError::TooFew`] values for the level.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), BootstrapError> {
        let need = fewest(level);
        if self.runs < need {
            return Err(BootstrapError::TooFew { have: self.runs, need, level });
        }
        Ok(self.ends(level))
    }

    /// Whether the interval at `level` exists and lies on one side of "no change": below, or above.
    pub fn side(&self, level: f64) -> Option<std::cmp::Ordering> {
        let (low, high) = self.interval(level).ok()?;
        self.beyond(low, high)
    }

    fn beyond(&self, low: f64, high: f64) -> Option<std::cmp::Ordering> {
        match (low > self.null, high < self.null) {
            (true, _) => Some(std::cmp::Ordering::Greater),
            (_, true) => Some(std::cmp::Ordering::Less),
            _ => None,
        }
    }

    /// 1 − the highest level whose interval excludes "no change".
    pub fn p_value(&self) -> f64 {
        let least = match &self.shape {
            Shape::Ordered(values) => 0.5_f64.powi(values.len() as i32 - 1),
            Shape::Resampled { draws, .. } => 2.0 / (draws.len() + 1) as f64,
            Shape::Counted { decided, .. } => 0.5_f64.powi(*decided as i32 - 1),
        };
        let excludes = |tail: f64| {
            let (low, high) = self.ends(1.0 - tail);
            self.beyond(low, high).is_some()
        };
        let (mut within, mut beyond) = (least.min(1.0), 1.0);
        if excludes(within) {
            return within;
        }
        if !excludes(beyond) {
            return 1.0;
        }
        for _ in 0..50 {
            let middle = f64::midpoint(within, beyond);
            if excludes(middle) { beyond = middle } else { within = middle }
        }
        beyond
    }

    /// The distance from "no change" that an interval at `level` would exclude in four of five experiments like this one. From
    /// the width of this interval; `None` where there is none.
    pub fn detectable(&self, level: f64) -> Option<f64> {
        let (low, high) = self.interval(level).ok()?;
        let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, level));
        Some((high - low) / 2.0 * (z + Normal::standard().inverse_cdf(POWER)) / z)
    }

    fn ends(&self, level: f64) -> (f64, f64) {
        match &self.shape {
            Shape::Ordered(values) => of_order_statistics(values, self.estimate, level),
            Shape::Resampled { draws, wider } => {
                let tail = (1.0 - level) / 2.0;
                let end = |p| {
                    let drawn = quantile_of_sorted(draws, p).unwrap_or(self.estimate);
                    self.estimate + (drawn - self.estimate) * wider
                };
                (end(tail).min(self.estimate), end(1.0 - tail).max(self.estimate))
            }
            Shape::Counted { greater, decided } => of_share(*greater, *decided, level),
        }
    }
}

/// The fewest values, of each group or pairs, that carry an interval of the median at this level: the range of n values covers
/// the true median with probability `1 − 2^(1−n)` (David and Nagaraja, Order Statistics, section 7.1).
pub fn fewest(level: f64) -> usize {
    (1.0 - (1.0 - level).log2() - 1e-9).ceil().max(2.0) as usize
}

fn resamples(values: usize, seed: u64, mut draw: impl FnMut(&mut SplitMix64) -> f64) -> Vec<f64> {
    let count = (MOST_DRAWN / values.max(1)).clamp(FEWEST_RESAMPLES, MOST_RESAMPLES);
    let mut random = SplitMix64::new(seed);
    let mut draws: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    draws
}

/// The median of as many values as there are, drawn with replacement into `scratch`.
fn resampled_median(values: &[f64], scratch: &mut [f64], random: &mut SplitMix64) -> f64 {
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

/// Hettmansperger and Sheather's interval of the median of sorted values. Beyond the coverage of their range, everything.
fn of_order_statistics(sorted: &[f64], median: f64, level: f64) -> (f64, f64) {
    let n = sorted.len();
    let Ok(binomial) = Binomial::new(0.5, n as u64) else { return (f64::NEG_INFINITY, f64::INFINITY) };
    // Coverage of the k-th smallest to the k-th greatest.
    let coverage = |k: usize| 1.0 - 2.0 * binomial.cdf(k as u64 - 1);
    if n < 2 || coverage(1) < level - 1e-12 {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    // The greatest k that still covers.
    let (mut k, mut too_great) = (1, n / 2 + 1);
    while too_great - k > 1 {
        let middle = usize::midpoint(k, too_great);
        if coverage(middle) >= level { k = middle } else { too_great = middle }
    }
    let outer = coverage(k);
    let last = 2 * k >= n;
    let (inner, within) =
        if last { (0.0, (median, median)) } else { (coverage(k + 1).max(0.0), (sorted[k], sorted[n - k - 1])) };
    let share = ((outer - level) / (outer - inner)).clamp(0.0, 1.0);
    let weight = (n - k) as f64 * share / (k as f64 + (n as f64 - 2.0 * k as f64) * share);
    let between = |outer: f64, inner: f64| {
        if outer.total_cmp(&inner).is_eq() { outer } else { outer * (1.0 - weight) + inner * weight }
    };
    (between(sorted[k - 1], within.0), between(sorted[n - k], within.1))
}

/// Clopper and Pearson's interval of a share.
fn of_share(successes: usize, trials: usize, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let quantile =
        |a: usize, b: usize, p: f64| Beta::new(a as f64, b as f64).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let failures = trials - successes;
    let low = if successes == 0 { 0.0 } else { quantile(successes, failures + 1, tail) };
    let high = if failures == 0 { 1.0 } else { quantile(successes + 1, failures, 1.0 - tail) };
    (low, high)
}

/// Sorts both and returns the share of pairs with b > a, ties counting half.
fn share_greater(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_unstable_by(f64::total_cmp);
    b.sort_unstable_by(f64::total_cmp);
    let (mut below, mut up_to) = (0, 0);
    let mut twice = 0_u64;
    for value in b.iter() {
        while below < a.len() && a[below] < *value {
            below += 1;
        }
        while up_to < a.len() && a[up_to] <= *value {
            up_to += 1;
        }
        twice += (below + up_to) as u64;
    }
    twice as f64 / (2 * a.len() * b.len()) as f64
}

#[cfg(test)]
mod tests;
