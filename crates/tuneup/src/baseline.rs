//! Goodput of the first settings, with its noise.

use landspeed_model::{Parameters, TuneupBaseline, Verdict};
use landspeed_stats::{Interval, ratio};

use crate::Measurement;
use crate::ladder::median_bps;

/// Summarises the baseline; `None` with fewer than two tests.
pub(crate) fn baseline(tests: &[Measurement], verdict: &Verdict, settings: &Parameters) -> Option<TuneupBaseline> {
    // Odd against even tests: their ratio shows the noise.
    let rates: Vec<f64> = tests.iter().map(|test| test.goodput_bps).collect();
    let every_other = |from: usize| rates.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
    let (a, b) = (every_other(0), every_other(1));
    let tail = landspeed_stats::smallest_tail(a.len(), b.len());
    let Interval { estimate, low, high } = ratio(&a, &b, tail).ok()?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1).max(1) as f64;
    Some(TuneupBaseline {
        goodput_bps: median_bps(tests),
        cv: variance.sqrt() / mean,
        ratio: estimate,
        low,
        high,
        level: 1.0 - 2.0 * tail,
        goodputs_bps: rates,
        cause: verdict.cause,
        confidence: verdict.confidence,
        summary: verdict.summary.clone(),
        settings: settings.clone(),
    })
}
