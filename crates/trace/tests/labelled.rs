//! Generated conversations in which every event has a label: in any order, and from any initial sequence number,
//! each event is reported as labelled, and nothing else is reported.

use crate::play::{Conversation, Extra, MS, MSS};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

/// Number of segments per round.
const ROUND: u32 = 10;
/// Time from one round to the next, milliseconds.
const ROUND_INTERVAL_MS: u64 = 500;

/// The event of a round. Numbers are segments of the round.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    /// Lost after the tap, fast retransmit.
    LostAfterTap(u32),
    /// Lost before the tap.
    LostBeforeTap(u32),
    /// Two in a row lost after the tap.
    TwoLost(u32),
    /// The last one lost after the tap, TLP.
    Tail,
    /// Spurious TLP.
    SpuriousTail,
    /// RTO.
    Timeout,
    /// Reordered: overtaken by the next two, with an older IP identification.
    Late(u32),
    /// Duplicated in the network.
    Copied(u32),
    /// The receiver's window closes, is probed, and opens.
    ZeroWindow,
    /// All segments in one super-packet, as with TSO and GRO.
    SuperPacket,
    /// A malformed frame.
    Malformed,
    /// A frame with an earlier timestamp.
    Backward,
    /// A frame that is not IP.
    NonIp,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Nothing),
        (0..ROUND - 1).prop_map(Event::LostAfterTap),
        (0..ROUND - 1).prop_map(Event::LostBeforeTap),
        (0..ROUND - 2).prop_map(Event::TwoLost),
        Just(Event::Tail),
        Just(Event::SpuriousTail),
        Just(Event::Timeout),
        (1..ROUND - 3).prop_map(Event::Late),
        (0..ROUND).prop_map(Event::Copied),
        Just(Event::ZeroWindow),
        Just(Event::SuperPacket),
        Just(Event::Malformed),
        Just(Event::Backward),
        Just(Event::NonIp),
    ]
}

/// Expected counts of a conversation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Labels {
    fast: u64,
    timeout: u64,
    tail: u64,
    lost_before_tap: u64,
    unclassified: u64,
    spurious: u64,
    out_of_order: u64,
    duplicates: u64,
    zero_windows: u64,
    probes: u64,
    missing_bytes: u64,
    super_packets: u64,
    malformed: u64,
    backward_steps: u64,
    not_ip: u64,
}

/// Plays a round and labels it.
fn round(play: &mut Conversation, number: u32, event: Event, labels: &mut Labels) {
    let (ms, base) = (20 + u64::from(number) * ROUND_INTERVAL_MS, number * ROUND);
    let end = base + ROUND;
    let all = |play: &mut Conversation, but: &[u32]| {
        (base..end).filter(|segment| !but.contains(segment)).for_each(|segment| play.data(ms, segment));
    };
    let missed = |play: &mut Conversation, first: u32, to: u32| {
        (0..3).for_each(|more| play.sack(ms + 10, first, &[(to, (to + 1 + more).min(end))]));
    };
    match event {
        Event::Nothing => all(play, &[]),
        Event::LostAfterTap(at) => {
            all(play, &[]);
            missed(play, base + at, base + at + 1);
            play.data(ms + 11, base + at);
            labels.fast += 1;
        }
        Event::TwoLost(at) => {
            all(play, &[]);
            missed(play, base + at, base + at + 2);
            play.data(ms + 11, base + at);
            play.data(ms + 11, base + at + 1);
            labels.fast += 2;
        }
        Event::LostBeforeTap(at) => {
            all(play, &[base + at]);
            missed(play, base + at, base + at + 1);
            play.data(ms + 11, base + at);
            labels.lost_before_tap += 1;
        }
        Event::Tail | Event::SpuriousTail => {
            all(play, &[]);
            play.ack(ms + 10, end - 1);
            play.data(ms + 30, end - 1);
            labels.tail += 1;
            if matches!(event, Event::SpuriousTail) {
                play.sack(ms + 40, end, &[(end - 1, end)]);
                labels.spurious += 1;
            }
        }
        Event::Timeout => {
            all(play, &[]);
            play.data(ms + 230, base);
            labels.timeout += 1;
        }
        Event::Late(at) => {
            (base..base + at).for_each(|segment| play.data(ms, segment));
            let older = play.identification;
            play.identification = play.identification.wrapping_add(1).max(1);
            (base + at + 1..base + at + 3).for_each(|segment| play.data(ms, segment));
            let extra = Extra { identification: Some(older), ..Extra::default() };
            play.segment(ms * MS + 1000, true, play.number(base + at), 1, MSS, extra);
            (base + at + 3..end).for_each(|segment| play.data(ms + 1, segment));
            labels.out_of_order += 1;
        }
        Event::Copied(at) => {
            for segment in base..end {
                let same = play.identification;
                play.data(ms, segment);
                if segment == base + at {
                    let extra = Extra { identification: Some(same), ..Extra::default() };
                    play.segment(ms * MS, true, play.number(segment), 1, MSS, extra);
                    labels.duplicates += 1;
                }
            }
        }
        Event::ZeroWindow => {
            all(play, &[]);
            let next = play.number(end);
            let window = |window| Extra { window: Some(window), ..Extra::default() };
            play.segment((ms + 10) * MS, false, 1, next, 0, window(0));
            play.segment((ms + 210) * MS, true, next.wrapping_sub(1), 1, 1, Extra::default());
            play.segment((ms + 220) * MS, false, 1, next, 0, window(900));
            labels.zero_windows += 1;
            labels.probes += 1;
        }
        Event::SuperPacket => {
            play.segment(ms * MS, true, play.number(base), 1, ROUND * MSS, Extra::default());
            labels.super_packets += 1;
        }
        Event::Malformed | Event::Backward | Event::NonIp => {
            all(play, &[]);
            let (link, time_ns, data): (_, _, &[u8]) = match event {
                // A header length of 8 bytes; one that is greater than the packet.
                Event::Malformed if number.is_multiple_of(2) => (LinkType::RAW, ms, &[0x42; 40]),
                Event::Malformed => {
                    (LinkType::RAW, ms, &[0x4f, 0, 0, 21, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
                }
                Event::Backward => (LinkType::ETHERNET, ms - 15, &[0xff; 60]),
                _ => (LinkType::ETHERNET, ms, &[0xff; 60]),
            };
            labels.malformed += u64::from(matches!(event, Event::Malformed));
            labels.not_ip += u64::from(!matches!(event, Event::Malformed));
            labels.backward_steps += u64::from(matches!(event, Event::Backward));
            let frame = Frame { interface: 0, link, time_ns: time_ns * MS + 1, original: data.len() as u32, data };
            play.analysis.frame(&frame);
        }
    }
    play.ack(ms + 240, end);
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn every_labelled_event_is_reported_and_no_other(first: u32, events in prop::collection::vec(event(), 1..25)) {
        let mut play = Conversation::with_first(first);
        let mut labels = Labels::default();
        for (number, event) in events.iter().enumerate() {
            round(&mut play, number as u32, *event, &mut labels);
        }
        let document = play.document();
        prop_assert_eq!(document.flows.len(), 1);
        let (capture, flow) = (&document.capture, &document.flows[0]);
        let (forward, retransmits) = (&flow.forward, &flow.forward.retransmits);
        let found = Labels {
            fast: retransmits.fast,
            timeout: retransmits.timeout,
            tail: retransmits.tail,
            lost_before_tap: retransmits.lost_before_tap,
            unclassified: retransmits.unclassified,
            spurious: retransmits.spurious,
            out_of_order: forward.out_of_order,
            duplicates: forward.duplicates,
            zero_windows: flow.reverse.zero_windows,
            probes: forward.probes,
            missing_bytes: forward.missing_bytes,
            super_packets: capture.super_packets,
            malformed: capture.malformed,
            backward_steps: capture.backward_steps,
            not_ip: capture.not_ip,
        };
        prop_assert_eq!(found, labels);
        prop_assert_eq!(forward.unique_bytes, u64::from(ROUND * MSS) * events.len() as u64);
        prop_assert_eq!(forward.in_flight_max_bytes, u64::from(ROUND * MSS));
    }
}
