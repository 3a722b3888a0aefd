//! Parsing of frames: the fast paths, dissection, and reading them from a capture file.
#![forbid(unsafe_code)]

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_wire::capture::{Frame, InterfaceStatistics, Reader, Sink, write};
use landspeed_wire::{HeaderTemplate, LinkType, Network, TcpHeader, dissect, plain};

/// Frames of a capture file.
const FRAMES: u32 = 10_000;

fn main() {
    divan::main();
}

/// A full TCP segment with timestamps.
fn segment() -> Vec<u8> {
    let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(7, 9)];
    let built = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let built = built.tcp(40_000, 5_001, 1_000, 1_000).ack(1).options(&options).expect("they fit");
    let mut frame = Vec::new();
    built.write(&mut frame, &[0; 1_448]).expect("memory");
    frame
}

/// A UDP datagram in a VLAN.
fn datagram() -> Vec<u8> {
    let built = PacketBuilder::ethernet2([2; 6], [4; 6]).single_vlan(7.try_into().expect("12 bits"));
    let built = built.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(40_000, 5_201);
    let mut frame = Vec::new();
    built.write(&mut frame, &[0; 1_448]).expect("memory");
    frame
}

/// Header prediction: the next segment of a known flow.
#[divan::bench]
fn header_prediction(bencher: Bencher<'_, '_>) {
    let frame = segment();
    let template = HeaderTemplate::of(LinkType::ETHERNET, &frame).expect("it is plain");
    bencher
        .counter(ItemsCount::new(1_u32))
        .bench_local(|| divan::black_box(&template).fast_header(LinkType::ETHERNET, divan::black_box(&frame)));
}

/// TCP over IPv4 over Ethernet.
#[divan::bench]
fn plain_segment(bencher: Bencher<'_, '_>) {
    let frame = segment();
    let (mut network, mut tcp) = (Network::default(), TcpHeader::default());
    bencher
        .counter(ItemsCount::new(1_u32))
        .bench_local(|| plain(LinkType::ETHERNET, divan::black_box(&frame), &mut network, &mut tcp));
}

/// Any other frame, layer by layer.
#[divan::bench]
fn dissect_datagram_in_vlan(bencher: Bencher<'_, '_>) {
    let frame = datagram();
    bencher
        .counter(ItemsCount::new(1_u32))
        .bench_local(|| dissect(LinkType::ETHERNET, divan::black_box(&frame), frame.len() as u32));
}

/// Counts the bytes of the frames.
struct Lengths(u64);

impl Sink for Lengths {
    fn frame(&mut self, frame: &Frame<'_>) {
        self.0 += u64::from(frame.original);
    }

    fn statistics(&mut self, _: InterfaceStatistics) {}
}

/// A pcap file of headers, 96 bytes of each frame.
#[divan::bench]
fn read_capture(bencher: Bencher<'_, '_>) {
    let frame = segment();
    let mut file = Vec::new();
    write::pcap_header(&mut file, LinkType::ETHERNET, 96);
    for i in 0..u64::from(FRAMES) {
        write::pcap_record(&mut file, i * 1_200, &frame[..96], frame.len() as u32);
    }
    bencher.counter(ItemsCount::new(FRAMES)).counter(BytesCount::new(file.len())).bench_local(|| {
        let (mut reader, mut lengths, mut rest) = (Reader::new(), Lengths(0), &file[..]);
        while let (taken @ 1.., Ok(_)) = reader.drain(rest, &mut lengths) {
            rest = &rest[taken..];
        }
        lengths.0
    });
}
