//! Means without the largest values.

/// Returns the mean of the smallest values without the largest ones: of the smallest `kept` (0 to 1) share of all, rounded up
/// to a whole value. `values` are (value, count) in any order; infinite ones are larger than all others. `None` if there are
/// none, if a value that counts is not finite, or if `kept` is not above 0 and at most 1.
pub fn trimmed_mean(values: impl IntoIterator<Item = (f64, u64)>, kept: f64) -> Option<f64> {
    let mut sorted: Vec<(f64, u64)> = values.into_iter().filter(|(_, count)| *count > 0).collect();
    let counted: u64 = sorted.iter().map(|(_, count)| count).sum();
    if counted == 0 || !(kept > 0.0 && kept <= 1.0) || sorted.iter().any(|(value, _)| value.is_nan()) {
        return None;
    }
    sorted.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let most = (counted as f64 * kept).ceil() as u64;
    let (mut left, mut sum) = (most, 0.0);
    for (value, count) in sorted {
        let taken = count.min(left);
        sum += value * taken as f64;
        left -= taken;
        if left == 0 {
            break;
        }
    }
    Some(sum / most as f64).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_values_do_not_count() {
        let values = |last: f64| (1..=19).map(|n| (f64::from(n), 1)).chain([(last, 1)]);
        assert_eq!(trimmed_mean(values(1e9), 0.95), Some(10.0));
        assert_eq!(trimmed_mean(values(20.0), 1.0), Some(10.5));
        // In the middle of a count.
        assert_eq!(trimmed_mean([(9.0, 10), (1.0, 10)], 0.75), Some((10.0 + 5.0 * 9.0) / 15.0));
    }

    #[test]
    fn infinite_values_count_unless_they_are_trimmed() {
        let values = |missing| [(10.0, 100 - missing), (f64::INFINITY, missing)];
        assert_eq!(trimmed_mean(values(5), 0.95), Some(10.0));
        assert_eq!(trimmed_mean(values(6), 0.95), None);
    }

    #[test]
    fn few_values_keep_at_least_one() {
        assert_eq!(trimmed_mean([(7.0, 1)], 0.95), Some(7.0));
        assert_eq!(trimmed_mean([(7.0, 0)], 0.95), None);
        assert_eq!(trimmed_mean([], 0.95), None);
        assert_eq!(trimmed_mean([(f64::NAN, 1)], 0.95), None);
        assert_eq!(trimmed_mean([(7.0, 1)], 0.0), None);
    }
}
