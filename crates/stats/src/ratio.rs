//! Ratio of two groups of runs, with a confidence interval.

use crate::quantile::quantile_of_sorted;
use crate::{BootstrapError, Interval};

/// Returns the ratio of `b` to `a` (Hodges and Lehmann 1963: the median of all ratios b ÷ a) with the interval of
/// the rank-sum test (Moses 1953), which is valid for any distribution of the values if `a` and `b` differ by a
/// factor only. The probability that the true factor lies below `low` is at most `tail`, and likewise above
/// `high`.
///
/// Few runs are enough, unlike for a bootstrap: six against six allow a tail of 1/924. Runs of both groups should
/// alternate in random order; if successive runs are correlated, the interval is then too wide rather than too
/// narrow.
///
/// # Errors
/// A value is not finite or not positive, or there are too few values for the tail.
pub fn ratio(a: &[f64], b: &[f64], tail: f64) -> Result<Interval, BootstrapError> {
    if !(tail > 0.0 && tail < 0.5) {
        return Err(BootstrapError::InvalidLevel { level: 1.0 - 2.0 * tail });
    }
    if a.iter().chain(b).any(|value| !value.is_finite()) {
        return Err(BootstrapError::NotFinite);
    }
    if a.iter().chain(b).any(|value| *value <= 0.0) {
        return Err(BootstrapError::NotPositive);
    }
    // The k smallest ratios lie below the interval; k is the largest that the tail allows.
    let outside = ranks_outside(a.len(), b.len(), tail);
    let Some(outside) = outside else {
        let need = (2..=64).find(|&n| ranks_outside(n, n, tail).is_some()).unwrap_or(usize::MAX);
        return Err(BootstrapError::TooFew { have: a.len().min(b.len()), need, level: 1.0 - 2.0 * tail });
    };
    let mut ratios: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b / a)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let estimate = quantile_of_sorted(&ratios, 0.5).expect("neither group is empty");
    Ok(Interval { estimate, low: ratios[outside], high: ratios[ratios.len() - 1 - outside] })
}

/// Returns the smallest possible tail for groups of this size: the probability of complete separation in one
/// direction.
pub fn smallest_tail(a: usize, b: usize) -> f64 {
    if a == 0 || b == 0 {
        return 0.5;
    }
    1.0 / orders(a, b).iter().sum::<f64>()
}

/// Returns the largest k with P(U ≤ k) ≤ `tail`, where U is the number of pairs in which b is smaller; `None` if
/// there is none.
fn ranks_outside(a: usize, b: usize, tail: f64) -> Option<usize> {
    if a == 0 || b == 0 {
        return None;
    }
    let orders = orders(a, b);
    let all: f64 = orders.iter().sum();
    let mut below = 0.0;
    let most = orders.iter().take_while(|count| {
        below += **count;
        // Rounding must not reject a tail that equals this probability.
        below / all <= tail * (1.0 + 1e-9)
    });
    most.count().checked_sub(1)
}

/// Returns the number of orders of `a` and `b` runs for which U is 0, 1, 2 … (Mann and Whitney 1947).
fn orders(a: usize, b: usize) -> Vec<f64> {
    // counts[j][u] for i runs of a and j of b: the largest run is either of a, above all j of b, or of b.
    let mut counts = vec![vec![1.0]; b + 1];
    for i in 1..=a {
        for j in 1..=b {
            let mut sum = vec![0.0; i * j + 1];
            for (u, count) in counts[j].iter().enumerate() {
                sum[u + j] += count;
            }
            for (u, count) in counts[j - 1].iter().enumerate() {
                sum[u] += count;
            }
            counts[j] = sum;
        }
    }
    counts.swap_remove(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix64;

    #[test]
    fn order_counts_match_mann_whitney() {
        assert_eq!(orders(2, 3), [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        assert!((orders(6, 6).iter().sum::<f64>() - 924.0).abs() < 1e-9);
        assert!((smallest_tail(6, 6) - 1.0 / 924.0).abs() < 1e-12);
        // scipy.stats.mannwhitneyu: P(U <= 5) for groups of 5 and 5 is 19 / 252; the counts are 1, 1, 2, 3, 5, 7.
        assert!((orders(5, 5)[..6].iter().sum::<f64>() - 19.0).abs() < 1e-9);
    }

    #[test]
    fn separated_groups_have_an_interval_above_one() {
        let a = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02];
        let b = a.map(|value| value * 2.0);
        let interval = ratio(&a, &b, smallest_tail(6, 6)).unwrap();
        assert!((interval.estimate - 2.0).abs() < 0.05, "{interval:?}");
        assert!(interval.low > 1.0 && interval.low < 2.0 && interval.high > 2.0, "{interval:?}");
        let error = ratio(&a[..5], &b[..5], smallest_tail(6, 6)).unwrap_err();
        assert!(matches!(error, BootstrapError::TooFew { have: 5, need: 6, .. }), "{error:?}");
    }

    #[test]
    fn bad_input_is_an_error() {
        assert_eq!(ratio(&[1.0, f64::NAN], &[1.0, 1.0], 0.2), Err(BootstrapError::NotFinite));
        assert_eq!(ratio(&[1.0, 0.0], &[1.0, 1.0], 0.2), Err(BootstrapError::NotPositive));
        assert!(matches!(ratio(&[1.0], &[1.0], 0.0), Err(BootstrapError::InvalidLevel { .. })));
        assert!(matches!(ratio(&[], &[1.0], 0.1), Err(BootstrapError::TooFew { .. })));
    }

    #[test]
    fn intervals_miss_the_true_ratio_no_more_often_than_stated() {
        // Skewed values, like rates with occasional stalls; the true ratio is 1.1.
        let mut random = SplitMix64::new(5);
        let mut draw = |n: usize, scale: f64| -> Vec<f64> {
            (0..n).map(|_| scale * (1.0 - 0.3 * random.unit().powi(4))).collect()
        };
        let mut missed = 0;
        for _ in 0..2000 {
            let interval = ratio(&draw(8, 1.0), &draw(8, 1.1), 0.025).unwrap();
            missed += u32::from(interval.low > 1.1 || interval.high < 1.1);
        }
        assert!((10..=110).contains(&missed), "{missed} of 2000, 5 % are 100");
    }

    proptest! {
        #[test]
        fn interval_contains_the_estimate_and_inverts_with_swapped_groups(
            a in prop::collection::vec(0.1f64..10.0, 4..12), b in prop::collection::vec(0.1f64..10.0, 4..12),
        ) {
            let (forth, back) = (ratio(&a, &b, 0.05).unwrap(), ratio(&b, &a, 0.05).unwrap());
            prop_assert!(forth.low <= forth.estimate && forth.estimate <= forth.high);
            prop_assert!((forth.low * back.high - 1.0).abs() < 1e-9);
        }
    }
}
