//! The properties checked by the fuzz targets for captures, on stable Rust: valid files slightly corrupted, and
//! random bytes.

use landspeed_wire::LinkType;
use landspeed_wire::capture::write;
use proptest::prelude::*;

#[path = "../../../fuzz/src/captures.rs"]
mod claims;

/// Returns a pcap or pcapng file of raw IP frames.
fn file(frames: &[(u32, Vec<u8>)], ng: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if ng {
        let mut words = |words: &[u32]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        words(&[1, 20, 101, 0, 20]);
    } else {
        write::pcap_header(&mut bytes, LinkType::RAW, 65_535);
    }
    for (time, data) in frames {
        let length = data.len() as u32;
        if ng {
            let padded = length.next_multiple_of(4);
            for word in [6, 32 + padded, 0, 0, *time, length, length + 7] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(data);
            bytes.resize(bytes.len() + (padded - length) as usize, 0);
            bytes.extend((32 + padded).to_le_bytes());
        } else {
            let time_ns = u64::from(time / 1000) * 1_000_000_000 + u64::from(time % 1000);
            write::pcap_record(&mut bytes, time_ns, data, length + 7);
        }
    }
    bytes
}

/// Generates frames that begin like a TCP packet over IPv4.
fn frame() -> impl Strategy<Value = (u32, Vec<u8>)> {
    (any::<u32>(), prop::collection::vec(any::<u8>(), 0..70)).prop_map(|(time, mut data)| {
        for (at, value) in [(0, 0x45), (9, 6), (32, 0x50)] {
            if let Some(byte) = data.get_mut(at) {
                *byte = value;
            }
        }
        (time, data)
    })
}

proptest! {
    #![proptest_config(crate::cases(300))]

    #[test]
    fn corrupted_files_are_handled(
        frames in prop::collection::vec(frame(), 0..12), ng: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut: Option<prop::sample::Index>,
    ) {
        let mut bytes = file(&frames, ng);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        claims::capture_file(&bytes);
    }

    #[test]
    fn random_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        claims::capture_file(&bytes);
        claims::frame(&bytes);
    }

    #[test]
    fn any_conversation_gives_a_consistent_document(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        claims::conversation(&bytes);
    }

    #[test]
    fn any_two_taps_give_a_consistent_document(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        claims::two_taps(&bytes);
    }
}
