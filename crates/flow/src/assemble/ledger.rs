//! Accounting: bytes or packets sent, received and lost, and where they were lost.

use landspeed_model::{
    Conservation, Direction, LossLocation, Parameters, PlacedLoss, Protocol, QdiscDelta, StreamEnd, Term, UdpTotals,
};

use super::known::{Known, Unknown};
use super::reports::Reports;
use crate::end::{EndReport, Side};

/// Balances bytes or packets sent against those received.
pub fn balance(
    parameters: &Parameters,
    reports: &Reports<'_>,
    udp: Option<&UdpTotals>,
    unknown: &mut Unknown,
) -> Conservation {
    let mut accounting = match (parameters.protocol, udp) {
        (Protocol::Udp, Some(totals)) => udp_accounting(totals, parameters, reports, unknown),
        _ => tcp_accounting(reports, unknown),
    };
    let reported = || reports.streams().iter().filter(|s| s.intervals_from == "receiver");
    let receivers: i64 = reported().filter_map(|s| s.receiver.as_ref()).map(|r| r.bytes as i64).sum();
    let intervals: i64 = reported().flat_map(|s| &s.intervals).map(|i| i.bytes as i64).sum();
    accounting.intervals_minus_totals_bytes = intervals - receivers;
    for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
        if reports.side(side).is_none() {
            accounting.holds = false;
            accounting.notes.push(format!("the {name}'s report is missing: what it sent or received is unknown"));
        }
    }
    if accounting.intervals_minus_totals_bytes != 0 {
        accounting.holds = false;
        accounting
            .notes
            .push("the intervals do not add up to the totals: a defect of landspeed, please report it".to_owned());
    }
    accounting
}

fn term(name: &str, sign: &str, bytes: Option<i64>, packets: Option<i64>, source: &str) -> Term {
    Term { name: name.to_owned(), sign: sign.to_owned(), bytes, packets, source: source.to_owned() }
}

/// Sums the bytes in the socket queues of all sending or receiving ends. A queue that a host does not report (iperf3)
/// counts as empty in the equation, and is unknown in its term.
fn queues(
    reports: &Reports<'_>,
    sends: bool,
    count: impl Fn(&StreamEnd) -> Option<u64>,
) -> (Known<u64>, Option<i64>) {
    let directions = reports.directions();
    let visible = reports.sum(directions, sends, &count).ok();
    (reports.sum(directions, sends, |end| Some(count(end).unwrap_or(0))), visible.map(|n| n as i64))
}

fn tcp_accounting(reports: &Reports<'_>, unknown: &mut Unknown) -> Conservation {
    let directions = reports.directions();
    let offered = reports.sum(directions, true, |e| Some(e.bytes));
    let delivered = reports.sum(directions, false, |e| Some(e.bytes));
    let (send_queue, visible_send_queue) = queues(reports, true, |e| e.send_queue_bytes);
    let (receive_queue, visible_receive_queue) = queues(reports, false, |e| e.receive_queue_bytes);
    let acked = reports.sum(directions, true, |e| e.bytes_acked).ok();
    let retransmitted = reports.sum(directions, true, |e| e.bytes_retrans).ok();
    let queued = send_queue.clone().and_then(|sending| Ok(sending + receive_queue?));
    let unaccounted =
        offered.clone().and_then(|offered| Ok(offered as i64 - delivered.clone()? as i64 - queued.clone()? as i64));
    let mut notes = Vec::new();
    if unaccounted.as_ref().is_ok_and(|bytes| *bytes < 0) && send_queue.is_ok_and(|bytes| bytes > 0) {
        notes.push(
            "bytes the receiver had read were still unacknowledged at the sender: they are counted at both ends"
                .to_owned(),
        );
    }
    let ended_early = reports.streams().iter().any(|s| s.receiver.as_ref().is_some_and(|r| r.error.is_some()));
    if unaccounted.as_ref().is_ok_and(|bytes| *bytes != 0) && ended_early {
        notes.push("a stream ended early: what its receiver had not read by then is unaccounted for".to_owned());
    }
    let signed = |count: Option<u64>| count.map(|count| count as i64);
    let offered = unknown.field("conservation.offered", offered);
    let delivered = unknown.field("conservation.delivered", delivered);
    let unaccounted_bytes = unknown.field("conservation.unaccounted_bytes", unaccounted);
    Conservation {
        holds: unaccounted_bytes == Some(0),
        unit: "bytes".to_owned(),
        offered,
        delivered,
        lost: Some(0),
        queued: unknown.field("conservation.queued", queued),
        unaccounted_bytes,
        unaccounted_packets: None,
        intervals_minus_totals_bytes: 0,
        terms: vec![
            term("written by senders", "+", signed(offered), None, "bytes accepted by send calls"),
            term("in send queues at the end", "-", visible_send_queue, None, "SIOCOUTQ"),
            term("in receive queues at the end", "-", visible_receive_queue, None, "SIOCINQ"),
            term("read by receivers", "-", signed(delivered), None, "bytes returned by receive calls"),
            term("for comparison: acknowledged to senders", "", signed(acked), None, "tcpi_bytes_acked"),
            term("for comparison: retransmitted by TCP", "", signed(retransmitted), None, "tcpi_bytes_retrans"),
        ],
        losses: Vec::new(),
        notes,
    }
}

fn udp_accounting(
    totals: &UdpTotals,
    parameters: &Parameters,
    reports: &Reports<'_>,
    unknown: &mut Unknown,
) -> Conservation {
    let lost = totals.lost_packets.map(|lost| lost.max(0) as u64);
    let mut notes = Vec::new();
    let losses = lost.map(|lost| attribute_losses(lost, parameters, reports, &mut notes)).unwrap_or_default();
    let unaccounted = totals.lost_packets.map(|lost| lost.min(0));
    let beyond = reports.datagrams(false, |udp| udp.beyond_window_packets).unwrap_or(0);
    if beyond > 0 {
        notes.push(format!(
            "{beyond} packets arrived so late that they cannot be distinguished from duplicates; they are in neither count"
        ));
    }
    if totals.lost_packets.is_some_and(|lost| lost < 0) {
        notes.push(
            "more packets arrived than were sent: the receiver counted packets that are not the test's".to_owned(),
        );
    }
    let size = i64::from(totals.payload_bytes);
    let counted = |name: &str, sign: &str, count: Option<u64>, source: &str| {
        let packets = count.map(|count| count as i64);
        term(name, sign, packets.map(|packets| packets * size), packets, source)
    };
    // The reasons are those of the totals.
    let because = |count: Option<u64>, host: bool| match count {
        Some(count) => Ok(count),
        None => Err(reports.datagrams(host, |udp| Some(udp.sent_packets)).err().unwrap_or_default()),
    };
    let difference = || {
        let ends = because(totals.sent_packets, true).err().or(because(totals.delivered_packets, false).err());
        ends.unwrap_or_default()
    };
    Conservation {
        holds: unaccounted == Some(0) && beyond == 0,
        unit: "packets".to_owned(),
        offered: unknown.field("conservation.offered", because(totals.sent_packets, true)),
        delivered: unknown.field("conservation.delivered", because(totals.delivered_packets, false)),
        lost: unknown.field("conservation.lost", lost.ok_or_else(difference)),
        queued: Some(0),
        unaccounted_bytes: unknown.field(
            "conservation.unaccounted_bytes",
            unaccounted.map(|packets| packets * size).ok_or_else(difference),
        ),
        unaccounted_packets: unknown.field("conservation.unaccounted_packets", unaccounted.ok_or_else(difference)),
        intervals_minus_totals_bytes: 0,
        terms: vec![
            counted("accepted by the senders' kernels", "+", totals.sent_packets, "datagrams accepted by send calls"),
            counted("delivered (first copies)", "-", totals.delivered_packets, "sequence bitmap of the receivers"),
            counted("lost", "-", lost, "the senders' final count minus first copies"),
            counted(
                "for comparison: further copies",
                "",
                totals.duplicate_packets,
                "sequence bitmap of the receivers",
            ),
            counted(
                "for comparison: refused by the senders' kernels",
                "",
                totals.refused_packets,
                "ENOBUFS of send calls",
            ),
        ],
        losses,
        notes,
    }
}

/// Largest number of packets in one UDP GSO batch: limited by 64 KiB and by the kernel's `UDP_MAX_SEGMENTS`
/// (128).
fn batch_packets(parameters: &Parameters) -> u64 {
    let payload = parameters.udp.as_ref().map_or(1, |u| u.payload_bytes.max(1));
    u64::from((65_507 / payload).clamp(1, 128))
}

/// Attributes `lost` packets to places along the path by their drop counters, never more than remain
/// unexplained. Without the counters of both hosts, only the sockets' own drops have a place; with some of them, the
/// rest is not the network's.
fn attribute_losses(
    lost: u64,
    parameters: &Parameters,
    reports: &Reports<'_>,
    notes: &mut Vec<String>,
) -> Vec<PlacedLoss> {
    let mut placed = Placed { left: lost, places: Vec::new() };
    // The sockets' own counters first: they count only this test. A batch that stays whole from the sender's GSO
    // to the receiver's GRO (loopback, veth) counts as one drop in the kernel.
    let at_sockets = socket_drops(parameters, reports);
    if let Ok((socket, coalesced)) = at_sockets {
        let source = if coalesced { "SO_RXQ_OVFL, which counts a coalesced batch as one" } else { "SO_RXQ_OVFL" };
        placed.add(LossLocation::ReceiverSocket, socket, !coalesced, source);
    }
    let mut invisible = reports.invisible_hosts();
    invisible.extend(at_sockets.err().map(|_| "the receiving sockets' drops are not visible".to_owned()));
    if !invisible.is_empty() {
        if placed.left > 0 {
            notes.push(format!("where {} packets were lost is unknown: {}", placed.left, invisible.join("; ")));
        }
        return placed.places;
    }
    let (client, server) = (reports.side(Side::Client), reports.side(Side::Server));
    let (senders, receivers): (Vec<_>, Vec<_>) = match parameters.direction {
        Direction::Upload => (vec![client], vec![server]),
        Direction::Download => (vec![server], vec![client]),
        Direction::Both => (vec![client, server], vec![client, server]),
    };
    let total = |ends: &[Option<&EndReport>], of: &dyn Fn(&EndReport) -> u64| -> u64 {
        ends.iter().flatten().map(|end| of(end)).sum()
    };
    let nic = |names: &'static [&'static str]| {
        move |end: &EndReport| {
            let moved = end.host.nic.iter().filter(|c| names.contains(&c.name.as_str()));
            moved.map(|c| c.delta.max(0) as u64).sum()
        }
    };
    // The drops of `clsact` are those of both directions.
    let both = parameters.direction == Direction::Both;
    let leaves = |qdisc: &&QdiscDelta| if both { qdisc.parent == "root" } else { qdisc.counts_egress_drops() };
    let dropped = total(&senders, &|end| end.host.qdiscs.iter().filter(leaves).map(|qdisc| qdisc.drops).sum());
    // A datagram whose send call failed was dropped there as well, and is not among the packets sent.
    let refused = reports.datagrams(true, |udp| Some(udp.send_errors.unwrap_or(0))).unwrap_or(0);
    placed.add(LossLocation::SenderQdisc, dropped.saturating_sub(refused), false, "queueing discipline statistics");
    placed.add(
        LossLocation::SenderNic,
        total(&senders, &nic(&["rtnl.tx_dropped", "rtnl.tx_errors"])),
        false,
        "interface statistics",
    );
    let ingress = |end: &EndReport| -> u64 {
        let qdiscs = end.host.qdiscs.iter().filter(|qdisc| qdisc.counts_ingress_drops());
        qdiscs.map(|qdisc| qdisc.drops).sum()
    };
    placed.add(LossLocation::ReceiverNic, total(&receivers, &ingress), false, "ingress qdisc statistics");
    placed.add(
        LossLocation::ReceiverBacklog,
        total(&receivers, &|end| end.host.softnet.dropped),
        false,
        "/proc/net/softnet_stat",
    );
    placed.add(
        LossLocation::ReceiverNic,
        total(&receivers, &nic(&["rtnl.rx_missed_errors", "rtnl.rx_fifo_errors", "rtnl.rx_errors"])),
        false,
        "interface statistics",
    );
    let unread = reports.invisible_drops();
    if unread.is_empty() {
        placed.add(LossLocation::Network, placed.left, false, "what no counter of either host explains");
    } else if placed.left > 0 {
        notes.push(format!("where {} packets were lost is unknown: {}", placed.left, unread.join("; ")));
    }
    placed.places
}

/// Places of losses, and the packets that have none yet.
struct Placed {
    left: u64,
    places: Vec<PlacedLoss>,
}

impl Placed {
    /// Attributes `seen` packets to a place, never more than are left.
    fn add(&mut self, place: LossLocation, seen: u64, exact: bool, source: &str) {
        let packets = seen.min(self.left);
        if packets > 0 {
            self.left -= packets;
            self.places.push(PlacedLoss { place, packets, exact, source: source.to_owned() });
        }
    }
}

/// Packets dropped by the receiving sockets, and whether that counts coalesced batches.
fn socket_drops(parameters: &Parameters, reports: &Reports<'_>) -> Known<(u64, bool)> {
    let senders = reports.ends(reports.directions(), true)?;
    let receivers = reports.ends(reports.directions(), false)?;
    let (mut all, mut coalesced) = (0, false);
    for ((_, sender), (_, receiver)) in senders.iter().zip(&receivers) {
        let (Some(sender), Some(receiver)) = (&sender.udp, &receiver.udp) else {
            return Err("a stream has no UDP counts".to_owned());
        };
        let drops = receiver.socket_drops.ok_or("a host does not report its socket's drops")?;
        let lost = sender.sent_packets.saturating_sub(receiver.delivered_packets);
        let whole = sender.gso_used && receiver.gro_used && drops < lost;
        let batch = if whole { batch_packets(parameters) } else { 1 };
        all += lost.min(drops.saturating_mul(batch));
        coalesced |= whole && drops > 0;
    }
    Ok((all, coalesced))
}
