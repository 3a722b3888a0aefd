//! The receive window: the receiver's buffer is too small for the path.

use landspeed_model::Cause;

use crate::advice::{RECEIVE, enlarge};
use crate::causes::slow_reader::{reads_on_schedule, weigh};
use crate::finding::{Finding, Scales, Strength};
use crate::flow::Flow;
use crate::reader::{Limited, Reader, reader, window_limited};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::BUFFER_GREW;

/// The window is full and the application keeps its queue empty: the buffer behind the window is what is small.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() {
        return Finding::not_applicable(Cause::ReceiverWindow);
    }
    let mut scales = Scales::new(flow, Cause::ReceiverWindow);
    weigh(&mut scales, flow, false);
    let mut strength = match window_limited(flow) {
        Some(Limited::Plainly) => Strength::Strong,
        Some(Limited::Partly) => Strength::Moderate,
        Some(Limited::No) | None => return scales.refuted(),
    };
    // A buffer that autotuning is still enlarging is not what a steady phase is bound by.
    if flow.parameters.window_bytes.is_none()
        && flow.figure(StreamView::rcvbuf_growth).is_some_and(|growth| growth.value >= BUFFER_GREW)
    {
        strength = strength.lowered();
    }
    let queue = match reader(flow) {
        _ if reads_on_schedule(flow) => return scales.refuted(),
        Reader::Behind | Reader::SeemsBehind => return scales.refuted(),
        Reader::KeepsUp => "the application kept its queue empty",
        Reader::Unclear => {
            strength = strength.lowered();
            "the application kept its queue partly filled"
        }
        Reader::SeemsToKeepUp | Reader::Unseen => {
            scales.lacks("the receive queue, which tells a small buffer from a slow reader");
            strength = Strength::Weak;
            "the receiving application's queue was not seen"
        }
    };
    let limited = flow.rwnd_limited().map_or(0.0, |figure| figure.value);
    let buffer = flow.figure(StreamView::rcvbuf).map(|figure| figure.value);
    let why = format!(
        "the receive window was full {} of the time data was outstanding, while {queue}{}",
        text::percent(limited),
        buffer.map(|bytes| format!("; the receive buffer is {}", text::bytes(bytes))).unwrap_or_default()
    );
    let mut finding = scales.holds(strength, why, enlarge(flow, &flow.receiver, RECEIVE, buffer));
    finding.place = Some(format!("{}, receive buffer", flow.receiver.name()));
    finding
}
