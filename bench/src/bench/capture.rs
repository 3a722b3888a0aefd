//! Departure times of datagrams, from a packet capture instead of the tool's own report.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;

use super::child::Running;
use crate::machine;

/// Length of the headers before a payload on loopback: Ethernet, IPv4 without options, UDP; bytes.
const HEADERS: u64 = 14 + 20 + 8;

/// A captured frame: one datagram, or several with segmentation offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Capture time, nanoseconds.
    pub at_ns: u64,
    /// UDP payload, bytes.
    pub payload: u64,
}

/// A running capture on the loopback interface.
#[derive(Debug)]
pub struct Capture {
    tcpdump: Running,
    file: tempfile::NamedTempFile,
}

/// Returns the reason why a capture is not possible here; `None` if it is.
pub fn unavailable() -> Option<String> {
    if machine::find("tcpdump").is_none() {
        return Some("tcpdump is not installed".to_owned());
    }
    (!nix::unistd::geteuid().is_root()).then(|| "capturing needs root".to_owned())
}

impl Capture {
    /// Starts capturing datagrams to UDP port `port`.
    pub fn start(port: u16) -> Result<Self> {
        let tcpdump = machine::find("tcpdump").context("tcpdump is not installed")?;
        let file = tempfile::NamedTempFile::new()?;
        let running = Running::start(
            Command::new(tcpdump)
                .args(["-i", "lo", "-n", "-s", "64", "-B", "65536", "--time-stamp-precision=nano"])
                // Without `-Z root`, tcpdump drops privileges and cannot write the file.
                .args(["-Z", "root", "-w"])
                .arg(file.path())
                .args(["udp", "and", "dst", "port", &port.to_string()]),
        )?;
        let tcpdump = running.until("listening", |said| said.contains("listening on"))?;
        Ok(Self { tcpdump, file })
    }

    /// Stops the capture. Frames that the capture dropped are an error, because they falsify the gaps.
    pub fn stop(self) -> Result<Vec<Frame>> {
        let finished = self.tcpdump.stop(Signal::SIGINT)?;
        let missed = finished.stderr.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
        let missed: u64 = missed.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        ensure!(missed == 0, "the capture missed {missed} frames");
        frames(self.file.path())
    }
}

fn frames(path: &Path) -> Result<Vec<Frame>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut reader = PcapReader::new(BufReader::new(file)).context("not a capture")?;
    let mut frames = Vec::new();
    let tick_ns = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    // Raw packets: the checked reader (pcap-file 2.0) rejects packets longer than the snapshot length.
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.context("a truncated capture")?;
        frames.push(Frame {
            at_ns: u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * tick_ns,
            payload: u64::from(packet.orig_len).saturating_sub(HEADERS),
        });
    }
    Ok(frames)
}

/// Departure spacing of datagrams of `size` bytes, compared with a nominal rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    /// 99th percentile of |gap − ideal gap|, nanoseconds.
    pub p99_error_ns: f64,
    /// Median of |gap − ideal gap|, nanoseconds.
    pub p50_error_ns: f64,
    /// Mean rate sent, bits/s of payload.
    pub mean_bps: f64,
    /// Datagrams evaluated.
    pub datagrams: u64,
}

/// Time ignored at the start and at the end, nanoseconds: set-up, and the last partial burst.
const EDGE_NS: u64 = 100_000_000;

/// Computes the pacing of a capture. Datagrams of one frame left together: the gaps between them are 0. Frames
/// with less than `size` bytes of payload are the tool's control messages and are ignored.
pub fn pacing(frames: &[Frame], size: u64, rate_bps: f64) -> Result<Pacing> {
    let data: Vec<Frame> = frames.iter().copied().filter(|frame| frame.payload >= size).collect();
    let (first, last) = (data.first().context("no datagram was captured")?.at_ns, data[data.len() - 1].at_ns);
    let steady: Vec<Frame> =
        data.into_iter().filter(|frame| frame.at_ns >= first + EDGE_NS && frame.at_ns + EDGE_NS <= last).collect();
    ensure!(steady.len() >= 100, "{} frames are too few", steady.len());
    let ideal_ns = size as f64 * 8e9 / rate_bps;
    let mut errors = Vec::new();
    let mut previous: Option<u64> = None;
    for frame in &steady {
        if let Some(previous) = previous {
            errors.push((frame.at_ns.saturating_sub(previous) as f64 - ideal_ns).abs());
        }
        errors.extend((1..frame.payload / size).map(|_| ideal_ns));
        previous = Some(frame.at_ns);
    }
    let quantile = |p| landspeed_stats::quantile(&errors, p).context("no gaps");
    let span_s = (steady[steady.len() - 1].at_ns - steady[0].at_ns) as f64 / 1e9;
    let bytes: u64 = steady[1..].iter().map(|frame| frame.payload).sum();
    Ok(Pacing {
        p99_error_ns: quantile(0.99)?,
        p50_error_ns: quantile(0.5)?,
        mean_bps: bytes as f64 * 8.0 / span_s,
        datagrams: steady.iter().map(|frame| frame.payload / size).sum(),
    })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "zero is exact here")]
mod tests {
    use landspeed_wire::LinkType;
    use landspeed_wire::capture::write;

    use super::*;

    const SIZE: u64 = 1250;
    const RATE: f64 = 1e8; // One datagram every 100 µs.

    fn every(gap_ns: u64, payload: u64, count: u64) -> Vec<Frame> {
        (0..count).map(|i| Frame { at_ns: 1_000 + i * gap_ns, payload }).collect()
    }

    #[test]
    fn evenly_paced_stream_has_no_error_and_its_nominal_rate() {
        let pacing = pacing(&every(100_000, SIZE, 10_000), SIZE, RATE).unwrap();
        assert_eq!((pacing.p50_error_ns, pacing.p99_error_ns), (0.0, 0.0));
        assert!((pacing.mean_bps / RATE - 1.0).abs() < 1e-9, "{}", pacing.mean_bps);
    }

    #[test]
    fn datagrams_that_left_as_one_frame_count_as_a_burst() {
        let one_by_one = pacing(&every(1_000_000, SIZE * 10, 1_000), SIZE, RATE).unwrap();
        // Each burst of ten has nine gaps of 0 and one of 1 ms: 90 % are off by the ideal gap, 10 % by nine times
        // it.
        assert_eq!((one_by_one.p50_error_ns, one_by_one.p99_error_ns), (100_000.0, 900_000.0));
    }

    #[test]
    fn control_messages_are_not_counted_as_departures() {
        let mut frames = every(100_000, SIZE, 10_000);
        frames.insert(5_000, Frame { at_ns: frames[4_999].at_ns + 50_000, payload: 16 });
        assert_eq!(pacing(&frames, SIZE, RATE).unwrap().p99_error_ns, 0.0);
    }

    #[test]
    fn too_few_frames_are_an_error() {
        assert!(pacing(&[], SIZE, RATE).is_err());
        assert!(pacing(&every(100_000, SIZE, 50), SIZE, RATE).is_err());
    }

    #[test]
    fn nanosecond_capture_of_loopback_is_parsed() {
        let mut pcap = Vec::new();
        write::pcap_header(&mut pcap, LinkType::ETHERNET, 64);
        write::pcap_record(&mut pcap, 7_123_456_789, &[0; 4], 1290);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pcap).unwrap();
        assert_eq!(frames(file.path()).unwrap(), [Frame { at_ns: 7_123_456_789, payload: 1248 }]);
    }
}
