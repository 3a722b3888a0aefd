//! Series for graphs: kept records match the packets, dropped packets stay counted, and memory is bounded.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etherparse::PacketBuilder;
use landspeed_model::{BuildInfo, TraceDetail, TraceDocument, TraceGraphs, TraceSeries};
use landspeed_trace::{Analysis, GraphLimits, Graphs, Limits, Observer, Row, Xplot};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const MSS: u32 = 1000;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// A capture that is generated while it is analysed.
struct Tap<O> {
    analysis: Analysis,
    observer: O,
}

impl<O: Observer> Tap<O> {
    fn new(observer: O) -> Self {
        Self { analysis: Analysis::new(Limits::default()), observer }
    }

    /// Adds a segment of the flow with this port: data from the client, or an ACK from the server.
    fn segment(&mut self, since_ns: u64, port: u16, data: Option<(u32, u32)>, ack: u32) {
        let (from, to, ports) = if data.is_some() {
            ([10, 0, 0, 1], [10, 0, 0, 2], (port, 5001))
        } else {
            ([10, 0, 0, 2], [10, 0, 0, 1], (5001, port))
        };
        let (sequence, length) = data.unwrap_or((1, 0));
        let built = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, sequence, 50_000).ack(ack);
        let mut bytes = Vec::new();
        built.write(&mut bytes, &vec![0; length as usize]).expect("memory");
        let original = bytes.len() as u32;
        bytes.truncate(60);
        let time_ns = START_NS + since_ns;
        let frame = Frame { interface: 0, link: LinkType::RAW, time_ns, original, data: &bytes };
        self.analysis.frame_with_row(&frame, &mut self.observer);
    }

    fn finish(self) -> (TraceDocument, O) {
        let document = self.analysis.finish(BuildInfo::default(), Vec::new(), "made".into(), "made", None, |_| None);
        (document, self.observer)
    }
}

fn graphs(tap: Tap<Graphs>) -> TraceGraphs {
    let (mut document, graphs) = tap.finish();
    graphs.finish(&mut document);
    document.graphs.expect("they were asked for")
}

/// A decoded record: time, kind, and first and end sequence number, or ACK number and window.
type Record = (u64, u8, i64, i64);

/// Decodes records as the report page does.
fn records(detail: &TraceDetail) -> Vec<Record> {
    let bytes = STANDARD.decode(&detail.records).expect("base64");
    let mut at = 0;
    let mut leb = |bytes: &[u8]| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes[at];
            at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return (value, at);
            }
        }
    };
    let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
    let (mut time, mut next, mut ack, mut window, mut length) =
        (detail.start_ns, detail.next, detail.ack, detail.window as i64, 0_i64);
    let mut out = Vec::new();
    for _ in 0..detail.packets {
        // The tag is below 0x80, so it can be read as a number.
        let tag = leb(&bytes).0 as u8;
        let kind = tag & 0x0f;
        time = time.wrapping_add_signed(signed(leb(&bytes).0));
        if kind == 9 || kind == 10 {
            let to = ack + signed(leb(&bytes).0);
            if tag & 0x40 == 0 {
                window += signed(leb(&bytes).0);
            }
            if tag & 0x10 != 0 {
                leb(&bytes);
            }
            assert_eq!(tag & 0x20, 0, "nothing here acknowledges selectively");
            out.push((time, kind, to, window));
            ack = ack.max(to);
        } else {
            let start = if tag & 0x10 != 0 { next } else { next + signed(leb(&bytes).0) };
            if tag & 0x20 == 0 {
                length = leb(&bytes).0 as i64;
            }
            out.push((time, kind, start, start + length));
            next = next.max(start + length);
        }
    }
    out
}

fn all(series: &TraceSeries) -> Vec<Record> {
    series.detail.iter().flat_map(records).collect()
}

fn packets_in_buckets(series: &TraceSeries) -> u64 {
    let b = &series.buckets;
    [&b.data, &b.retransmits, &b.late, &b.acks].into_iter().flatten().map(|&count| u64::from(count)).sum()
}

proptest! {
    #[test]
    fn decoded_records_match_the_rows(
        moves in prop::collection::vec((0_u64..3_000_000, any::<bool>(), 0_u32..8, 1_u32..1500), 1..500),
    ) {
        let limits = GraphLimits::default();
        let mut seen = Vec::new();
        let mut series = Graphs::new(limits);
        let both = |row: &Row| {
            series.row(row);
            let flow = row.flow.as_ref().expect("a flow");
            let tcp = flow.tcp.as_ref().expect("TCP");
            let time = row.time_ns - START_NS;
            if tcp.end > tcp.sequence {
                seen.push((time, tcp.sequence, tcp.end));
            }
        };
        let mut tap = Tap::new(both);
        let (mut now, mut next, mut acked) = (0, 1_u32, 1_u32);
        tap.segment(0, 40_000, Some((1, MSS)), 1);
        next += MSS;
        for (wait, data, back, length) in moves {
            now += wait;
            if data {
                // Some start earlier, as retransmits do.
                let start = if back == 0 { next.saturating_sub(2 * MSS).max(1) } else { next };
                tap.segment(now, 40_000, Some((start, length)), 1);
                next = next.max(start + length);
            } else {
                acked = acked.max(next - (back * 100).min(next - acked));
                tap.segment(now, 40_000, None, acked);
            }
        }
        let (mut document, _) = tap.finish();
        series.finish(&mut document);
        let graphs = document.graphs.expect("asked for");
        let one = &graphs.series[0];
        prop_assert_eq!(one.kept, one.packets);
        let data: Vec<_> = all(one).into_iter().filter(|r| r.1 < 9 || r.1 > 10).map(|r| (r.0, r.2, r.3)).collect();
        prop_assert_eq!(data, seen);
    }
}

#[test]
fn dropped_packets_are_in_buckets_and_losses_are_kept() {
    const PACKETS: u32 = 200_000;
    let limits = GraphLimits { packets: 10_000, ..GraphLimits::default() };
    let mut tap = Tap::new(Graphs::new(limits));
    let mut again = 0;
    for i in 0..PACKETS {
        let now = u64::from(i) * 10_000;
        tap.segment(now, 40_000, Some((1 + i * MSS, MSS)), 1);
        if i % 40_000 == 20_000 {
            tap.segment(now + 1, 40_000, Some((1 + (i - 5) * MSS, MSS)), 1);
            again += 1;
        }
        if i % 2 == 1 {
            tap.segment(now + 5_000, 40_000, None, 1 + i * MSS);
        }
    }
    let graphs = graphs(tap);
    let one = &graphs.series[0];
    assert_eq!(one.packets, u64::from(PACKETS + PACKETS / 2) + again);
    assert_eq!(packets_in_buckets(one), one.packets, "every packet is in a bucket");
    assert!(one.buckets.at.len() <= 8_192 && one.buckets.at.is_sorted(), "{}", one.buckets.at.len());
    assert!(one.kept <= 11_500, "{} kept", one.kept);
    let records = all(one);
    assert_eq!(records.len() as u64, one.kept);
    assert_eq!(records.iter().filter(|record| (1..=5).contains(&record.1)).count() as u64, again);
    assert_eq!(records[0].0, 0, "the beginning is kept");
    let last = u64::from(PACKETS - 1) * 10_000 + 5_000;
    assert_eq!(records.last().map(|record| record.0), Some(last), "and the end");
    // The remaining packets sample the whole time: every tenth of it has some.
    let tenths: BTreeMap<u64, u32> = records.iter().map(|record| (record.0 * 10 / (last + 1), 1)).collect();
    assert_eq!(tenths.len(), 10, "{tenths:?}");
}

#[test]
fn a_requested_span_is_complete() {
    let span = 500_000_000..600_000_000;
    let limits = GraphLimits { packets: 5_000, span_ns: Some(span.clone()), ..GraphLimits::default() };
    let mut tap = Tap::new(Graphs::new(limits));
    for i in 0..100_000_u32 {
        tap.segment(u64::from(i) * 10_000, 40_000, Some((1 + i * MSS, MSS)), 1);
    }
    let graphs = graphs(tap);
    let inside = all(&graphs.series[0]).iter().filter(|record| span.contains(&record.0)).count();
    assert_eq!(inside, 10_000);
    assert!(graphs.series[0].kept < 20_000);
}

#[test]
fn the_largest_flows_are_drawn() {
    let limits = GraphLimits { flows: 3, ..GraphLimits::default() };
    let mut tap = Tap::new(Graphs::new(limits));
    let large = [7_000, 30_000, 59_000];
    for port in 1_000..60_000_u16 {
        let now = u64::from(port) * 100_000;
        tap.segment(now, port, Some((1, MSS)), 1);
        for big in large.iter().filter(|&&big| big <= port) {
            let number = 1 + u32::from(port - big) * MSS;
            tap.segment(now + 10, *big, Some((number, MSS)), 1);
        }
    }
    let (mut document, graphs) = tap.finish();
    graphs.finish(&mut document);
    let graphs = document.graphs.as_ref().expect("asked for");
    let ports: Vec<u16> = graphs.series.iter().map(|series| document.flows[series.flow].source.port).collect();
    assert_eq!(ports, large, "those with the most payload, in that order");
    assert!(graphs.left_out >= 58_000, "{}", graphs.left_out);
}

#[test]
fn xplot_files_are_complete() {
    let mut first = Tap::new(landspeed_trace::NoObserver);
    let play = |tap: &mut dyn FnMut(u64, Option<(u32, u32)>, u32)| {
        for i in 0..20_000_u32 {
            tap(u64::from(i) * 1_000, Some((1 + i * MSS, MSS)), 1);
            tap(u64::from(i) * 1_000 + 300, None, 1 + i * MSS);
        }
        tap(30_000_000, Some((1 + 19_000 * MSS, MSS)), 1);
    };
    play(&mut |now, data, ack| first.segment(now, 40_000, data, ack));
    let (document, _) = first.finish();
    let mut files: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let take = |name: &str, text: &str| {
        let file = files.entry(name.to_owned()).or_default();
        file.0.push_str(text);
        file.1 = file.1.max(text.len());
    };
    let mut second = Tap::new(Xplot::new(&document, 8, take));
    play(&mut |now, data, ack| second.segment(now, 40_000, data, ack));
    let (_, graphs) = second.finish();
    assert_eq!(graphs.finish(), 1);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let kinds = ["owin", "rtt", "tput", "tsg"];
    let expected: Vec<String> =
        ["a2b", "b2a"].iter().flat_map(|way| kinds.map(|kind| format!("{way}_{kind}.xpl"))).collect();
    assert_eq!(names, expected);
    for (name, (text, most)) in &files {
        assert!(text.starts_with("timeval ") && text.ends_with("go\n"), "{name}");
        assert!(*most < 80 << 10, "{name}: {most} bytes at once");
    }
    let (sequence, _) = &files["a2b_tsg.xpl"];
    assert_eq!(sequence.matches("darrow ").count(), 20_001);
    assert_eq!(sequence.matches("\nR\n").count(), 1);
}
