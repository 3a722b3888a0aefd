//! The dissector against packets built by etherparse.

use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_wire::{DissectError, Encapsulations, Flags, LinkType, Packet, Reassembler, Transport, dissect};
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

/// Headers: UDP towards GTP-U's port, PPTP's GRE with a sequence number, GRE and the first two words of ERSPAN III, SNAP
/// without the EtherType.
const GTP: [u8; 8] = [0, 9, 0x08, 0x68, 0, 0, 0, 0];
const PPTP: [u8; 12] = [0x30, 1, 0x88, 0x0b, 0, 60, 0, 7, 0, 0, 0, 1];
const ERSPAN_III: [u8; 16] = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 5, 0, 0, 0, 0];
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

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
    let old_vxlan = [&[0, 9, 0x21, 0x18, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0][..], &inner_frame].concat();
    let extension = [0x34, 0xff, 0, 58, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
    let gtp_extended = [&GTP[..], &extension, &inner].concat();
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
        ("VXLAN on Linux's old port", Encapsulations::VXLAN, outer(17, &old_vxlan)),
        ("GTP-U", Encapsulations::GTP, outer(17, &[&GTP[..], &[0x30, 0xff, 0, 50, 0, 0, 0, 1], &inner].concat())),
        ("GTP-U with an extension", Encapsulations::GTP, outer(17, &gtp_extended)),
        ("PPTP", Encapsulations::GRE, outer(47, &[&PPTP[..], &[0xff, 3, 0, 0x21], &inner].concat())),
        ("ERSPAN I", Encapsulations::GRE, outer(47, &[&[0, 0, 0x88, 0xbe][..], &inner_frame].concat())),
        (
            "ERSPAN II",
            Encapsulations::GRE,
            outer(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 5, 0, 0, 0, 0][..], &inner_frame].concat()),
        ),
        ("ERSPAN III", Encapsulations::GRE, outer(47, &[&ERSPAN_III[..], &[0; 4], &inner_frame].concat())),
        (
            "ERSPAN III with a platform header",
            Encapsulations::GRE,
            outer(47, &[&ERSPAN_III[..], &[0, 0, 0, 1], &[0; 8], &inner_frame].concat()),
        ),
        ("SNAP", Encapsulations::default(), ether(60, &[&SNAP, &[8, 0], &inner])),
        ("SNAP in a VLAN", Encapsulations::VLAN, ether(0x8100, &[&[0, 5, 0, 60], &SNAP, &[8, 0], &inner])),
        ("LLC", Encapsulations::default(), ether(60, &[&[6, 6, 3], &inner])),
        ("HSR", Encapsulations::default(), ether(0x892f, &[&[0, 60, 0, 1, 8, 0], &inner])),
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
    let snap = [&SNAP[..], &[8, 0]].concat();
    let after = |header: &[u8]| [header, &snap].concat();
    // To the access point, QoS data; radiotap with a timestamp and flags, the second time with padding.
    let wlan = [&[0x88, 1, 0, 0][..], &[0; 18], &[0, 0], &[0, 0]].concat();
    let radiotap = |flags: u8| [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[flags], &wlan].concat();
    let nflog =
        [&[2, 0, 0, 9][..], &[8, 0, 1, 0, 0, 0, 0, 0], &[5, 0, 10, 0, 0x41, 0, 0, 0], &[45, 0, 9, 0]].concat();
    let links = [
        (LinkType::NULL, vec![2, 0, 0, 0]),
        (LinkType::LOOP, vec![0, 0, 0, 2]),
        (LinkType::PPP, vec![0xff, 3, 0, 0x21]),
        (LinkType::PPP, vec![0x21]),
        (LinkType::PPP, vec![15, 0, 8, 0]),
        (LinkType::PPP, vec![0x8f, 0, 8, 0]),
        (LinkType::PPP_HDLC, vec![0, 0x21]),
        (LinkType::PPP_WITH_DIRECTION, vec![1, 0xff, 3, 0, 0x21]),
        (LinkType::PPPOE, vec![0x11, 0, 0, 1, 0, 60, 0, 0x21]),
        (LinkType::C_HDLC, vec![15, 0, 8, 0]),
        (LinkType::RAW, vec![]),
        (LinkType::LINUX_SLL, vec![0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (LinkType::LINUX_SLL, after(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4])),
        (LinkType::LINUX_SLL2, vec![8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]),
        (LinkType::IPOIB, [&[0; 40][..], &[8, 0, 0, 0]].concat()),
        (LinkType::FDDI, after(&[&[0x50][..], &[2; 12]].concat())),
        (LinkType::FDDI, after(&[&[0, 0, 0, 0x57][..], &[2; 12]].concat())),
        (LinkType::TOKEN_RING, after(&[&[0x10, 0x40][..], &[2; 12]].concat())),
        (LinkType::TOKEN_RING, after(&[&[0x10, 0x40][..], &[2; 6], &[0x82; 6], &[4, 0, 1, 2]].concat())),
        (LinkType::ATM, snap.clone()),
        (LinkType::ATM, vec![]),
        (LinkType::FRAME_RELAY, vec![0x18, 0x41, 3, 0xcc]),
        (LinkType::FRAME_RELAY, vec![0x18, 0x41, 8, 0]),
        (LinkType::MPLS, vec![0, 1, 1, 64]),
        (LinkType::WLAN, after(&wlan)),
        (LinkType::WLAN, after(&[&[8, 3][..], &[0; 28]].concat())),
        (LinkType::RADIOTAP, after(&radiotap(0))),
        (LinkType::RADIOTAP, after(&[&radiotap(0x20)[..], &[0; 2]].concat())),
        (LinkType::PRISM, after(&[&[0x44, 0, 0, 0, 144, 0, 0, 0][..], &[0; 136], &wlan].concat())),
        (LinkType::AVS, after(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56], &wlan].concat())),
        (LinkType::PPI, after(&[&[0, 0, 8, 0, 105, 0, 0, 0][..], &wlan].concat())),
        (LinkType::NFLOG, nflog),
    ];
    for (link, header) in links {
        let frame = [&header[..], &inner].concat();
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

#[test]
fn what_is_not_dissected_has_a_name() {
    let ether = |kind: u16| [&[0; 12][..], &kind.to_be_bytes(), &[0x42, 0x42, 3], &[0; 40]].concat();
    let wlan = |control: u8, flags: u8| [&[control, flags][..], &[0; 60]].concat();
    let cases = [
        (LinkType::ETHERNET, ether(0x0806), "ARP"),
        (LinkType::ETHERNET, ether(0x88b5), "EtherType 0x88b5"),
        (LinkType::ETHERNET, ether(38), "STP"),
        (LinkType(189), vec![0; 64], "link type 189 (USB)"),
        (LinkType(9_999), vec![0; 64], "link type 9999"),
        (LinkType::PPP, [&[0xff, 3, 0xc0, 0x21][..], &[0; 8]].concat(), "LCP"),
        (LinkType::WLAN, wlan(0x80, 0), "802.11 management"),
        (LinkType::WLAN, wlan(0x88, 0x41), "802.11 encrypted data"),
        (LinkType::NULL, vec![7, 0, 0, 0, 1, 2, 3, 4], "address family 7"),
    ];
    for (link, frame, name) in cases {
        match dissect(link, &frame, frame.len() as u32) {
            Err(DissectError::NotIp(contents)) => assert_eq!(contents.to_string(), name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn fragments_are_reassembled_by_their_lengths() {
    let inner_payload = 2_000_usize;
    let mut plain = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64)
        .tcp(5, 6, 7, 8)
        .write(&mut plain, &vec![0; inner_payload])
        .expect("memory");
    let (header, payload) = plain.split_at(40);
    let parts: Vec<Packet> = payload
        .chunks(800)
        .enumerate()
        .map(|(number, part)| {
            let offset = (number * 800) as u16 | u16::from((number + 1) * 800 < payload.len());
            let extension = [&[6, 0][..], &offset.to_be_bytes(), &9_u32.to_be_bytes()].concat();
            let mut packet = [header, &extension, part].concat();
            packet[6] = 44;
            packet[4..6].copy_from_slice(&((8 + part.len()) as u16).to_be_bytes());
            dissect(LinkType::RAW, &packet[..packet.len().min(68)], packet.len() as u32).expect("a packet")
        })
        .collect();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut reassembler = Reassembler::default();
        let mut whole = order.iter().filter_map(|&part| reassembler.add(parts[part], 1));
        let packet = whole.next().expect("it is complete");
        assert!(
            matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload == 2_000 && tcp.source == 5),
            "{order:?}"
        );
        assert_eq!(whole.next(), None);
        drop(whole);
        assert_eq!((reassembler.reassembled(), reassembler.not_analysed()), (3, 0));
    }
    let mut reassembler = Reassembler::default();
    assert_eq!(reassembler.add(parts[0], 1), None);
    assert_eq!(reassembler.add(parts[1], 1), None);
    // Too late for the others.
    assert_eq!(reassembler.add(parts[2], 40_000_000_000), None);
    assert_eq!((reassembler.reassembled(), reassembler.not_analysed()), (0, 3));
}

#[test]
fn an_encapsulated_packet_in_fragments_is_found_once() {
    let mut inner = Vec::new();
    PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64)
        .tcp(4242, 80, 77, 1)
        .write(&mut inner, &[0; 1_400])
        .expect("memory");
    let outer = |offset: u16, part: &[u8]| {
        let length = (20 + part.len()) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 9]);
        packet.extend(offset.to_be_bytes());
        packet.extend([64, 4, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        packet.extend(part);
        dissect(LinkType::RAW, &packet, packet.len() as u32).expect("a packet")
    };
    let (first, second) = inner.split_at(1_200);
    let parts = [outer(0x2000, first), outer(150, second)];
    for order in [[0, 1], [1, 0]] {
        let mut reassembler = Reassembler::default();
        let found: Vec<_> = order.iter().filter_map(|&part| reassembler.add(parts[part], 1)).collect();
        assert_eq!(found.len(), 1, "{order:?}");
        assert!(matches!(found[0].transport, Transport::Tcp(tcp) if tcp.payload == 1_400 && tcp.sequence == 77));
        assert_eq!((reassembler.reassembled(), reassembler.not_analysed()), (2, 0));
    }
}
