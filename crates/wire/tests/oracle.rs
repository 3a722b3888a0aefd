//! The dissector against packets built by etherparse.

use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_wire::{DissectError, Encapsulations, Flags, LinkType, Packet, Transport, dissect};
use proptest::prelude::*;

const MAPPED: u128 = 0xffff_0000_0000;

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn dissected(frame: &[u8]) -> Result<Packet, DissectError> {
    dissect(LinkType::ETHERNET, frame, frame.len() as u32)
}

proptest! {
    #[test]
    fn tcp_over_ipv4_and_ipv6_is_dissected_as_built(
        six: bool, source: [u8; 16], destination: [u8; 16], ports: (u16, u16), sequence: u32, ack: u32, window: u16,
        times: Option<(u32, u32)>, block: Option<(u32, u32)>, payload in prop::collection::vec(any::<u8>(), 0..200),
        tagged: bool,
    ) {
        let four = |address: [u8; 16]| [address[0], address[1], address[2], address[3]];
        let mut options = Vec::new();
        options.extend(times.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
        options.extend(block.map(|first| TcpOptionElement::SelectiveAcknowledgement(first, [None; 3])));
        let mut frame = Vec::new();
        macro_rules! build {
            ($start:expr) => {{
                let at = $start;
                let at = if six { at.ipv6(source, destination, 64) } else { at.ipv4(four(source), four(destination), 64) };
                at.tcp(ports.0, ports.1, sequence, window).ack(ack).options(&options).expect("they fit").write(&mut frame, &payload)
            }};
        }
        if tagged { build!(ethernet().single_vlan(7.try_into().expect("a tag"))) } else { build!(ethernet()) }.expect("memory");
        // The padding of short Ethernet frames is not payload.
        frame.resize(frame.len().max(60), 0);

        let packet = dissected(&frame).expect("a whole packet");
        let Transport::Tcp(tcp) = packet.transport else { panic!("TCP, not {:?}", packet.transport) };
        let address = |bytes: [u8; 16]| if six { u128::from_be_bytes(bytes) } else { MAPPED | u128::from(u32::from_be_bytes(four(bytes))) };
        prop_assert_eq!((packet.network.source, packet.network.destination), (address(source), address(destination)));
        prop_assert_eq!(packet.encapsulations.contains(Encapsulations::VLAN), tagged);
        prop_assert_eq!((tcp.source, tcp.destination), ports);
        prop_assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.window), (sequence, ack, window));
        prop_assert_eq!(tcp.payload as usize, payload.len());
        prop_assert_eq!(tcp.options.timestamps, times);
        prop_assert_eq!(tcp.options.sack.as_slice(), block.as_slice());
        prop_assert!(tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::SYN));
        prop_assert!(!tcp.options.incomplete);
    }

    #[test]
    fn udp_is_dissected_as_built(ports: (u16, u16), payload in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assume!(ports.1 != 4789);
        let mut frame = Vec::new();
        ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(ports.0, ports.1).write(&mut frame, &payload).expect("memory");
        let packet = dissected(&frame).expect("a whole packet");
        let Transport::Udp { source, destination, payload: length, at } = packet.transport else { panic!("UDP") };
        prop_assert_eq!((source, destination), ports);
        prop_assert_eq!(length as usize, payload.len());
        prop_assert_eq!(&frame[at..], &payload[..]);
    }

    #[test]
    fn corrupt_packets_never_panic_or_gain_payload(
        mut frame in prop::collection::vec(any::<u8>(), 0..160), link in prop::sample::select(vec![0_u32, 1, 12, 101, 108, 113, 228, 229, 276, 999]),
        ip: bool, original in 0_u32..70_000,
    ) {
        if ip && frame.len() > 15 {
            (frame[12], frame[13], frame[14]) = (8, 0, 0x45);
        }
        let original = original.max(frame.len() as u32);
        if let Ok(packet) = dissect(LinkType(link), &frame, original)
            && let Transport::Tcp(tcp) = packet.transport
        {
            prop_assert!(tcp.payload <= packet.network.payload);
        }
    }
}

#[test]
fn truncation_is_reported_at_every_snap_length() {
    let mut frame = Vec::new();
    let options = [TcpOptionElement::Timestamp(1, 2), TcpOptionElement::SelectiveAcknowledgement((3, 4), [None; 3])];
    let built = ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, 3, 4).ack(5).options(&options);
    built.expect("they fit").write(&mut frame, &[7; 1000]).expect("memory");
    let headers = frame.len() - 1000;
    for snap in 0..frame.len() {
        let packet = dissect(LinkType::ETHERNET, &frame[..snap], frame.len() as u32);
        match packet {
            Err(why) => assert!(why == DissectError::Truncated && snap < 54, "{snap}: {why:?}"),
            Ok(packet) => {
                let Transport::Tcp(tcp) = packet.transport else { panic!("TCP at {snap}") };
                assert_eq!(tcp.payload, 1000, "{snap}");
                assert_eq!(tcp.options.incomplete, snap < headers, "{snap}");
            }
        }
    }
}

/// One packet in each encapsulation: VXLAN and IP-based ones built by etherparse, the others byte by byte as in
/// their standards.
#[test]
fn segments_are_found_in_every_encapsulation() {
    let mut inner = Vec::new();
    let built = PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64).tcp(4242, 80, 77, 1000);
    built.write(&mut inner, &[0; 10]).expect("memory");
    let mut inner_frame = vec![0; 12];
    inner_frame.extend([8, 0]);
    inner_frame.extend(&inner);
    let outer = |protocol: u8, payload: &[u8]| {
        let mut frame = vec![0; 12];
        frame.extend([8, 0]);
        let ip = etherparse::Ipv4Header::new(payload.len() as u16, 64, protocol.into(), [1, 1, 1, 1], [2, 2, 2, 2]);
        ip.expect("it fits").write(&mut frame).expect("memory");
        frame.extend(payload);
        frame
    };
    let ether = |kind: u16, rest: &[&[u8]]| {
        let mut frame = vec![0; 12];
        frame.extend(kind.to_be_bytes());
        for part in rest {
            frame.extend(*part);
        }
        frame
    };
    let vxlan = [&[0, 9, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0][..], &inner_frame].concat();
    let geneve =
        [&[0, 9, 0x17, 0xc1, 0, 0, 0, 0, 2, 0, 0x65, 0x58, 0, 0, 7, 0][..], &[0; 8][..], &inner_frame].concat();
    let cases = [
        ("MPLS, two labels", Encapsulations::MPLS, ether(0x8847, &[&[0, 1, 0, 64], &[0, 2, 1, 64], &inner])),
        ("Ethernet over MPLS", Encapsulations::MPLS, ether(0x8847, &[&[0, 2, 1, 64], &[0; 4], &inner_frame])),
        ("QinQ", Encapsulations::VLAN, ether(0x88a8, &[&[0, 5, 0x81, 0], &[0, 6, 8, 0], &inner])),
        ("PPPoE", Encapsulations::PPPOE, ether(0x8864, &[&[0x11, 0, 0, 1, 0, 60, 0, 0x21], &inner])),
        ("IP in IP", Encapsulations::IP, outer(4, &inner)),
        ("GRE with a key", Encapsulations::GRE, outer(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 9][..], &inner].concat())),
        ("GRE with Ethernet", Encapsulations::GRE, outer(47, &[&[0, 0, 0x65, 0x58][..], &inner_frame].concat())),
        ("VXLAN", Encapsulations::VXLAN, outer(17, &vxlan)),
        ("Geneve with an option", Encapsulations::GENEVE, outer(17, &geneve)),
    ];
    for (name, encapsulations, frame) in cases {
        let packet = dissected(&frame).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let Transport::Tcp(tcp) = packet.transport else { panic!("{name}: {:?}", packet.transport) };
        assert_eq!((tcp.source, tcp.sequence, tcp.payload), (4242, 77, 10), "{name}");
        assert!(packet.encapsulations.contains(encapsulations), "{name}");
    }
}

#[test]
fn segments_are_found_after_every_link_header() {
    let mut inner = Vec::new();
    PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64)
        .tcp(4242, 80, 77, 1)
        .write(&mut inner, &[])
        .expect("memory");
    let links: [(LinkType, &[u8]); 9] = [
        (LinkType::NULL, &[2, 0, 0, 0]),
        (LinkType::LOOP, &[0, 0, 0, 2]),
        (LinkType::PPP, &[0xff, 3, 0, 0x21]),
        (LinkType::PPP_HDLC, &[0, 0x21]),
        (LinkType::C_HDLC, &[15, 0, 8, 0]),
        (LinkType::RAW, &[]),
        (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (LinkType::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]),
        (LinkType::IPOIB, &[&[0; 40][..], &[8, 0, 0, 0]].concat()),
    ];
    for (link, header) in links {
        let frame = [header, &inner].concat();
        let packet = dissect(link, &frame, frame.len() as u32).unwrap_or_else(|why| panic!("{link:?}: {why:?}"));
        assert!(matches!(packet.transport, Transport::Tcp(tcp) if tcp.sequence == 77), "{link:?}");
        assert!(link.name().is_some());
    }
}

#[test]
fn zero_length_super_packets_end_with_the_frame() {
    for six in [false, true] {
        let mut frame = Vec::new();
        let built = if six { ethernet().ipv6([1; 16], [2; 16], 64) } else { ethernet().ipv4([1; 4], [2; 4], 64) };
        built.tcp(1, 2, 3, 4).write(&mut frame, &[]).expect("memory");
        let length = if six { 14 + 4 } else { 14 + 2 };
        frame[length..length + 2].fill(0);
        let original = frame.len() as u32 + 190_000;
        let packet = dissect(LinkType::ETHERNET, &frame, original).expect("a packet");
        let Transport::Tcp(tcp) = packet.transport else { panic!("TCP") };
        assert_eq!(tcp.payload, 190_000);
    }
}

#[test]
fn extension_headers_are_parsed_and_later_fragments_lack_ports() {
    let mut plain = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(5, 6, 7, 8).write(&mut plain, &[0; 100]).expect("memory");
    let with = |next: u8, header: &[u8]| {
        let mut packet = plain.clone();
        packet[6] = next;
        packet.splice(40..40, header.iter().copied());
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet
    };
    let hop_by_hop = with(0, &[6, 0, 1, 4, 0, 0, 0, 0]);
    let packet = dissect(LinkType::RAW, &hop_by_hop, hop_by_hop.len() as u32).expect("a packet");
    assert!(matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload == 100 && tcp.source == 5));
    let fragment = with(44, &[6, 0, 0x01, 0x00, 0, 0, 0, 9]);
    let packet = dissect(LinkType::RAW, &fragment, fragment.len() as u32).expect("a packet");
    assert_eq!(packet.transport, Transport::Fragment);
}
