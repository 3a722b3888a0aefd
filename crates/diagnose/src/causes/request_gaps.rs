//! Cause: the connection is idle between an answer and the next request.

use landspeed_model::{Cause, TcpInfo};

use crate::arrivals::Arrivals;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{AGES_DIFFER_MS, FEW_REQUESTS, IDLE_BETWEEN, OUTSTANDING_LITTLE, QUIET_MS};
use crate::waits;

/// The cause is named if most readings show no data in flight and the answer as the last data: the client
/// has not sent its next request.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.host_readings.is_none() {
        return Finding::not_applicable(Cause::RequestGaps);
    }
    let mut builder = FindingBuilder::new(flow, Cause::RequestGaps);
    let gaps = if flow.sends() { answering(flow, &mut builder) } else { asking(flow, &mut builder) };
    let Some(share) = gaps else { return builder.refuted() };
    let (whose, at) = if flow.sends() {
        ("the remote application", flow.receiver.name())
    } else {
        ("the local application", flow.receiver.name())
    };
    let why = format!(
        "{whose} requests too little at a time: {} of the time the last answer was complete and no request was open",
        text::percent(share)
    );
    let next = "Let the requesting application ask ahead (pipelining, larger ranges, read-ahead) or use several connections: \
                each gap is its own processing and one round trip."
        .to_owned();
    let mut finding = builder.holds(Strength::Strong, why, next);
    finding.place = Some(format!("{at}, requesting application"));
    finding
}

/// Samples of the local side.
fn readings<'a>(flow: &Flow<'a>) -> Vec<(&'a TcpInfo, u32)> {
    let samples = flow.streams.iter().flat_map(|stream| if flow.sends() { &stream.sent } else { &stream.read });
    samples.filter_map(|sample| Some((sample.tcp.as_deref()?, sample.receive_queue_bytes.unwrap_or(0)))).collect()
}

/// Number of samples in which a counter rose.
fn count_increases(readings: &[(&TcpInfo, u32)], counter: impl Fn(&TcpInfo) -> Option<u64>) -> f64 {
    let count_increases = readings.windows(2).filter(|pair| counter(pair[1].0) > counter(pair[0].0));
    count_increases.count() as f64
}

/// Evaluates the answering side; returns the share of idle time.
fn answering(flow: &Flow, builder: &mut FindingBuilder) -> Option<f64> {
    let readings = readings(flow);
    let source = "sender.samples[].tcp.";
    let asked = count_increases(&readings, |tcp| tcp.bytes_received);
    let (metric, few) = ("readings with new requests", Bound::AtLeast(FEW_REQUESTS));
    let end = Some(flow.sender.end);
    let asked = builder.value(metric, Some(asked), "readings", few, end, &format!("{source}bytes_received"));
    let busy = flow.figure(StreamView::busy_share);
    let (metric, little) = ("time with data outstanding over time", Bound::Below(OUTSTANDING_LITTLE));
    let pauses = builder.figure(metric, busy, "ratio", little, &format!("{source}busy_time_us"));
    // The thread that answers shows whom it waits for, whatever the time of a gap.
    if let Some(waits) = waits::is_in(builder, flow, "in a receive call on this socket", |waits| waits.receive)
        .filter(|&waits| waits || waits_elsewhere(flow))
    {
        return (asked == Some(true) && pauses == Some(true) && waits).then_some(1.0 - busy?.value);
    }
    // Both values are ages: the smaller one is the more recent event. If they are equal, a request may be open; an answer
    // sent a moment ago may have a second part.
    let ages_tell = tells_order(flow);
    let over = |tcp: &TcpInfo| {
        tcp.unacked == 0
            && tcp.last_data_sent_ms >= QUIET_MS
            && (tcp.last_data_recv_ms >= tcp.last_data_sent_ms + AGES_DIFFER_MS || ages_tell && same_tick(tcp))
    };
    let idle = share(&readings, |(tcp, _)| over(tcp));
    let metric = "readings with the last answer complete and no request since";
    let waits = builder.value(
        metric,
        idle,
        "ratio",
        Bound::AtLeast(IDLE_BETWEEN),
        end,
        &format!("{source}last_data_recv_ms"),
    );
    (asked == Some(true) && pauses == Some(true) && waits == Some(true)).then_some(1.0 - busy?.value)
}

/// Whether the ages of request and answer are the same, as the kernel counts them.
fn same_tick(tcp: &TcpInfo) -> bool {
    tcp.last_data_recv_ms.abs_diff(tcp.last_data_sent_ms) < AGES_DIFFER_MS
}

/// Whether equal ages mean that the answer was the last data: the next request cannot arrive before a round trip.
fn tells_order(flow: &Flow) -> bool {
    flow.min_rtt_us().is_some_and(|us| us >= 1e3 * f64::from(AGES_DIFFER_MS))
}

/// Whether the thread was seen to wait for something that is not a set of descriptors.
fn waits_elsewhere(flow: &Flow) -> bool {
    waits::waits(flow).is_some_and(|waits| waits.poll < IDLE_BETWEEN)
}

/// Whether the pauses of a watched sender may be those of the application that sends it requests: neither the ages nor
/// the thread tell which end waits.
pub(crate) fn may_wait_for_requests(flow: &Flow) -> bool {
    let known = waits::waits(flow).is_some() && waits_elsewhere(flow);
    let readings = readings(flow);
    let asked = count_increases(&readings, |tcp| tcp.bytes_received) >= FEW_REQUESTS;
    let unclear =
        share(&readings, |(tcp, _)| tcp.unacked == 0 && (same_tick(tcp) || tcp.last_data_sent_ms < QUIET_MS));
    !known && asked && !tells_order(flow) && unclear.is_some_and(|share| share >= IDLE_BETWEEN)
}

/// Evaluates the requesting side; returns the share of idle readings.
fn asking(flow: &Flow, builder: &mut FindingBuilder) -> Option<f64> {
    let readings = readings(flow);
    let source = "receiver.samples[].tcp.";
    let end = Some(flow.receiver.end);
    let asked = count_increases(&readings, |tcp| tcp.data_segs_out.map(u64::from));
    let (metric, few) = ("readings with new requests", Bound::AtLeast(FEW_REQUESTS));
    let asked = builder.value(metric, Some(asked), "readings", few, end, &format!("{source}data_segs_out"));
    // A thread that waits for the answer leaves no gap; one that waits for something else does, while nothing arrives.
    if waits::is_in(builder, flow, "in a receive call on this socket", |waits| waits.receive) == Some(true) {
        return None;
    }
    if let Some(waits) = waits::waits(flow).filter(|_| waits_elsewhere(flow) && reader(flow) == Reader::KeepsUp) {
        let away = waits.sleep + waits.other;
        let metric = "readings with the thread asleep or in another system call";
        let source = "/proc/PID/task/TID/syscall";
        let away_long = builder.value(metric, Some(away), "ratio", Bound::AtLeast(IDLE_BETWEEN), end, source);
        let idle = Arrivals::of(flow).and_then(|arrivals| arrivals.idle);
        let metric = "readings without new data for several round trips";
        let idle = builder.value(metric, idle, "ratio", Bound::AtLeast(IDLE_BETWEEN / 2.0), end, source);
        return (asked == Some(true) && away_long == Some(true) && idle == Some(true)).then_some(away);
    }
    let quiet = |tcp: &TcpInfo| {
        tcp.last_data_recv_ms >= QUIET_MS && tcp.last_data_sent_ms >= tcp.last_data_recv_ms + AGES_DIFFER_MS
    };
    let idle = share(&readings, |(tcp, unread)| *unread == 0 && quiet(tcp));
    let metric = "readings with the last answer complete and no request since";
    let waits = builder.value(
        metric,
        idle,
        "ratio",
        Bound::AtLeast(IDLE_BETWEEN),
        end,
        &format!("{source}last_data_sent_ms"),
    );
    idle.filter(|_| asked == Some(true) && waits == Some(true))
}

fn share<T>(readings: &[T], of: impl Fn(&T) -> bool) -> Option<f64> {
    (!readings.is_empty())
        .then(|| readings.iter().filter(|reading| of(reading)).count() as f64 / readings.len() as f64)
}
