//! TCP in IP fragments is reassembled by its lengths.

use etherparse::PacketBuilder;
use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

const MS: u64 = 1_000_000;

/// Returns a segment of 1,000 bytes, or an ACK of everything before it.
fn packet(number: u32, ack: bool) -> Vec<u8> {
    let (from, to) = (([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 5_001));
    let (from, to) = if ack { (to, from) } else { (from, to) };
    let (sequence, acked) = if ack { (1, 1 + number * 1_000) } else { (1 + number * 1_000, 1) };
    let mut bytes = Vec::new();
    let built = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, sequence, 500).ack(acked);
    built.write(&mut bytes, &vec![0; if ack { 0 } else { 1_000 }]).expect("memory");
    bytes[4..6].copy_from_slice(&(number as u16 + 50).to_be_bytes());
    bytes
}

/// Returns a packet in fragments of `size` bytes of its payload.
fn fragments(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(size);
    let fragment = |(number, part): (usize, &[u8])| {
        let mut bytes = [header, part].concat();
        bytes[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        let more = if number + 1 < count { 0x2000 } else { 0 };
        bytes[6..8].copy_from_slice(&(more | (number * size / 8) as u16).to_be_bytes());
        bytes
    };
    payload.chunks(size).enumerate().map(fragment).collect()
}

fn analyse(frames: &[Vec<u8>], snap: usize) -> TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    for (number, bytes) in frames.iter().enumerate() {
        let (time_ns, data) = (1_000 * MS + number as u64 * MS, &bytes[..bytes.len().min(snap)]);
        let original = bytes.len() as u32;
        analysis.frame(&Frame { interface: 0, link: LinkType::RAW, time_ns, original, data });
    }
    analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

#[test]
fn fragmented_segments_are_whole() {
    for (size, backwards) in [(504, false), (504, true), (64, false), (64, true)] {
        let mut frames = vec![packet(0, true)];
        for number in 0..3 {
            let mut parts = fragments(&packet(number, false), size);
            if backwards {
                parts.reverse();
            }
            frames.extend(parts);
            frames.push(packet(number + 1, true));
        }
        let document = analyse(&frames, 68);
        let flow = &document.flows[0];
        assert_eq!((flow.forward.unique_bytes, flow.forward.missing_bytes, flow.forward.packets), (3_000, 0, 3));
        assert_eq!((flow.retransmits, flow.forward.out_of_order), (0, 0));
        let parts = 3 * 1_020_u64.div_ceil(size as u64);
        assert_eq!((document.capture.reassembled, document.capture.fragments), (parts, 0));
        assert!(document.warnings.iter().all(|warning| warning.code != "missing-data"), "{:?}", document.warnings);
    }
}

#[test]
fn fragments_of_incomplete_packets_are_counted() {
    let mut frames = vec![packet(0, true)];
    for number in 0..3 {
        let mut parts = fragments(&packet(number, false), 504);
        parts.truncate(if number == 1 { 2 } else { 3 });
        frames.extend(parts);
        frames.push(packet(number + 1, true));
    }
    let document = analyse(&frames, 1_500);
    assert_eq!((document.capture.reassembled, document.capture.fragments), (6, 2));
    assert_eq!(document.flows[0].forward.unique_bytes, 2_000);
    let said =
        |code: &str| document.warnings.iter().find(|warning| warning.code == code).map(|warning| &warning.message);
    assert!(
        said("fragments").is_some_and(|message| message.starts_with("2 IP fragments")),
        "{:?}",
        document.warnings
    );
    assert!(said("missing-data").is_some_and(|message| message.contains("fragments")), "{:?}", document.warnings);
}

#[test]
fn memory_for_fragments_is_bounded() {
    let frames: Vec<_> = (0..20_000).map(|number| fragments(&packet(number, false), 504).remove(0)).collect();
    let document = analyse(&frames, 68);
    assert_eq!((document.capture.fragments, document.capture.reassembled), (20_000, 0));
}
