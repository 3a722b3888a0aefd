//! Cause: the sender's CPU.

use landspeed_model::Cause;

use crate::causes::cpu;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::load::{Kind, Role, load, receiver_behind, sender_waits};
use crate::stream::StreamView;
use crate::thresholds::{RATE_REACHED, SEND_EMPTY, UDP_LOSS, WAITS};

/// Compares the load of the sending threads and cores with the thresholds. A sender that waits for its
/// schedule, or whose receiver is busy too and behind, has idle time.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let mut builder = FindingBuilder::new(flow, Cause::SenderCpu);
    let own = load(flow, Role::Sender);
    cpu::record_readings(&mut builder, flow, Role::Sender, &own);
    if !flow.observed {
        let waited = flow.figure(StreamView::wait_share);
        builder.figure(
            "share of time waiting for --rate",
            waited,
            "ratio",
            Bound::Below(WAITS),
            "sender.app_wait_ns",
        );
    }
    let udp = flow.udp.as_ref();
    // Datagrams have a schedule: a thread that waits for a core cannot keep it, however little it does.
    let late = udp.is_some_and(|udp| udp.reached().is_some_and(|reached| reached < RATE_REACHED));
    let delayed = (late && own.waited_for_core()).then_some(Strength::Moderate);
    let Some(mut strength) = own.strength.max(delayed) else { return builder.refuted() };
    // A watched program may spin while it waits: its thread is late only if the send queue runs empty.
    let spins = flow.observed && !matches!(own.kind, Kind::Softirq | Kind::Crowded);
    if spins && builder.send_fill(Bound::Below(SEND_EMPTY)) != Some(true) {
        return builder.refuted();
    }
    if let Some(udp) = udp {
        builder.value("packets lost", udp.loss, "ratio", Bound::Below(UDP_LOSS), None, "udp.loss_ratio");
        // A sender that keeps its schedule has enough CPU time, even one that spins to keep it exactly.
        let end = Some(flow.sender.end);
        let below = Bound::Below(RATE_REACHED);
        let made =
            builder.optional("offered rate over --rate", udp.reached(), "ratio", below, end, "effective.rate_bps");
        if udp.loses() || udp.refuses() || made == Some(false) {
            return builder.refuted();
        }
    } else if sender_waits(flow) {
        return builder.refuted();
    } else if !flow.is_rr() && own.kind != Kind::Turns {
        let other = load(flow, Role::Receiver);
        let rival = other.strength >= Some(strength.min(Strength::Moderate));
        match receiver_behind(flow) {
            Some(true) if rival => return builder.refuted(),
            // Data queued at the receiver contradicts a slow sender.
            Some(true) => strength = strength.lowered(),
            None if rival => strength = strength.lowered(),
            _ => {}
        }
    }
    let (why, next) = (cpu::why(flow, Role::Sender, &own), cpu::next_step(flow, Role::Sender, &own));
    let mut finding = builder.holds(strength, why, next);
    finding.place = Some(cpu::load_location(flow, Role::Sender, &own));
    finding
}
