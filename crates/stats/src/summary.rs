//! Count, extremes, mean and standard deviation of a stream.

/// A running summary in constant memory, by Welford's method (Knuth, TAOCP vol. 2, section 4.2.2), which does not lose
/// the variance of large values with a small spread.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    count: u64,
    rejected: u64,
    min: f64,
    max: f64,
    mean: f64,
    /// The sum of squared deviations from the mean.
    squares: f64,
}

impl Summary {
    /// A summary of nothing.
    pub const fn new() -> Self {
        Self { count: 0, rejected: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, mean: 0.0, squares: 0.0 }
    }

    /// Takes one value. A NaN or infinity would spoil every figure: it is only counted, in [`Summary::rejected`].
    pub fn record(&mut self, value: f64) {
        if !value.is_finite() {
            self.rejected = self.rejected.saturating_add(1);
            return;
        }
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (value - self.mean);
    }

    /// Adds all that `other` has seen (Chan, Golub, LeVeque 1979).
    pub fn merge(&mut self, other: &Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        if other.count == 0 {
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.mean += apart * theirs / (ours + theirs);
        self.squares += other.squares + apart * apart * ours * theirs / (ours + theirs);
    }

    /// How many finite values were taken.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many values were not finite, and left out.
    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The smallest value; `None` if there is none.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value; `None` if there is none.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean; `None` if there is no value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The sample standard deviation (over n − 1); `None` below two values.
    pub fn stddev(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

impl Default for Summary {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<f64> for Summary {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.record(value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Summary {
        let mut summary = Summary::new();
        summary.extend(values.iter().copied());
        summary
    }

    #[test]
    fn nothing_has_no_mean_and_one_value_has_no_spread() {
        assert_eq!((of(&[]).mean(), of(&[]).min(), of(&[]).max()), (None, None, None));
        assert_eq!((of(&[3.0]).mean(), of(&[3.0]).stddev()), (Some(3.0), None));
    }

    #[test]
    fn a_small_spread_on_a_large_value_survives() {
        let summary = of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
        assert_eq!(summary.mean(), Some(1e9 + 10.0));
        assert!((summary.stddev().unwrap() - 30f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn a_value_that_is_no_number_spoils_nothing() {
        let summary = of(&[1.0, f64::NAN, 3.0, f64::INFINITY]);
        assert_eq!((summary.count(), summary.rejected(), summary.mean()), (2, 2, Some(2.0)));
    }

    proptest! {
        #[test]
        fn a_merge_is_as_if_one_had_recorded_all(
            a in prop::collection::vec(-1e6f64..1e6, 0..50),
            b in prop::collection::vec(-1e6f64..1e6, 2..50),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all = of(&[a, b].concat());
            prop_assert_eq!((merged.count(), merged.min(), merged.max()), (all.count(), all.min(), all.max()));
            prop_assert!((merged.mean().unwrap() - all.mean().unwrap()).abs() < 1e-6);
            prop_assert!((merged.stddev().unwrap() - all.stddev().unwrap()).abs() < 1e-3);
        }
    }
}
