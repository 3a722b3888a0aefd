//! The capture reader against files of another implementation, and against corruption.

use landspeed_wire::LinkType;
use landspeed_wire::capture::{CaptureError, CaptureItem, Reader};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{Endianness, TsResolution};
use proptest::prelude::*;

/// Timestamp, original length, captured bytes.
type Packet = (u64, u32, Vec<u8>);

/// Reads a capture in pieces of `piece` bytes.
fn read(bytes: &[u8], piece: usize) -> Result<(Vec<Packet>, bool), CaptureError> {
    let (mut reader, mut packets, mut start, mut end) = (Reader::new(), Vec::new(), 0, 0);
    loop {
        let (used, next) = reader.next(&bytes[start..end])?;
        start += used;
        match next {
            CaptureItem::Frame(frame) => {
                assert_eq!(frame.link, LinkType::ETHERNET);
                packets.push((frame.time_ns, frame.original, frame.data.to_vec()));
            }
            CaptureItem::Statistics(_) | CaptureItem::Skipped => assert!(used > 0, "it must go on"),
            CaptureItem::More(_) if end == bytes.len() => return Ok((packets, start == end)),
            CaptureItem::More(needed) => {
                assert!(start + needed > end, "it asks for what is there");
                end = (end + piece).min(bytes.len());
            }
        }
    }
}

fn frames() -> impl Strategy<Value = Vec<Packet>> {
    let frame = (0..4_000_000_000_u64, 0..2_000_000_000_u64, prop::collection::vec(any::<u8>(), 0..90), 0..9_000_u32);
    let packets = |(second, fraction, data, more): (u64, u64, Vec<u8>, u32)| {
        (second * 1_000_000_000 + fraction / 2 / 1_000 * 1_000, data.len() as u32 + more, data)
    };
    prop::collection::vec(frame.prop_map(packets), 0..40)
}

/// Before version 2.3, the original length of a record came first; in version 2.3, either did.
#[test]
fn lengths_of_old_versions_are_in_the_other_order() {
    let data = [7_u8; 68];
    for (major, minor, lengths) in [
        (2_u16, 2_u16, [154, 68]),
        (2, 1, [154, 68]),
        (543, 0, [154, 68]),
        (2, 3, [154, 68]),
        (2, 3, [68, 154]),
        (2, 4, [68, 154]),
    ] {
        for big in [false, true] {
            let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            let mut bytes =
                [&word(0xa1b2_c3d4)[..], &half(major), &half(minor), &[0; 8], &word(68), &word(1)].concat();
            for _ in 0..2 {
                bytes.extend([word(1), word(0), word(lengths[0]), word(lengths[1])].concat());
                bytes.extend(data);
            }
            let (packets, complete) = read(&bytes, 4_096).expect("a capture");
            assert!(complete, "{major}.{minor}");
            assert_eq!(packets, vec![(1_000_000_000, 154, data.to_vec()); 2], "{major}.{minor}");
        }
    }
}

fn pcap(frames: &[Packet], endianness: Endianness, resolution: TsResolution) -> Vec<u8> {
    let header = PcapHeader {
        endianness,
        ts_resolution: resolution,
        datalink: DataLink::ETHERNET,
        snaplen: 65_535,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("memory");
    for (time_ns, original, data) in frames {
        let time = std::time::Duration::from_nanos(*time_ns);
        writer.write_packet(&PcapPacket::new(time, *original, data)).expect("memory");
    }
    writer.into_writer()
}

fn pcapng(frames: &[Packet], endianness: Endianness) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).expect("memory");
    let name = InterfaceDescriptionOption::IfName("eth7".into());
    let resolution = InterfaceDescriptionOption::IfTsResol(9);
    let interface =
        InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options: vec![name, resolution] };
    writer.write_pcapng_block(interface).expect("memory");
    for (time_ns, original, data) in frames {
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_nanos(*time_ns),
            original_len: *original,
            data: data.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(packet).expect("memory");
    }
    writer.into_inner()
}

const ORDERS: [Endianness; 2] = [Endianness::Little, Endianness::Big];

proptest! {
    #[test]
    fn every_format_variant_is_read_correctly(frames in frames(), piece in 1_usize..300) {
        for order in ORDERS {
            for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
                prop_assert_eq!(&read(&pcap(&frames, order, resolution), piece).expect("a capture"), &(frames.clone(), true));
            }
            prop_assert_eq!(&read(&pcapng(&frames, order), piece).expect("a capture"), &(frames.clone(), true));
        }
    }

    #[test]
    fn truncated_captures_yield_their_complete_frames(frames in frames(), cut in 0.0_f64..1.0) {
        let bytes = pcap(&frames, Endianness::Little, TsResolution::NanoSecond);
        let (packets, _) = read(&bytes[..(bytes.len() as f64 * cut) as usize], 64).expect("no damage");
        prop_assert_eq!(&packets[..], &frames[..packets.len()]);
    }

    #[test]
    fn corrupt_captures_never_panic_or_stall_the_reader(
        frames in frames(), ng: bool, hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = if ng { pcapng(&frames, Endianness::Little) } else { pcap(&frames, Endianness::Big, TsResolution::MicroSecond) };
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        // `read` checks for progress; it also expects the link type, which may be corrupt here.
        let (mut reader, mut start) = (Reader::new(), 0);
        for _ in 0..=bytes.len() {
            match reader.next(&bytes[start..]) {
                Ok((_, CaptureItem::More(_))) | Err(_) => break,
                Ok((used, _)) => {
                    prop_assert!(used > 0);
                    start += used;
                }
            }
        }
    }
}

#[test]
fn format_is_detected_from_the_first_bytes() {
    assert!(matches!(Reader::new().next(b"GET / HTTP/1.1"), Err(CaptureError::NotACapture(0x4745_5420))));
    assert!(matches!(Reader::new().next(b"\xd4\xc3"), Ok((0, CaptureItem::More(4)))));
}
