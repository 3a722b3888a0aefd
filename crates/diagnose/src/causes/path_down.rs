//! Cause: nothing is delivered any more: a link, a route or a filter took the path down during the test.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::DOWN_NS;

/// The cause is named if no ACK arrives on any stream from some time to the end of the phase, although every stream
/// retransmits. A closed receive window is no reason: a receiver answers its probes. A run that was given up because its
/// path was down shows the silence after the phase.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.is_udp() || flow.streams.is_empty() {
        return Finding::not_applicable(Cause::PathDown);
    }
    let given_up = !flow.observed && flow.document.errors.iter().any(|error| error.code == "path-down");
    let silent_from = |stream: &StreamView| {
        if flow.sender_seen() { last_ack_ns(stream, given_up) } else { last_data_ns(stream).filter(|_| given_up) }
    };
    let Some(silent_from_ns) = flow.streams.iter().map(silent_from).try_fold(0, |last, from| Some(last.max(from?)))
    else {
        return Finding::not_applicable(Cause::PathDown);
    };
    let silent_s = flow.span_ns.1.saturating_sub(silent_from_ns) as f64 / 1e9;
    let mut builder = FindingBuilder::new(flow, Cause::PathDown);
    let (what, end, source) = if flow.sender_seen() {
        ("an ACK", flow.sender.end, "streams[].sender.samples[].tcp.last_ack_recv_ms")
    } else {
        ("data", flow.receiver.end, "streams[].receiver.samples[].bytes")
    };
    let metric = format!("time without {what} up to the end of the phase, all streams");
    let bound = Bound::AtLeast(if given_up { 0.0 } else { DOWN_NS / 1e9 });
    if builder.value(&metric, Some(silent_s), "s", bound, Some(end), source) != Some(true) {
        return builder.refuted();
    }
    let strength = if flow.sender_seen() { Strength::Strong } else { Strength::Moderate };
    let at = text::nanos(silent_from_ns as f64);
    let why = format!(
        "nothing was delivered after {at} (from {} to {}): the path went down, or something on it drops all packets",
        flow.sender.name(),
        flow.receiver.name()
    );
    let next = format!(
        "Find what changed {at} after the start: link state (`ip -s link`), routes (`ip route`), packet filters (`nft list \
         ruleset`) on both hosts and the path; then run again."
    );
    Finding { direct: true, ..builder.holds(strength, why, next) }
}

/// Time of the last ACK, nanoseconds after the start, if data was outstanding and retransmitted ever since (in a run
/// that was given up, outstanding); `None` if the stream still gets ACKs at the end of the phase.
fn last_ack_ns(stream: &StreamView, given_up: bool) -> Option<u64> {
    let (last, tcp) = stream.sent.iter().rev().find_map(|sample| Some((sample, sample.tcp.as_deref()?)))?;
    let waits = tcp.unacked > 0 && (tcp.backoff > 0 || given_up);
    waits.then(|| last.t_ns.saturating_sub(u64::from(tcp.last_ack_recv_ms) * 1_000_000))
}

/// Time of the first sample with all data that arrived, nanoseconds after the start.
fn last_data_ns(stream: &StreamView) -> Option<u64> {
    let bytes = stream.read.last()?.bytes;
    stream.read.iter().find(|sample| sample.bytes == bytes).map(|sample| sample.t_ns)
}
