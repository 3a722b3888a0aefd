//! Correction for multiple tests.

/// Result of Holm's correction for one p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HolmStep {
    /// Threshold for this p-value; the corresponding interval has the level 1 − `tail`.
    pub tail: f64,
    /// Adjusted p-value, to be compared with α itself.
    pub adjusted: f64,
}

/// Holm's correction (1979) of p-values at `alpha`, in the order given. The threshold of the i-th smallest of m
/// is α/(m − i + 1); after the first failure it stays the same, so that no later interval excludes "no change"
/// where the verdict must not claim a change.
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<HolmStep> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut steps = vec![HolmStep { tail: alpha, adjusted: 1.0 }; p_values.len()];
    let (mut failed_at, mut highest) = (None, 0.0_f64);
    for (rank, i) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        let tail = failed_at.unwrap_or(alpha / left);
        highest = highest.max((p_values[i] * left).min(1.0));
        steps[i] = HolmStep { tail, adjusted: highest };
        if p_values[i] > tail {
            failed_at = Some(tail);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_p_values_match_statsmodels() {
        // statsmodels 0.15.0, multipletests(method="holm"); R's p.adjust gives the same values.
        let adjusted: Vec<f64> =
            holm(&[0.01, 0.04, 0.03, 0.005, 0.5], 0.05).iter().map(|step| step.adjusted).collect();
        for (ours, theirs) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.5]) {
            assert!((ours - theirs).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn tails_and_adjusted_p_values_give_the_same_decision() {
        let p_values = [0.01, 0.04, 0.03, 0.005, 0.5, 0.0124];
        for alpha in [0.01, 0.05, 0.1, 0.2] {
            for (p, step) in p_values.iter().zip(holm(&p_values, alpha)) {
                assert_eq!(*p <= step.tail, step.adjusted <= alpha, "{p} at {alpha}: {step:?}");
            }
        }
        assert!(holm(&[], 0.05).is_empty());
    }
}
