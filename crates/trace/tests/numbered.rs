//! Datagrams with sequence numbers: their protocol and their losses.

use etherparse::PacketBuilder;
use landspeed_model::{BuildInfo, TraceNumbered};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const BEGIN: u64 = 1_000_000_000_000;
const INTERVAL_NS: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Landspeed,
    Iperf3,
    Iperf3Wide,
    Rtp,
}

/// Returns a payload with a sequence number and the send time, padded with noise.
fn payload(kind: Kind, number: u64, time_ns: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (seconds, micros) = ((time_ns / 1_000_000_000) as u32, (time_ns / 1_000 % 1_000_000) as u32);
    match kind {
        Kind::Landspeed => {
            bytes.extend(0xabcd_1234_u32.to_be_bytes());
            bytes.extend([1, 0, 0, 0]);
            bytes.extend(number.to_be_bytes());
            bytes.extend((time_ns - BEGIN).to_be_bytes());
        }
        Kind::Iperf3 => {
            bytes.extend([seconds, micros, number as u32 + 1].map(u32::to_be_bytes).concat());
        }
        Kind::Iperf3Wide => {
            bytes.extend([seconds, micros].map(u32::to_be_bytes).concat());
            bytes.extend((number + 1).to_be_bytes());
        }
        Kind::Rtp => {
            bytes.extend([0x80, 96]);
            bytes.extend((number as u16).wrapping_add(65_000).to_be_bytes());
            bytes.extend(((time_ns / 1000) as u32).to_be_bytes());
            bytes.extend(0xdead_beef_u32.to_be_bytes());
        }
    }
    let noise = |at: usize| (number as usize * 31 + at * 97) as u8;
    let filled = bytes.len();
    bytes.extend((filled..100).map(noise));
    bytes
}

fn numbered(datagrams: &[(u64, Vec<u8>)]) -> Option<TraceNumbered> {
    let mut analysis = Analysis::new(Limits::default());
    for (time_ns, payload) in datagrams {
        let mut bytes = Vec::new();
        let built = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(4000, 5201);
        built.write(&mut bytes, payload).expect("memory");
        let (original, data) = (bytes.len() as u32, &bytes[..]);
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns: *time_ns, original, data });
    }
    let document = analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
    document.flows[0].forward.numbered.clone()
}

proptest! {
    // RTP's 16-bit numbers wrap in this range.
    #[test]
    fn each_sequence_number_is_counted_once(
        kind in prop::sample::select(vec![Kind::Landspeed, Kind::Iperf3, Kind::Iperf3Wide, Kind::Rtp]),
        lost in prop::collection::btree_set(1_u64..690, 0..60), twice in prop::collection::btree_set(1_u64..690, 0..20),
        late in prop::collection::btree_set(1_u64..600, 0..10),
    ) {
        let mut datagrams = Vec::new();
        for number in (0..700).filter(|number| !lost.contains(number)) {
            let sent_ns = BEGIN + number * INTERVAL_NS;
            // A late datagram arrives a few places later, a duplicate right after its original.
            let time_ns = sent_ns + if late.contains(&number) { 30 * INTERVAL_NS + 1 } else { 0 };
            datagrams.push((time_ns, payload(kind, number, sent_ns)));
            if twice.contains(&number) {
                datagrams.push((time_ns, payload(kind, number, sent_ns)));
            }
        }
        datagrams.sort_by_key(|(time_ns, _)| *time_ns);
        let found = numbered(&datagrams).expect("numbers");
        let names = ["landspeed", "iperf3", "iperf3, 64-bit counters", "RTP"];
        prop_assert_eq!(&found.protocol, names[kind as usize]);
        let arrived = |set: &std::collections::BTreeSet<u64>| set.iter().filter(|n| !lost.contains(n)).count() as u64;
        prop_assert_eq!((found.lost, found.received), (lost.len() as u64, 700 - lost.len() as u64));
        prop_assert_eq!((found.reordered, found.duplicates), (arrived(&late), arrived(&twice)));
        prop_assert!(found.confidence > 0.95, "{}", found.confidence);
    }

    #[test]
    fn datagrams_without_numbers_are_not_numbered(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 20..60), version: bool) {
        let marked = |mut payload: Vec<u8>| {
            if let Some(first) = payload.first_mut().filter(|_| version) {
                *first = 0x80;
            }
            payload
        };
        let datagrams: Vec<_> =
            payloads.into_iter().enumerate().map(|(n, payload)| (BEGIN + n as u64 * INTERVAL_NS, marked(payload))).collect();
        prop_assert_eq!(numbered(&datagrams), None);
    }
}

#[test]
fn a_greeting_does_not_hide_sequence_numbers() {
    let mut datagrams = vec![(BEGIN, b"9876".to_vec()), (BEGIN, payload(Kind::Iperf3, 0x8000_0000, BEGIN + 77))];
    datagrams
        .extend((0..100).map(|n| (BEGIN + (n + 1) * INTERVAL_NS, payload(Kind::Iperf3, n, BEGIN + n * INTERVAL_NS))));
    let found = numbered(&datagrams).expect("numbers");
    assert_eq!((found.protocol.as_str(), found.lost, found.received), ("iperf3", 0, 100));
}
