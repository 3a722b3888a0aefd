//! The fast path of expected segments gives the same result as the slow path.

use landspeed_model::BuildInfo;
use landspeed_trace::{Analysis, Limits, NoObserver};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const ACK: u8 = 0x10;

/// An irregularity of a segment.
#[derive(Debug, Clone, Copy)]
enum Irregularity {
    Nothing,
    /// Sequence number off by this much.
    Sequence(i32),
    Acknowledgement(i32),
    Flags(u8),
    Window(u16),
    /// SACK blocks: offset of the first from the ACK number, length of each, number of further blocks.
    Sack(i32, u32, u8),
    NoTimestamps,
    Truncated(usize),
    /// A byte of the frame is replaced.
    Byte(usize, u8),
    Earlier(u64),
    OtherInterface,
    OtherLink,
    Larger(u32),
}

#[derive(Debug, Clone, Copy)]
struct Event {
    flow: u8,
    back: bool,
    after_ns: u64,
    payload: u16,
    /// Number of segments in flight that are acknowledged.
    acknowledges: u32,
    irregularity: Irregularity,
}

fn irregularity() -> impl Strategy<Value = Irregularity> {
    prop_oneof![
        12 => Just(Irregularity::Nothing),
        1 => (-5_000..5_000).prop_map(Irregularity::Sequence),
        1 => (-5_000..5_000).prop_map(Irregularity::Acknowledgement),
        1 => any::<i32>().prop_map(Irregularity::Acknowledgement),
        1 => any::<u8>().prop_map(Irregularity::Flags),
        1 => (0_u16..3).prop_map(Irregularity::Window),
        2 => (-3_000..5_000, 1_u32..3_000, 0_u8..3).prop_map(|(at, length, more)| Irregularity::Sack(at, length, more)),
        1 => Just(Irregularity::NoTimestamps),
        1 => (0_usize..90).prop_map(Irregularity::Truncated),
        2 => (0_usize..70, any::<u8>()).prop_map(|(at, byte)| Irregularity::Byte(at, byte)),
        1 => (1_u64..3_000_000).prop_map(Irregularity::Earlier),
        1 => Just(Irregularity::OtherInterface),
        1 => Just(Irregularity::OtherLink),
        1 => (0_u32..100_000).prop_map(Irregularity::Larger),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let after_ns = prop_oneof![8 => 0_u64..5_000, 2 => 0_u64..3_000_000, 1 => 0_u64..900_000_000];
    let payload = prop_oneof![2 => Just(0_u16), 3 => Just(1_448_u16), 1 => 1_u16..2_000];
    (0_u8..3, any::<bool>(), after_ns, payload, 0_u32..4, irregularity()).prop_map(
        |(flow, back, after_ns, payload, acknowledges, irregularity)| Event {
            // Mostly one flow, and trains of one direction.
            flow: flow.saturating_sub(1),
            back,
            after_ns,
            payload: if flow == 0 && back { 0 } else { payload },
            acknowledges,
            irregularity,
        },
    )
}

/// Next sequence number, and latest ACK number, of both directions of a flow.
#[derive(Debug, Clone, Copy)]
struct State {
    next: [u32; 2],
    acknowledged: [u32; 2],
}

fn segment(state: &mut State, event: &Event) -> Vec<u8> {
    let (own, other) = (usize::from(event.back), usize::from(!event.back));
    let (mut sequence, mut flags, mut window, mut sack) = (state.next[own], ACK, 500, Vec::new());
    let under_way = state.next[other].wrapping_sub(state.acknowledged[other]);
    state.acknowledged[other] =
        state.acknowledged[other].wrapping_add(under_way.min(event.acknowledges.wrapping_mul(1_448)));
    let mut acknowledgement = state.acknowledged[other];
    let mut timestamps = true;
    match event.irregularity {
        Irregularity::Sequence(by) => sequence = sequence.wrapping_add_signed(by),
        Irregularity::Acknowledgement(by) => acknowledgement = acknowledgement.wrapping_add_signed(by),
        Irregularity::Flags(other) => flags = other,
        Irregularity::Window(other) => window = other,
        Irregularity::Sack(at, length, more) => {
            let first = acknowledgement.wrapping_add_signed(at);
            sack = (0..=u32::from(more)).map(|block| (first.wrapping_add(block * 1_500), length)).collect();
        }
        Irregularity::NoTimestamps => timestamps = false,
        _ => {}
    }
    if !matches!(event.irregularity, Irregularity::Sequence(_)) {
        state.next[own] = state.next[own].wrapping_add(u32::from(event.payload));
    }
    let mut options = Vec::new();
    if timestamps {
        options.extend([1, 1, 8, 10, 0, 0, 1, event.flow, 0, 0, 2, 0]);
    }
    if !sack.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * sack.len() as u8]);
        for (first, length) in sack {
            options.extend(first.to_be_bytes());
            options.extend(first.wrapping_add(length).to_be_bytes());
        }
    }
    let total = 40 + options.len() as u16 + event.payload;
    let ends = [[10, 0, 0, 1 + event.flow], [10, 0, 1, 1]];
    let ports = [40_000_u16, 5_201];
    let mut frame = vec![2, 0, 0, 0, 0, other as u8, 2, 0, 0, 0, 0, own as u8, 8, 0, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(ends[own]);
    frame.extend(ends[other]);
    frame.extend(ports[own].to_be_bytes());
    frame.extend(ports[other].to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledgement.to_be_bytes());
    frame.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
    frame.extend(window.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(&options);
    frame
}

fn document(analysis: Analysis) -> String {
    let build = BuildInfo { version: "1".to_owned(), server_version: None };
    let name = |interface| Some(format!("eth{interface}"));
    let document = analysis.finish(build, Vec::new(), "x.pcap".to_owned(), "pcap", None, name);
    serde_json::to_string(&document).expect("a document")
}

proptest! {
    #![proptest_config(crate::cases(100))]

    #[test]
    fn the_fast_path_gives_the_same_document(
        events in prop::collection::vec(event(), 70..500), starts: [u32; 2], handshake: bool, flows in 1_usize..4,
        burst: bool,
    ) {
        // The fast path is off while copies are searched for.
        let burst_bps = burst.then_some(10_000_000);
        let limits = Limits { flows, burst_bps, look_for_copies: 0, ..Limits::default() };
        let mut paths = [Analysis::new(limits), Analysis::new(limits)];
        let mut states = [State { next: starts, acknowledged: starts }; 3];
        let mut now_ns = 1_700_000_000_000_000_000_u64;
        let shaking = [(false, 0x02), (true, 0x12)].map(|(back, flags)| Event {
            flow: 0, back, after_ns: 1_000_000, payload: 0, acknowledges: 0, irregularity: Irregularity::Flags(flags),
        });
        for event in shaking.iter().filter(|_| handshake).chain(&events) {
            now_ns += event.after_ns;
            let mut data = segment(&mut states[usize::from(event.flow)], event);
            let mut frame = Frame {
                interface: 0, link: LinkType::ETHERNET, time_ns: now_ns, original: data.len() as u32 + u32::from(event.payload), data: &[],
            };
            match event.irregularity {
                Irregularity::Truncated(length) => data.truncate(length),
                Irregularity::Byte(at, byte) if at < data.len() => data[at] = byte,
                Irregularity::Earlier(by) => frame.time_ns -= by,
                Irregularity::OtherInterface => frame.interface = 1,
                Irregularity::OtherLink => frame.link = LinkType::RAW,
                Irregularity::Larger(by) => frame.original += by,
                _ => {}
            }
            frame.data = &data;
            paths[0].frame(&frame);
            paths[1].frame_with_row(&frame, &mut NoObserver);
        }
        let [fast, slow] = paths.map(document);
        prop_assert_eq!(fast, slow);
    }
}
