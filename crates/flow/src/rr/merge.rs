//! Merges the outcomes of streams into a result for the document.

use landspeed_model::{Bucket, LatencyResult};
use landspeed_stats::LatencyHistogram;

use super::outcome::{Phase, RrOutcome, Tally};
use super::plan::{Load, RrPlan};

/// Merges the measured phases of all streams that ran `plan` (possibly with other times) into one result.
///
/// Assumes that the streams ran at the same time: the rate is that of all streams over the span from the first
/// begin to the last end. Without a completed transaction there are no latencies.
pub fn merge<'a>(outcomes: impl IntoIterator<Item = &'a RrOutcome>, plan: &RrPlan) -> LatencyResult {
    let outcomes: Vec<&RrOutcome> = outcomes.into_iter().collect();
    let mut result = merge_phases(outcomes.iter().map(|outcome| &outcome.measured), plan);
    let mut late = LatencyHistogram::new();
    for outcome in outcomes {
        late.merge(&outcome.send_late);
        result.stray_responses += outcome.late + outcome.duplicate + outcome.junk;
    }
    result.send_late_p99_ns = late.p99();
    result
}

/// Merges arbitrary phases in the same way.
pub(super) fn merge_phases<'a>(phases: impl IntoIterator<Item = &'a Phase>, plan: &RrPlan) -> LatencyResult {
    let mut histogram = LatencyHistogram::new();
    let mut tally = Tally::default();
    let (mut from_ns, mut to_ns, mut streams) = (u64::MAX, 0, 0u32);
    for phase in phases {
        histogram.merge(&phase.histogram);
        tally.add(&phase.tally);
        from_ns = from_ns.min(phase.from_ns);
        to_ns = to_ns.max(phase.to_ns);
        streams += 1;
    }
    let duration_ns = to_ns.saturating_sub(from_ns);
    let max_ns = histogram.max_ns();
    // A quantile is unknown only above one minute; the maximum is then an upper bound.
    let quantile = |p| histogram.quantile(p).or(max_ns);
    LatencyResult {
        request_bytes: plan.size.request_bytes,
        response_bytes: plan.size.response_bytes,
        mode: plan.load.mode(),
        offered_per_s: match plan.load {
            Load::OpenLoop { rate_per_s } => Some(rate_per_s * f64::from(streams)),
            Load::ClosedLoop | Load::Connect => None,
        },
        achieved_per_s: if duration_ns == 0 { 0.0 } else { tally.completed as f64 * 1e9 / duration_ns as f64 },
        scheduled: tally.scheduled,
        sent: tally.sent,
        completed: tally.completed,
        unanswered: tally.unanswered,
        send_late_p99_ns: None,
        stray_responses: 0,
        duration_ns,
        min_ns: histogram.min_ns(),
        mean_ns: histogram.mean_ns(),
        p50_ns: quantile(0.5),
        p90_ns: quantile(0.9),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        p9999_ns: quantile(0.9999),
        max_ns,
        histogram: histogram
            .buckets()
            .map(|b| Bucket { low_ns: b.low_ns, high_ns: b.high_ns, count: b.count })
            .collect(),
    }
}
