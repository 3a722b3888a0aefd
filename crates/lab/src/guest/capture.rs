//! Captures: what passed an interface, with the exact virtual time, in pcap files with nanoseconds.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use landspeed_sys::packet::Capture;
use landspeed_sys::{clock, netns};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use super::RESULTS;
use super::network::Network;
use super::report::CaptureReport;
use crate::plan::{CapturePoint, Plan};

/// Packets taken at a time.
const BATCH: usize = 256;
/// How often a capture's buffer is emptied, virtual nanoseconds; at 100 Gb/s that is some 10,000 frames.
const EVERY_NS: u64 = 1_000_000;
/// Kernel memory for what was not taken yet, bytes.
const BUFFER: u32 = 1 << 30;

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
    // Every capture listens before the first packet leaves; one that failed has hung up.
    for _ in &threads {
        let _ = ready_rx.recv();
    }
    threads
}

/// Waits for all of them.
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
    let snap = point.snap as usize;
    let mut capture = Capture::open(interface, snap, BATCH, BUFFER).map_err(|e| format!("cannot capture: {e}"))?;
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
    super::observe();
    let mut next_ns = clock::monotonic_ns();
    loop {
        // What came in before the end is taken, too.
        let last = over.load(Ordering::Relaxed);
        loop {
            let taken = capture.receive().map_err(|e| format!("cannot capture: {e}"))?;
            for index in 0..taken {
                let packet = capture.packet(index);
                let time = Duration::from_nanos(packet.timestamp_ns);
                let length = u32::try_from(packet.original_bytes).unwrap_or(u32::MAX);
                file.write_packet(&PcapPacket::new(time, length, packet.data))
                    .map_err(|e| format!("cannot write: {e}"))?;
                report.packets += 1;
            }
            if taken == 0 {
                break;
            }
        }
        report.missed += u64::from(capture.statistics().map_err(|e| format!("cannot count: {e}"))?.drops);
        if last {
            return Ok(());
        }
        next_ns += EVERY_NS;
        clock::sleep_until(next_ns);
    }
}
