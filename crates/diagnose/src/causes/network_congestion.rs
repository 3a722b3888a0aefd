//! The network loses or marks packets because a queue overflows.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::network::{Queue, Symptoms, symptoms, weigh, weigh_loss, weigh_loss_pattern, weigh_rtt};
use crate::text;
use crate::thresholds::{EXPLAINS, FEW_RETRANSMITS, UDP_LOSS};

/// Congestion control holds data back, packets are lost or marked, and the RTT shows a queue.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() {
        return Finding::not_applicable(Cause::NetworkCongestion);
    }
    let mut scales = Scales::new(flow, Cause::NetworkCongestion);
    if flow.udp.is_some() {
        return datagrams(flow, scales);
    }
    if !flow.has_network() {
        return Finding::not_applicable(Cause::NetworkCongestion);
    }
    let seen = symptoms(flow);
    weigh(&mut scales, flow);
    weigh_loss(&mut scales, flow, &seen, true);
    weigh_rtt(&mut scales, flow, &seen, true);
    weigh_loss_pattern(&mut scales, flow, &seen, true);
    let end = Some(flow.sender.end);
    if seen.marked > 0.0 {
        let source = "streams[].sender.samples[].tcp.delivered_ce";
        scales.value(
            "segments delivered with an ECN mark",
            Some(seen.marked),
            "segments",
            Bound::Above(0.0),
            end,
            source,
        );
    }
    let resent = seen.resent.unwrap_or(0.0);
    let Some(limited) = seen.limited.filter(|_| resent > 0.0 || seen.marked > 0.0) else { return scales.refuted() };
    let strength = match seen.queue {
        _ if seen.marked > 0.0 => Strength::Strong,
        Queue::Standing if resent < FEW_RETRANSMITS => Strength::Moderate,
        // A model-based sender answers to its own estimate of the path and not to each loss.
        Queue::Standing if flow.is_model_based() => Strength::Moderate,
        Queue::Standing => Strength::Strong,
        // BBR's probing makes the RTT follow the flight whatever loses the packets.
        Queue::Shallow if flow.is_model_based() => Strength::Weak,
        Queue::Shallow => Strength::Moderate,
        Queue::Some => Strength::Weak,
        Queue::None | Queue::Unseen => return scales.refuted(),
    };
    let marks = if seen.marked > 0.0 { format!(", {} marked", text::number(seen.marked)) } else { String::new() };
    let why = format!("a queue on the path overflows: {}{marks}, {}", seen.loss_words(), Symptoms::rtt_words(flow));
    let pace = text::rate(flow.goodput_bps * 0.95 / flow.streams.len().max(1) as f64);
    let next = if seen.dropped_in_qdisc() {
        format!(
            "The {} drops in its own queueing discipline (`tc -s qdisc`): use fq, or --pace {pace}.",
            flow.sender.name()
        )
    } else if seen.queue == Queue::Shallow {
        format!("The buffer is shallow: pace below it (--pace {pace}) and see whether the loss goes away.")
    } else {
        format!(
            "The path is full, by this flow or by others: try --pace {pace}, and find the busy link; more streams only share it."
        )
    };
    let mut finding = scales.holds(strength.min(limited), why, next);
    finding.place = seen.dropped_in_qdisc().then(|| format!("{}, queueing discipline", flow.sender.name()));
    finding
}

/// UDP: lost in the network while latency beside it rises, or in the sender's own queue.
fn datagrams(flow: &Flow, mut scales: Scales) -> Finding {
    let Some(udp) = &flow.udp else { return scales.refuted() };
    let end = Some(flow.sender.end);
    if udp.refused > 0.0 {
        let source = "streams[].sender.udp.send_errors";
        let share = Some(udp.refused_share);
        scales.value(
            "packets refused by the sender's own queue",
            share,
            "ratio",
            Bound::AtLeast(UDP_LOSS),
            end,
            source,
        );
    }
    if udp.refuses() {
        let (name, left) = (flow.sender.name(), udp.offered_bps.unwrap_or(flow.goodput_bps));
        let why = format!(
            "the {name}'s own queueing discipline or interface was full and refused {} of the packets (ENOBUFS)",
            text::percent(udp.refused_share)
        );
        let next = format!(
            "Look for a shaper on the {name} (`tc -s qdisc`), or lower --rate to {}, which is what leaves it.",
            text::rate(left / flow.streams.len().max(1) as f64)
        );
        let mut finding = scales.holds(Strength::Strong, why, next);
        finding.place = Some(format!("{name}, queueing discipline"));
        return finding;
    }
    if !udp.loses() {
        return scales.refuted();
    }
    let share = udp.share(udp.in_sender);
    let most = Bound::AtLeast(EXPLAINS);
    let own = scales.value(
        "lost packets dropped by the sender's own queue",
        share,
        "ratio",
        most,
        end,
        "conservation.losses",
    );
    let why = format!("{} of the packets were lost", text::percent(udp.loss.unwrap_or(0.0)));
    let next = format!("Lower --rate to {}, and raise it until loss begins.", text::rate(flow.goodput_bps));
    if own == Some(true) {
        let why = format!("{why}, most of them in the {}'s own queueing discipline or interface", flow.sender.name());
        let mut finding = scales.holds(Strength::Moderate, why, next);
        finding.place = Some(format!("{}, queueing discipline", flow.sender.name()));
        return finding;
    }
    let inflation = crate::causes::network_loss::latency_inflation(flow);
    let source = "latency_under_load.loaded.p50_ns";
    let queued =
        scales.optional("latency under load over idle", inflation, "ratio", Bound::AtLeast(2.0), None, source);
    if queued == Some(true) && udp.share(udp.in_network) >= Some(EXPLAINS) {
        let why = format!("{why} on the path while latency beside it rose: a queue overflows");
        return scales.holds(Strength::Moderate, why, next);
    }
    scales.refuted()
}
