//! Cause: the connection is idle between an answer and the next request.

use landspeed_model::{Cause, TcpInfo};

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{AGES_DIFFER_MS, FEW_REQUESTS, IDLE_BETWEEN, OUTSTANDING_LITTLE, QUIET_MS};

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
    // Both values are ages: the smaller one is the more recent event. If they are equal, a request may be open; an answer
    // sent a moment ago may have a second part.
    let over = |tcp: &TcpInfo| {
        tcp.unacked == 0
            && tcp.last_data_sent_ms >= QUIET_MS
            && tcp.last_data_recv_ms >= tcp.last_data_sent_ms + AGES_DIFFER_MS
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

/// Evaluates the requesting side; returns the share of idle readings.
fn asking(flow: &Flow, builder: &mut FindingBuilder) -> Option<f64> {
    let readings = readings(flow);
    let source = "receiver.samples[].tcp.";
    let end = Some(flow.receiver.end);
    let asked = count_increases(&readings, |tcp| tcp.data_segs_out.map(u64::from));
    let (metric, few) = ("readings with new requests", Bound::AtLeast(FEW_REQUESTS));
    let asked = builder.value(metric, Some(asked), "readings", few, end, &format!("{source}data_segs_out"));
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
