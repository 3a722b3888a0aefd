//! Tests that packets are unchanged after a round trip through a file of columns.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_columns::{ColumnsError, Detail, Stream, Writer};
use landspeed_model::{BuildInfo, TraceDocument};
use landspeed_trace::{Analysis, Limits, Row};
use landspeed_wire::capture::{CaptureItem, Frame, Reader};
use landspeed_wire::{LinkType, Transport, dissect};
use parquet::column::writer::ColumnWriter;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;

/// A frame that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
struct CapturedFrame {
    time_ns: u64,
    original: u32,
    link: LinkType,
    data: Vec<u8>,
}

impl CapturedFrame {
    fn frame(&self) -> Frame<'_> {
        Frame { interface: 0, link: self.link, time_ns: self.time_ns, original: self.original, data: &self.data }
    }
}

fn analysed(frames: &[CapturedFrame], mut each: impl FnMut(&Frame<'_>, &Row)) -> TraceDocument {
    let mut analysis = Analysis::new(Limits::default());
    for kept in frames {
        analysis.frame_with_row(&kept.frame(), &mut |row: &Row| each(&kept.frame(), row));
    }
    let mut document = analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
    // The captured length of the frames is not stored.
    document.capture.captured_bytes = 0;
    document
}

/// Writes the frames and reads them back.
fn back(frames: &[CapturedFrame], detail: Detail) -> (TraceDocument, Vec<CapturedFrame>) {
    let mut writer = Writer::new(Vec::new(), detail).expect("memory");
    let document = analysed(frames, |frame, row| writer.packet(frame, row).expect("memory"));
    let (file, packets) = writer.finish().expect("memory");
    assert_eq!(packets, frames.len() as u64);
    let mut capture = Vec::new();
    Stream::new(Bytes::from(file)).expect("a file of columns").read_to_end(&mut capture).expect("it is whole");
    let (mut reader, mut at, mut read) = (Reader::new(), 0, Vec::new());
    while at < capture.len() {
        let (used, next) = reader.next(&capture[at..]).expect("a capture");
        assert!(used > 0, "it ends with a whole block");
        at += used;
        if let CaptureItem::Frame(frame) = next {
            let Frame { time_ns, original, link, data, .. } = frame;
            read.push(CapturedFrame { time_ns, original, link, data: data.to_vec() });
        }
    }
    (document, read)
}

fn frame(
    six: bool,
    udp: bool,
    ends: (u8, u8),
    ports: (u16, u16),
    numbers: (u32, u32),
    fields: PacketFields,
) -> Vec<u8> {
    let start = PacketBuilder::ethernet2([2, 0, 0, 0, 0, ends.0], [2, 0, 0, 0, 0, ends.1]);
    let at = if six {
        start.ipv6([ends.0; 16], [ends.1; 16], fields.limit)
    } else {
        start.ipv4([10, 0, 0, ends.0], [10, 0, 0, ends.1], fields.limit)
    };
    let payload = vec![fields.filler; fields.payload];
    let mut frame = Vec::new();
    if udp {
        at.udp(ports.0, ports.1).write(&mut frame, &payload).expect("memory");
    } else {
        let mut options = Vec::new();
        options.extend(fields.times.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
        options.extend(fields.sack.map(|block| TcpOptionElement::SelectiveAcknowledgement(block, [None; 3])));
        let segment = at.tcp(ports.0, ports.1, numbers.0, fields.window).ack(numbers.1);
        segment.options(&options).expect("they fit").write(&mut frame, &payload).expect("memory");
    }
    frame
}

#[derive(Debug, Clone, Copy)]
struct PacketFields {
    limit: u8,
    window: u16,
    payload: usize,
    filler: u8,
    times: Option<(u32, u32)>,
    sack: Option<(u32, u32)>,
}

prop_compose! {
    fn packet_fields()(
        limit: u8, window: u16, payload in 0_usize..100, filler: u8, times: Option<(u32, u32)>, sack: Option<(u32, u32)>,
    ) -> PacketFields {
        PacketFields { limit, window, payload, filler, times, sack }
    }
}

prop_compose! {
    fn captured()(
        frames in prop::collection::vec(
            ((any::<bool>(), any::<bool>()), (0_u8..3, 0_u8..3), (1_u16..4, 1_u16..4), any::<(u32, u32)>(), packet_fields(), 0_u64..1 << 40),
            1..60,
        )
    ) -> Vec<CapturedFrame> {
        let each = frames.into_iter().map(|((six, udp), ends, ports, numbers, fields, time_ns)| {
            let data = frame(six, udp, ends, ports, numbers, fields);
            CapturedFrame { time_ns, original: data.len() as u32, link: LinkType::ETHERNET, data }
        });
        each.collect()
    }
}

proptest! {
    #[test]
    fn headers_times_and_order_round_trip(frames in captured()) {
        let (document, read) = back(&frames, Detail::Headers);
        prop_assert_eq!(read.len(), frames.len());
        for (before, after) in frames.iter().zip(&read) {
            prop_assert_eq!((before.time_ns, before.original), (after.time_ns, after.original));
            prop_assert_eq!(&before.data[..12], &after.data[..12], "the link's addresses");
            let of = |kept: &CapturedFrame| dissect(kept.link, &kept.data, kept.original).expect("it was built well");
            let (before, mut after) = (of(before), of(after));
            // Options have a fixed order and their own padding: only the header length may differ.
            after.network.payload = before.network.payload;
            prop_assert_eq!(before.network, after.network);
            match (before.transport, after.transport) {
                (Transport::Tcp(before), Transport::Tcp(after)) => prop_assert_eq!(before, after),
                (Transport::Udp { .. }, Transport::Udp { .. }) => prop_assert_eq!(before.transport, after.transport),
                _ => prop_assert!(false, "another protocol"),
            }
        }
        prop_assert_eq!(document, analysed(&read, |_, _| ()), "an analysis of the header trace is that of the capture");
    }
}

#[test]
fn files_with_all_or_only_header_columns_are_read() {
    let fields = PacketFields { limit: 64, window: 9, payload: 50, filler: 7, times: Some((1, 2)), sack: None };
    let frames: Vec<CapturedFrame> = (0..200_u32)
        .map(|number| {
            let data = frame(false, false, (1, 2), (1, 2), (number * 50, 0), fields);
            CapturedFrame {
                time_ns: u64::from(number) * 1000,
                original: data.len() as u32,
                link: LinkType::ETHERNET,
                data,
            }
        })
        .collect();
    assert_eq!(back(&frames, Detail::Headers), back(&frames, Detail::Analysis));
}

#[test]
fn raw_ip_stays_raw_ip() {
    let fields = PacketFields { limit: 64, window: 9, payload: 50, filler: 7, times: None, sack: None };
    let data = frame(false, true, (1, 2), (1, 2), (0, 0), fields)[14..].to_vec();
    let frames = vec![CapturedFrame { time_ns: 5, original: data.len() as u32, link: LinkType::RAW, data }];
    let (document, read) = back(&frames, Detail::Headers);
    assert_eq!(read[0].link, LinkType::RAW);
    assert_eq!(document, analysed(&read, |_, _| ()));
}

#[test]
fn parquet_files_without_packet_columns_are_rejected() {
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    let schema =
        parquet::schema::parser::parse_message_type("message other { REQUIRED INT64 price; }").expect("a schema");
    let writer =
        SerializedFileWriter::new(Vec::new(), schema.into(), WriterProperties::new().into()).expect("memory");
    let file = writer.into_inner().expect("memory");
    match Stream::new(Bytes::from(file)).map(drop) {
        Err(ColumnsError::MissingColumn(column)) => assert_eq!(column, "number"),
        other => panic!("{other:?}"),
    }
}

/// Truncates the file to every length, and changes every byte in one of three ways.
#[test]
fn truncated_files_are_errors_and_changed_files_never_panic() {
    let file = small_file();
    for length in 0..file.len() {
        let cut = file[..length].to_vec();
        assert!(Stream::new(Bytes::from(cut)).is_err(), "cut to {length} bytes");
    }
    for at in 0..file.len() {
        read_changed(&file, at, FLIPS[at % 3]);
    }
}

#[test]
#[ignore = "long: every byte changed in each way"]
fn a_file_changed_in_any_way_never_panics() {
    let file = small_file();
    for at in 0..file.len() {
        for flip in FLIPS {
            read_changed(&file, at, flip);
        }
    }
}

const FLIPS: [u8; 3] = [0x01, 0x80, 0xff];

fn read_changed(file: &[u8], at: usize, flip: u8) {
    let mut changed = file.to_vec();
    changed[at] ^= flip;
    if let Ok(mut stream) = Stream::new(Bytes::from(changed)) {
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

fn small_file() -> Vec<u8> {
    let fields =
        PacketFields { limit: 64, window: 9, payload: 50, filler: 7, times: Some((1, 2)), sack: Some((3, 4)) };
    let data = frame(false, false, (1, 2), (1, 2), (0, 0), fields);
    let kept = CapturedFrame { time_ns: 1, original: data.len() as u32, link: LinkType::ETHERNET, data };
    let mut writer = Writer::new(Vec::new(), Detail::Headers).expect("memory");
    analysed(&vec![kept; 100], |frame, row| writer.packet(frame, row).expect("memory"));
    writer.finish().expect("memory").0
}

#[test]
fn a_row_group_of_any_size_does_not_fill_the_memory() {
    let (empty, _) = Writer::new(Vec::new(), Detail::Headers).expect("memory").finish().expect("memory");
    let reader = SerializedFileReader::new(Bytes::from(empty)).expect("a file of columns");
    let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).expect("memory");
    let mut group = file.next_row_group().expect("memory");
    let levels = vec![0_i16; (1 << 20) + 1];
    while let Some(mut column) = group.next_column().expect("memory") {
        let written = match column.untyped() {
            ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None),
            ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(&levels), None),
            _ => panic!("columns are numbers or bytes"),
        };
        written.expect("memory");
        column.close().expect("memory");
    }
    group.close().expect("memory");
    let file = file.into_inner().expect("memory");
    assert!(file.len() < 100_000, "{} bytes stand for a million packets", file.len());
    let mut read = Vec::new();
    let why =
        Stream::new(Bytes::from(file)).expect("a file of columns").read_to_end(&mut read).expect_err("too many");
    assert!(why.to_string().contains("1048577 packets in one row group"), "{why}");
}
