//! Wald's sequential probability ratio test of a share of defects (RFC 8337 section 7.2).

use landspeed_model::QualifyLines;

/// A sequential test whether the share of defects is at most `p0` (H0) or at least `p1` (H1).
///
/// After `n` trials with `d` defects it accepts H0 if `d ≤ s × n − h1`, accepts H1 if `d ≥ s × n + h2`, and otherwise
/// continues, where `k = ln(p1 (1 − p0) / (p0 (1 − p1)))`, `s = ln((1 − p0) / (1 − p1)) / k`, `h1 = ln((1 − α) / β) / k`,
/// `h2 = ln((1 − β) / α) / k` (Wald: Sequential Tests of Statistical Hypotheses, 1945).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    p0: f64,
    k: f64,
    slope: f64,
}

/// Decision of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The share of defects is at most `p0`.
    Accept,
    /// The share of defects is at least `p1`.
    Reject,
    /// More trials are needed.
    Continue,
}

impl Sprt {
    /// Probability of rejecting at `p0` (type I error).
    pub const ALPHA: f64 = 0.05;
    /// Probability of accepting at `p1` (type II error).
    pub const BETA: f64 = 0.05;
    /// `p1` of a run length of a few packets, which a quarter of it would put above 1.
    const HIGHEST_P1: f64 = 0.99;

    /// Creates a test; `0 < p0 < p1 < 1`.
    pub fn new(p0: f64, p1: f64) -> Self {
        assert!(0.0 < p0 && p0 < p1 && p1 < 1.0, "0 < {p0} < {p1} < 1");
        let k = (p1 * (1.0 - p0) / (p0 * (1.0 - p1))).ln();
        // ln_1p keeps the digits of a probability near zero.
        let slope = ((-p0).ln_1p() - (-p1).ln_1p()) / k;
        Self { p0, k, slope }
    }

    /// Creates a test of the packets between losses. H0: one loss in `run_length` packets; H1: one loss in a quarter of it.
    pub fn of_run_length(run_length: f64) -> Self {
        let p0 = 1.0 / run_length.max(2.0);
        Self::new(p0, (4.0 * p0).min(Self::HIGHEST_P1))
    }

    /// Returns the share of defects that is accepted.
    pub fn p0(&self) -> f64 {
        self.p0
    }

    /// Returns the decision lines.
    pub fn lines(&self) -> QualifyLines {
        QualifyLines {
            slope: self.slope,
            accept: ((1.0 - Self::ALPHA) / Self::BETA).ln() / self.k,
            reject: ((1.0 - Self::BETA) / Self::ALPHA).ln() / self.k,
        }
    }

    /// Decides after `trials` with `defects`.
    pub fn decide(&self, trials: u64, defects: u64) -> Decision {
        let lines = self.lines();
        let (trials, defects) = (trials as f64, defects as f64);
        if defects <= lines.slope * trials - lines.accept {
            Decision::Accept
        } else if defects >= lines.slope * trials + lines.reject {
            Decision::Reject
        } else {
            Decision::Continue
        }
    }

    /// Returns the number of trials after which `defects` are accepted.
    pub fn trials_to_accept(&self, defects: u64) -> u64 {
        ((defects as f64 + self.lines().accept) / self.slope).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_lines_follow_the_formulas() {
        // Run length 363: p0 = 1/363, p1 = 4/363, k = ln(4 × 362 / 359) = 1.39462, ln 19 = 2.94444.
        let lines = Sprt::of_run_length(363.0).lines();
        assert!((lines.accept - 2.111_284).abs() < 1e-5, "{}", lines.accept);
        assert!((lines.reject - 2.111_284).abs() < 1e-5);
        // ln(362 / 359) / 1.39462 = 0.0083218 / 1.39462
        assert!((lines.slope - 0.005_967_1).abs() < 1e-6, "{}", lines.slope);
    }

    #[test]
    fn no_loss_in_a_run_length_is_accepted() {
        let sprt = Sprt::of_run_length(363.0);
        // 2.111284 / 0.0059671 = 353.8
        assert_eq!(sprt.trials_to_accept(0), 354);
        assert_eq!(sprt.decide(353, 0), Decision::Continue);
        assert_eq!(sprt.decide(354, 0), Decision::Accept);
        let long = Sprt::of_run_length(18_922_609_200.0);
        assert!((long.trials_to_accept(0) as f64 / 18_922_609_200.0 - 0.9815).abs() < 0.001);
    }

    #[test]
    fn three_losses_at_once_are_rejected() {
        let sprt = Sprt::of_run_length(363.0);
        assert_eq!(sprt.decide(10, 2), Decision::Continue);
        assert_eq!(sprt.decide(10, 3), Decision::Reject);
        assert_eq!(sprt.decide(4_000, 0), Decision::Accept);
    }

    #[test]
    fn two_lossy_bursts_of_two_are_rejected() {
        let sprt = Sprt::new(0.05, 0.5);
        assert_eq!(sprt.trials_to_accept(0), 5);
        assert_eq!(sprt.decide(1, 1), Decision::Continue);
        assert_eq!(sprt.decide(2, 2), Decision::Reject);
    }

    #[test]
    fn short_run_lengths_have_a_test() {
        for run_length in [1.0, 2.0, 3.0, 12.0] {
            assert!(Sprt::of_run_length(run_length).trials_to_accept(0) > 0);
        }
    }
}
