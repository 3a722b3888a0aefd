//! Mean rate of a long flow over a bottleneck with some rate and some buffer.

use landspeed_calc::CUBIC_BETA;
use landspeed_model::QualifyCongestion;

/// Multiplicative decrease of Reno (RFC 5681).
const RENO_BETA: f64 = 0.5;
/// Share of the bottleneck's rate that BBR keeps while it probes and drains (draft-ietf-ccwg-bbr: `BBRPacingMarginPercent`, `ProbeRTT`).
const BBR_SHARE: f64 = 0.97;
/// Points at which the window of a cycle is averaged.
const POINTS: u32 = 1000;

/// Returns the mean rate of a long flow between two losses, in target rates.
///
/// `rate` is the rate of the bottleneck in target rates, `buffer` its buffer in target windows. A loss happens at the window `peak = rate
/// + buffer`. After it the window is `β × peak`, and grows back: linearly with Reno (RFC 5681), as `peak × (1 − (1 − β) (1 − x)³)`
/// with CUBIC (RFC 9438 section 4.2), where `x` is the part of the cycle. The flow sends the smaller of the window per RTT and `rate`.
pub fn steady_rate(congestion: QualifyCongestion, rate: f64, buffer: f64) -> f64 {
    let peak = rate + buffer;
    let mean = |window: &dyn Fn(f64) -> f64| {
        let points = (0..POINTS).map(|point| (f64::from(point) + 0.5) / f64::from(POINTS));
        points.map(|x| window(x).min(rate)).sum::<f64>() / f64::from(POINTS)
    };
    match congestion {
        QualifyCongestion::Reno => mean(&|x| peak * (RENO_BETA + (1.0 - RENO_BETA) * x)),
        QualifyCongestion::Cubic => mean(&|x| peak * (1.0 - (1.0 - CUBIC_BETA) * (1.0 - x).powi(3))),
        QualifyCongestion::Bbr => BBR_SHARE * rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_without_a_buffer_is_that_of_the_sawtooth() {
        // (1 + β) / 2 for Reno, (3 + β) / 4 for CUBIC.
        assert!((steady_rate(QualifyCongestion::Reno, 1.0, 0.0) - 0.75).abs() < 1e-4);
        assert!((steady_rate(QualifyCongestion::Cubic, 1.0, 0.0) - 0.925).abs() < 1e-4);
    }

    #[test]
    fn a_buffer_of_one_minus_beta_keeps_the_link_full() {
        // β (1 + buffer) = 1
        assert!((steady_rate(QualifyCongestion::Reno, 1.0, 1.0) - 1.0).abs() < 1e-9);
        assert!((steady_rate(QualifyCongestion::Cubic, 1.0, 0.3 / 0.7) - 1.0).abs() < 1e-9);
    }
}
