//! Cause: the send buffer is too small for the path.

use landspeed_model::Cause;

use crate::advice::{SEND, enlarge};
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    CWND_FULL, NOTSENT_LITTLE, NOTSENT_SHARE, SEND_FULL, SNDBUF_LIMITED, SNDBUF_MOSTLY, WAITING_SHARE,
};

/// The cause is named if the send queue is full and all of it is in flight: the path could carry more than
/// the buffer.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() {
        return Finding::not_applicable(Cause::SendBuffer);
    }
    let mut builder = FindingBuilder::new(flow, Cause::SendBuffer);
    let full = builder.send_fill(Bound::AtLeast(SEND_FULL));
    let sndbuf = flow.figure(StreamView::sndbuf).map(|figure| figure.value);
    let little = NOTSENT_LITTLE.max(NOTSENT_SHARE * sndbuf.unwrap_or(0.0));
    let sent = builder.unsent(Bound::Below(little));
    let in_flight = builder.unsent_share(Bound::Below(WAITING_SHARE));
    let sent = if in_flight == Some(false) { in_flight } else { sent };
    let open = builder.flight_over_cwnd(Bound::Below(CWND_FULL));
    let limited = builder.figure(
        "time limited by the send buffer over busy time",
        flow.sndbuf_limited(),
        "ratio",
        Bound::AtLeast(SNDBUF_LIMITED),
        "sender.samples[].tcp.sndbuf_limited_us",
    );
    let mostly = flow.sndbuf_limited().is_some_and(|share| share.value >= SNDBUF_MOSTLY);
    let strength = match (full, sent, open) {
        (Some(true), Some(true), Some(true)) => Strength::Strong,
        // `sndbuf_limited` decides: it counts while all written data is in flight and the buffer is full.
        (Some(true), _, Some(true)) if mostly => Strength::Moderate,
        // The same for BBR, or if a gauge was not read.
        (Some(true) | None, Some(true) | None, Some(true) | None) if limited == Some(true) => Strength::Moderate,
        _ => return builder.refuted(),
    };
    let why = format!(
        "the send buffer{} was full, and all of it in flight, while the congestion window had room",
        sndbuf.map(|bytes| format!(" of {}", text::bytes(bytes))).unwrap_or_default()
    );
    let mut finding = builder.holds(strength, why, enlarge(flow, &flow.sender, SEND, sndbuf));
    finding.place = Some(format!("{}, send buffer", flow.sender.name()));
    finding
}
