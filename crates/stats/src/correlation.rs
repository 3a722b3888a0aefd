//! Runs that resemble their neighbours in time.

use statrs::distribution::{ContinuousCDF, Normal};

/// Highest correlation that widens an interval. Beyond, 19 runs in a row say as much as one.
const MOST_CORRELATED: f64 = 0.9;

/// Correlation of each value with the next within groups in the order of time, 0 to 0.9, on the careful side: that of normal
/// scores, so that a stall does not hide it; with the bias of few values, (1 + 3ρ)/n (Marriott and Pope 1954), and one standard
/// error added.
pub fn autocorrelation(groups: [&[f64]; 2]) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for group in groups {
        let scores = normal_scores(group);
        products += scores.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += scores.iter().map(|score| score * score).sum::<f64>();
    }
    let total = (groups[0].len() + groups[1].len()) as f64;
    if squares == 0.0 {
        return 0.0;
    }
    let seen = products / squares;
    (seen + (1.0 + 3.0 * seen) * 2.0 / total + 1.0 / total.sqrt()).clamp(0.0, MOST_CORRELATED)
}

/// By how much the variance of a median of normal values grows if each is correlated with the next, and with later ones as a
/// first-order autoregression is: signs are correlated by 2/π·asin(ρ) (Gastwirth and Rubin 1971).
pub(crate) fn variance_of_median(correlation: f64) -> f64 {
    let powers = std::iter::successors(Some(correlation), |power| Some(power * correlation));
    let signs: f64 = powers.take_while(|power| *power > 1e-6).map(f64::asin).sum();
    1.0 + 4.0 / std::f64::consts::PI * signs
}

/// Each value's place among all, as a normal deviate (Blom 1958); equal values have equal scores. The mean is 0.
fn normal_scores(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let score = |value: &f64| {
        let (below, up_to) =
            (sorted.partition_point(|other| other < value), sorted.partition_point(|other| other <= value));
        let rank = (below + up_to + 1) as f64 / 2.0;
        Normal::standard().inverse_cdf((rank - 0.375) / (n + 0.25))
    };
    let scores: Vec<f64> = values.iter().map(score).collect();
    let mean = scores.iter().sum::<f64>() / n.max(1.0);
    scores.into_iter().map(|score| score - mean).collect()
}
