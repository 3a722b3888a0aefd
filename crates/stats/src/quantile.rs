//! Exact quantiles of a slice.

/// Returns the quantile `p` (0 to 1) of `values` in any order, with linear interpolation (type 7 of Hyndman and
/// Fan 1996, the default of R and NumPy). `None` if empty, if a value is not finite or if `p` is not between 0
/// and 1.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.iter().all(|v| v.is_finite()).then_some(())?;
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, p)
}

/// Returns the median of `values` in any order: the middle one, or the mean of the middle two. `None` if empty or
/// if a value is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the [`quantile`] of finite values in ascending order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let share = position - position.floor();
    let low = sorted[below];
    let high = sorted[(below + 1).min(sorted.len() - 1)];
    // Not `low + share * (high - low)`: the difference of two finite values can overflow.
    Some(if share == 0.0 { low } else { low * (1.0 - share) + high * share })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_interpolates_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn a_quantile_interpolates_like_r_and_numpy() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        assert_eq!(quantile(&values, 0.0), Some(15.0));
        assert_eq!(quantile(&values, 1.0), Some(50.0));
        // numpy.percentile([15, 20, 35, 40, 50], 40) == 29.0
        assert!((quantile(&values, 0.4).unwrap() - 29.0).abs() < 1e-9);
    }

    #[test]
    fn empty_or_nan_values_have_no_quantile() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[1.0], 1.1), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
    }

    proptest! {
        #[test]
        fn a_quantile_lies_between_the_extremes_and_grows_with_p(
            values in prop::collection::vec(-1e9f64..1e9, 1..40), a in 0.0f64..=1.0, b in 0.0f64..=1.0,
        ) {
            let at = |p| quantile(&values, p).unwrap();
            prop_assert!(at(0.0) - 1e-3 <= at(a) && at(a) <= at(1.0) + 1e-3);
            prop_assert!(at(a.min(b)) <= at(a.max(b)) + 1e-3);
        }
    }
}
