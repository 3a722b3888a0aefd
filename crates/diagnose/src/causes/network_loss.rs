//! The network loses packets without queueing: random loss or a policer.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::network::{Queue, Symptoms, symptoms, weigh, weigh_loss, weigh_loss_pattern, weigh_rtt};
use crate::text;
use crate::thresholds::{EXPLAINS, FEW_RETRANSMITS, MODEL_LOSS, UDP_LOSS};

/// Congestion control holds data back, packets are lost, the RTT is flat, and the loss explains the rate.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() {
        return Finding::not_applicable(Cause::NetworkLoss);
    }
    let mut scales = Scales::new(flow, Cause::NetworkLoss);
    if flow.udp.is_some() {
        return datagrams(flow, scales);
    }
    if !flow.has_network() {
        return Finding::not_applicable(Cause::NetworkLoss);
    }
    let seen = symptoms(flow);
    weigh(&mut scales, flow);
    weigh_loss(&mut scales, flow, &seen, true);
    weigh_rtt(&mut scales, flow, &seen, false);
    weigh_loss_pattern(&mut scales, flow, &seen, false);
    let end = Some(flow.sender.end);
    if seen.spurious.is_some_and(|share| share > 0.0) {
        let source = "streams[].sender.samples[].tcp.dsack_dups";
        let bound = Bound::Below(EXPLAINS);
        scales.value("duplicate SACKs over retransmissions", seen.spurious, "ratio", bound, end, source);
    }
    if seen.timeouts > 0.0 {
        let source = "streams[].sender.samples[].tcp.total_rto";
        scales.value("retransmission timeouts", Some(seen.timeouts), "timeouts", Bound::Above(0.0), end, source);
    }
    let resent = seen.resent.unwrap_or(0.0);
    let Some(limited) = seen.limited.filter(|_| resent > 0.0 && seen.marked == 0.0) else { return scales.refuted() };
    let mut strength = match seen.queue {
        Queue::None => Strength::Strong,
        Queue::Unseen => Strength::Weak,
        Queue::Standing | Queue::Shallow | Queue::Some => return scales.refuted(),
    };
    if flow.is_model_based() {
        // BBR only slows down for much loss: below that, something else is its limit.
        let lossy = scales.value(
            "segments retransmitted over sent",
            seen.loss,
            "ratio",
            Bound::AtLeast(MODEL_LOSS),
            end,
            "streams[].sender.samples[].tcp.total_retrans",
        );
        if lossy != Some(true) {
            return scales.refuted();
        }
        strength = strength.min(Strength::Moderate);
    } else if seen.fits() != Some(true) || resent < FEW_RETRANSMITS {
        strength = strength.lowered();
    }
    let reordered = seen.spurious.is_some_and(|share| share >= EXPLAINS);
    if reordered {
        strength = strength.lowered();
    }
    let fit = match seen.fit {
        Some(fit) if !flow.is_model_based() => {
            format!(
                "; {} answers this loss with {}",
                flow.congestion().unwrap_or_default(),
                text::rate(flow.goodput_bps / fit)
            )
        }
        _ => String::new(),
    };
    let kind = if reordered {
        "the path reorders packets, and TCP takes some for lost"
    } else {
        "packets are lost without a queue"
    };
    let why = format!("{kind}: {}, {}{fit}", seen.loss_words(), Symptoms::rtt_words(flow));
    let mut finding = scales.holds(strength.min(limited), why, next_step(flow, &seen, reordered));
    finding.place = place(flow, &seen);
    finding
}

/// NIC counters of a bad cable, transceiver or port.
fn line_error(name: &str) -> bool {
    ["crc", "symbol", "align", "fcs", "phy_discard", "discards_phy"].iter().any(|part| name.contains(part))
}

fn place(flow: &Flow, seen: &Symptoms) -> Option<String> {
    let resent = seen.resent.unwrap_or(0.0);
    if flow.receiver.nic_sum(line_error).is_some_and(|errors| errors as f64 >= (resent * EXPLAINS).max(1.0)) {
        return Some(format!("{}'s link: its interface counts bad frames or discards", flow.receiver.name()));
    }
    seen.dropped_in_qdisc().then(|| format!("{}, queueing discipline", flow.sender.name()))
}

fn next_step(flow: &Flow, seen: &Symptoms, reordered: bool) -> String {
    if place(flow, seen).is_some_and(|place| place.contains("bad frames")) {
        return format!("Check the {}'s cable, transceiver and switch port.", flow.receiver.name());
    }
    if reordered {
        return "Look for per-packet load balancing on the path; several streams (-P) hide it, they do not cure it."
            .to_owned();
    }
    let pace = text::rate(flow.goodput_bps * 0.8 / flow.streams.len().max(1) as f64);
    let mtu = if seen.timeouts > 0.0 { " Timeouts were seen: prove the path MTU with --probe-mtu." } else { "" };
    format!(
        "Run again with --pace {pace}: if the loss goes away it is a policer or a shallow buffer, if it stays a bad link \
         (compare with --udp at the same rate). Until it is repaired, --congestion bbr tolerates it.{mtu}"
    )
}

/// UDP: lost where no host counter moved.
fn datagrams(flow: &Flow, mut scales: Scales) -> Finding {
    let Some(udp) = &flow.udp else { return scales.refuted() };
    let lossy = scales.value("packets lost", udp.loss, "ratio", Bound::AtLeast(UDP_LOSS), None, "udp.loss_ratio");
    let most = Bound::AtLeast(EXPLAINS);
    let in_network = scales.value(
        "lost packets no host counter explains",
        udp.share(udp.in_network),
        "ratio",
        most,
        None,
        "conservation.losses",
    );
    if lossy != Some(true) || in_network != Some(true) || latency_inflation(flow).is_some_and(|ratio| ratio >= 2.0) {
        return scales.refuted();
    }
    scales.lacks("whether a queue overflows or the loss is random: UDP alone does not tell");
    let why = format!(
        "{} of the packets were lost between the hosts: no counter of either host explains them",
        text::percent(udp.loss.unwrap_or(0.0))
    );
    let next = format!(
        "Run at half the rate (--rate {}): loss that goes away is a full queue or a policer, loss that stays is a bad \
         link.",
        text::rate(flow.goodput_bps / 2.0 / flow.streams.len().max(1) as f64)
    );
    // On loopback there is no network: a filter or a relay drops them, or a counter of this host was not read.
    scales.holds(if flow.loopback() { Strength::Moderate } else { Strength::Strong }, why, next)
}

/// Median latency beside the load over the idle one.
pub(crate) fn latency_inflation(flow: &Flow) -> Option<f64> {
    let latency = flow.document.latency_under_load.as_ref()?;
    let idle = latency.idle.as_ref()?.p50_ns;
    (idle > 0).then(|| latency.loaded.p50_ns as f64 / idle as f64)
}
