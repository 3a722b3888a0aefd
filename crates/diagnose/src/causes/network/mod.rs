//! Causes between the two TCPs: one of twelve, or none.
//!
//! They exclude each other, so they are evaluated together: [`name`] decides, and the readings of each
//! cause are its evidence. In a lab run the links and queues decide; with two real hosts the counters of
//! both TCPs; with one host its own counters.

mod readings;
mod words;

use landspeed_model::Cause;

use self::readings::read;
use self::words::{
    ack_path, congestion, full_path, growing, local_drops, network_loss, overshoot, policer, reordering, shallow,
    shaper, unexplained,
};

use crate::arrivals;
use crate::causes::{datagrams, receiver_drops};
use crate::epochs::startup_share;
use crate::finding::{Finding, FindingBuilder, NamedCause, Strength};
use crate::flow::{Figure, Flow};
use crate::network::{Queue, ShapedRate, Symptoms, symptoms};
use crate::reader::{Limited, window_limited};
use crate::route::{DropPlace, Hop, Route};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    ACKS_LOST, CWND_FULL, CWND_MOSTLY, DELIVERY_EVEN, DELIVERY_UNEVEN, EARLY_LOSS, EXPLAINS, FEW_LATE_LOSSES,
    FEW_RETRANSMITS, FULL_LINK, MODEL_LOSS, MOSTLY_WAITS, NOTSENT_LITTLE, OWN_DROPS, PROBES_UNSEEN, QUEUE_US,
    RAMP_RATIO, REAL_LOSS, REORDERING_HURTS, REVERSE_QUEUE, SNDBUF_MOSTLY, WAITING_SHARE,
};

/// Segments of 1448 bytes in a GSO packet of 64 KiB.
const GSO_SEGMENTS: f64 = 45.0;

/// The network causes, in the order they are listed.
const CAUSES: [Cause; 12] = [
    Cause::PathMtu,
    Cause::LocalQdisc,
    Cause::ReceiverHostDrops,
    Cause::Reordering,
    Cause::AckPath,
    Cause::Policer,
    Cause::ShallowBuffer,
    Cause::SlowStartOvershoot,
    Cause::NetworkCongestion,
    Cause::NetworkLoss,
    Cause::NetworkPath,
    Cause::WindowGrowth,
];

/// Returns a finding for each network cause; at most one is named.
pub(crate) fn evaluate_all(flow: &Flow) -> Vec<Finding> {
    if flow.udp.is_some() {
        return datagrams::evaluate_all(flow, CAUSES);
    }
    if flow.is_rr() || !flow.has_network() {
        return CAUSES.into_iter().map(Finding::not_applicable).collect();
    }
    let seen = symptoms(flow);
    let mut named =
        name(flow, &seen).or_else(|| receiver_drops::at_local_host(flow)).or_else(|| arrivals::network_cause(flow));
    CAUSES
        .into_iter()
        .map(|cause| {
            let mut builder = FindingBuilder::new(flow, cause);
            read(&mut builder, flow, &seen, cause);
            if named.as_ref().is_some_and(|named| named.cause == cause) {
                arrivals::record_readings(flow, &mut builder);
            }
            match named.take_if(|named| named.cause == cause) {
                Some(named) => Finding { place: named.place, ..builder.holds(named.strength, named.why, named.next) },
                None => builder.refuted(),
            }
        })
        .collect()
}

/// Names the network cause. Losses and marks take precedence over the RTT.
fn name(flow: &Flow, seen: &Symptoms) -> Option<NamedCause> {
    if let Some(named) = path_mtu(flow, seen) {
        return Some(named);
    }
    if let Some(route) = &flow.route {
        // A full link in either direction limits the flow whatever else is small; so does the sender's own queue.
        let congested = route.full().is_some() || route.reverse_congested().is_some();
        let here =
            || if congested { None } else { own_queue(flow, seen, route).or_else(|| by_elimination(flow, seen)) };
        let limited = seen.limited.is_some() || congested;
        return here().or_else(|| limited.then(|| by_route(flow, seen, route)));
    }
    // A rate that is known and reached needs no inference.
    if seen.shaper.and_then(|shaper| shaper.rate).is_some_and(ShapedRate::is_reached) {
        return Some(shaper(flow, Strength::Strong, seen, &sending_qdiscs(flow)));
    }
    if let Some(named) = by_elimination(flow, seen) {
        return Some(named);
    }
    let far_above = seen.queues_long(flow);
    let full = seen.always_queued()
        && (!flow.same_host() || far_above)
        && (far_above || window_limited(flow) != Some(Limited::No));
    let limited = seen
        .limited
        .or_else(|| local_shaper_strength(flow, seen))
        .or_else(|| drops_own_packets(flow, seen).then_some(Strength::Moderate))
        .or_else(|| full.then_some(if far_above { Strength::Moderate } else { Strength::Weak }))?;
    // A cause derived from counters is at most as certain as the finding that congestion control limits the
    // sender.
    let named = by_counts(flow, seen);
    Some(NamedCause { strength: named.strength.min(limited), ..named })
}

/// By elimination: data waits although neither window is full and no rate was requested, so it waits in the
/// sender's own qdisc or interface. Not applied to BBR, which paces.
fn by_elimination(flow: &Flow, seen: &Symptoms) -> Option<NamedCause> {
    if held_by_send_buffer(flow) {
        return None;
    }
    let mean = |figure: Option<Figure>| figure.map(|figure| figure.value);
    let waits = mean(flow.figure(StreamView::notsent))? >= NOTSENT_LITTLE
        && mean(flow.figure(StreamView::waiting_share))? >= WAITING_SHARE;
    // A shaper releases data evenly, however much of the window is in flight.
    let most = if seen.delivers_evenly() { CWND_FULL } else { CWND_MOSTLY };
    let open = mean(flow.figure(StreamView::flight_over_cwnd))? < most
        && mean(flow.figure(StreamView::flight_over_window))? < most;
    let quiet = seen.retransmits == Some(0.0) && flow.rwnd_limited().is_none_or(|share| share.value < 0.05);
    if !waits || !open || is_paced(flow) || !quiet || flow.is_model_based() || flow.same_host() {
        return None;
    }
    Some(shaper(flow, Strength::Moderate, seen, &sending_qdiscs(flow)))
}

/// Whether the streams are paced by `--pace` or by a pacing rate set on the socket.
fn is_paced(flow: &Flow) -> bool {
    flow.parameters.pace_bps.is_some()
        || flow.streams.iter().any(|stream| stream.tcp().any(|tcp| tcp.max_pacing_rate_bytes_per_s.is_some()))
}

/// The flow's share of the bytes sent by the sender's interface.
fn interface_share(flow: &Flow) -> f64 {
    let qdiscs = flow.sender.series.into_iter().flat_map(|series| &series.qdiscs);
    let sent = qdiscs.map(|qdisc| qdisc.bytes).max().unwrap_or(0);
    if sent == 0 { 0.0 } else { flow.goodput_bps * flow.seconds() / 8.0 / sent as f64 }
}

/// Kinds of the sender's qdiscs, comma-separated.
fn sending_qdiscs(flow: &Flow) -> String {
    let qdiscs = flow.sender.series.into_iter().flat_map(|series| &series.qdiscs);
    let sends = qdiscs.filter(|qdisc| !qdisc.counts_ingress_drops());
    let kinds: Vec<&str> = sends.map(|qdisc| qdisc.kind.as_str()).collect();
    if kinds.is_empty() { "unknown".to_owned() } else { kinds.join(", ") }
}

/// Full-sized segments do not pass, as TCP found by probing (RFC 4821): its MSS fell after timeouts.
fn path_mtu(flow: &Flow, seen: &Symptoms) -> Option<NamedCause> {
    let [before, _, now] = flow.mss_reduction()?;
    let why = format!(
        "segments of {} bytes did not pass and no ICMP message said so: after timeouts TCP found {} bytes by probing",
        text::number(before),
        text::number(now)
    );
    // TCP's probing stops at a size that passes, which is not always the largest.
    let mtu = flow.probed_mtu().map_or(now + 52.0, f64::from);
    let next = format!(
        "Find the link with the smaller MTU with `tracepath HOST`, or set the interface's MTU on {} to {}.",
        flow.label(&flow.sender),
        text::number(mtu)
    );
    let strength = if seen.timeouts > 0.0 || flow.stalled() { Strength::Strong } else { Strength::Moderate };
    Some(NamedCause::new(Cause::PathMtu, strength, why, next))
}

/// Whether `sndbuf_limited` shows that the sender waits because its send buffer is full.
fn held_by_send_buffer(flow: &Flow) -> bool {
    flow.sndbuf_limited().is_some_and(|share| share.value >= SNDBUF_MOSTLY)
}

/// Whether the sender's own qdisc drops packets throughout: TCP reduces its window at each drop and counts no
/// retransmission, so the window is not full on average.
fn drops_own_packets(flow: &Flow, seen: &Symptoms) -> bool {
    let qdiscs = flow.sender.series.into_iter().flat_map(|series| &series.qdiscs);
    let packets = qdiscs.map(|qdisc| qdisc.packets).max().unwrap_or(0) as f64;
    !flow.observed && seen.qdisc_drops >= FEW_RETRANSMITS && seen.qdisc_drops >= packets * OWN_DROPS
}

/// A shaper on the sender's own interface: the send queue does not empty and the congestion window does not
/// fill.
fn local_shaper_strength(flow: &Flow, seen: &Symptoms) -> Option<Strength> {
    let unsent = flow.figure(StreamView::send_fill).is_some_and(|fill| fill.value >= 0.5);
    (unsent && !held_by_send_buffer(flow) && seen.shaper.is_some_and(|shaper| shaper.limits()))
        .then_some(Strength::Moderate)
}

// ---- with the lab's knowledge of the path ----

fn by_route(flow: &Flow, seen: &Symptoms, route: &Route) -> NamedCause {
    let retransmits = seen.retransmits.unwrap_or(0.0);
    let full = route.full();
    if full.is_none()
        && let Some(hop) = route.reverse_congested()
        && !(retransmits > 0.0 && hop.utilisation < FULL_LINK && route.drops_data_rather_than_acks())
    {
        return ack_path(seen, Strength::Strong, Some(hop));
    }
    let reordered = seen.reordered > 0.0 && route.dropped() < REAL_LOSS * retransmits.max(1.0);
    if reordered && full.is_none() {
        return reordering(seen, if retransmits > 0.0 { Strength::Strong } else { Strength::Moderate });
    }
    let drops = route.main_drops().filter(|_| retransmits > 0.0 || seen.marked > 0.0);
    if let (Some((place, dropped, all)), None) = (drops, full) {
        // Two places with similar drops may both be the cause; the first is named, with less confidence.
        let strength = if dropped >= 0.75 * all { Strength::Strong } else { Strength::Moderate };
        return match place {
            DropPlace::ReceiverHost => receiver_drops::in_lab(flow, dropped, retransmits, strength),
            DropPlace::Link(hop) => network_loss(flow, seen, strength, Some((&route.forward[hop], dropped))),
            DropPlace::OwnQueue => local_drops(flow, dropped, strength),
            DropPlace::Queue(hop) => queue_drops(flow, seen, route, &route.forward[hop], strength),
        };
    }
    if let Some(hop) = full {
        return if (hop.drops > 0.0 && retransmits > 0.0) || seen.marked > 0.0 {
            congestion(flow, seen, Strength::Strong, Some(hop))
        } else {
            full_path(flow, Some(hop), Strength::Strong)
        };
    }
    if slow_start_overshot(flow, seen) {
        return overshoot(flow, seen, Strength::Strong, route.slow_start_hop());
    }
    if seen.marked > 0.0 {
        return congestion(flow, seen, Strength::Strong, None);
    }
    if still_growing(flow) {
        return growing(flow, Strength::Strong);
    }
    if bbr_probes_invisible(flow, seen) {
        return shaper(flow, Strength::Moderate, seen, &sending_qdiscs(flow));
    }
    unexplained(flow, seen, Strength::Weak)
}

/// Whether losses came early, and only the growth of the congestion window limits since then.
fn slow_start_overshot(flow: &Flow, seen: &Symptoms) -> bool {
    let early = seen.retransmits_so_far > 0.0 && seen.retransmits_early >= EARLY_LOSS * seen.retransmits_so_far;
    let grows = flow.late_window_growth().is_none_or(|growth| growth >= 1.0);
    // A SYN that was retransmitted because the RTT exceeds its timeout is not a loss.
    let overflowed = flow.route.as_ref().is_none_or(|route| route.slow_start_hop().is_some());
    early
        && overflowed
        && seen.late_losses <= FEW_LATE_LOSSES
        && grows
        && seen.queue != Queue::Standing
        && seen.marked == 0.0
        && !flow.is_model_based()
}

/// A queue overflowed while the link was not full on average.
fn queue_drops(flow: &Flow, seen: &Symptoms, route: &Route, hop: &Hop, strength: Strength) -> NamedCause {
    let early = hop.drops_early >= EARLY_LOSS * hop.drops_so_far && slow_start_overshot(flow, seen);
    match () {
        () if hop.is_policer() => policer(flow, seen, strength, Some(hop)),
        // Other flows may have filled the link for a part of the phase.
        () if hop.utilisation_while_dropping >= Some(FULL_LINK) => congestion(flow, seen, strength, Some(hop)),
        () if hop.is_shallow(route.base_rtt_us, flow.streams.len()) && !early => {
            shallow(flow, seen, strength, Some(hop))
        }
        () if early => overshoot(flow, seen, strength, Some(hop)),
        () => congestion(flow, seen, strength, Some(hop)),
    }
}

/// The sender's own qdisc drops packets, or delays them although its link is not full.
fn own_queue(flow: &Flow, seen: &Symptoms, route: &Route) -> Option<NamedCause> {
    let hop = route.forward.first()?;
    let (_, queue) = hop.queue?;
    // TCP does not count packets that its own host drops as retransmitted, yet reduces its window.
    let others: f64 = route.forward.iter().skip(1).map(|hop| hop.drops_so_far).sum();
    if hop.drops_so_far > 0.0 && hop.drops_so_far >= others {
        return Some(local_drops(flow, hop.drops_so_far, Strength::Strong));
    }
    // The queueing time in the qdisc at the flow's rate explains most of the queueing delay.
    let wait_us = hop.backlog_bytes * 8e6 / flow.goodput_bps.max(1.0);
    let queueing_us = flow.srtt_us()? - route.base_rtt_us;
    let explains = queueing_us > QUEUE_US && wait_us >= EXPLAINS * queueing_us;
    let paced = flow.parameters.pace_bps.is_some();
    let quiet = seen.retransmits.unwrap_or(0.0) == 0.0;
    (explains && quiet && !paced && queueing_us >= 0.2 * route.base_rtt_us)
        .then(|| shaper(flow, Strength::Moderate, seen, &queue.kind))
}

// ---- from the counters of both TCPs, or of one ----

fn by_counts(flow: &Flow, seen: &Symptoms) -> NamedCause {
    let retransmits = seen.retransmits.unwrap_or(0.0);
    let lossy = retransmits > 0.0;
    if seen.qdisc_drops >= retransmits * EXPLAINS && seen.qdisc_drops > 0.0 {
        // The qdisc counters of a watched flow include other flows' drops.
        let own = !flow.observed || interface_share(flow) >= EXPLAINS && lossy;
        if own || seen.qdisc_drops >= FEW_RETRANSMITS {
            return local_drops(flow, seen.qdisc_drops, if own { Strength::Strong } else { Strength::Moderate });
        }
    }
    if lossy && let Some(named) = receiver_drops::by_counters(flow, retransmits) {
        return named;
    }
    // A qdisc counts a GSO packet of many segments as one drop.
    if lossy && seen.qdisc_drops * GSO_SEGMENTS >= retransmits {
        return local_drops(flow, seen.qdisc_drops, Strength::Weak);
    }
    // Reordering makes a sender reduce and regrow its window; a path that delivers evenly is full
    // nevertheless.
    let reorders = reorders(seen, retransmits).filter(|_| !seen.delivers_evenly());
    // BBR keeps its rate when it takes reordering for loss: any other cause comes first.
    if let Some(strength) = reorders.filter(|_| !flow.is_model_based()) {
        // A standing queue means that the path is full.
        let strength = if seen.queue == Queue::Standing { Strength::Weak } else { strength };
        return reordering(seen, strength);
    }
    let one_end = !flow.receiver_seen();
    // If both TCPs counted the same segments, every retransmission was spurious.
    let lossy = lossy && seen.never_arrived != Some(0.0);
    let acks = seen.acks_lost.is_some_and(|share| share >= ACKS_LOST);
    let waits_back = seen.reverse_share.is_some_and(|share| share >= REVERSE_QUEUE);
    // BBR keeps both the data queue and the ACK queue short.
    if (acks || waits_back && (seen.queue == Queue::Standing || flow.is_model_based())) && !lossy {
        // ACKs are cumulative: their loss alone need not slow the sender.
        let strength = match (acks, waits_back) {
            (true, true) => Strength::Strong,
            (false, true) => Strength::Moderate,
            _ => Strength::Weak,
        };
        return ack_path(seen, strength, None);
    }
    if !lossy && seen.marked == 0.0 && seen.shaper.is_some_and(|shaper| shaper.limits()) {
        let kind = flow.sender.series.and_then(|series| series.qdiscs.iter().max_by_key(|qdisc| qdisc.overlimits));
        return shaper(flow, Strength::Moderate, seen, kind.map_or("shaper", |qdisc| &qdisc.kind));
    }
    // A watched flow may be sampled at any age: early losses are not evidence of slow start.
    let early = !flow.observed
        && seen.retransmits_so_far >= FEW_RETRANSMITS
        && seen.retransmits_early >= EARLY_LOSS * seen.retransmits_so_far;
    let later = seen.late_losses <= FEW_LATE_LOSSES && seen.is_random() != Some(true) && !seen.delivers_evenly();
    if early && later && seen.marked == 0.0 && seen.queue != Queue::Standing && !flow.is_model_based() {
        let grows = flow.window_growth().is_some_and(|growth| growth >= RAMP_RATIO);
        return overshoot(flow, seen, if grows { Strength::Moderate } else { Strength::Weak }, None);
    }
    let shrugs =
        flow.is_model_based() && seen.loss.is_some_and(|loss| loss < MODEL_LOSS) && seen.queue != Queue::Standing;
    if (lossy && !shrugs && reorders.is_none()) || seen.marked > 0.0 {
        return lossy_path(flow, seen, retransmits);
    }
    match seen.queue {
        Queue::Standing if seen.bursts_are_local(flow) => full_path(flow, None, Strength::Weak),
        // A single host cannot distinguish a queue of data from a queue of ACKs.
        Queue::Standing => full_path(flow, None, if one_end { Strength::Moderate } else { Strength::Strong }),
        _ if seen.always_queued() && window_limited(flow) != Some(Limited::No) => {
            full_path(flow, None, Strength::Moderate)
        }
        _ if still_growing(flow) => growing(flow, Strength::Strong),
        _ if bbr_probes_invisible(flow, seen) => shaper(flow, Strength::Weak, seen, &sending_qdiscs(flow)),
        _ if flow.is_model_based() && seen.delivery_spread.is_none_or(|spread| spread < DELIVERY_EVEN) => {
            // Losses may be the overflow of the path's queue.
            full_path(flow, None, if retransmits >= FEW_RETRANSMITS { Strength::Weak } else { Strength::Moderate })
        }
        _ if reorders.is_some() => reordering(seen, Strength::Weak),
        _ => unexplained(flow, seen, Strength::Weak),
    }
}

/// Segments were retransmitted or ECN-marked: decides by the RTT and by the congestion window at each loss.
fn lossy_path(flow: &Flow, seen: &Symptoms, retransmits: f64) -> NamedCause {
    let few = retransmits < FEW_RETRANSMITS;
    let random = seen.is_random();
    let model = flow.is_model_based();
    let acks_lost = seen.acks_lost.is_some_and(|share| share >= ACKS_LOST);
    match seen.queue {
        _ if seen.marked > 0.0 => congestion(flow, seen, Strength::Strong, None),
        // Lost ACKs cause bursts, which may overflow the queue.
        Queue::Standing if acks_lost => congestion(flow, seen, Strength::Weak, None),
        _ if acks_lost => ack_path(seen, Strength::Weak, None),
        Queue::Standing => {
            let sure = !few && !model;
            let strength = match () {
                () if seen.delivery_spread >= Some(DELIVERY_UNEVEN) => Strength::Weak,
                () if sure => Strength::Strong,
                () => Strength::Moderate,
            };
            congestion(flow, seen, strength, None)
        }
        // Even delivery: the link is full.
        _ if seen.queue != Queue::None && seen.delivers_evenly() => congestion(flow, seen, Strength::Moderate, None),
        Queue::Shallow if model => congestion(flow, seen, Strength::Weak, None),
        Queue::Shallow if random == Some(false) => shallow(flow, seen, Strength::Moderate, None),
        Queue::Shallow => shallow(flow, seen, Strength::Weak, None),
        Queue::Some if random != Some(true) => shallow(flow, seen, Strength::Weak, None),
        Queue::None if random == Some(false) || (random.is_none() && !few) => {
            shallow(flow, seen, Strength::Weak, None)
        }
        _ => {
            let strength = match () {
                () if model || few || seen.queue == Queue::NotVisible => Strength::Weak,
                () if seen.fits() == Some(true) => seen.random_loss_strength(),
                () => seen.random_loss_strength().min(Strength::Moderate),
            };
            network_loss(flow, seen, strength, None)
        }
    }
}

/// Whether the sender takes reordering for loss, and how strong the evidence is.
fn reorders(seen: &Symptoms, retransmits: f64) -> Option<Strength> {
    if seen.reordered == 0.0 && seen.spurious.unwrap_or(0.0) < EXPLAINS {
        return None;
    }
    match seen.never_arrived {
        Some(lost) if lost >= REAL_LOSS * seen.retransmits_so_far.max(1.0) || seen.reordered == 0.0 => None,
        // A few spurious retransmissions do not keep the window small.
        Some(_) => Some(if seen.loss >= Some(REORDERING_HURTS) { Strength::Strong } else { Strength::Weak }),
        // One host only: DSACK reports spurious retransmissions.
        None if seen.reordered > 0.0 && retransmits > 0.0 && seen.spurious.unwrap_or(0.0) >= REAL_LOSS => {
            Some(Strength::Moderate)
        }
        None => None,
    }
}

/// BBR probes periodically at 1.25 times its rate: on a full path the RTT rises with it, behind a shaper on
/// the sender it does not.
fn bbr_probes_invisible(flow: &Flow, seen: &Symptoms) -> bool {
    flow.is_model_based() && !is_paced(flow) && seen.delivers_evenly() && seen.rtt_range < Some(PROBES_UNSEEN)
}

fn still_growing(flow: &Flow) -> bool {
    if flow.is_model_based() {
        return startup_share(flow) >= MOSTLY_WAITS;
    }
    flow.window_growth().is_some_and(|growth| growth >= RAMP_RATIO)
}
