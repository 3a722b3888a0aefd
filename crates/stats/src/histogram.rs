//! Log-linear histogram of latencies.

use hdrhistogram::Histogram;

/// Latency histogram in nanoseconds with three significant digits from 1 ns to 60 s, in about 220 KiB.
///
/// Count, minimum, maximum and mean are exact and include out-of-range values; quantiles are exact to 0.1 %.
/// Out-of-range values are counted, never dropped or clamped: a quantile that falls among them is `None`.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    in_range: Histogram<u64>,
    /// Number of values of 0 ns.
    below: u64,
    /// Number of values above [`LatencyHistogram::MAX_NS`].
    above: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

/// A bucket: values from `low_ns` to `high_ns`, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of this bucket, nanoseconds.
    pub low_ns: u64,
    /// Largest value of this bucket, nanoseconds.
    pub high_ns: u64,
    /// Number of values in this bucket.
    pub count: u64,
}

impl LatencyHistogram {
    /// Smallest value in range, nanoseconds.
    pub const MIN_NS: u64 = 1;
    /// Largest value in range, nanoseconds: one minute.
    pub const MAX_NS: u64 = 60_000_000_000;
    const SIGNIFICANT_DIGITS: u8 = 3;

    /// Creates an empty histogram and allocates all the memory it will ever use.
    pub fn new() -> Self {
        let in_range = Histogram::new_with_bounds(Self::MIN_NS, Self::MAX_NS, Self::SIGNIFICANT_DIGITS)
            .expect("the constant bounds are valid");
        Self { in_range, below: 0, above: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one value, nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` equal values.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        if ns < Self::MIN_NS {
            self.below = self.below.saturating_add(n);
        } else if ns > Self::MAX_NS {
            self.above = self.above.saturating_add(n);
        } else {
            self.in_range.saturating_record_n(ns, n);
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(n));
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.in_range.add(&other.in_range).expect("both histograms have the same bounds");
        self.below = self.below.saturating_add(other.below);
        self.above = self.above.saturating_add(other.above);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Resets the histogram and keeps its memory.
    pub fn clear(&mut self) {
        self.in_range.reset();
        (self.below, self.above) = (0, 0);
        (self.min_ns, self.max_ns, self.sum_ns) = (u64::MAX, 0, 0);
    }

    /// Returns the number of values, including out-of-range ones.
    pub fn count(&self) -> u64 {
        self.in_range.len().saturating_add(self.below).saturating_add(self.above)
    }

    /// Whether no value has been counted.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the exact smallest value; `None` if empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// Returns the exact largest value; `None` if empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Returns the mean of all values; `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Returns the quantile `p` (0 to 1), to 0.1 %: the smallest recorded value such that at least this share of all
    /// values is not larger.
    ///
    /// `None` if empty, if `p` is not between 0 and 1, or if the value is over 60 s. `quantile(1.0)` is the maximum.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if self.is_empty() || !(0.0..=1.0).contains(&p) {
            return None;
        }
        let rank = rank(p, self.count());
        if rank == self.count() {
            return Some(self.max_ns);
        }
        let mut seen = self.below;
        if rank <= seen {
            return Some(0);
        }
        for step in self.in_range.iter_recorded() {
            seen = seen.saturating_add(step.count_at_value());
            if rank <= seen {
                return Some(step.value_iterated_to().clamp(self.min_ns, self.max_ns.min(Self::MAX_NS)));
            }
        }
        None
    }

    /// Returns the median; see [`LatencyHistogram::quantile`].
    pub fn p50(&self) -> Option<u64> {
        self.quantile(0.5)
    }

    /// Returns the 90th percentile; see [`LatencyHistogram::quantile`].
    pub fn p90(&self) -> Option<u64> {
        self.quantile(0.9)
    }

    /// Returns the 99th percentile; see [`LatencyHistogram::quantile`].
    pub fn p99(&self) -> Option<u64> {
        self.quantile(0.99)
    }

    /// Returns the 99.9th percentile; see [`LatencyHistogram::quantile`].
    pub fn p99_9(&self) -> Option<u64> {
        self.quantile(0.999)
    }

    /// Returns the non-empty buckets, ascending; their counts add up to [`LatencyHistogram::count`].
    ///
    /// Zeros have a separate bucket, as have values over 60 s (up to the maximum).
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let below = (self.below > 0).then_some(Bucket { low_ns: 0, high_ns: 0, count: self.below });
        let above =
            (self.above > 0).then_some(Bucket { low_ns: Self::MAX_NS + 1, high_ns: self.max_ns, count: self.above });
        let in_range = self.in_range.iter_recorded().map(|step| Bucket {
            low_ns: self.in_range.lowest_equivalent(step.value_iterated_to()).max(Self::MIN_NS),
            high_ns: step.value_iterated_to().min(Self::MAX_NS),
            count: step.count_at_value(),
        });
        below.into_iter().chain(in_range).chain(above)
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the rank of the quantile `p`, from 1 to `count`: p × count, rounded up.
fn rank(p: f64, count: u64) -> u64 {
    let product = p * count as f64;
    // 0.07 × 100 is 7.000000000000001 in floating point; its rank is 7.
    let nearest = product.round();
    let exact = (product - nearest).abs() <= 4.0 * f64::EPSILON * product;
    let rank = if exact { nearest } else { product.ceil() };
    (rank as u64).clamp(1, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for &ns in values {
            histogram.record(ns);
        }
        histogram
    }

    #[test]
    fn empty_histogram_has_no_statistics() {
        let histogram = LatencyHistogram::new();
        assert_eq!((histogram.p50(), histogram.min_ns(), histogram.max_ns()), (None, None, None));
        assert!(histogram.mean_ns().is_none() && histogram.buckets().next().is_none());
    }

    #[test]
    fn quantiles_of_small_values_are_exact() {
        let histogram = filled(&(1..=1000).collect::<Vec<_>>());
        assert_eq!(histogram.p50(), Some(500));
        assert_eq!(histogram.p90(), Some(900));
        assert_eq!(histogram.p99(), Some(990));
        assert_eq!(histogram.p99_9(), Some(999));
        assert_eq!(histogram.quantile(0.0), Some(1));
        assert_eq!(histogram.quantile(1.5), None);
        assert_eq!(histogram.quantile(f64::NAN), None);
    }

    #[test]
    fn values_over_a_minute_are_counted_without_quantiles() {
        let mut histogram = filled(&[5, 5, 5]);
        histogram.record_n(120_000_000_000, 3);
        assert_eq!((histogram.count(), histogram.above), (6, 3));
        assert_eq!(histogram.p50(), Some(5));
        assert_eq!(histogram.quantile(0.8), None, "somewhere over a minute");
        assert_eq!(histogram.quantile(1.0), Some(120_000_000_000));
        assert_eq!(histogram.max_ns(), Some(120_000_000_000));
    }

    #[test]
    fn zero_is_counted_as_out_of_range() {
        let histogram = filled(&[0, 0, 7]);
        assert_eq!((histogram.count(), histogram.below), (3, 2));
        assert_eq!((histogram.p50(), histogram.min_ns(), histogram.max_ns()), (Some(0), Some(0), Some(7)));
    }

    #[test]
    fn counts_saturate_instead_of_wrapping() {
        let mut histogram = LatencyHistogram::new();
        for ns in [9, 9, u64::MAX, u64::MAX] {
            histogram.record_n(ns, u64::MAX);
        }
        assert_eq!(histogram.count(), u64::MAX);
        assert_eq!(histogram.above, u64::MAX);
    }

    #[test]
    fn clear_resets_all_counts() {
        let mut histogram = filled(&[0, 5, u64::MAX]);
        histogram.clear();
        assert!(histogram.is_empty() && histogram.buckets().next().is_none());
        assert_eq!(histogram.max_ns(), None);
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        // Any magnitude, including out-of-range values on both sides.
        prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift), 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn quantiles_are_within_a_thousandth_of_the_sorted_values(values in latencies(), p in 0.0f64..1.0) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let exact = sorted[rank(p, sorted.len() as u64) as usize - 1];
            match filled(&values).quantile(p) {
                Some(ns) => prop_assert!(ns.abs_diff(exact) as f64 <= 1e-3 * exact as f64, "{ns} for {exact}"),
                None => prop_assert!(exact > LatencyHistogram::MAX_NS),
            }
        }

        #[test]
        fn bucket_counts_add_up_to_the_total(values in latencies()) {
            let histogram = filled(&values);
            prop_assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(histogram.buckets().all(|b| b.low_ns <= b.high_ns));
        }

        #[test]
        fn merging_equals_recording_all_values_in_one_histogram(a in latencies(), b in latencies()) {
            let mut merged = filled(&a);
            merged.merge(&filled(&b));
            let all = filled(&[a, b].concat());
            prop_assert!(merged.buckets().eq(all.buckets()));
            prop_assert_eq!((merged.min_ns(), merged.max_ns()), (all.min_ns(), all.max_ns()));
            prop_assert_eq!(merged.mean_ns(), all.mean_ns());
        }
    }
}
