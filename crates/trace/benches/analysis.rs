//! Analysis of captured frames: flow lookup and processing of segments.
#![forbid(unsafe_code)]

use divan::Bencher;
use divan::counter::ItemsCount;
use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

/// Segments of all flows together.
const SEGMENTS: u32 = 32_768;
const MSS: u32 = 1_448;
/// Captured bytes of a frame: headers and options.
const SNAP: usize = 96;
/// Serialisation time of a full frame at 10 Gb/s, nanoseconds.
const GAP_NS: u64 = 1_230;

fn main() {
    divan::main();
}

/// A frame as the capture has it.
struct Captured {
    time_ns: u64,
    original: u32,
    data: Vec<u8>,
}

/// A data segment of a flow, or an ACK of everything before it.
fn frame(flow: u16, segment: u32, ack: bool) -> Vec<u8> {
    let (client, server) = (([10, 0, 0, 1], 20_000 + flow), ([10, 0, 0, 2], 5_001));
    let (from, to) = if ack { (server, client) } else { (client, server) };
    let (sequence, acknowledged) = if ack { (1, 1 + segment * MSS) } else { (1 + segment * MSS, 1) };
    let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(segment, segment)];
    let built = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.0, to.0, 64);
    let built = built.tcp(from.1, to.1, sequence, 1_000).ack(acknowledged).options(&options).expect("they fit");
    let mut frame = Vec::new();
    built.write(&mut frame, &vec![0; if ack { 0 } else { MSS as usize }]).expect("memory");
    frame
}

/// Segments of `flows` flows in turn, with an ACK for every second one. `lost_every` leaves one of so many out and
/// sends it again 20 segments later.
fn capture(flows: u16, lost_every: Option<u32>) -> Vec<Captured> {
    const LATER: u32 = 20;
    let mut captured = Vec::new();
    let mut add = |data: Vec<u8>| {
        let (time_ns, original) = ((captured.len() as u64 + 1) * GAP_NS, data.len() as u32);
        captured.push(Captured { time_ns, original, data: data[..data.len().min(SNAP)].to_vec() });
    };
    for segment in 0..SEGMENTS / u32::from(flows) {
        for flow in 0..flows {
            let lost = |segment: u32| lost_every.is_some_and(|every| segment % every == every / 2);
            if segment >= LATER && lost(segment - LATER) {
                add(frame(flow, segment - LATER, false));
            }
            if !lost(segment) {
                add(frame(flow, segment, false));
            }
            if segment % 2 == 1 {
                let missing = (segment.saturating_sub(LATER - 1)..=segment).find(|&earlier| lost(earlier));
                add(frame(flow, missing.unwrap_or(segment + 1), true));
            }
        }
    }
    captured
}

fn analyse(bencher: Bencher<'_, '_>, captured: &[Captured]) {
    bencher.counter(ItemsCount::new(captured.len())).bench_local(|| {
        let mut analysis = Analysis::new(Limits { look_for_copies: 0, ..Limits::default() });
        for Captured { time_ns, original, data } in captured {
            let (time_ns, original) = (*time_ns, *original);
            analysis.frame(&Frame { interface: 0, link: LinkType::ETHERNET, time_ns, original, data });
        }
        analysis
    });
}

/// Expected segments: one flow takes the fast path, many are looked up in the flow table.
#[divan::bench(args = [1, 16, 256])]
fn segments_in_sequence(bencher: Bencher<'_, '_>, flows: u16) {
    analyse(bencher, &capture(flows, None));
}

/// Losses, duplicate ACKs and retransmits.
#[divan::bench]
fn one_percent_lost(bencher: Bencher<'_, '_>) {
    analyse(bencher, &capture(1, Some(100)));
}
