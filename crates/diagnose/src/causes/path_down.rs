//! Cause: nothing is delivered any more: a link, a route or a filter took the path down during the test.

use landspeed_model::{Cause, LatencyResult, Protocol, StreamEnd};

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{DOWN_NS, EXPLAINS, FEW_RETRANSMITS};

/// The cause is named if nothing comes back or arrives on any stream from some time to the end of the phase, although every
/// stream sends: TCP's senders retransmit and get no ACK, datagrams are sent and none arrives, requests are not answered. A
/// closed receive window is no reason: a receiver answers its probes. A run that was given up because its path was down
/// shows the silence after the phase.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let given_up = !flow.observed && flow.document.errors.iter().any(|error| error.code == "path-down");
    let by_datagrams = flow.parameters.protocol == Protocol::Udp && !given_up;
    let by_answers = flow.parameters.protocol == Protocol::UdpRr;
    let by_acks = !by_datagrams && !by_answers && flow.sender_seen();
    let silent_from = |stream: &StreamView| match () {
        () if by_datagrams => last_datagram_ns(flow, stream),
        () if by_answers => last_answer_ns(flow, stream),
        () if by_acks => last_ack_ns(stream, given_up),
        () => last_data_ns(stream.receiver(), flow.span_ns.1).filter(|_| given_up),
    };
    let silent_from_ns = flow.streams.iter().map(silent_from).try_fold(0, |last, from| Some(last.max(from?)));
    let Some(silent_from_ns) = silent_from_ns.filter(|_| !flow.streams.is_empty()) else {
        return Finding::not_applicable(Cause::PathDown);
    };
    let silent_s = flow.span_ns.1.saturating_sub(silent_from_ns) as f64 / 1e9;
    let mut builder = FindingBuilder::new(flow, Cause::PathDown);
    let (what, end, source) = match () {
        () if by_answers => ("an answer", flow.sender.end, "streams[].sender.samples[].bytes"),
        () if by_acks => ("an ACK", flow.sender.end, "streams[].sender.samples[].tcp.last_ack_recv_ms"),
        () => ("data", flow.receiver.end, "streams[].receiver.samples[].bytes"),
    };
    let metric = format!("time without {what} up to the end of the phase, all streams");
    let bound = Bound::AtLeast(if given_up { 0.0 } else { DOWN_NS / 1e9 });
    if builder.value(&metric, Some(silent_s), "s", bound, Some(end), source) != Some(true) {
        return builder.refuted();
    }
    let strength = if flow.sender_seen() { Strength::Strong } else { Strength::Moderate };
    let what = if flow.is_rr() { "no request was answered" } else { "nothing was delivered" };
    let at = text::nanos(silent_from_ns as f64);
    let why = format!(
        "{what} after {at} (from {} to {}): the path went down, or something on it drops all packets",
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

/// Time of the first sample up to `until_ns` with all data that the end has moved by then, nanoseconds after the start;
/// `None` if it has moved none.
fn last_data_ns(end: Option<&StreamEnd>, until_ns: u64) -> Option<u64> {
    let samples = || end.into_iter().flat_map(|end| &end.samples).take_while(|sample| sample.t_ns <= until_ns);
    let bytes = samples().last()?.bytes;
    samples().find(|sample| sample.bytes == bytes && bytes > 0).map(|sample| sample.t_ns)
}

/// As [`last_data_ns`], at the receiver of UDP, if its sender went on and neither host dropped most of the lost packets;
/// `None` if the receiver stopped, or was not sampled up to the end of the phase.
fn last_datagram_ns(flow: &Flow, stream: &StreamView) -> Option<u64> {
    let udp = flow.udp.as_ref()?;
    let in_hosts = udp.share(udp.at_socket + udp.in_receiver + udp.in_sender)?;
    let receiver = stream.receiver().filter(|end| end.error.is_none() && in_hosts < EXPLAINS)?;
    let from_ns = last_data_ns(Some(receiver), flow.span_ns.1)?;
    let sampled_ns = stream.read.last()?.t_ns.saturating_sub(from_ns) as f64;
    let since = stream.sent.iter().find(|sample| sample.t_ns >= from_ns)?.bytes;
    let sent_since = stream.sent.last()?.bytes.saturating_sub(since) as f64;
    let payload = f64::from(flow.parameters.udp.as_ref()?.payload_bytes);
    (sampled_ns >= DOWN_NS && sent_since >= FEW_RETRANSMITS * payload).then_some(from_ns)
}

/// As [`last_data_ns`], at the client of UDP request/response, if requests were due since and stayed without an answer.
fn last_answer_ns(flow: &Flow, stream: &StreamView) -> Option<u64> {
    let from_ns = last_data_ns(stream.sender(), flow.span_ns.1)?;
    let silent_s = stream.sent.last()?.t_ns.saturating_sub(from_ns) as f64 / 1e9;
    let unanswered: u64 = flow.document.latency.iter().map(|result| result.unanswered).sum();
    let due = |result: &LatencyResult| match result.offered_per_s {
        Some(rate) => rate * silent_s / flow.streams.len() as f64,
        None => silent_s * 1e9 / result.p50_ns.map_or(f64::INFINITY, |ns| ns as f64),
    };
    let due: f64 = flow.document.latency.iter().map(due).sum();
    (unanswered > 0 && silent_s >= DOWN_NS / 1e9 && due >= FEW_RETRANSMITS).then_some(from_ns)
}
