//! Cause: BBR paces below what a short path and the hosts could carry.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::load::{Role, load};
use crate::network::symptoms;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    CWND_MOSTLY, DELIVERY_UNEVEN, FAST_PATH_BPS, FLIGHT_LITTLE, MODEL_LOSS, NOTSENT_LITTLE, SHORT_PATH_US,
};

/// BBR has at most one GSO packet in flight, most of the time none, while data waits. At a bottleneck, its window of three GSO
/// packets and more fills a queue; here its pacing timer holds the data back, and each packet by timer costs CPU time.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let fast = flow.goodput_bps >= FAST_PATH_BPS;
    let applies = flow.is_model_based() && flow.route.is_none() && !flow.is_rr() && fast;
    if !applies || flow.parameters.pace_bps.is_some() {
        return Finding::not_applicable(Cause::BbrPacing);
    }
    let mut builder = FindingBuilder::new(flow, Cause::BbrPacing);
    let (end, rtt) = (Some(flow.sender.end), "streams[].sender.samples[].tcp.min_rtt_us");
    let flight = flow.figure(StreamView::median_flight_bytes);
    let little = Bound::Below(FLIGHT_LITTLE);
    let lowest_us = flow.min_rtt_us();
    let metric = "median of the bytes in flight";
    let met = [
        builder.figure(metric, flight, "bytes", little, "sender.samples[].tcp.unacked"),
        builder.unsent(Bound::AtLeast(NOTSENT_LITTLE)),
        builder.value("minimum RTT", lowest_us, "µs", Bound::Below(SHORT_PATH_US), end, rtt),
        builder.flight_over_window(Bound::Below(CWND_MOSTLY)),
    ];
    if met.iter().any(|met| *met != Some(true)) {
        return builder.refuted();
    }
    let seen = symptoms(flow);
    let (sender, receiver) = (load(flow, Role::Sender), load(flow, Role::Receiver));
    let waits = sender.waited_for_core() || receiver.waited_for_core();
    let shaped = seen.shaper.is_some_and(|shaper| shaper.limits());
    if waits || shaped || seen.marked > 0.0 || seen.loss.is_some_and(|loss| loss >= MODEL_LOSS) {
        return builder.refuted();
    }
    // A full CPU excludes the network. Without one, the network could deliver no faster: it then delivers evenly.
    let strength = if sender.strength.is_some() || receiver.strength.is_some() {
        Strength::Moderate
    } else if seen.delivery_spread.is_some_and(|spread| spread >= DELIVERY_UNEVEN) {
        Strength::Weak
    } else {
        return builder.refuted();
    };
    let name = flow.congestion().unwrap_or_else(|| "bbr".to_owned());
    let why = format!(
        "{name} paces packets one at a time: at a minimum RTT of {}, the median in flight is {} while data waits to be sent",
        text::micros(lowest_us.unwrap_or(0.0)),
        text::bytes(flight.map_or(0.0, |figure| figure.value))
    );
    let next = "Run again with `-C cubic`: on paths as short as this one it keeps more in flight and needs less CPU time for each byte. \
                Keep BBR for long paths."
        .to_owned();
    let place = Some(format!("{}, congestion control", flow.sender.name()));
    Finding { place, ..builder.holds(strength, why, next) }
}
