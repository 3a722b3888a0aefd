//! Both sides of a NAT or of a firewall in one capture.

use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

const MS: u64 = 1_000_000;

/// What a middlebox changes between its sides.
#[derive(Clone, Copy)]
struct Middlebox {
    client: ([u8; 4], u16),
    /// Added to the client's sequence numbers.
    shift: u32,
}

/// Analyses a transfer of 40 segments that a capture has on both sides of a middlebox, 50 µs apart.
fn analyse(outside: Middlebox, timestamps: bool) -> TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    let inside = Middlebox { client: ([10, 0, 0, 1], 40_000), shift: 0 };
    let mut play = |at_ns: u64, up: bool, flags: &str, sequence: u32, ack: u32, length: u32, id: u16| {
        let sides = if up { [inside, outside] } else { [outside, inside] };
        for (number, Middlebox { client, shift }) in sides.into_iter().enumerate() {
            let server = ([192, 0, 2, 1], 443);
            let (from, to) = if up { (client, server) } else { (server, client) };
            let (sequence, ack) =
                if up { (sequence.wrapping_add(shift), ack) } else { (sequence, ack.wrapping_add(shift)) };
            let ttl = 64 - number as u8;
            let mut built = PacketBuilder::ipv4(from.0, to.0, ttl).tcp(from.1, to.1, sequence, 500);
            if flags.contains('S') {
                built = built.syn();
            }
            if flags.contains('A') {
                built = built.ack(ack);
            }
            let stamp = TcpOptionElement::Timestamp((at_ns / MS) as u32 + 7, 9);
            let options =
                if timestamps { vec![TcpOptionElement::Noop, TcpOptionElement::Noop, stamp] } else { Vec::new() };
            let mut bytes = Vec::new();
            built.options(&options).expect("they fit").write(&mut bytes, &vec![0; length as usize]).expect("memory");
            bytes[4..6].copy_from_slice(&id.to_be_bytes());
            let (time_ns, original) = (1_000 * MS + at_ns + number as u64 * 50_000, bytes.len() as u32);
            analysis.frame(&Frame {
                interface: 0,
                link: LinkType::RAW,
                time_ns,
                original,
                data: &bytes[..bytes.len().min(80)],
            });
        }
    };
    play(0, true, "S", 1_000, 0, 0, 1);
    play(10 * MS, false, "SA", 90_000, 1_001, 0, 1);
    play(11 * MS, true, "A", 1_001, 90_001, 0, 2);
    for segment in 0..40_u32 {
        let at_ns = (20 + u64::from(segment)) * MS;
        play(at_ns, true, "A", 1_001 + segment * 1_000, 90_001, 1_000, 3 + segment as u16);
        play(at_ns + MS / 2, false, "A", 90_001, 2_001 + segment * 1_000, 0, 3 + segment as u16);
    }
    analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

fn assert_seen_twice(document: &TraceDocument) {
    assert_eq!(document.flows.len(), 2);
    for flow in &document.flows {
        assert_eq!((flow.forward.unique_bytes, flow.forward.packets, flow.reverse.packets), (40_000, 42, 41));
        assert_eq!((flow.retransmits, flow.forward.missing_bytes, flow.reverse.missing_bytes), (0, 0, 0));
        assert_eq!((flow.forward.duplicates, flow.forward.out_of_order, flow.forward.probes), (0, 0, 0));
        assert!(flow.handshake.as_ref().is_some_and(|handshake| handshake.syn_retransmits == 0));
    }
    assert_eq!(document.flows.iter().filter(|flow| flow.same_as.is_some()).count(), 1);
    assert_eq!(document.capture.unique_bytes, 40_000, "once");
    assert!(document.warnings.iter().any(|warning| warning.code == "seen-twice"), "{:?}", document.warnings);
}

#[test]
fn both_sides_of_a_nat_are_one_connection() {
    assert_seen_twice(&analyse(Middlebox { client: ([198, 51, 100, 7], 61_000), shift: 0 }, true));
}

#[test]
fn both_sides_of_a_firewall_that_changes_sequence_numbers_are_one_connection() {
    for shift in [1, 100_000, 1 << 31, 3_000_000_000, u32::MAX] {
        for timestamps in [true, false] {
            assert_seen_twice(&analyse(Middlebox { client: ([10, 0, 0, 1], 40_000), shift }, timestamps));
        }
    }
}

#[test]
fn a_nat_that_changes_sequence_numbers_too_gives_two_whole_flows() {
    let document = analyse(Middlebox { client: ([198, 51, 100, 7], 61_000), shift: 77_777 }, true);
    assert_eq!(document.flows.len(), 2);
    assert!(document.flows.iter().all(|flow| (flow.forward.unique_bytes, flow.retransmits) == (40_000, 0)));
}
