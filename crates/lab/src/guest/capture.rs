//! Captures on interfaces, with the exact virtual time, in pcap files with nanosecond timestamps.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use landspeed_sys::filter::Instruction;
use landspeed_sys::ring::{Ring, RingOptions, RingPacket};
use landspeed_sys::{clock, netns};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use super::RESULTS;
use super::network::Network;
use super::report::CaptureReport;
use crate::plan::{CapturePoint, Plan};

/// Interval at which a capture's ring is drained, virtual nanoseconds; at 100 Gb/s, about 10,000 frames.
const DRAIN_INTERVAL_NS: u64 = 1_000_000;
/// Number of blocks in a ring, and (`BLOCK_BYTES`) size of each; a frame takes about 250 bytes.
const RING_BLOCKS: u32 = 32;
const BLOCK_BYTES: u32 = 1 << 20;

/// Starts every capture of the plan.
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    network: &'scope Network,
    over: &'scope AtomicBool,
) -> Vec<ScopedJoinHandle<'scope, CaptureReport>> {
    let (ready_tx, ready_rx) = std::sync::mpsc::channel();
    let threads: Vec<_> = plan
        .captures
        .iter()
        .map(|point| {
            let ready = ready_tx.clone();
            scope.spawn(move || {
                let mut report = CaptureReport { file: point.file.clone(), packets: 0, missed: 0, error: None };
                report.error = run(point, network, over, &mut report, &ready).err();
                report
            })
        })
        .collect();
    drop(ready_tx);
    // Wait until every capture is active, before the first packet is sent. One that failed has closed its channel.
    for _ in &threads {
        let _ = ready_rx.recv();
    }
    threads
}

/// Waits for all captures, and returns their reports.
pub fn finish(threads: Vec<ScopedJoinHandle<'_, CaptureReport>>) -> Vec<CaptureReport> {
    threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
}

fn run(
    point: &CapturePoint,
    network: &Network,
    over: &AtomicBool,
    report: &mut CaptureReport,
    ready: &std::sync::mpsc::Sender<()>,
) -> Result<(), String> {
    netns::enter(network.namespace(point.node)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
    let interface = network.interface(point.node, point.port);
    let mut ring = Ring::open(&RingOptions {
        ifindex: interface,
        block_bytes: BLOCK_BYTES,
        blocks: RING_BLOCKS,
        retire_ms: 1,
        filter: &[Instruction::pass(point.snap)],
        ..RingOptions::default()
    })
    .map_err(|e| format!("cannot capture: {e}"))?;
    ring.start().map_err(|e| format!("cannot capture: {e}"))?;
    let file = File::create(Path::new(RESULTS).join(&point.file)).map_err(|e| format!("cannot write: {e}"))?;
    let header = PcapHeader {
        snaplen: point.snap,
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        endianness: Endianness::native(),
        ..PcapHeader::default()
    };
    let mut file = PcapWriter::with_header(BufWriter::new(file), header).map_err(|e| format!("cannot write: {e}"))?;
    let _ = ready.send(());
    super::set_observer_policy();
    let mut next_ns = clock::monotonic_ns();
    let mut written = Ok(());
    let mut write = |packet: &RingPacket<'_>| {
        let time = Duration::from_nanos(packet.timestamp_ns);
        if written.is_ok() {
            written = file.write_packet(&PcapPacket::new(time, packet.original_bytes, packet.data)).map(drop);
        }
    };
    while !over.load(Ordering::Relaxed) {
        ring.drain(&mut write);
        next_ns += DRAIN_INTERVAL_NS;
        clock::sleep_until(next_ns);
    }
    let counts = ring.finish(&mut write).map_err(|e| format!("cannot capture: {e}"))?;
    report.packets = (counts.packets - counts.drops).into();
    report.missed = counts.drops.into();
    written.map_err(|e| format!("cannot write: {e}"))
}
