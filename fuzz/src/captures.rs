//! Properties that hold for any capture, from any source.
//!
//! A separate file, so that the tests of `landspeed-trace` can include it without the other properties.

use landspeed_model::{BuildInfo, TraceCapture, TraceDocument};
use landspeed_trace::{Analysis, GraphLimits, Graphs, Limits, Observer as _, Pairing, Row, Tap, Xplot};
use landspeed_wire::capture::{CaptureItem, Frame, MAX_RECORD_BYTES, Reader};
use landspeed_wire::{LinkType, Transport, dissect};

/// An owned copy of a frame: interface, link type, time in nanoseconds, original length, captured bytes.
type Read = (u32, u32, u64, u32, Vec<u8>);

/// Reads bytes that arrive in pieces of `chunk_bytes` bytes; returns the frames, and the error if reading ended with
/// one.
fn read(bytes: &[u8], chunk_bytes: usize) -> (Vec<Read>, Option<String>) {
    let (mut reader, mut frames) = (Reader::new(), Vec::new());
    let (mut start, mut end) = (0, 0);
    loop {
        match reader.next(&bytes[start..end]) {
            Err(why) => return (frames, Some(why.to_string())),
            Ok((_, CaptureItem::More(_))) if end == bytes.len() => return (frames, None),
            Ok((used, CaptureItem::More(needed))) => {
                assert!(used == 0 && start + needed > end, "it asks for what is there");
                assert!(needed <= MAX_RECORD_BYTES as usize + 64, "it asks for {needed} bytes");
                end = (end + chunk_bytes).min(bytes.len());
            }
            Ok((used, next)) => {
                assert!(used > 0, "it must go on");
                start += used;
                if let CaptureItem::Frame(frame) = next {
                    assert!(frame.original as usize >= frame.data.len(), "more captured than there was");
                    let Frame { interface, link, time_ns, original, data } = frame;
                    frames.push((interface, link.0, time_ns, original, data.to_vec()));
                }
            }
        }
    }
}

/// A capture file gives the same frames however it is split, and they make a consistent document.
///
/// # Panics
/// If the property is violated, as for all functions here.
pub fn capture_file(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    for chunk_bytes in [1, 13, 256] {
        assert!(read(bytes, chunk_bytes) == whole, "in pieces of {chunk_bytes} it is another capture");
    }
    let mut analysis = Analysis::new(LIMITS);
    let mut pairing = Pairing::new(false);
    for (interface, link, time_ns, original, data) in &whole.0 {
        let frame =
            Frame { interface: *interface, link: LinkType(*link), time_ns: *time_ns, original: *original, data };
        check_frame(&frame);
        analysis.frame(&frame);
        pairing.frame(if time_ns % 2 == 0 { Tap::First } else { Tap::Second }, &frame);
    }
    let document = finish(analysis);
    check_invariants(&document, whole.0.len() as u64);
    pairing.finish("a".into(), "b".into()).add_to(&mut document.clone(), &document);
}

/// One frame: link type, original length, and captured bytes.
pub fn frame(bytes: &[u8]) {
    let Some((head, data)) = bytes.split_first_chunk::<4>() else { return };
    let links = [0, 1, 9, 12, 50, 101, 104, 108, 113, 228, 229, 242, 276];
    let link = LinkType(links[usize::from(head[0]) % links.len()]);
    let original = data.len() as u32 + u32::from_le_bytes([head[1], head[2], head[3], 0]);
    check_frame(&Frame { interface: 0, link, time_ns: 0, original, data });
}

fn check_frame(frame: &Frame<'_>) {
    let Ok(packet) = dissect(frame.link, frame.data, frame.original) else { return };
    match packet.transport {
        Transport::Tcp(tcp) => assert!(tcp.payload <= packet.network.payload, "payload from nowhere"),
        Transport::Udp { payload, .. } => assert!(payload <= packet.network.payload, "payload from nowhere"),
        Transport::Icmp(_) | Transport::Fragment | Transport::Other => {}
    }
}

/// Bytes per instruction of [`conversation`].
const INSTRUCTION_BYTES: usize = 8;
const LIMITS: Limits = Limits {
    flows: 3,
    listed: 2,
    bin_ns: 1_000,
    train_gap_ns: 20_000,
    burst_bps: Some(1_000_000),
    window_scale: None,
    look_for_copies: 20,
};

/// A packet of a generated conversation.
struct Packet {
    time_ns: u64,
    wire: u32,
    bytes: Vec<u8>,
    /// Whether each tap captures it.
    taps: [bool; 2],
    /// Additional time at the second tap, nanoseconds.
    second_tap_delay_ns: u64,
}

/// Turns instructions into packets. Sequence numbers and times mostly move in small steps, so that the result
/// resembles a conversation, and sometimes in large ones.
fn build_packets(bytes: &[u8]) -> Vec<Packet> {
    let (mut time_ns, mut numbers) = (1_000_000_000_u64, [0xffff_f000_u32, 5]);
    let mut packets = Vec::new();
    for (count, step) in bytes.chunks_exact(INSTRUCTION_BYTES).take(400).enumerate() {
        let back = step[0] & 1;
        let way = usize::from(back);
        let length = if step[0] & 2 == 0 { 0 } else { u32::from(step[1]) * 16 };
        let unit = [1, 100, 4_096, 0x0100_0000][usize::from(step[0] >> 2 & 3)];
        let moved = u32::from_ne_bytes(i32::from(step[2].cast_signed()).to_ne_bytes()).wrapping_mul(unit);
        let sequence = numbers[way].wrapping_add(moved);
        if step[0] & 0x10 != 0 {
            numbers[way] = sequence.wrapping_add(length);
        }
        let acknowledged = numbers[1 - way].wrapping_sub(u32::from(step[3]) * 100);
        let pause = u64::from(step[4]) * [0, 100, 1_000_000, 50_000_000][usize::from(step[5] & 3)];
        time_ns = if step[5] & 4 == 0 { time_ns + pause } else { time_ns.saturating_sub(pause) };
        let udp = step[0] & 0xe0 == 0xe0;
        let mut options: Vec<u8> = Vec::new();
        if step[5] & 8 != 0 {
            options.extend([1, 1, 5, 10]);
            options.extend(acknowledged.wrapping_add(u32::from(step[6]) * 50).to_be_bytes());
            options.extend(acknowledged.wrapping_add(u32::from(step[6]) * 50 + 100).to_be_bytes());
        }
        if step[5] & 16 != 0 {
            options.extend([1, 1, 8, 10]);
            options.extend((count as u32 / 4).to_be_bytes());
            options.extend([0; 4]);
        }
        let header = if udp { 8 } else { 20 + options.len() };
        let mut ip = vec![0x45, 0];
        ip.extend((20 + header as u16 + length as u16).to_be_bytes());
        ip.extend(if step[5] & 32 == 0 { [0, 0] } else { (count as u16 + 1).to_be_bytes() });
        ip.extend([0, 0, 64, if udp { 17 } else { 6 }, 0, 0, 10, 0, 0, 1 + back, 10, 0, 0, 2 - back]);
        let ports = [[0x9c, 0x40 + (step[7] & 3)], [0x13, 0x89]];
        ip.extend(ports[way]);
        ip.extend(ports[1 - way]);
        if udp {
            ip.extend((8 + length as u16).to_be_bytes());
            ip.extend([0, 0, 0x80, step[3], 0, step[2]]);
            ip.extend(sequence.to_be_bytes());
            ip.extend([0; 16]);
        } else {
            ip.extend(sequence.to_be_bytes());
            ip.extend(acknowledged.to_be_bytes());
            ip.extend([(header as u8 / 4) << 4, (step[7] >> 2 & 0x1f) | (0x10 * u8::from(step[7] & 0x80 == 0))]);
            ip.extend([step[6], step[4], 0, 0, 0, 0]);
            ip.extend(options);
        }
        let taps = [step[7] & 0x40 == 0, step[1] & 0x80 == 0];
        let second_tap_delay_ns = u64::from(step[6]) * 1_000;
        packets.push(Packet { time_ns, wire: 20 + header as u32 + length, bytes: ip, taps, second_tap_delay_ns });
    }
    packets
}

impl Packet {
    fn frame(&self, time_ns: u64) -> Frame<'_> {
        Frame { interface: 0, link: LinkType::RAW, time_ns, original: self.wire, data: &self.bytes }
    }
}

/// A conversation at one tap.
pub fn conversation(bytes: &[u8]) {
    let packets = build_packets(bytes);
    let mut analysis = Analysis::new(LIMITS);
    let (mut rows, mut all) = (0, Vec::new());
    let mut graphs = Graphs::new(GraphLimits { flows: 2, packets: 20, all_packets: 30, span_ns: Some(5..1 << 40) });
    for packet in &packets {
        analysis.frame_with_row(&packet.frame(packet.time_ns), &mut |row: &Row| {
            rows += 1;
            assert_eq!(row.number, rows);
            graphs.row(row);
            all.push(*row);
        });
    }
    let mut document = finish(analysis);
    check_invariants(&document, packets.len() as u64);
    assert_eq!(rows, packets.len() as u64, "a row for each");
    graphs.finish(&mut document);
    pictures(&document, &all);
}

/// Checks that series have their stated lengths, and that xplot files are terminated.
fn pictures(document: &TraceDocument, rows: &[Row]) {
    for series in document.graphs.iter().flat_map(|graphs| &graphs.series) {
        assert!(series.flow < document.flows.len());
        let kept: u64 = series.detail.iter().map(|detail| detail.packets).sum();
        assert!(kept == series.kept && kept <= series.packets, "{kept} of {}", series.packets);
        assert!(series.rate.bytes.len() <= 65_536);
        let buckets = &series.buckets;
        assert!(buckets.at.len() <= 8_192 && buckets.at.is_sorted());
        assert_eq!(buckets.at.len(), buckets.rtt_max_ns.len());
    }
    let mut written = String::new();
    let mut xplot = Xplot::new(document, 4, |_: &str, text: &str| written.push_str(text));
    for row in rows {
        xplot.row(row);
    }
    let drawn = xplot.finish();
    assert_eq!(written.matches("\ngo\n").count(), drawn * 8, "each direction has four");
}

/// The same conversation at two taps, each of which misses some packets.
pub fn two_taps(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let packets = build_packets(rest);
    let shown = |tap: usize| packets.iter().filter(move |packet| packet.taps[tap]);
    let mut taps = [0, 1].map(|tap| {
        let at = |packet: &Packet| {
            packet.time_ns + if tap == 0 { 0 } else { packet.second_tap_delay_ns + (u64::from(first) << 20) }
        };
        shown(tap).map(|packet| packet.frame(at(packet))).collect::<Vec<_>>().into_iter()
    });
    let mut analyses = [LIMITS; 2].map(Analysis::new);
    let mut pairing = Pairing::new(first & 1 == 1);
    let mut most = 2 * packets.len() + 2;
    while let Some(tap) = pairing.next_tap() {
        assert!(most > 0, "it asks on and on");
        most -= 1;
        match taps[tap as usize].next() {
            Some(frame) => {
                analyses[tap as usize].frame(&frame);
                pairing.frame(tap, &frame);
            }
            None => pairing.end(tap),
        }
    }
    let [mut document, second] = analyses.map(finish);
    pairing.finish("a".into(), "b".into()).add_to(&mut document, &second);
    let path = &document.path[0];
    let ways = [&path.forward, &path.reverse];
    let sum = |count: fn(&landspeed_model::PathDirection) -> u64| ways.iter().map(|way| count(way)).sum::<u64>();
    assert_eq!(sum(|way| way.matched), path.matched);
    let single = sum(|way| way.lost_data + way.lost_other + way.appeared);
    let both = (shown(0).count() + shown(1).count()) as u64;
    assert!(2 * path.matched + single + path.given_up <= both, "packets from nowhere");
    check_invariants(&document, shown(0).count() as u64);
}

fn finish(analysis: Analysis) -> TraceDocument {
    analysis.finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None)
}

/// Checks invariants of every document.
fn check_invariants(document: &TraceDocument, frames: u64) {
    let capture = &document.capture;
    assert_eq!(capture.frames, frames);
    let stations: u64 = document.stations.iter().map(|station| station.frames).sum();
    assert_eq!(stations + capture.copies, frames, "each frame has a station, but for copies");
    assert_eq!(document.bins.bytes.iter().sum::<u64>(), capture.wire_bytes, "the bins add up");
    assert!(document.bins.bytes.len() <= 8_192 && document.flows.len() <= LIMITS.listed);
    let undissected = capture.not_ip + capture.cut + capture.malformed + capture.fragments;
    let aside = undissected + capture.other_transport + capture.copies;
    let mut packets = document.unlisted.packets;
    for flow in &document.flows {
        for way in [&flow.forward, &flow.reverse] {
            packets += way.packets;
            assert!(way.unique_bytes <= way.payload_bytes, "{} of {}", way.unique_bytes, way.payload_bytes);
            let again = way.retransmits.total() + way.out_of_order + way.duplicates + way.probes + way.pure_acks;
            assert!(again <= way.packets, "{way:?}");
            assert!(way.retransmits.spurious <= way.retransmits.total());
            if let Some(limits) = &way.limits {
                let waiting_ns = limits.idle_ns + limits.pacing_ns + limits.receiver_window_ns;
                assert_eq!(waiting_ns + limits.recovery_ns + limits.sending_ns, limits.total_ns);
            }
            if let Some(rtt) = &way.rtt {
                assert!(rtt.min_ns <= rtt.mean_ns && rtt.mean_ns <= rtt.max_ns, "{rtt:?}");
            }
        }
    }
    // Fragments are one packet together.
    let counted = packets + aside..=packets + aside + capture.reassembled;
    assert!(counted.contains(&frames), "each frame is counted once: {counted:?} of {frames}");
    let text = serde_json::to_string(document).expect("it can be written");
    // A rate that is not a number would be written as null, which could not be parsed.
    let again: TraceDocument = serde_json::from_str(&text).expect("what was written can be read");
    // Parsing a rate may give an adjacent floating-point value.
    let exact = |capture: &TraceCapture| TraceCapture { goodput_bps: None, ..capture.clone() };
    assert_eq!(exact(&again.capture), exact(capture));
}
