//! Round trips bound the rate (request/response).

use landspeed_model::{Cause, RrMode};

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::text;
use crate::thresholds::ROUND_TRIP;

/// In a closed loop the rate times the mean latency is the number of requests outstanding (Little's law); when that is
/// the number of streams, waiting for answers is all that happens.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some(rr) = flow.parameters.rr.as_ref().filter(|_| flow.is_rr()) else {
        return Finding::not_applicable(Cause::RoundTrip);
    };
    let mut scales = Scales::new(flow, Cause::RoundTrip);
    if rr.mode == RrMode::OpenLoop {
        return scales.close(crate::finding::Standing::NotApplicable);
    }
    let streams = flow.parameters.streams.max(1);
    let results = &flow.document.latency;
    let outstanding = results.iter().map(|result| result.achieved_per_s * result.mean_ns / 1e9 / f64::from(streams));
    // The worst of the sizes: each is a measurement of its own.
    let smallest = outstanding.filter(|value| value.is_finite()).min_by(f64::total_cmp);
    let bound = Bound::AtLeast(ROUND_TRIP);
    let metric = "requests outstanding over streams (rate × mean latency)";
    let waits = scales.value(metric, smallest, "ratio", bound, None, "latency[].achieved_per_s");
    let Some(result) = results.first().filter(|_| waits == Some(true)) else { return scales.refuted() };
    // The control connection of a lab run takes another network: there, the links say it.
    let control = flow.document.path.as_ref().map(|path| path.control_rtt_ns as f64);
    let rtt_ns = flow.route.as_ref().map(|route| route.base_rtt_us * 1e3).or(control);
    // A control RTT above the median latency was delayed by the host: it does not show the idle path.
    let rtt_ns = rtt_ns.filter(|&ns| ns > 0.0 && ns <= result.p50_ns as f64);
    let host_part = rtt_ns.map(|rtt| (result.p50_ns as f64 - rtt).max(0.0));
    let why = format!(
        "each of {streams} {} waits for its answer before it asks again: {} at the median{}",
        if streams == 1 { "stream" } else { "streams" },
        text::nanos(result.p50_ns as f64),
        match (rr.mode, rtt_ns) {
            (RrMode::Connect, _) => ", a connection set up each time".to_owned(),
            (_, Some(rtt)) => format!(", with {} of round trip on an idle path", text::nanos(rtt)),
            _ => String::new(),
        }
    );
    let next = match host_part.zip(rtt_ns) {
        Some((host, rtt)) if host > rtt => format!(
            "{} of the median is not the idle round trip: pin both ends (--cpus, --peer-cpus), look at interrupt \
             coalescing and sleep states; more requests a second come from more streams (-P).",
            text::nanos(host)
        ),
        None => "The hosts' work for each request is the limit: pin both ends (--cpus, --peer-cpus), look at interrupt coalescing \
                 and sleep states; more requests a second come from more streams (-P)."
            .to_owned(),
        _ => "The path's delay is the limit: more requests a second come from more streams (-P) or from pipelining."
            .to_owned(),
    };
    let mut finding = scales.holds(Strength::Strong, why, next);
    finding.direct = true;
    finding
}
