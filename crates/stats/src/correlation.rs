//! Correlation between successive runs.

use statrs::distribution::{ContinuousCDF, Normal};

/// Upper bound of the correlation used. At 0.9, 19 successive runs carry as much information as one independent
/// run.
const MAX_CORRELATION: f64 = 0.9;

/// Returns a conservative lag-1 autocorrelation of two groups in time order, 0 to 0.9. It is computed from normal
/// scores, so that a stall does not mask it, corrected for the bias of small samples, (1 + 3ρ)/n (Marriott and
/// Pope 1954), and increased by one standard error.
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
    (seen + (1.0 + 3.0 * seen) * 2.0 / total + 1.0 / total.sqrt()).clamp(0.0, MAX_CORRELATION)
}

/// Returns the factor by which a first-order autoregression with this correlation increases the variance of the
/// median of normal values: signs are correlated by 2/π·asin(ρ) (Gastwirth and Rubin 1971).
pub(crate) fn variance_of_median(correlation: f64) -> f64 {
    let powers = std::iter::successors(Some(correlation), |power| Some(power * correlation));
    let signs: f64 = powers.take_while(|power| *power > 1e-6).map(f64::asin).sum();
    1.0 + 4.0 / std::f64::consts::PI * signs
}

/// Returns the normal scores of the values (Blom 1958), centred to mean 0; equal values have equal scores.
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
