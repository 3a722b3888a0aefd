//! A log-linear histogram of latencies.

use hdrhistogram::Histogram;

/// Latencies in nanoseconds, kept to three significant digits from 1 ns to 60 s in about 220 KiB.
///
/// Count, minimum, maximum and mean are exact and include what is out of range; quantiles are exact to 0.1 %.
/// Out-of-range values are counted, never dropped or clamped: a quantile that falls among them is `None`.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    in_range: Histogram<u64>,
    /// Values of 0 ns.
    below: u64,
    /// Values over [`LatencyHistogram::MAX_NS`].
    above: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

/// The values from `low_ns` to `high_ns`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest value that falls in this bucket.
    pub low_ns: u64,
    /// The largest value that falls in this bucket.
    pub high_ns: u64,
    /// How many values fell in it.
    pub count: u64,
}

impl LatencyHistogram {
    /// The smallest value in range.
    pub const MIN_NS: u64 = 1;
    /// The largest value in range: one minute.
    pub const MAX_NS: u64 = 60_000_000_000;
    const SIGNIFICANT_DIGITS: u8 = 3;

    /// An empty histogram; all the memory it will ever use is allocated here.
    pub fn new() -> Self {
        let in_range = Histogram::new_with_bounds(Self::MIN_NS, Self::MAX_NS, Self::SIGNIFICANT_DIGITS)
            .expect("the constant bounds are valid");
        Self { in_range, below: 0, above: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one value.
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

    /// Adds all that `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        self.in_range.add(&other.in_range).expect("both histograms have the same bounds");
        self.below = self.below.saturating_add(other.below);
        self.above = self.above.saturating_add(other.above);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.in_range.reset();
        (self.below, self.above) = (0, 0);
        (self.min_ns, self.max_ns, self.sum_ns) = (u64::MAX, 0, 0);
    }

    /// How many values were counted, out-of-range ones included.
    pub fn count(&self) -> u64 {
        self.in_range.len().saturating_add(self.below).saturating_add(self.above)
    }

    /// Whether nothing was counted yet.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The smallest value, exactly; `None` if empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// The largest value, exactly; `None` if empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The mean of all values; `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The smallest recorded value, to 0.1 %, that at least the share `p` (0 to 1) of all values do not exceed.
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

    /// The median; see [`LatencyHistogram::quantile`].
    pub fn p50(&self) -> Option<u64> {
        self.quantile(0.5)
    }

    /// What 90 % do not exceed; see [`LatencyHistogram::quantile`].
    pub fn p90(&self) -> Option<u64> {
        self.quantile(0.9)
    }

    /// What 99 % do not exceed; see [`LatencyHistogram::quantile`].
    pub fn p99(&self) -> Option<u64> {
        self.quantile(0.99)
    }

    /// What 99.9 % do not exceed; see [`LatencyHistogram::quantile`].
    pub fn p99_9(&self) -> Option<u64> {
        self.quantile(0.999)
    }

    /// The buckets that hold anything, ascending; their counts add up to [`LatencyHistogram::count`].
    ///
    /// Zeros have a separate bucket, and so do values over 60 s (up to the maximum).
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

/// The rank, from 1 to `count`, of the quantile `p`: the ceiling of their product.
fn rank(p: f64, count: u64) -> u64 {
    let product = p * count as f64;
    // 0.07 × 100 is 7.000000000000001 in floats; its rank is 7.
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
    fn an_empty_histogram_has_no_figures() {
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
    fn a_value_over_a_minute_is_counted_and_not_invented() {
        let mut histogram = filled(&[5, 5, 5]);
        histogram.record_n(120_000_000_000, 3);
        assert_eq!((histogram.count(), histogram.above), (6, 3));
        assert_eq!(histogram.p50(), Some(5));
        assert_eq!(histogram.quantile(0.8), None, "somewhere over a minute");
        assert_eq!(histogram.quantile(1.0), Some(120_000_000_000));
        assert_eq!(histogram.max_ns(), Some(120_000_000_000));
    }

    #[test]
    fn a_zero_is_out_of_range_and_counted() {
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
    fn a_cleared_histogram_is_as_new() {
        let mut histogram = filled(&[0, 5, u64::MAX]);
        histogram.clear();
        assert!(histogram.is_empty() && histogram.buckets().next().is_none());
        assert_eq!(histogram.max_ns(), None);
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        // Any magnitude, out of range on both sides included.
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
        fn buckets_add_up_to_the_count(values in latencies()) {
            let histogram = filled(&values);
            prop_assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(histogram.buckets().all(|b| b.low_ns <= b.high_ns));
        }

        #[test]
        fn a_merge_is_as_if_one_had_recorded_all(a in latencies(), b in latencies()) {
            let mut merged = filled(&a);
            merged.merge(&filled(&b));
            let all = filled(&[a, b].concat());
            prop_assert!(merged.buckets().eq(all.buckets()));
            prop_assert_eq!((merged.min_ns(), merged.max_ns()), (all.min_ns(), all.max_ns()));
            prop_assert_eq!(merged.mean_ns(), all.mean_ns());
        }
    }
}
