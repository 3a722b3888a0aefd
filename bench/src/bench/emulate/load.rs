//! Load for emulators: one thread sends frames on schedule, receives them, and compares their timestamps.

use std::os::fd::AsFd as _;

use anyhow::{Result, anyhow, ensure};
use landspeed_netlink::{LinkId, Netlink};
use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until};
use landspeed_sys::frames::{FrameRing, SEND_BATCH};
use landspeed_sys::netns;
use landspeed_sys::thread::pin_to_core;

use super::rig::{LOAD_CORE, Rig};

/// Length of the Ethernet, IPv4 and UDP headers, bytes.
const HEADERS: usize = 14 + 20 + 8;
const ETHERNET: usize = 14;
/// Marks frames sent by this benchmark.
const MAGIC: [u8; 6] = *b"LSbnch";

/// Frames sent and delivered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offered {
    /// Frames sent.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Duration of sending, nanoseconds.
    pub length_ns: u64,
}

impl Offered {
    /// Frames sent per second.
    pub fn sent_per_s(&self) -> f64 {
        self.sent as f64 * 1e9 / self.length_ns.max(1) as f64
    }

    /// Share of frames that did not arrive, 0..=1.
    pub fn lost(&self) -> f64 {
        1.0 - self.delivered as f64 / self.sent.max(1) as f64
    }
}

/// Delay errors of frames.
#[derive(Debug)]
pub struct Delays {
    /// Frames sent and delivered.
    pub offered: Offered,
    /// Absolute difference from the path's delay, nanoseconds.
    pub errors: LatencyHistogram,
}

/// Sends frames of `frame_bytes` for `length_ns`, at `rate` frames per second or unlimited; counts arrivals at
/// the receiver's interface.
pub fn offer(rig: &Rig, frame_bytes: usize, rate: Option<f64>, length_ns: u64) -> Result<Offered> {
    in_thread(|| {
        let ring = open(rig, true, frame_bytes, 1 << 20)?;
        let before = rig.arrived()?;
        let frame = frame(rig, frame_bytes);
        let batch = [&frame[..]; SEND_BATCH];
        let start_ns = monotonic_ns();
        let mut sent = 0;
        loop {
            let elapsed_ns = monotonic_ns() - start_ns;
            if elapsed_ns >= length_ns {
                break;
            }
            let due = rate.map_or(u64::MAX, |rate| (elapsed_ns as f64 * rate / 1e9) as u64);
            let count = due.saturating_sub(sent).min(SEND_BATCH as u64);
            if count > 0 {
                sent += ring.send(&batch[..count as usize]).unwrap_or(0) as u64;
            } else {
                std::hint::spin_loop();
            }
        }
        let length_ns = monotonic_ns() - start_ns;
        // Wait until everything in the path has arrived, including the queue of an emulator that cannot keep up.
        let mut arrived = rig.arrived()?;
        let mut last_ns = monotonic_ns();
        let (quiet_ns, end_ns) = (rig.path.delay_ms * 1_000_000 + 100_000_000, last_ns + 5_000_000_000);
        while monotonic_ns() < (last_ns + quiet_ns).min(end_ns) {
            sleep_until(monotonic_ns() + 5_000_000);
            let now = rig.arrived()?;
            if now != arrived {
                (arrived, last_ns) = (now, monotonic_ns());
            }
        }
        Ok(Offered { sent, delivered: arrived - before, length_ns })
    })
}

/// Sends frames at full speed and returns the frames per second sent and arrived, measured after `warm_ns`.
pub fn overload(rig: &Rig, frame_bytes: usize, warm_ns: u64, length_ns: u64) -> Result<[f64; 2]> {
    in_thread(|| {
        let ring = open(rig, true, frame_bytes, 1 << 20)?;
        let frame = frame(rig, frame_bytes);
        let batch = [&frame[..]; SEND_BATCH];
        let send_until = |end_ns: u64| {
            let mut sent = 0;
            while monotonic_ns() < end_ns {
                sent += ring.send(&batch).unwrap_or(0) as u64;
            }
            sent
        };
        send_until(monotonic_ns() + warm_ns);
        let (start_ns, before) = (monotonic_ns(), rig.arrived()?);
        let sent = send_until(start_ns + length_ns);
        let (end_ns, after) = (monotonic_ns(), rig.arrived()?);
        let per_s = |frames: u64| frames as f64 * 1e9 / (end_ns - start_ns) as f64;
        Ok([per_s(sent), per_s(after - before)])
    })
}

fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin_to_core(LOAD_CORE)?;
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn open(rig: &Rig, is_left: bool, frame_bytes: usize, ring_bytes: usize) -> Result<FrameRing> {
    let (namespace, name) =
        if is_left { (&rig.left, &rig.left_interface) } else { (&rig.right, &rig.right_interface) };
    netns::enter(namespace.as_fd())?;
    let index = Netlink::open().and_then(|mut netlink| netlink.link(LinkId::Name(name)))?.index;
    let ring = FrameRing::open(index, frame_bytes, ring_bytes).map_err(|error| anyhow!("{name}: {error}"))?;
    ring.start().map_err(|error| anyhow!("{name}: {error}"))?;
    Ok(ring)
}

/// Builds a UDP datagram. For interfaces without a link header, the Ethernet header is cut off.
fn frame(rig: &Rig, frame_bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; frame_bytes];
    frame[..6].copy_from_slice(&rig.right_mac.unwrap_or([0; 6]));
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[ETHERNET..];
    let length = ip.len() as u16;
    ip[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17]);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[12..20].copy_from_slice(&[198, 18, 0, 1, 203, 0, 113, 1]);
    let sum = ip[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip[20..24].copy_from_slice(&[0x30, 0x39, 0, 9]);
    ip[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    frame[HEADERS..HEADERS + MAGIC.len()].copy_from_slice(&MAGIC);
    frame.split_off(if rig.right_mac.is_some() { 0 } else { ETHERNET })
}

/// Sends frames of `frame_bytes` one by one with a timestamp, and compares it with the kernel's receive
/// timestamp.
pub fn delays(rig: &Rig, frame_bytes: usize, rate: Option<f64>, length_ns: u64) -> Result<Delays> {
    ensure!(frame_bytes >= HEADERS + MAGIC.len() + 8, "no room for a time");
    in_thread(|| {
        let out = open(rig, true, frame_bytes, 1 << 20)?;
        let mut ring = open(rig, false, frame_bytes, 64 << 20)?;
        let delay_ns = rig.path.delay_ms * 1_000_000;
        let mut frame = frame(rig, frame_bytes);
        let magic = if rig.right_mac.is_some() { HEADERS } else { HEADERS - ETHERNET };
        let stamp = magic + MAGIC.len();
        let mut errors = LatencyHistogram::new();
        let mut delivered = 0;
        let mut read = |most: usize| {
            for _ in 0..most {
                let Some(found) = ring.peek() else { return };
                if let Some(payload) = found.data.get(magic..).filter(|payload| payload.starts_with(&MAGIC))
                    && let Some(sent_ns) = payload.get(MAGIC.len()..).and_then(|rest| rest.first_chunk())
                {
                    delivered += 1;
                    let taken_ns = found.timestamp_ns.saturating_sub(u64::from_ne_bytes(*sent_ns));
                    errors.record(taken_ns.abs_diff(delay_ns));
                }
                ring.release();
            }
        };
        let start_ns = monotonic_ns();
        let mut sent = 0;
        loop {
            let elapsed_ns = monotonic_ns() - start_ns;
            if elapsed_ns >= length_ns {
                break;
            }
            if rate.is_none_or(|rate| sent < (elapsed_ns as f64 * rate / 1e9) as u64) {
                frame[stamp..stamp + 8].copy_from_slice(&realtime_ns().to_ne_bytes());
                sent += out.send(&[&frame]).unwrap_or(0) as u64;
                read(2);
            } else {
                read(1);
            }
        }
        let length_ns = monotonic_ns() - start_ns;
        let end_ns = monotonic_ns() + delay_ns + 100_000_000;
        while monotonic_ns() < end_ns {
            read(64);
        }
        Ok(Delays { offered: Offered { sent, delivered, length_ns }, errors })
    })
}
