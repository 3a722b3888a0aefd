//! Cause (UDP): the receive buffer is too small for bursts and pauses.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::load::{Role, load};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{EXPLAINS, UDP_LOSS};
use crate::udp::BATCHES;

/// Bytes of `SO_RCVBUF` that a datagram uses besides its payload, at least: IP and UDP headers, `struct
/// sk_buff` (232 B on x86-64, rounded to 256) and `struct skb_shared_info` (320 B); `SKB_TRUESIZE` in
/// include/linux/skbuff.h.
const OVERHEAD: f64 = 28.0 + 256.0 + 320.0;

/// Pause of the reading thread that the recommended buffer covers, seconds: several scheduler time slices.
const PAUSE_S: f64 = 0.02;

/// The cause is named if the socket overflows while its thread has idle CPU time.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let Some(udp) = &flow.udp else { return Finding::not_applicable(Cause::ReceiveBuffer) };
    let mut builder = FindingBuilder::new(flow, Cause::ReceiveBuffer);
    let end = Some(flow.receiver.end);
    let lossy = builder.value("packets lost", udp.loss, "ratio", Bound::AtLeast(UDP_LOSS), None, "udp.loss_ratio");
    let at_socket = builder.value(
        "lost packets dropped by the receiving socket",
        udp.share(udp.at_socket),
        "ratio",
        Bound::AtLeast(EXPLAINS),
        end,
        "streams[].receiver.udp.socket_drops",
    );
    let receiver = load(flow, Role::Receiver);
    if lossy != Some(true) || at_socket != Some(true) || receiver.strength.is_some() || receiver.waited_for_core() {
        return builder.refuted();
    }
    let buffer = flow.figure(StreamView::rcvbuf).map(|figure| figure.value);
    let burst = burst_bytes(flow).filter(|&bytes| buffer.is_some_and(|buffer| bytes > buffer));
    if burst.is_some() {
        let metric = "one burst over SO_RCVBUF";
        let over = burst.zip(buffer).map(|(burst, buffer)| burst / buffer);
        builder.value(metric, over, "ratio", Bound::Above(1.0), end, "streams[].receiver.rcvbuf_bytes");
    }
    let lost = text::percent(udp.loss.unwrap_or(0.0));
    let size = buffer.map(|bytes| format!(" of {}", text::bytes(bytes))).unwrap_or_default();
    let because = match burst {
        Some(bytes) => format!("one burst takes at least {} of it", text::bytes(bytes)),
        None => "the reading thread had CPU time left".to_owned(),
    };
    let why = format!(
        "the receive buffer{size} of the UDP socket overflowed: {lost} of the packets were lost, most of them there, and {because}"
    );
    let strength = if burst.is_some() { Strength::Strong } else { Strength::Moderate };
    let strength = if udp.in_batches { strength.lowered() } else { strength };
    if udp.in_batches {
        builder.record_missing(BATCHES);
    }
    let mut finding = builder.holds(strength, why, next_step(flow, buffer));
    finding.place = Some(format!("{}, UDP receive buffer", flow.receiver.name()));
    finding
}

/// Bytes of `SO_RCVBUF` that one burst of a stream needs at least; `None` if packets are sent one by one.
fn burst_bytes(flow: &Flow) -> Option<f64> {
    let udp = flow.parameters.udp.as_ref().filter(|udp| udp.burst_packets > 1)?;
    Some(f64::from(udp.burst_packets) * (f64::from(udp.payload_bytes) + OVERHEAD))
}

/// Largest power of two that a program can ask for, bytes: the kernel doubles it within a signed 32-bit integer.
const MAX_REQUEST: u32 = 1 << 29;

/// Recommends a size for one burst and one pause. The kernel doubles the requested size, which covers
/// allocation overhead.
fn next_step(flow: &Flow, buffer: Option<f64>) -> String {
    let streams = flow.streams.len().max(1) as f64;
    let payload = flow.parameters.udp.as_ref().map_or(1448.0, |udp| f64::from(udp.payload_bytes.max(1)));
    let offered = flow.udp.as_ref().and_then(|udp| udp.offered_bps).unwrap_or(flow.goodput_bps) / streams;
    let pause = offered / 8.0 * PAUSE_S * (payload + OVERHEAD) / payload;
    let burst = burst_bytes(flow).unwrap_or(0.0);
    // `getsockopt` returns twice the requested size, so requesting that value doubles the buffer.
    let need = (burst + pause).max(buffer.unwrap_or(0.0)).clamp(65_536.0, f64::from(MAX_REQUEST));
    let need = (need as u64).next_power_of_two();
    let first = match flow.receiver.sysctl_max("net.core.rmem_max") {
        Some(limit) if limit < need => {
            let host = flow.label(&flow.receiver);
            format!("On {host} run `sysctl -w net.core.rmem_max={need}`, then ask")
        }
        _ => "Ask".to_owned(),
    };
    let holds = if burst > 0.0 { "a burst and a pause" } else { "a pause" };
    format!(
        "{first} for a larger buffer: --window {}. It holds {holds} of 20 ms at {}.",
        window(need),
        text::rate(offered)
    )
}

/// Formats a size for `--window`, such as `512K` or `4M`: a power of two, at least 64 KiB.
fn window(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{}M", bytes >> 20) } else { format!("{}K", bytes >> 10) }
}
