//! ICMP errors in a capture, and the flows they are about.

use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, icmpv4, icmpv6};
use landspeed_model::{BuildInfo, PacketDirection, TraceDocument};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

const ROUTER: [u8; 4] = [10, 0, 9, 9];

/// Analyses packets in the order of a list, 1 ms apart, of which 96 bytes were captured.
fn analyse(packets: &[Vec<u8>]) -> TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    for (number, packet) in packets.iter().enumerate() {
        let (time_ns, original) = (1_000_000_000 + number as u64 * 1_000_000, packet.len() as u32);
        let data = &packet[..packet.len().min(96)];
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original, data });
    }
    analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

fn segment(from: u8, to: u8, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let built = PacketBuilder::ipv4([10, 0, 0, from], [10, 0, 0, to], 64);
    let port = |end: u8| 1000 + u16::from(end);
    built.tcp(port(from), port(to), 1, 500).ack(1).write(&mut bytes, &vec![0; length]).expect("memory");
    bytes
}

/// An ICMP error from the router about a packet: its first 28 bytes.
fn error(to: u8, message: Icmpv4Type, about: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let built = PacketBuilder::ipv4(ROUTER, [10, 0, 0, to], 64).icmpv4(message);
    built.write(&mut bytes, &about[..28]).expect("memory");
    bytes
}

fn too_big(mtu: u16) -> Icmpv4Type {
    Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu })
}

#[test]
fn errors_are_those_of_the_flow_whose_packet_they_quote() {
    let data = segment(1, 2, 1400);
    let document = analyse(&[
        segment(1, 2, 100),
        data.clone(),
        error(1, too_big(1300), &data),
        error(1, too_big(1300), &data),
        error(1, Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Host), &data),
        segment(2, 1, 0),
        error(2, Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit), &segment(2, 1, 0)),
    ]);
    let [flow] = &document.flows[..] else { panic!("{:?}", document.flows) };
    let seen: Vec<_> = flow
        .icmp
        .iter()
        .map(|error| (error.what.as_str(), error.mtu_bytes, error.about, error.count, error.frame))
        .collect();
    assert_eq!(
        seen,
        [
            ("fragmentation needed", Some(1300), PacketDirection::Forward, 2, 3),
            ("host unreachable", None, PacketDirection::Forward, 1, 5),
            ("hop limit exceeded", None, PacketDirection::Reverse, 1, 7),
        ]
    );
    assert!(flow.icmp.iter().all(|error| error.from == "10.0.9.9"));
    assert_eq!((document.capture.other_transport, document.capture.not_analysed.len()), (0, 0));
    assert_eq!(
        (flow.forward.packets, flow.reverse.packets),
        (2, 1),
        "the quoted packets are not packets of the flow"
    );
}

#[test]
fn errors_about_unseen_flows_and_other_messages_are_counted() {
    let mut echo = Vec::new();
    let request = Icmpv4Type::EchoRequest(etherparse::IcmpEchoHeader { id: 1, seq: 2 });
    PacketBuilder::ipv4(ROUTER, [10, 0, 0, 1], 64).icmpv4(request).write(&mut echo, &[0; 56]).expect("memory");
    let document = analyse(&[segment(1, 2, 100), error(3, too_big(1300), &segment(3, 4, 100)), echo]);
    assert!(document.flows.iter().all(|flow| flow.icmp.is_empty()) && document.flows.len() == 1);
    let what: Vec<_> =
        document.capture.not_analysed.iter().map(|other| (other.what.as_str(), other.frames)).collect();
    assert_eq!(what, [("ICMP", 1), ("ICMP errors about flows that are not in the capture", 1)]);
}

#[test]
fn a_closed_port_over_ipv6_is_an_error_of_the_datagrams() {
    let address = |end: u8| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end];
    let mut datagram = Vec::new();
    PacketBuilder::ipv6(address(1), address(2), 64).udp(9, 5201).write(&mut datagram, &[0; 20]).expect("memory");
    let mut refused = Vec::new();
    let message = Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port);
    let built = PacketBuilder::ipv6(address(2), address(1), 64).icmpv6(message);
    built.write(&mut refused, &datagram[..48]).expect("memory");
    let document = analyse(&[datagram.clone(), refused]);
    let [flow] = &document.flows[..] else { panic!("{:?}", document.flows) };
    let [error] = &flow.icmp[..] else { panic!("{:?}", flow.icmp) };
    assert_eq!((error.what.as_str(), error.from.as_str(), error.count), ("port unreachable", "fd00::2", 1));
}
