//! Decision whether a change is better than the best settings so far.
//!
//! Tests of both alternate. After 6, 12 and 20 pairs the change is judged by the exact confidence interval of
//! the goodput ratio; in between, hopeless changes are rejected, which cannot accept a useless one. The error
//! rate of a search is divided among its candidates and their three looks (Bonferroni), so that a tuned pair of
//! hosts is left unchanged in at least 19 of 20 searches.

use landspeed_model::{TuneupBound, TuneupRules};
use landspeed_stats::{Interval, median, ratio, smallest_tail};

use crate::Measurement;

/// The decision rules, which the document contains.
pub const RULES: TuneupRules = TuneupRules {
    min_ratio: 1.02,
    error_rate: 0.05,
    most_candidates: 20,
    rtt_p50_factor: 2.0,
    rtt_p50_more_us: 2000.0,
    rtt_p99_factor: 3.0,
    rtt_p99_more_us: 5000.0,
    retransmits_factor: 2.0,
    // 0.5 % of segments of 1448 bytes.
    retransmits_more_per_gb: 3500.0,
    cpu_factor: 1.25,
    gain_weight_max: 10.0,
};

/// Looks: number of pairs after which a change is judged, and tail probability on either side of the interval.
/// Their sum is a candidate's share of the error rate. At six pairs the tail is the smallest possible, 1/924:
/// the rates of the two do not overlap.
const INTERIM_ANALYSES: [(usize, f64); 3] = [(6, 1.0 / 924.0), (12, 0.0007), (20, 0.0007)];

/// Numbers of pairs after which a change is rejected if the ratio so far is below this value. Saves time and
/// can only reject.
const FUTILITY_BOUNDS: [(usize, f64); 6] = [(3, 1.005), (4, 1.005), (5, 1.008), (6, 1.01), (8, 1.01), (10, 1.015)];

/// State of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Goodput ratio with its confidence interval; `None` with fewer than two pairs.
    pub interval: Option<Interval>,
    /// Confidence level of the interval.
    pub level: f64,
    /// Latency, retransmits and CPU time with their limits.
    pub bounds: Vec<TuneupBound>,
    /// Decision, if the comparison is over.
    pub decision: Option<Decision>,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The change is accepted.
    Keep,
    /// The change is rejected, with the reason.
    Reject(String),
}

/// Judges a change by the tests so far; both slices have one test per pair. A limit of the rate keeps the path's queue empty
/// and its losses rare: a change that lifts one may cost the square of its gain.
pub fn compare(best: &[Measurement], candidate: &[Measurement], lifts_rate_limit: bool) -> Comparison {
    let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
    let (a, b) = (rates(best), rates(candidate));
    let pairs = a.len().min(b.len());
    let look = INTERIM_ANALYSES.iter().find(|(at, _)| *at == pairs);
    // Between looks, the widest interval is shown.
    let tail = look.map_or_else(|| smallest_tail(a.len(), b.len()), |(_, tail)| *tail);
    let interval = ratio(&a, &b, tail).ok();
    let bounds = bounds(best, candidate, if lifts_rate_limit { 2 } else { 1 });
    let decision = interval.and_then(|interval| decide(interval, pairs, look.is_some(), &bounds));
    Comparison { interval, level: 1.0 - 2.0 * tail, bounds, decision }
}

fn decide(interval: Interval, pairs: usize, look: bool, bounds: &[TuneupBound]) -> Option<Decision> {
    let Interval { estimate, low, high } = interval;
    let reject = |why: String| Some(Decision::Reject(why));
    if look && low > 1.0 {
        if estimate < RULES.min_ratio {
            return reject(format!("the gain is below {:.0} %", (RULES.min_ratio - 1.0) * 100.0));
        }
        return match bounds.iter().find(|bound| !bound.within) {
            Some(bound) => reject(format!("{} above the limit", bound.name)),
            None => Some(Decision::Keep),
        };
    }
    if pairs >= 2 && high < 0.9 {
        return reject("slower".to_owned());
    }
    let hopeless = FUTILITY_BOUNDS.iter().any(|(at, least)| *at == pairs && estimate < *least);
    if hopeless {
        return reject(if estimate < 0.98 { "slower" } else { "no gain" }.to_owned());
    }
    let (last, _) = INTERIM_ANALYSES[INTERIM_ANALYSES.len() - 1];
    (pairs >= last).then(|| Decision::Reject("no gain beyond the noise".to_owned()))
}

/// Medians of metrics that must not get worse, with limits that grow with this power of the gain: twice the rate may have
/// twice the cost, or four times. Metrics that a test lacks are omitted.
fn bounds(best: &[Measurement], candidate: &[Measurement], power: i32) -> Vec<TuneupBound> {
    type Figure = fn(&Measurement) -> Option<f64>;
    let middle = |tests: &[Measurement], figure: Figure| {
        let values: Option<Vec<f64>> = tests.iter().map(figure).collect();
        median(&values?)
    };
    let rate = |tests| middle(tests, |test| Some(test.goodput_bps)).unwrap_or(0.0);
    let weight = (rate(candidate) / rate(best).max(1.0)).powi(power).clamp(1.0, RULES.gain_weight_max);
    let figures: [(&str, &str, Figure, f64, f64); 4] = [
        ("median RTT", "us", |test| test.rtt_p50_us, RULES.rtt_p50_factor, RULES.rtt_p50_more_us),
        ("p99 RTT", "us", |test| test.rtt_p99_us, RULES.rtt_p99_factor, RULES.rtt_p99_more_us),
        (
            "retransmits",
            "per GB",
            |test| test.retransmits_per_gb,
            RULES.retransmits_factor,
            // A factor is meaningless without retransmits before, so the absolute limit grows too.
            RULES.retransmits_more_per_gb * weight,
        ),
        ("CPU time", "s/Gb", |test| test.cpu_s_per_gb, RULES.cpu_factor, 0.0),
    ];
    let bound = |(name, unit, figure, factor, more): (&str, &str, Figure, f64, f64)| {
        let (best, candidate) = (middle(best, figure)?, middle(candidate, figure)?);
        let limit = (best * factor.max(weight)).max(best + more);
        Some(TuneupBound {
            name: name.to_owned(),
            unit: unit.to_owned(),
            best,
            candidate,
            limit,
            within: candidate <= limit,
        })
    };
    figures.into_iter().filter_map(bound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(rates: &[f64], rtt_us: f64) -> Vec<Measurement> {
        let of = |rate: &f64| Measurement {
            goodput_bps: rate * 1e9,
            rtt_p50_us: Some(rtt_us),
            rtt_p99_us: Some(rtt_us),
            retransmits_per_gb: Some(10.0),
            cpu_s_per_gb: Some(0.05),
            receive_queue_cpu: None,
        };
        rates.iter().map(of).collect()
    }

    const SIX: [f64; 6] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002];

    #[test]
    fn looks_of_all_candidates_stay_within_the_error_rate() {
        let share: f64 = INTERIM_ANALYSES.iter().map(|(_, tail)| tail).sum();
        assert!(share * f64::from(RULES.most_candidates) <= RULES.error_rate);
        assert!((INTERIM_ANALYSES[0].1 - smallest_tail(6, 6)).abs() < 1e-12);
    }

    #[test]
    fn clear_gains_are_accepted_after_six_pairs() {
        let (a, b) = (tests(&SIX, 100.0), tests(&SIX.map(|rate| rate * 1.5), 100.0));
        assert_eq!(compare(&a[..5], &b[..5], false).decision, None);
        let comparison = compare(&a, &b, false);
        assert_eq!(comparison.decision, Some(Decision::Keep));
        let interval = comparison.interval.expect("six pairs");
        assert!(interval.low > 1.4 && interval.high < 1.6 && comparison.level > 0.99, "{comparison:?}");
    }

    #[test]
    fn clear_losses_are_rejected_after_two_pairs() {
        let (a, b) = (tests(&SIX, 100.0), tests(&SIX.map(|rate| rate * 0.5), 100.0));
        assert_eq!(compare(&a[..1], &b[..1], false).decision, None);
        assert_eq!(compare(&a[..2], &b[..2], false).decision, Some(Decision::Reject("slower".to_owned())));
    }

    #[test]
    fn gains_with_excessive_rtt_are_rejected() {
        let (a, b) = (tests(&SIX, 1000.0), tests(&SIX.map(|rate| rate * 1.5), 9000.0));
        let comparison = compare(&a, &b, false);
        assert_eq!(comparison.decision, Some(Decision::Reject("median RTT above the limit".to_owned())));
        let within = compare(&a, &tests(&SIX.map(|rate| rate * 1.5), 2500.0), false);
        assert_eq!(within.decision, Some(Decision::Keep), "2 ms more are allowed");
    }

    #[test]
    fn retransmit_limit_grows_with_the_gain() {
        let with = |rate: f64, retransmits: f64| {
            let mut list = tests(&SIX.map(|value| value * rate), 1.0);
            for test in &mut list {
                test.retransmits_per_gb = Some(retransmits);
            }
            list
        };
        let best = with(0.1, 0.0);
        let decision = |rate: f64, retransmits: f64| compare(&best, &with(rate, retransmits), false).decision;
        let refused = Some(Decision::Reject("retransmits above the limit".to_owned()));
        // A 100 Mb/s shaper on a veth was replaced: 203 times the rate, with 1.2 % of segments retransmitted.
        assert_eq!(decision(20.3, 8078.0), Some(Decision::Keep));
        assert_eq!(decision(0.12, 8078.0), refused, "a fifth more is not worth it");
        assert_eq!(decision(0.2, 6900.0), Some(Decision::Keep));
        assert_eq!(decision(0.2, 7100.0), refused);
        assert_eq!(decision(20.3, 40_000.0), refused, "6 % of segments are too many at any rate");
        // Pacing far below the path's rate was removed: 1.88 times the rate, and the losses of a full queue.
        let lifted = |rate: f64, retransmits: f64| compare(&best, &with(rate, retransmits), true).decision;
        assert_eq!(decision(0.188, 12_000.0), refused);
        assert_eq!(lifted(0.188, 12_000.0), Some(Decision::Keep));
        assert_eq!(lifted(0.12, 8078.0), refused, "a fifth more is not worth it");
    }

    #[test]
    fn gains_below_two_percent_are_rejected_at_any_confidence() {
        let exact = [1.0; 6];
        let comparison = compare(&tests(&exact, 1.0), &tests(&exact.map(|rate| rate * 1.015), 1.0), false);
        assert_eq!(comparison.decision, Some(Decision::Reject("the gain is below 2 %".to_owned())));
    }

    #[test]
    fn cpu_time_limit_grows_with_the_gain() {
        let with_cpu = |rate: f64, cpu: f64| {
            let mut list = tests(&SIX.map(|value| value * rate), 1.0);
            for test in &mut list {
                test.cpu_s_per_gb = Some(cpu);
            }
            list
        };
        let best = with_cpu(1.0, 0.05);
        assert_eq!(compare(&best, &with_cpu(2.0, 0.09), false).decision, Some(Decision::Keep));
        let dear = compare(&best, &with_cpu(1.1, 0.09), false).decision;
        assert_eq!(dear, Some(Decision::Reject("CPU time above the limit".to_owned())));
    }
}
