//! The receiver's processor.

use landspeed_model::Cause;

use crate::causes::cpu;
use crate::causes::slow_reader::reads_on_schedule;
use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::load::{Kind, Load, Role, load, receiver_behind};
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{EXPLAINS, RATE_REACHED, UDP_LOSS};

/// NIC counters that mean the host did not take packets from the ring in time (mlx5, ixgbe/i40e/ice, ena, generic).
fn ring_counter(name: &str) -> bool {
    ["rx_out_of_buffer", "rx_missed_errors", "rx_no_buffer_count", "rx_fifo_errors", "rx_no_dma_resources"]
        .iter()
        .any(|known| name.ends_with(known))
}

/// Holds the receiving threads and cores against full, and counts what the host dropped before the socket.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let mut scales = Scales::new(flow, Cause::ReceiverCpu);
    let own = load(flow, Role::Receiver);
    cpu::weigh(&mut scales, flow, Role::Receiver, &own);
    let host = &flow.receiver;
    let end = Some(host.end);
    if flow.is_rr() {
        return match own.strength {
            Some(strength) => conclude(scales, flow, &own, strength),
            None => scales.refuted(),
        };
    }
    if flow.udp.is_some() {
        return datagrams(flow, scales, &own);
    }
    // Packets the host dropped itself, against the segments the sender had to send again.
    let resent = flow.moved(|tcp| Some(u64::from(tcp.total_retrans))).unwrap_or(0.0);
    let backlog = host.series.map(|series| series.softnet.dropped as f64);
    let ring = host.nic_sum(ring_counter).map(|packets| packets as f64);
    let enough = Bound::AtLeast((resent * EXPLAINS).max(1.0));
    let source = format!("host_series.{}.softnet.dropped", host.name());
    let dropped = scales.optional("packets dropped by the backlog", backlog, "packets", enough, end, &source);
    let source = format!("host_series.{}.nic", host.name());
    let missed = scales.optional("packets the ring had no room for", ring, "packets", enough, end, &source);
    if resent > 0.0 && (dropped == Some(true) || missed == Some(true)) {
        // Both counters are shared with whatever else the host receives.
        let strength =
            if own.kind == Kind::Softirq && own.strength.is_some() { Strength::Strong } else { Strength::Moderate };
        let (what, fix) = if dropped == Some(true) {
            ("backlog", "net.core.netdev_max_backlog, and spread soft interrupts over more cores (RPS)".to_owned())
        } else {
            (
                "receive ring",
                "the receive ring (`ethtool -G <nic> rx <max>`), and spread interrupts over more cores".to_owned(),
            )
        };
        let packets = backlog.unwrap_or(0.0).max(ring.unwrap_or(0.0));
        let why = format!(
            "the {} dropped {} packets in its {what} before TCP saw them, and the sender resent {}",
            host.name(),
            text::number(packets),
            text::number(resent)
        );
        let mut finding = scales.holds(strength, why, format!("On the {} raise {fix}.", host.name()));
        finding.place = Some(format!("{}, {what}", host.name()));
        return finding;
    }
    let behind = receiver_behind(flow);
    // Data queues at a reader that has no schedule of its own and was kept from its core: that is why it is late.
    let queues = matches!(reader(flow), Reader::Behind | Reader::Unclear) && behind == Some(true);
    let late = queues && own.kept_waiting() && !reads_on_schedule(flow);
    let Some(mut strength) = own.strength.max(late.then_some(Strength::Moderate)) else { return scales.refuted() };
    let sender = load(flow, Role::Sender).strength;
    match behind {
        // Interrupts come before the socket: no queue shows there.
        _ if own.kind == Kind::Softirq => {}
        // Which end it is has been weighed.
        _ if own.kind == Kind::Turns => {}
        Some(true) => {}
        // The receiver keeps up, and the sender is as busy: the sender is the slow one.
        Some(false) if sender >= Some(strength) => return scales.refuted(),
        Some(false) => strength = Strength::Weak,
        None => strength = strength.lowered(),
    }
    conclude(scales, flow, &own, strength)
}

/// UDP: a receiver that loses packets at its own socket or before it.
fn datagrams(flow: &Flow, mut scales: Scales, own: &Load) -> Finding {
    let Some(udp) = &flow.udp else { return scales.refuted() };
    let end = Some(flow.receiver.end);
    let lossy = scales.value("packets lost", udp.loss, "ratio", Bound::AtLeast(UDP_LOSS), None, "udp.loss_ratio");
    if lossy != Some(true) {
        return scales.refuted();
    }
    let most = Bound::AtLeast(EXPLAINS);
    let socket = scales.value(
        "lost packets dropped by the receiving socket",
        udp.share(udp.at_socket),
        "ratio",
        most,
        end,
        "streams[].receiver.udp.socket_drops",
    );
    let before = scales.value(
        "lost packets dropped in the host before the socket",
        udp.share(udp.in_receiver),
        "ratio",
        most,
        end,
        "conservation.losses",
    );
    let share = text::percent(udp.loss.unwrap_or(0.0));
    if socket == Some(true) {
        // A thread kept from its core reads late, and a socket overflows within milliseconds.
        let late = own.kept_waiting().then_some(Strength::Moderate);
        let Some(strength) = own.strength.max(late) else { return scales.refuted() };
        let why = format!(
            "the receiver cannot keep up: {share} of the packets were lost, most of them at its socket, and {}",
            cpu::why(flow, Role::Receiver, own)
        );
        let next = cpu::next_step(flow, Role::Receiver, own);
        let mut finding = scales.holds(strength, why, format!("{next}{}", bridges(flow)));
        finding.place = Some(cpu::place(flow, Role::Receiver, own));
        return finding;
    }
    if before == Some(true) {
        let name = flow.receiver.name();
        let why = format!("{share} of the packets were lost, most of them inside the {name} before the socket");
        let next = format!(
            "On the {name} raise net.core.netdev_max_backlog and the receive ring, and spread interrupts over more \
             cores; or lower --rate below {}.",
            text::rate(flow.goodput_bps * RATE_REACHED)
        );
        let mut finding = scales.holds(Strength::Moderate, why, next);
        finding.place = Some(format!("{name}, backlog or ring"));
        return finding;
    }
    scales.refuted()
}

/// How long a pause the socket's buffer bridges.
fn bridges(flow: &Flow) -> String {
    let Some(buffer) = flow.figure(StreamView::rcvbuf).filter(|_| flow.goodput_bps > 0.0) else {
        return String::new();
    };
    let per_stream = flow.goodput_bps / flow.streams.len().max(1) as f64;
    format!(
        " Its buffer of {} bridges pauses of up to {} at this rate; a larger one (net.core.rmem_max, --window) bridges \
         longer ones.",
        text::bytes(buffer.value),
        text::nanos(buffer.value * 8e9 / per_stream)
    )
}

fn conclude(scales: Scales, flow: &Flow, own: &Load, strength: Strength) -> Finding {
    let (why, next) = (cpu::why(flow, Role::Receiver, own), cpu::next_step(flow, Role::Receiver, own));
    let mut finding = scales.holds(strength, why, next);
    finding.place = Some(cpu::place(flow, Role::Receiver, own));
    finding
}
