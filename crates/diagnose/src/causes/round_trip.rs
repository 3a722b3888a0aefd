//! Cause: round trips limit the rate (request/response).

use landspeed_model::{Cause, RrMode};

use crate::arrivals::Arrivals;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::reader::{Reader, reader};
use crate::text;
use crate::thresholds::{FEW_REQUESTS, ROUND_TRIP, ROUND_TRIPS, SEND_EMPTY};

/// In a closed loop the rate times the mean latency is the number of outstanding requests (Little's law).
/// If it equals the number of streams, all the time is spent waiting for answers.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.observed {
        return watched(flow);
    }
    let Some(rr) = flow.parameters.rr.as_ref().filter(|_| flow.is_rr()) else {
        return Finding::not_applicable(Cause::RoundTrip);
    };
    let mut builder = FindingBuilder::new(flow, Cause::RoundTrip);
    if rr.mode == RrMode::OpenLoop {
        return builder.finish(crate::finding::Standing::NotApplicable);
    }
    let streams = flow.parameters.streams.max(1);
    let results = &flow.document.latency;
    // Requests still outstanding at the end took time too: one of a dozen is nearly a tenth of all.
    let outstanding = results.iter().filter_map(|result| {
        let waited = result.completed + result.unanswered.min(u64::from(streams));
        Some(waited as f64 * result.mean_ns? / result.duration_ns as f64 / f64::from(streams))
    });
    // Use the worst of the sizes: each is a separate measurement.
    let smallest = outstanding.filter(|value| value.is_finite()).min_by(f64::total_cmp);
    let bound = Bound::AtLeast(ROUND_TRIP);
    let metric = "requests outstanding over streams (requests × mean latency over time)";
    let waits = builder.value(metric, smallest, "ratio", bound, None, "latency[].completed");
    let median_ns = results.first().and_then(|result| result.p50_ns).map(|ns| ns as f64);
    let Some(median_ns) = median_ns.filter(|_| waits == Some(true)) else { return builder.refuted() };
    // The control connection of a lab run uses another network, so its RTT comes from the links.
    let control = flow.document.path.as_ref().map(|path| path.control_rtt_ns as f64);
    let rtt_ns = flow.route.as_ref().map(|route| route.base_rtt_us * 1e3).or(control);
    // A control RTT above the median latency was delayed by the host: it does not show the idle path.
    let rtt_ns = rtt_ns.filter(|&ns| ns > 0.0 && ns <= median_ns);
    let host_part = rtt_ns.map(|rtt| (median_ns - rtt).max(0.0));
    let why = format!(
        "{} waits for each response before its next request: {} at the median{}",
        if streams == 1 { "the stream".to_owned() } else { format!("each of {streams} streams") },
        text::nanos(median_ns),
        match (rr.mode, rtt_ns) {
            (RrMode::Connect, _) => ", with a new connection each time".to_owned(),
            (_, Some(rtt)) => format!(", of which {} are the idle RTT", text::nanos(rtt)),
            _ => String::new(),
        }
    );
    let next = match host_part.zip(rtt_ns) {
        Some((host, rtt)) if host > rtt => format!(
            "Reduce the hosts' share of {}: pin both ends (--cpus, --peer-cpus), check interrupt coalescing and C-states. \
             More streams (-P) raise the request rate.",
            text::nanos(host)
        ),
        None => "Reduce the hosts' work for each request: pin both ends (--cpus, --peer-cpus), check interrupt coalescing and \
                 C-states. More streams (-P) raise the request rate."
            .to_owned(),
        _ => "Use more streams (-P) or pipelining: the path's delay is the limit."
            .to_owned(),
    };
    let mut finding = builder.holds(Strength::Strong, why, next);
    finding.direct = true;
    finding
}

/// A watched flow that asks and answers: requests × minimum RTT account for most of the time. Requests that overlap
/// account for more than all of it.
fn watched(flow: &Flow) -> Finding {
    let mut builder = FindingBuilder::new(flow, Cause::RoundTrip);
    let arrivals = Arrivals::of(flow);
    let (requests, rtt_us, field) = match &arrivals {
        Some(arrivals) => (
            flow.received(|tcp| tcp.data_segs_out.map(u64::from)),
            arrivals.base_rtt_us,
            "receiver.samples[].tcp.data_segs_out",
        ),
        None => (
            flow.increase(|tcp| tcp.data_segs_in.map(u64::from)),
            flow.min_rtt_us(),
            "sender.samples[].tcp.data_segs_in",
        ),
    };
    let share = requests
        .filter(|&count| count >= FEW_REQUESTS)
        .zip(rtt_us)
        .map(|(count, us)| count * us / 1e6 / flow.seconds());
    let bound = Bound::Within(ROUND_TRIPS, 1.0 / ROUND_TRIP);
    let metric = "requests × minimum RTT over time";
    let end = Some(flow.local().end);
    let waits = builder.optional(metric, share, "ratio", bound, end, field);
    // Data that waits at either end has nothing to do with requests.
    let empty = if waits != Some(true) {
        false
    } else if flow.sends() {
        builder.send_fill(Bound::Below(SEND_EMPTY)) == Some(true)
    } else {
        reader(flow) == Reader::KeepsUp
    };
    let (Some(requests), Some(rtt_us), Some(true), true) = (requests, rtt_us, waits, empty) else {
        return builder.refuted_or_not_applicable();
    };
    let why = format!(
        "each of {} requests waited a round trip of {} for its answer: {} of the time",
        text::number(requests),
        text::micros(rtt_us),
        text::percent(share.unwrap_or(0.0).min(1.0))
    );
    let next = "Let the requesting application ask ahead (pipelining, larger ranges, several connections): the path's delay \
                is the limit."
        .to_owned();
    builder.holds(Strength::Strong, why, next)
}
