//! Several connections with the same four-tuple are several flows.

use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn segment(forth: bool, sequence: u32, ack: u32, flags: u8, window: u16, payload: u16, id: u16) -> Vec<u8> {
    let ends = [([10, 0, 0, 1], 40_000_u16), ([10, 0, 0, 2], 5_001)];
    let (from, to) = if forth { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let mut packet = vec![0x45, 0];
    packet.extend((40 + payload).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, 64, 6, 0, 0]);
    packet.extend([from.0, to.0].concat());
    packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
    packet.extend([sequence.to_be_bytes(), ack.to_be_bytes()].concat());
    packet.extend([0x50, flags]);
    packet.extend(window.to_be_bytes());
    packet.extend([0; 4]);
    packet
}

/// How a connection ends: FIN, RST, or neither.
#[derive(Debug, Clone, Copy)]
enum End {
    Fin,
    Reset,
    Nothing,
}

/// A connection: initial sequence numbers, number of segments, number of them lost after the tap, and its end.
#[derive(Debug, Clone)]
struct Transfer {
    numbers: [u32; 2],
    segments: u32,
    lost: u32,
    end: End,
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let end = prop_oneof![Just(End::Fin), Just(End::Reset), Just(End::Nothing)];
    (any::<[u32; 2]>(), 6_u32..40, 0_u32..3, end).prop_map(|(numbers, segments, lost, end)| Transfer {
        numbers,
        segments,
        lost,
        end,
    })
}

fn play(connections: &[Transfer]) -> landspeed_model::TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    let (mut now, mut id) = (1_000_000_000_u64, 0_u16);
    for Transfer { numbers: [client, server], segments, lost, end } in connections {
        let (first, answer) = (client.wrapping_add(1), server.wrapping_add(1));
        let at = |segment: u32| first.wrapping_add(segment * 1_000);
        let mut send = |forth: bool, sequence: u32, ack: u32, flags: u8, payload: u16| {
            now += 100_000;
            id = id.wrapping_add(1).max(1);
            let data = segment(forth, sequence, ack, flags, 1_000, payload, id);
            let original = data.len() as u32 + u32::from(payload);
            analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns: now, original, data: &data });
        };
        send(true, *client, 0, SYN, 0);
        send(false, *server, first, SYN | ACK, 0);
        send(true, first, answer, ACK, 0);
        for segment in 0..*segments {
            send(true, at(segment), answer, ACK, 1_000);
        }
        for segment in 0..*lost {
            (0..4).for_each(|_| send(false, answer, at(segment), ACK, 0));
            send(true, at(segment), answer, ACK, 1_000);
        }
        send(false, answer, at(*segments), ACK, 0);
        match end {
            End::Fin => {
                send(true, at(*segments), answer, FIN | ACK, 0);
                send(false, answer, at(*segments).wrapping_add(1), FIN | ACK, 0);
                send(true, at(*segments).wrapping_add(1), answer.wrapping_add(1), ACK, 0);
            }
            End::Reset => send(false, answer, at(*segments), RST | ACK, 0),
            End::Nothing => {}
        }
    }
    analysis.finish(landspeed_model::BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_reused_four_tuple_is_another_flow(connections in prop::collection::vec(transfer(), 1..8)) {
        let document = play(&connections);
        prop_assert_eq!(document.flows.len(), connections.len());
        let mut flows = document.flows.clone();
        flows.sort_by_key(|flow| flow.start_ns);
        for (flow, truth) in flows.iter().zip(&connections) {
            prop_assert_eq!(flow.forward.unique_bytes, u64::from(truth.segments) * 1_000);
            prop_assert_eq!(flow.retransmits, u64::from(truth.lost));
            prop_assert_eq!((flow.forward.missing_bytes, flow.reverse.missing_bytes), (0, 0));
            let handshake = flow.handshake.as_ref().expect("one each");
            prop_assert_eq!((handshake.client_sequence, handshake.syn_retransmits), (Some(truth.numbers[0]), 0));
            prop_assert_eq!(flow.reset.is_some(), matches!(truth.end, End::Reset));
        }
    }
}

#[test]
fn a_retransmitted_syn_is_the_same_connection() {
    let mut analysis = Analysis::new(Limits::default());
    let sent = [
        (true, 7, 0, SYN),
        (true, 7, 0, SYN),
        (false, 90, 8, SYN | ACK),
        (false, 91, 8, SYN | ACK),
        (true, 8, 92, ACK),
    ];
    for (number, (forth, sequence, ack, flags)) in sent.into_iter().enumerate() {
        let data = segment(forth, sequence, ack, flags, 1_000, 0, number as u16 + 1);
        let time_ns = 1_000_000_000 + number as u64 * 1_000_000_000;
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original: 40, data: &data });
    }
    let document =
        analysis.finish(landspeed_model::BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
    assert_eq!(document.flows.len(), 1, "a SYN retransmitted, and a SYN cookie of another number");
    assert_eq!(document.flows[0].handshake.as_ref().map(|handshake| handshake.syn_retransmits), Some(1));
}

/// Plays segments of a client (`true`) and a server, 10 ms apart: sequence number, ACK number, flags, payload.
fn document(sent: &[(bool, u32, u32, u8, u16)]) -> landspeed_model::TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    for (number, &(forth, sequence, ack, flags, payload)) in sent.iter().enumerate() {
        let data = segment(forth, sequence, ack, flags, 1_000, payload, number as u16 + 1);
        let time_ns = 1_000_000_000 + number as u64 * 10_000_000;
        let original = 40 + u32::from(payload);
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original, data: &data });
    }
    analysis.finish(landspeed_model::BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

#[test]
fn data_on_the_syn_is_the_same_connection() {
    for accepted in [0, 200, 500] {
        let document = document(&[
            (true, 1_000, 0, SYN, 500),
            (false, 7_000, 1_001 + accepted, SYN | ACK, 0),
            (true, 1_001 + accepted, 7_001, ACK, 500 - accepted as u16),
            (false, 7_001, 1_501, ACK, 100),
            (true, 1_501, 7_101, ACK, 100),
            (false, 7_101, 1_601, ACK, 0),
        ]);
        assert_eq!(document.flows.len(), 1, "{accepted} bytes accepted");
        let flow = &document.flows[0];
        assert_eq!((flow.forward.unique_bytes, flow.reverse.unique_bytes), (600, 100));
        assert_eq!((flow.forward.missing_bytes, flow.reverse.missing_bytes), (0, 0));
        let handshake = flow.handshake.as_ref().expect("a handshake");
        assert_eq!((handshake.client_sequence, handshake.server_rtt_ns), (Some(1_000), Some(10_000_000)));
    }
}

#[test]
fn a_fast_open_syn_captured_after_its_answer_is_the_same_connection() {
    let document = document(&[
        (false, 7_000, 1_501, SYN | ACK, 0),
        (true, 1_000, 0, SYN, 500),
        (true, 1_501, 7_001, ACK, 100),
        (false, 7_001, 1_601, ACK, 0),
    ]);
    assert_eq!(document.flows.len(), 1);
    assert_eq!(document.flows[0].forward.unique_bytes, 600);
}

#[test]
fn a_late_syn_ack_after_a_reset_is_the_same_connection() {
    let document = document(&[
        (true, 1_000, 0, SYN, 0),
        (false, 7_000, 1_001, SYN | ACK, 0),
        (true, 1_001, 7_001, RST | ACK, 0),
        (false, 7_000, 1_001, SYN | ACK, 0),
        (true, 1_001, 0, RST, 0),
    ]);
    assert_eq!(document.flows.len(), 1, "the SYN-ACK is retransmitted");
}

#[test]
fn a_syn_ack_of_an_earlier_syn_changes_nothing() {
    for stale in [1_001, 9_000_001, 4_000_000_001] {
        let document = document(&[
            (true, 5_000, 0, SYN, 0),
            (false, 7_000, stale, SYN | ACK, 0),
            (true, stale, 0, RST, 0),
            (false, 90_000, 5_001, SYN | ACK, 0),
            (true, 5_001, 90_001, ACK, 0),
            (true, 5_001, 90_001, ACK, 1_000),
            (false, 90_001, 6_001, ACK, 0),
        ]);
        assert_eq!(document.flows.len(), 1, "{stale}");
        let flow = &document.flows[0];
        assert_eq!(
            (flow.forward.unique_bytes, flow.forward.missing_bytes, flow.retransmits),
            (1_000, 0, 0),
            "{stale}"
        );
        let handshake = flow.handshake.as_ref().expect("a handshake");
        assert_eq!((handshake.client_sequence, handshake.server_rtt_ns), (Some(5_000), Some(30_000_000)), "{stale}");
    }
}

#[test]
fn memory_for_connections_is_bounded() {
    let limits = Limits { flows: 3, ..Limits::default() };
    let mut analysis = Analysis::new(limits);
    for number in 0..200_u32 {
        let data = segment(true, number * 1_000_000, 0, SYN, 1_000, 0, number as u16 + 1);
        let time_ns = 1_000_000_000 + u64::from(number) * 1_000_000_000;
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original: 40, data: &data });
    }
    assert!((1..=3).contains(&analysis.live_flows()), "{}", analysis.live_flows());
    let document =
        analysis.finish(landspeed_model::BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
    assert_eq!(document.flows.len() as u64 + document.unlisted.flows, 200, "each of them is counted");
}
