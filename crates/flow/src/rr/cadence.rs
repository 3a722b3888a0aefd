//! Absolute schedule of an open loop.

/// Schedule in which request `k` is due at `t0 + k / rate`, independent of other requests. Errors do not
/// accumulate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cadence {
    t0_ns: u64,
    period_ns: f64,
}

impl Cadence {
    /// Creates a schedule of `rate_per_s` (positive, finite) from `t0_ns`.
    pub(super) fn new(t0_ns: u64, rate_per_s: f64) -> Self {
        debug_assert!(rate_per_s.is_finite() && rate_per_s > 0.0);
        Self { t0_ns, period_ns: 1e9 / rate_per_s }
    }

    /// Returns the intended time of request `index`.
    #[inline]
    pub(super) fn at(&self, index: u64) -> u64 {
        // Exact to the nanosecond as long as the product stays under 2^53 ns, which is 104 days.
        self.t0_ns.saturating_add((index as f64 * self.period_ns) as u64)
    }

    /// Number of requests intended before `ns`: the first index that [`Cadence::at`] maps to `ns` or later.
    pub(super) fn before(&self, ns: u64) -> u64 {
        let Some(elapsed_ns) = ns.checked_sub(self.t0_ns).filter(|&d| d > 0) else { return 0 };
        let mut index = (elapsed_ns as f64 / self.period_ns) as u64;
        // The division may be off by one because of rounding; `at` decides.
        while index > 0 && self.at(index - 1) >= ns {
            index -= 1;
        }
        while self.at(index) < ns {
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_at_1000_per_s_are_1_ms_apart() {
        let cadence = Cadence::new(500, 1000.0);
        assert_eq!((cadence.at(0), cadence.at(1), cadence.at(7)), (500, 1_000_500, 7_000_500));
        assert_eq!((cadence.before(500), cadence.before(501), cadence.before(1_000_500)), (0, 1, 1));
        assert_eq!(cadence.before(0), 0);
    }

    proptest! {
        #[test]
        fn before_is_the_inverse_of_at(rate in 0.001f64..1e7, t0 in 0u64..1 << 60, after in 0u64..10_000_000_000_000) {
            let cadence = Cadence::new(t0, rate);
            let index = cadence.before(t0 + after);
            prop_assert!(cadence.at(index) >= t0 + after);
            prop_assert!(index == 0 || cadence.at(index - 1) < t0 + after);
        }
    }
}
