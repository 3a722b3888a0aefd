//! Texts of the network causes: explanation, advice and place.

use landspeed_model::Cause;

use crate::advice;
use crate::causes::receiver_drops;
use crate::epochs::startup_share;
use crate::finding::{NamedCause, Strength};
use crate::flow::Flow;
use crate::network::Symptoms;
use crate::route::Hop;
use crate::text;
use crate::thresholds::{ACKS_LOST, FULL_LINK, REVERSE_QUEUE};

pub(super) fn congestion(flow: &Flow, seen: &Symptoms, strength: Strength, hop: Option<&Hop>) -> NamedCause {
    let marks = if seen.marked > 0.0 { format!(", {} marked", text::number(seen.marked)) } else { String::new() };
    let queue = hop.map_or("a queue on the path".to_owned(), queue_text);
    let dropped = hop.map(|hop| format!(" and dropped {} packets", text::number(hop.drops))).unwrap_or_default();
    let why = format!("{queue} overflows{dropped}: {}{marks}, {}", seen.loss_text(), Symptoms::rtt_text(flow));
    let next = format!(
        "Run again with `{}`. Fewer retransmits at the same rate mean that this flow filled the queue; otherwise find what shares \
         the link. More streams only share the path.",
        advice::pace(flow)
    );
    at_hop(NamedCause::new(Cause::NetworkCongestion, strength, why, next), hop)
}

pub(super) fn network_loss(
    flow: &Flow,
    seen: &Symptoms,
    strength: Strength,
    lost: Option<(&Hop, f64)>,
) -> NamedCause {
    let response_fit = match seen.response_fit {
        Some(response_fit) if !flow.is_model_based() => {
            format!(
                "; {}'s response function gives {} at this loss",
                flow.congestion().unwrap_or_default(),
                text::rate(flow.goodput_bps / response_fit)
            )
        }
        _ => String::new(),
    };
    let whose = lost.map(|(hop, frames)| {
        format!("the link {} lost {} frames that no queue dropped", hop.link.name, text::number(frames))
    });
    let what = whose.unwrap_or_else(|| "packets are lost without a queue".to_owned());
    let why = format!("{what}: {}, {}{response_fit}", seen.loss_text(), Symptoms::rtt_text(flow));
    let frames = receiver_drops::bad_frames(flow, seen.retransmits.unwrap_or(0.0));
    let next = if frames {
        format!("Check the {}'s cable, transceiver and switch port.", flow.receiver.name())
    } else {
        let mtu =
            if seen.timeouts > 0.0 { " There were timeouts: check the path MTU with `--probe-mtu`." } else { "" };
        let tolerate = if flow.is_model_based() {
            String::new()
        } else {
            " Until it is repaired, `--congestion bbr` tolerates it.".to_owned()
        };
        format!(
            "Run again with `--pace {}`. Loss that goes away is a shallow buffer or a policer, loss that stays is a bad \
             link.{tolerate}{mtu}",
            text::rate_argument(flow.goodput_bps * 0.8 / flow.streams.len().max(1) as f64)
        )
    };
    let mut named = at_hop(NamedCause::new(Cause::NetworkLoss, strength, why, next), lost.map(|(hop, _)| hop));
    if frames {
        named = named.at(format!("{}'s link: its interface counts bad frames or discards", flow.receiver.name()));
    }
    named
}

/// The path is full, and no segment is lost in the phase.
pub(super) fn full_path(flow: &Flow, hop: Option<&Hop>, strength: Strength) -> NamedCause {
    let rtt = Symptoms::rtt_text(flow);
    let why = match hop {
        Some(hop) => format!(
            "the link {} is full: {} of its {}; {rtt}",
            hop.link.name,
            text::percent(hop.utilisation.min(1.0)),
            text::rate(hop.link.rate_bps as f64)
        ),
        None if flow.is_model_based() => format!(
            "{} paces to the rate it found the path to carry; {rtt}",
            flow.congestion().unwrap_or_else(|| "the congestion control".to_owned())
        ),
        None => format!("the path is full and holds a queue that does not empty, without loss: {rtt}"),
    };
    let standing = flow.srtt_us().zip(flow.min_rtt_us()).is_some_and(|(srtt, min)| srtt >= 1.5 * min);
    let next = if let (Some(hop), false) = (hop, standing) {
        format!("Use a faster link than {}, or a path around it: this is its rate.", hop.link.name)
    } else if standing {
        format!(
            "Remove the standing queue with `{}`, or with fq_codel or CAKE at the slow link. The rate is the path's; the queue \
             delays all flows on it.",
            advice::pace(flow)
        )
    } else {
        "Run UDP at a higher rate to see whether the path carries more. This is the path's rate as the congestion control \
         estimates it."
            .to_owned()
    };
    at_hop(NamedCause::new(Cause::NetworkPath, strength, why, next), hop)
}

pub(super) fn growing(flow: &Flow, strength: Strength) -> NamedCause {
    let why = if flow.is_model_based() {
        format!(
            "BBR was in its startup phase for {} of the time: the rate was still growing, without loss in the steady phase",
            text::percent(startup_share(flow))
        )
    } else {
        format!(
            "the congestion window was still growing (last quarter {} of the first), without loss in the steady phase",
            text::percent(flow.window_growth().unwrap_or(1.0))
        )
    };
    let bbr = if flow.is_model_based() { "" } else { " or `--congestion bbr`" };
    let next = format!(
        "Run longer without the start: `--time 60 --omit 20`. For short transfers, use more streams (-P){bbr}."
    );
    NamedCause::new(Cause::WindowGrowth, strength, why, next)
}

pub(super) fn unexplained(flow: &Flow, seen: &Symptoms, strength: Strength) -> NamedCause {
    let why = format!(
        "the network or a congestion window clamp holds data back, without loss in the steady phase; {}",
        Symptoms::rtt_text(flow)
    );
    let earlier = if seen.retransmits_so_far > 0.0 { " Segments were retransmitted before the phase." } else { "" };
    let next = format!(
        "Look for a shaper or a congestion window clamp; a UDP run shows what rate the path carries.{earlier}"
    );
    NamedCause::new(Cause::NetworkPath, strength, why, next)
}

pub(super) fn overshoot(flow: &Flow, seen: &Symptoms, strength: Strength, hop: Option<&Hop>) -> NamedCause {
    let growth = flow.late_window_growth().unwrap_or(1.0);
    let room = flow.capacity_bps().filter(|_| flow.route.is_some());
    let room = room.map(|bps| {
        format!(", {} of what the path has left beside other flows", text::percent(flow.goodput_bps / bps))
    });
    let why = format!(
        "slow start overflowed {}: {} of {} retransmits came early, and since then the congestion window grows slowly (last \
         quarter {} of the second){}",
        hop.map_or("a queue".to_owned(), queue_text),
        text::number(seen.retransmits_early),
        text::number(seen.retransmits_so_far),
        text::percent(growth),
        room.unwrap_or_default()
    );
    let bbr = if flow.is_model_based() { "" } else { ", or use `--congestion bbr`" };
    let next = format!(
        "Keep slow start below the path's rate with `{}`{bbr}. For the long-term rate of this congestion control, use \
         `--time 120 --omit 60`.",
        advice::pace(flow)
    );
    at_hop(NamedCause::new(Cause::SlowStartOvershoot, strength, why, next), hop)
}

pub(super) fn shallow(flow: &Flow, seen: &Symptoms, strength: Strength, hop: Option<&Hop>) -> NamedCause {
    let why = match hop {
        Some(hop) => format!(
            "{} overflows while the link is {} used{}: {}",
            queue_text(hop),
            text::percent(hop.utilisation),
            match hop.limit_over_bdp(flow.min_rtt_us().unwrap_or(0.0), flow.streams.len()) {
                Some(share) =>
                    format!("; it holds {} of the bandwidth-delay product per √streams", text::percent(share)),
                None => String::new(),
            },
            seen.loss_text()
        ),
        None => format!(
            "a buffer much smaller than the bandwidth-delay product overflows: {}, {}",
            seen.loss_text(),
            Symptoms::rtt_text(flow)
        ),
    };
    let next = format!(
        "Pace below the link with `{}` (fq on the sender), or give that port a buffer of {}.",
        advice::pace(flow),
        buffer_needed(flow)
    );
    at_hop(NamedCause::new(Cause::ShallowBuffer, strength, why, next), hop)
}

pub(super) fn policer(flow: &Flow, seen: &Symptoms, strength: Strength, hop: Option<&Hop>) -> NamedCause {
    let rate = hop.map(|hop| format!(" above {}", text::rate(hop.link.rate_bps as f64))).unwrap_or_default();
    let queue = hop.map(|hop| format!(" ({})", queue_text(hop))).unwrap_or_default();
    let why = format!(
        "a policer drops what arrives{rate} instead of queueing it{queue}: {}, {}",
        seen.loss_text(),
        Symptoms::rtt_text(flow)
    );
    let next = format!(
        "Stay below the policed rate with `{}`, or ask for a shaper in place of the policer.",
        advice::pace(flow)
    );
    at_hop(NamedCause::new(Cause::Policer, strength, why, next), hop)
}

pub(super) fn reordering(seen: &Symptoms, strength: Strength) -> NamedCause {
    let real = seen.never_arrived.map_or_else(
        || {
            format!(
                "D-SACK reports {} of the retransmissions as spurious",
                text::percent(seen.spurious.unwrap_or(0.0))
            )
        },
        |lost| {
            format!(
                "{} segments were lost between the two TCPs, and {} were retransmitted",
                text::number(lost),
                text::number(seen.retransmits_so_far)
            )
        },
    );
    let why = format!("the path reorders packets, and TCP takes some for lost: {real}");
    let next = "Look for per-packet load balancing, a bonded link in round-robin mode or a link-layer retransmission on the \
                path. More streams (-P) hide reordering and do not remove it.";
    NamedCause::new(Cause::Reordering, strength, why, next.to_owned())
}

pub(super) fn ack_path(seen: &Symptoms, strength: Strength, hop: Option<&Hop>) -> NamedCause {
    let acks = seen.acks_lost.filter(|&share| share >= ACKS_LOST);
    let waits = seen.reverse_share.filter(|&share| share >= REVERSE_QUEUE);
    let signs: Vec<String> = [
        hop.map(|hop| match hop.utilisation {
            used if used >= FULL_LINK => {
                format!("the reverse link {} is {} used", hop.link.name, text::percent(used.min(1.0)))
            }
            _ => format!(
                "{} packets were dropped before or on the reverse link {}",
                text::number(hop.drops_so_far + hop.lost),
                hop.link.name
            ),
        }),
        acks.map(|share| format!("{} of the ACKs never arrive", text::percent(share))),
        waits.map(|share| format!("{} of the queueing delay is on the reverse path", text::percent(share))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let lossy = hop.is_some_and(|hop| hop.utilisation < FULL_LINK && hop.lost > hop.drops_so_far);
    let what = if lossy { "loses ACKs" } else { "is congested and delays the ACKs" };
    let why = format!("the reverse path {what}: {}", signs.join(", "));
    let next = if lossy {
        "Repair the reverse link: a lower rate does not avoid random loss."
    } else {
        "Free the reverse path (another upload, an asymmetric line), or give ACKs priority there (fq_codel, CAKE); GRO on the \
         receiver thins them out."
    };
    at_hop(NamedCause::new(Cause::AckPath, strength, why, next.to_owned()), hop)
}

pub(super) fn local_drops(flow: &Flow, dropped: f64, strength: Strength) -> NamedCause {
    let why = format!("the {}'s qdisc dropped {} packets", flow.sender.name(), text::number(dropped));
    let next = format!(
        "Check `tc -s qdisc` on {}: use fq there, or stay below its rate with `{}`.",
        flow.label(&flow.sender),
        advice::pace(flow)
    );
    NamedCause::new(Cause::LocalQdisc, strength, why, next).at(format!("{}, qdisc", flow.sender.name()))
}

pub(super) fn shaper(flow: &Flow, strength: Strength, seen: &Symptoms, kind: &str) -> NamedCause {
    let name = flow.sender.name();
    let why = match seen.shaper.and_then(|shaper| shaper.rate) {
        Some(rate) => format!("the {name}'s qdisc ({kind}) sends no faster than {}", text::rate(rate.bps)),
        None => format!("the {name}'s qdisc ({kind}) sends no faster: data waits there and nothing is lost"),
    };
    let next = format!("Check `tc -s qdisc` on {}: raise or remove its rate.", flow.label(&flow.sender));
    NamedCause::new(Cause::LocalQdisc, strength, why, next).at(format!("{name}, qdisc {kind}"))
}

/// Formats a queue and its limit, such as `the queue before w->e (20 kB)`.
fn queue_text(hop: &Hop) -> String {
    match hop.limit_bytes() {
        Some(limit) => format!("the queue before {} ({})", hop.link.name, text::bytes(limit)),
        None => format!("the queue before {}", hop.link.name),
    }
}

/// Buffer size that keeps the path full.
fn buffer_needed(flow: &Flow) -> String {
    let rate = flow.capacity_bps().unwrap_or(flow.goodput_bps).max(flow.goodput_bps);
    let rtt_us = flow.min_rtt_us().unwrap_or(0.0);
    let bytes = rate * rtt_us / 8e6 / (flow.streams.len().max(1) as f64).sqrt();
    format!("{} (BDP ÷ √streams)", text::bytes(bytes))
}

fn at_hop(named: NamedCause, hop: Option<&Hop>) -> NamedCause {
    match hop {
        Some(hop) => named.at(format!("network, {}", hop.link.name)),
        None => named,
    }
}
