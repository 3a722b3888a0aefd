//! Expressions and frames with the verdicts that pcap-filter(7) specifies.

use landspeed_wire::LinkType;
use landspeed_wire::filter::{FilterError, Instruction, compile, verify};
use proptest::prelude::*;

use crate::filter::expressions::expression;
use crate::filter::filters;
use crate::filter::machine::{FilterInput, run};

const SNAP_BYTES: u32 = 96;

/// An Ethernet frame with this EtherType and these VLAN tags.
fn ethernet(tags: &[u16], kind: u16, packet: &[u8]) -> FilterInput {
    let mut frame = vec![2; 12];
    for tag in tags {
        frame.extend([0x8100_u16.to_be_bytes(), tag.to_be_bytes()].concat());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(packet);
    FilterInput { frame, whole: true, ..FilterInput::default() }
}

/// IPv4 packet from 10.0.0.1:1000 to 10.0.0.2:80, with 4 bytes of options; `fragment` is the field of flags and
/// offset.
fn ipv4(protocol: u8, fragment: u16) -> Vec<u8> {
    let [high, low] = fragment.to_be_bytes();
    let header = [0x46, 0, 0, 48, 0, 0, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1];
    [&header[..], &[3, 232, 0, 80], &[0; 16]].concat()
}

/// IPv6 packet from 2001:db8::1 port 1000 to 2001:db8::2 port 80.
fn ipv6(next: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, next, 64];
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    [&packet[..], &[3, 232, 0, 80], &[0; 16]].concat()
}

fn arp() -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2][..], &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat()
}

fn passes(text: &str, link: LinkType, seen: &FilterInput) -> bool {
    let program = compile(text, link, SNAP_BYTES).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    let bytes = run(&program, seen);
    assert!(bytes == 0 || bytes == SNAP_BYTES, "{text}: {bytes}");
    bytes != 0
}

/// Asserts that a frame passes the first expressions and none of the others.
fn decide(link: LinkType, seen: &FilterInput, passing: &[&str], rejecting: &[&str]) {
    for text in passing {
        assert!(passes(text, link, seen), "{text} rejects {seen:x?}");
        assert!(!passes(&format!("not ({text})"), link, seen), "not ({text}) passes {seen:x?}");
    }
    for text in rejecting {
        assert!(!passes(text, link, seen), "{text} passes {seen:x?}");
    }
}

#[test]
fn protocols_hosts_networks_and_ports_match() {
    decide(
        LinkType::ETHERNET,
        &ethernet(&[], 0x0800, &ipv4(6, 0)),
        &[
            "ip",
            "tcp",
            "tcp or udp and ip",
            "host 10.0.0.1",
            "dst host 10.0.0.2",
            "src and dst net 10",
            "net 10.0.0.0 mask 255.255.255.0",
            "port 80",
            "tcp dst port 443 or 80",
            "src portrange 999-1001",
            "host 10.0.0.1 and 10.0.0.2 and port 80 and not tcp port 443",
            "!(udp || arp) && not vlan",
        ],
        &[
            "udp",
            "ip6",
            "icmp",
            "arp",
            "dst host 10.0.0.1",
            "net 11",
            "src port 80",
            "udp port 80",
            "portrange 81-999",
            "tcp and port not 80",
            "vlan",
            "host ::1",
        ],
    );
    decide(
        LinkType::ETHERNET,
        &ethernet(&[], 0x86dd, &ipv6(17)),
        &["ip6", "udp", "port 80", "host 2001:db8::1", "src net 2001:db8::/32", "udp src port 1000"],
        &["ip", "tcp", "icmp6", "host 10.0.0.1", "dst host 2001:db8::1", "net 2001:db8:1::/48", "tcp port 80"],
    );
    decide(
        LinkType::ETHERNET,
        &ethernet(&[], 0x0806, &arp()),
        &["arp", "host 10.0.0.1", "arp dst host 10.0.0.2", "net 10"],
        &["ip", "rarp", "ip host 10.0.0.1", "port 80", "host 10.0.0.3"],
    );
}

#[test]
fn only_the_first_fragment_has_ports() {
    let later = ethernet(&[], 0x0800, &ipv4(17, 0x2001));
    decide(LinkType::ETHERNET, &later, &["udp", "host 10.0.0.1"], &["port 80", "udp port 80"]);
    decide(LinkType::ETHERNET, &ethernet(&[], 0x0800, &ipv4(17, 0x2000)), &["port 80"], &[]);
}

#[test]
fn vlan_tags_are_found_in_frame_and_metadata() {
    let in_frame = ethernet(&[0x2005], 0x0800, &ipv4(6, 0));
    let taken_out = FilterInput { tag: Some(0x2005), ..ethernet(&[], 0x0800, &ipv4(6, 0)) };
    for seen in [&in_frame, &taken_out] {
        let found =
            ["vlan", "vlan 5", "vlan 5 and tcp port 80", "vlan and host 10.0.0.1", "udp or (vlan and port 80)"];
        decide(LinkType::ETHERNET, seen, &found, &["vlan 6", "vlan 5 and udp", "vlan and vlan", "vlan 6 or arp"]);
    }
    // Expressions without `vlan` use the offsets of untagged frames.
    assert!(!passes("tcp", LinkType::ETHERNET, &in_frame) && passes("tcp", LinkType::ETHERNET, &taken_out));
    let two = FilterInput { tag: Some(5), ..ethernet(&[6], 0x0800, &ipv4(6, 0)) };
    decide(LinkType::ETHERNET, &two, &["vlan 5 and vlan 6 and tcp"], &["vlan 6", "vlan 5 and tcp"]);
}

#[test]
fn direction_uses_the_kernels_packet_type() {
    let sent = FilterInput { outgoing: true, ..ethernet(&[], 0x0800, &ipv4(6, 0)) };
    decide(LinkType::ETHERNET, &sent, &["outbound", "outbound and tcp"], &["inbound"]);
}

#[test]
fn raw_ip_packets_match_without_ethernet_header() {
    let seen = |frame| FilterInput { frame, whole: true, ..FilterInput::default() };
    decide(LinkType::RAW, &seen(ipv4(6, 0)), &["ip", "tcp port 80", "host 10.0.0.2"], &["ip6", "udp", "host ::1"]);
    decide(LinkType::RAW, &seen(ipv6(6)), &["ip6", "tcp port 80", "net 2001:db8::/32"], &["ip", "udp"]);
    assert_eq!(compile("arp", LinkType::RAW, SNAP_BYTES), Err(FilterError::RejectsAll));
}

#[test]
fn truncated_frames_are_rejected() {
    let mut seen = ethernet(&[], 0x0800, &ipv4(6, 0));
    seen.frame.truncate(14 + 24 + 3);
    assert!(passes("tcp", LinkType::ETHERNET, &seen) && passes("src port 1000", LinkType::ETHERNET, &seen));
    assert!(
        !passes("dst port 80", LinkType::ETHERNET, &seen) && !passes("not dst port 80", LinkType::ETHERNET, &seen)
    );
}

#[test]
fn empty_expression_accepts_everything() {
    assert_eq!(compile(" \n", LinkType::ETHERNET, 42), Ok(vec![Instruction::pass(42)]));
}

#[test]
fn contradictory_expressions_are_refused_as_rejecting_all() {
    for text in ["ip and arp", "tcp and udp", "host 10.0.0.1 and ip and arp", "tcp port 80 and not tcp"] {
        assert_eq!(compile(text, LinkType::ETHERNET, SNAP_BYTES), Err(FilterError::RejectsAll), "{text}");
    }
}

#[test]
fn programs_are_short() {
    for (text, most) in
        [("tcp", 12), ("port 80", 24), ("tcp port 5201 and host 192.0.2.1", 18), ("host 10.0.0.1", 14)]
    {
        let program = compile(text, LinkType::ETHERNET, SNAP_BYTES).expect(text);
        assert!(program.len() <= most, "{text}: {} {program:?}", program.len());
    }
}

#[test]
fn lists_beyond_the_conditional_jump_range_compile_correctly() {
    let ports: Vec<String> =
        (2000..2400).map(|port| format!("host 10.9.9.{} and tcp port {port}", port % 250)).collect();
    let text = format!("({}) or dst port 80", ports[..200].join(" or "));
    let seen = ethernet(&[], 0x0800, &ipv4(6, 0));
    let program = compile(&text, LinkType::ETHERNET, SNAP_BYTES).expect("it fits");
    assert!(program.iter().any(|instruction| instruction.code == 0x05), "it has long jumps: {}", program.len());
    assert_eq!((verify(&program), run(&program, &seen)), (Ok(()), SNAP_BYTES));
    let mut other = seen;
    other.frame[14 + 24 + 3] = 81;
    assert_eq!(run(&program, &other), 0);
}

proptest! {
    #[test]
    fn every_text_compiles_validly_or_is_refused(
        text in prop_oneof![
            expression(LinkType::ETHERNET, true),
            "[a-z0-9 ().:/&|!-]{0,40}",
            prop::collection::vec(
                prop::sample::select(&["not", "(", ")", "and", "or", "tcp", "port", "80", "src", "dst", "net", "10", "/", "8",
                    "host", "::1", "10.0.0.1", "vlan", "mask", "portrange", "1-2", "é"][..]),
                0..16,
            ).prop_map(|words| words.join(" ")),
        ],
    ) {
        filters::filter(&text);
    }

    #[test]
    fn random_programs_are_verified_without_panic(bytes in prop::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..200)) {
        filters::program(&bytes);
    }
}
