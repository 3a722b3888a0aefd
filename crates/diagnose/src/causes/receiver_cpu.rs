//! Cause: the receiver's CPU.

use landspeed_model::Cause;

use crate::causes::cpu;
use crate::causes::slow_reader::reads_on_schedule;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::load::{Kind, Load, Role, load, receiver_behind};
use crate::placement;
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{EXPLAINS, UDP_LOSS};

/// Compares the load of the receiving threads and cores with the thresholds.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let mut builder = FindingBuilder::new(flow, Cause::ReceiverCpu);
    let own = load(flow, Role::Receiver);
    cpu::record_readings(&mut builder, flow, Role::Receiver, &own);
    if let Some(shared) = placement::shared_queue(flow).filter(|_| own.kind == Kind::Softirq) {
        shared.record_readings(&mut builder, flow);
    }
    if flow.is_rr() {
        return match own.strength {
            Some(strength) => conclude(builder, flow, &own, strength),
            None => builder.refuted(),
        };
    }
    if flow.udp.is_some() {
        return datagrams(flow, builder, &own);
    }
    let behind = receiver_behind(flow);
    // Data queues at a reader without a schedule that had to wait for a core: the wait makes it late.
    let queues = matches!(reader(flow), Reader::Behind | Reader::Unclear) && behind == Some(true);
    let late = queues && own.waited_for_core() && !reads_on_schedule(flow);
    let Some(mut strength) = own.strength.max(late.then_some(Strength::Moderate)) else { return builder.refuted() };
    let sender = load(flow, Role::Sender).strength;
    match behind {
        // Softirqs run before the socket: its receive queue does not show them.
        _ if own.kind == Kind::Softirq => {}
        // The load already decided which side is slower.
        _ if own.kind == Kind::Turns => {}
        Some(true) => {}
        // The receiver keeps up and the sender is as busy: the sender is slower.
        Some(false) if sender >= Some(strength) => return builder.refuted(),
        Some(false) => strength = Strength::Weak,
        None => strength = strength.lowered(),
    }
    conclude(builder, flow, &own, strength)
}

/// UDP: the receiver loses packets at its own socket.
fn datagrams(flow: &Flow, mut builder: FindingBuilder, own: &Load) -> Finding {
    let Some(udp) = &flow.udp else { return builder.refuted() };
    let end = Some(flow.receiver.end);
    let lossy = builder.value("packets lost", udp.loss, "ratio", Bound::AtLeast(UDP_LOSS), None, "udp.loss_ratio");
    if lossy != Some(true) {
        return builder.refuted();
    }
    let most = Bound::AtLeast(EXPLAINS);
    let socket = builder.value(
        "lost packets dropped by the receiving socket",
        udp.share(udp.at_socket),
        "ratio",
        most,
        end,
        "streams[].receiver.udp.socket_drops",
    );
    let share = text::percent(udp.loss.unwrap_or(0.0));
    if socket == Some(true) {
        // A thread that waits for a core reads late, and a socket overflows within milliseconds.
        let late = own.waited_for_core().then_some(Strength::Moderate);
        let Some(strength) = own.strength.max(late) else { return builder.refuted() };
        let why = format!(
            "the receiver cannot keep up: {share} of the packets were lost, most of them at its socket, and {}",
            cpu::why(flow, Role::Receiver, own)
        );
        let next = cpu::next_step(flow, Role::Receiver, own);
        let mut finding = builder.holds(strength, why, format!("{next}{}", buffered_pause_text(flow)));
        finding.place = Some(cpu::load_location(flow, Role::Receiver, own));
        return finding;
    }
    builder.refuted()
}

/// Says how long a pause the socket buffer covers.
fn buffered_pause_text(flow: &Flow) -> String {
    let Some(buffer) = flow.figure(StreamView::rcvbuf).filter(|_| flow.goodput_bps > 0.0) else {
        return String::new();
    };
    let per_stream = flow.goodput_bps / flow.streams.len().max(1) as f64;
    format!(
        " Its buffer of {} covers pauses of up to {} at this rate; a larger one (net.core.rmem_max, --window) covers \
         longer ones.",
        text::bytes(buffer.value),
        text::nanos(buffer.value * 8e9 / per_stream)
    )
}

fn conclude(builder: FindingBuilder, flow: &Flow, own: &Load, strength: Strength) -> Finding {
    let (why, next) = (cpu::why(flow, Role::Receiver, own), cpu::next_step(flow, Role::Receiver, own));
    let mut finding = builder.holds(strength, why, next);
    finding.place = Some(cpu::load_location(flow, Role::Receiver, own));
    finding
}
