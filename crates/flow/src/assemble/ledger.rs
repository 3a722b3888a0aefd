//! Accounting: bytes or packets sent, received and lost, and where they were lost.

use landspeed_model::{
    Conservation, Direction, LossLocation, Parameters, PlacedLoss, Protocol, Stream, StreamEnd, Term, UdpTotals,
};

use crate::end::EndReport;

/// Balances bytes or packets sent against those received.
pub fn balance(
    parameters: &Parameters,
    streams: &[Stream],
    udp: Option<&UdpTotals>,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Conservation {
    let mut accounting = match (parameters.protocol, udp) {
        (Protocol::Udp, Some(totals)) => udp_accounting(totals, streams, parameters, client, server),
        _ => tcp_accounting(streams),
    };
    let reported = || streams.iter().filter(|s| s.intervals_from == "receiver");
    let receivers: i64 = reported().filter_map(|s| s.receiver.as_ref()).map(|r| r.bytes as i64).sum();
    let intervals: i64 = reported().flat_map(|s| &s.intervals).map(|i| i.bytes as i64).sum();
    accounting.intervals_minus_totals_bytes = intervals - receivers;
    let missing = [(client, "client"), (server, "server")].into_iter().filter(|(report, _)| report.is_none());
    for (_, name) in missing {
        accounting.holds = false;
        accounting.notes.push(format!("the {name}'s report is missing: what it sent or received is unknown"));
    }
    if accounting.intervals_minus_totals_bytes != 0 {
        accounting.holds = false;
        accounting
            .notes
            .push("the intervals do not add up to the totals: a defect of landspeed, please report it".to_owned());
    }
    accounting
}

fn sum<'a>(ends: impl Iterator<Item = &'a StreamEnd>, of: impl Fn(&StreamEnd) -> Option<u64>) -> u64 {
    ends.filter_map(of).sum()
}

fn term(name: &str, sign: &str, bytes: Option<i64>, packets: Option<i64>, source: &str) -> Term {
    Term { name: name.to_owned(), sign: sign.to_owned(), bytes, packets, source: source.to_owned() }
}

fn tcp_accounting(streams: &[Stream]) -> Conservation {
    let senders = || streams.iter().filter_map(|s| s.sender.as_ref());
    let receivers = || streams.iter().filter_map(|s| s.receiver.as_ref());
    let offered = sum(senders(), |e| Some(e.bytes));
    let delivered = sum(receivers(), |e| Some(e.bytes));
    let send_queue = sum(senders(), |e| e.send_queue_bytes);
    let receive_queue = sum(receivers(), |e| e.receive_queue_bytes);
    let acked = sum(senders(), |e| e.bytes_acked);
    let retransmitted = sum(senders(), |e| e.bytes_retrans);
    let queued = send_queue + receive_queue;
    let unaccounted = offered as i64 - delivered as i64 - queued as i64;
    let mut notes = Vec::new();
    if unaccounted < 0 && send_queue > 0 {
        notes.push(
            "bytes the receiver had read were still unacknowledged at the sender: they are counted at both ends"
                .to_owned(),
        );
    }
    if unaccounted != 0 && streams.iter().any(|s| s.receiver.as_ref().is_some_and(|r| r.error.is_some())) {
        notes.push("a stream ended early: what its receiver had not read by then is unaccounted for".to_owned());
    }
    Conservation {
        holds: unaccounted == 0,
        unit: "bytes".to_owned(),
        offered,
        delivered,
        lost: 0,
        queued,
        unaccounted_bytes: unaccounted,
        unaccounted_packets: None,
        intervals_minus_totals_bytes: 0,
        terms: vec![
            term("written by senders", "+", Some(offered as i64), None, "bytes accepted by send calls"),
            term("in send queues at the end", "-", Some(send_queue as i64), None, "SIOCOUTQ"),
            term("in receive queues at the end", "-", Some(receive_queue as i64), None, "SIOCINQ"),
            term("read by receivers", "-", Some(delivered as i64), None, "bytes returned by receive calls"),
            term("for comparison: acknowledged to senders", "", Some(acked as i64), None, "tcpi_bytes_acked"),
            term("for comparison: retransmitted by TCP", "", Some(retransmitted as i64), None, "tcpi_bytes_retrans"),
        ],
        losses: Vec::new(),
        notes,
    }
}

fn udp_accounting(
    totals: &UdpTotals,
    streams: &[Stream],
    parameters: &Parameters,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Conservation {
    let lost = totals.lost_packets.max(0) as u64;
    let losses = attribute_losses(lost, streams, parameters, client, server);
    let unaccounted = totals.sent_packets as i64 - totals.delivered_packets as i64 - lost as i64;
    let beyond: u64 =
        streams.iter().filter_map(|s| s.receiver.as_ref()?.udp.as_ref()).map(|u| u.beyond_window_packets).sum();
    let mut notes = Vec::new();
    if beyond > 0 {
        notes.push(format!(
            "{beyond} packets arrived so late that they cannot be distinguished from duplicates; they are in neither count"
        ));
    }
    if totals.lost_packets < 0 {
        notes.push(
            "more packets arrived than were sent: the receiver counted packets that are not the test's".to_owned(),
        );
    }
    let size = i64::from(totals.payload_bytes);
    let bytes = |packets: i64| Some(packets * size);
    let packets = |n: u64| Some(n as i64);
    Conservation {
        holds: unaccounted == 0 && beyond == 0,
        unit: "packets".to_owned(),
        offered: totals.sent_packets,
        delivered: totals.delivered_packets,
        lost,
        queued: 0,
        unaccounted_bytes: unaccounted * size,
        unaccounted_packets: Some(unaccounted),
        intervals_minus_totals_bytes: 0,
        terms: vec![
            term(
                "accepted by the senders' kernels",
                "+",
                bytes(totals.sent_packets as i64),
                packets(totals.sent_packets),
                "datagrams accepted by send calls",
            ),
            term(
                "delivered (first copies)",
                "-",
                bytes(totals.delivered_packets as i64),
                packets(totals.delivered_packets),
                "sequence bitmap of the receivers",
            ),
            term("lost", "-", bytes(lost as i64), packets(lost), "the senders' final count minus first copies"),
            term(
                "for comparison: further copies",
                "",
                bytes(totals.duplicate_packets as i64),
                packets(totals.duplicate_packets),
                "sequence bitmap of the receivers",
            ),
            term(
                "for comparison: refused by the senders' kernels",
                "",
                bytes(totals.refused_packets as i64),
                packets(totals.refused_packets),
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
/// unexplained.
fn attribute_losses(
    lost: u64,
    streams: &[Stream],
    parameters: &Parameters,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<PlacedLoss> {
    let mut left = lost;
    let mut places = Vec::new();
    let mut place = |place: LossLocation, seen: u64, exact: bool, source: &str| {
        let packets = seen.min(left);
        if packets > 0 {
            left -= packets;
            places.push(PlacedLoss { place, packets, exact, source: source.to_owned() });
        }
    };
    // The sockets' own counters first: they count only this test. A batch that stays whole from the sender's GSO
    // to the receiver's GRO (loopback, veth) counts as one drop in the kernel.
    let of_stream = |s: &Stream| {
        let (sender, receiver) = (s.sender.as_ref()?.udp.as_ref()?, s.receiver.as_ref()?.udp.as_ref()?);
        let lost = sender.sent_packets.saturating_sub(receiver.delivered_packets);
        let whole = sender.gso_used && receiver.gro_used && receiver.socket_drops < lost;
        let batch = if whole { batch_packets(parameters) } else { 1 };
        Some((lost.min(receiver.socket_drops.saturating_mul(batch)), whole && receiver.socket_drops > 0))
    };
    let (socket, coalesced) =
        streams.iter().filter_map(of_stream).fold((0, false), |(n, any), (more, whole)| (n + more, any || whole));
    let source = if coalesced { "SO_RXQ_OVFL, which counts a coalesced batch as one" } else { "SO_RXQ_OVFL" };
    place(LossLocation::ReceiverSocket, socket, !coalesced, source);
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
    place(
        LossLocation::SenderQdisc,
        total(&senders, &|end| end.host.qdiscs.iter().filter(|q| q.parent == "root").map(|q| q.drops).sum()),
        false,
        "queueing discipline statistics",
    );
    place(
        LossLocation::SenderNic,
        total(&senders, &nic(&["rtnl.tx_dropped", "rtnl.tx_errors"])),
        false,
        "interface statistics",
    );
    place(
        LossLocation::ReceiverBacklog,
        total(&receivers, &|end| end.host.softnet.dropped),
        false,
        "/proc/net/softnet_stat",
    );
    place(
        LossLocation::ReceiverNic,
        total(&receivers, &nic(&["rtnl.rx_missed_errors", "rtnl.rx_fifo_errors", "rtnl.rx_errors"])),
        false,
        "interface statistics",
    );
    if left > 0 {
        let source = "what no counter of either host explains".to_owned();
        places.push(PlacedLoss { place: LossLocation::Network, packets: left, exact: false, source });
    }
    places
}
