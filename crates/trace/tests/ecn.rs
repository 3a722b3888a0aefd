//! ECN marks, AccECN's counter, and TCP options truncated by the snap length.

use landspeed_model::{BuildInfo, TraceDocument, TraceEcn};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
const SYN: u8 = 2;
const ACK: u8 = 16;
const NOT_ECT: u8 = 0;
const ECT0: u8 = 2;
const CE: u8 = 3;

/// One packet of the conversation.
#[derive(Clone, Copy, Default)]
struct Segment<'a> {
    forward: bool,
    sequence: u32,
    ack: u32,
    /// The AE flag of RFC 9768, in addition to the eight flags of RFC 3168.
    ae: bool,
    flags: u8,
    codepoint: u8,
    payload: u16,
    options: &'a [u8],
    /// Captured bytes of the packet; 0 for all.
    snap: usize,
}

struct Tap {
    analysis: Analysis,
    now_ns: u64,
}

impl Tap {
    fn new() -> Self {
        Self { analysis: Analysis::new(Limits::default()), now_ns: 1_000_000_000 }
    }

    fn captures(&mut self, segment: Segment<'_>) {
        let ends = [([10, 0, 0, 1], 40_000_u16), ([10, 0, 0, 2], 5_001)];
        let (from, to) = if segment.forward { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let words = 5 + segment.options.len() / 4;
        let mut packet = vec![0x45, segment.codepoint];
        packet.extend((20 + 4 * words as u16 + segment.payload).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([from.0, to.0].concat());
        packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        packet.extend([segment.sequence.to_be_bytes(), segment.ack.to_be_bytes()].concat());
        packet.extend([(words as u8) << 4 | u8::from(segment.ae), segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(segment.options);
        packet.resize(packet.len() + usize::from(segment.payload), 0);
        let original = packet.len() as u32;
        if segment.snap > 0 {
            packet.truncate(segment.snap);
        }
        self.now_ns += 1_000_000;
        let frame = Frame { interface: 0, link: LinkType::RAW, time_ns: self.now_ns, original, data: &packet };
        self.analysis.frame(&frame);
    }

    fn document(self) -> TraceDocument {
        self.analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
    }
}

/// Returns the ECN counts of a transfer. Segments with `true` are marked CE, and each segment is acknowledged at
/// once. With AccECN the ACKs carry its counter (RFC 9768, 3.2), otherwise the ACK of a marked segment has ECE
/// (RFC 3168, 6.1).
fn transfer(marked: &[bool], accurate: bool) -> (TraceEcn, TraceEcn) {
    let mut tap = Tap::new();
    let syn = Segment { forward: true, sequence: 999, ae: accurate, flags: SYN | ECE | CWR, ..Segment::default() };
    tap.captures(syn);
    // CWR alone: the SYN came without ECT, and AccECN is accepted. ECE alone: classic ECN is accepted.
    let taken = if accurate { CWR } else { ECE };
    tap.captures(Segment { sequence: 499, ack: 1000, flags: SYN | ACK | taken, ..Segment::default() });
    // The client's first ACK reports that the SYN-ACK came without ECT: 0b010.
    let end = if accurate { ACK | CWR } else { ACK };
    tap.captures(Segment { forward: true, sequence: 1000, ack: 500, flags: end, ..Segment::default() });
    let mut count = 5_u8;
    for (index, &mark) in (0_u32..).zip(marked) {
        count = count.wrapping_add(u8::from(mark));
        let sequence = 1000 + index * 100;
        let data = Segment {
            forward: true,
            sequence,
            ack: 500,
            // The sender's counter stays at 5: it received no marks.
            ae: accurate,
            flags: if accurate { ACK | ECE } else { ACK },
            codepoint: if mark { CE } else { ECT0 },
            payload: 100,
            ..Segment::default()
        };
        tap.captures(data);
        let bit = |bit: u8, flag: u8| if count >> bit & 1 == 1 { flag } else { 0 };
        let (ae, echo) = if accurate {
            (count >> 2 & 1 == 1, bit(1, CWR) | bit(0, ECE))
        } else {
            (false, if mark { ECE } else { 0 })
        };
        let ack = Segment { sequence: 500, ack: sequence + 100, ae, flags: ACK | echo, codepoint: NOT_ECT, ..data };
        tap.captures(Segment { forward: false, payload: 0, ..ack });
    }
    let document = tap.document();
    let flow = &document.flows[0];
    (flow.forward.ecn.expect("marks"), flow.reverse.ecn.unwrap_or_default())
}

proptest! {
    #[test]
    fn ce_marks_and_their_reports_are_counted(
        marked in proptest::collection::vec(any::<bool>(), 1..60), accurate: bool,
    ) {
        let marks = marked.iter().filter(|&&mark| mark).count() as u64;
        let (forward, reverse) = transfer(&marked, accurate);
        prop_assert_eq!((forward.ce, forward.ect0), (marks, marked.len() as u64 - marks));
        prop_assert_eq!((forward.accurate, reverse.accurate), (accurate, accurate));
        // The counter has three bits and wraps; it is exact if each mark is acknowledged.
        prop_assert_eq!(reverse.reported_ce, accurate.then_some(marks));
        prop_assert_eq!(reverse.ece, if accurate { 0 } else { marks });
        prop_assert_eq!(forward.reported_ce, accurate.then_some(0));
    }
}

/// Returns two NOPs and timestamps, two NOPs and two SACK blocks: 32 bytes.
fn long_options() -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
    for edge in [2000_u32, 2100, 2300, 2400] {
        options.extend(edge.to_be_bytes());
    }
    options
}

#[test]
fn truncated_options_are_counted_with_a_warning() {
    let options = long_options();
    for (snap, cut) in [(40 + options.len() - 1, 5), (44, 5), (40 + options.len(), 0), (0, 0)] {
        let mut tap = Tap::new();
        tap.captures(Segment { forward: true, sequence: 999, flags: SYN, ..Segment::default() });
        tap.captures(Segment { sequence: 499, ack: 1000, flags: SYN | ACK, ..Segment::default() });
        for index in 0..5 {
            let data = Segment {
                forward: true,
                sequence: 1000 + index * 100,
                ack: 500,
                flags: ACK,
                payload: 100,
                ..Segment::default()
            };
            tap.captures(data);
            tap.captures(Segment {
                sequence: 500,
                ack: 1000,
                flags: ACK,
                options: &options,
                snap,
                ..Segment::default()
            });
        }
        let document = tap.document();
        assert_eq!(document.capture.options_cut, cut, "at {snap} bytes");
        let warned = document.warnings.iter().any(|warning| warning.code == "options-cut");
        assert_eq!(warned, cut > 0, "at {snap} bytes: {:?}", document.warnings);
    }
}
