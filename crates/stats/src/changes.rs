//! Change-point detection in a series.

use crate::random::SplitMix64;

/// A change of level in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub index: usize,
    /// Probability of a test statistic at least this large in a series without a change.
    pub p_value: f64,
}

/// Minimum number of values on each side of a change.
pub const MIN_VALUES: usize = 4;

/// Permutations per test. The smallest possible p-value is 1 / (PERMUTATIONS + 1).
const PERMUTATIONS: u32 = 999;

/// Returns the changes of level in a series, in order.
///
/// Binary segmentation (Scott and Knott 1974; Vostrikova 1981): the split with the largest standardised
/// difference of rank sums is a change if a permutation test is significant at `level`; both parts are then
/// searched. Ranks (Pettitt 1979) make the test robust to single outliers. In a series without a change whose
/// values are exchangeable, `level` is the probability of reporting any change, because the first test must be
/// significant before others are made. Autocorrelated values are not exchangeable and give more false changes.
///
/// Values must be finite. Fewer than 2 × [`MIN_VALUES`] values have no change.
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<ChangePoint> {
    let mut random = SplitMix64::new(seed);
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        let Some((at, p_value)) = test(&values[from..to], level, &mut random) else { continue };
        found.push(ChangePoint { index: from + at, p_value });
        parts.push((from, from + at));
        parts.push((from + at, to));
    }
    found.sort_by_key(|change| change.index);
    found
}

/// Returns the best split and its p-value, if that is at most `level`.
fn test(values: &[f64], level: f64, random: &mut SplitMix64) -> Option<(usize, f64)> {
    if values.len() < 2 * MIN_VALUES {
        return None;
    }
    let mut ranks = ranks(values);
    let (at, observed) = best_split(&ranks);
    if observed == 0.0 {
        return None;
    }
    // With more permutations than this at least as large, the p-value exceeds the level.
    let most = (level * f64::from(PERMUTATIONS + 1)).floor() as u32;
    let mut as_large = 0;
    for _ in 0..PERMUTATIONS {
        shuffle(&mut ranks, random);
        if best_split(&ranks).1 >= observed {
            as_large += 1;
            if as_large + 1 > most {
                return None;
            }
        }
    }
    Some((at, f64::from(as_large + 1) / f64::from(PERMUTATIONS + 1)))
}

/// Returns ranks centred on their mean; ties get the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|i| values[**i].total_cmp(&values[order[from]]).is_eq()).count();
        let rank = from as f64 + (same as f64 - 1.0) / 2.0 - middle;
        for i in &order[from..from + same] {
            ranks[*i] = rank;
        }
        from += same;
    }
    ranks
}

/// Returns the split with the largest standardised rank sum, and its squared statistic up to a constant factor.
fn best_split(ranks: &[f64]) -> (usize, f64) {
    let n = ranks.len();
    let mut sum = 0.0;
    let mut best = (MIN_VALUES, 0.0);
    for (i, rank) in ranks.iter().enumerate().take(n - MIN_VALUES) {
        sum += rank;
        let before = i + 1;
        if before >= MIN_VALUES {
            // The variance of a sum of `before` of n ranks without replacement is proportional to before * (n - before).
            let statistic = sum * sum / (before as f64 * (n - before) as f64);
            if statistic > best.1 {
                best = (before, statistic);
            }
        }
    }
    best
}

/// Fisher–Yates shuffle.
fn shuffle(values: &mut [f64], random: &mut SplitMix64) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns normal noise (Box and Muller 1958) of 1 % around `level`.
    fn noise(level: f64, random: &mut SplitMix64) -> f64 {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        level * (1.0 + 0.01 * radius * (std::f64::consts::TAU * random.unit()).cos())
    }

    #[test]
    fn shift_of_3_percent_in_1_percent_noise_is_detected() {
        let mut random = SplitMix64::new(17);
        let mut at_the_place = 0;
        for seed in 0..200 {
            let values: Vec<f64> =
                (0..60).map(|i| noise(if i < 40 { 9.4e9 } else { 9.4e9 * 0.97 }, &mut random)).collect();
            let found = change_points(&values, 0.01, seed);
            assert!(!found.is_empty(), "seed {seed}");
            at_the_place += u32::from(found.iter().any(|change| change.index.abs_diff(40) <= 1));
        }
        assert!(at_the_place >= 180, "{at_the_place} of 200");
    }

    #[test]
    fn false_alarm_rate_in_noise_matches_the_level() {
        let mut random = SplitMix64::new(4);
        let alarms = (0..1000_u64)
            .filter(|seed| {
                let values: Vec<f64> = (0..30).map(|_| noise(9.4e9, &mut random)).collect();
                !change_points(&values, 0.05, *seed).is_empty()
            })
            .count();
        // 50 are expected; the standard deviation of the binomial is 7.
        assert!((25..=75).contains(&alarms), "{alarms} of 1000");
    }

    #[test]
    fn several_changes_are_detected() {
        let mut random = SplitMix64::new(1);
        let levels = [9.4e9, 8.0e9, 9.4e9];
        let (mut exact, mut both) = (0, 0);
        for seed in 0..100 {
            let values: Vec<f64> = (0..90).map(|i| noise(levels[i / 30], &mut random)).collect();
            let found: Vec<usize> = change_points(&values, 0.01, seed).iter().map(|change| change.index).collect();
            // Noise shifts a detected change by a few values at most.
            let near = |at: usize| found.iter().any(|index| index.abs_diff(at) <= 3);
            both += u32::from(near(30) && near(60));
            exact += u32::from(found.len() == 2);
        }
        // If noise shifts a detected change, the short stretch between may be detected as another one.
        assert!(both >= 95 && exact >= 80, "{both} and {exact} of 100");
    }

    #[test]
    fn outliers_and_short_or_constant_series_have_no_change() {
        let mut random = SplitMix64::new(2);
        let mut values: Vec<f64> = (0..40).map(|_| noise(1e9, &mut random)).collect();
        values[20] = 1e12;
        assert_eq!(change_points(&values, 0.01, 1), []);
        assert_eq!(change_points(&[1.0; 50], 0.01, 1), []);
        assert_eq!(change_points(&[1.0, 2.0, 3.0], 0.01, 1), []);
        assert_eq!(change_points(&[], 0.01, 1), []);
    }
}
