//! One direction of an emulated path in the userspace datapath.

use std::io;

use landspeed_emulation::{DirectionCounters, DirectionModel, DirectionPlan, Event, Frame, HopCounters, frame};
use landspeed_model::EmulateSecondDirection;
use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::frames::{FrameRing, ReceivedFrame, SEND_BATCH};

use crate::carry::is_probe;
use crate::seconds::{SECOND_NS, Seconds};
use crate::store::{Slot, Store};

/// Time for which a send is retried while the interface is busy, nanoseconds.
const SEND_RETRY_NS: u64 = 1_000_000;
/// Destination MAC address of MLDv2 reports (all MLDv2-capable routers), which hosts send unsolicited.
const MULTICAST_REPORTS: [u8; 6] = [0x33, 0x33, 0, 0, 0, 0x16];

/// State of one direction: the model, the stored frames and the counters.
pub(crate) struct Direction {
    line: DirectionModel<Slot>,
    store: Store,
    events: Vec<Event<Slot>>,
    /// Frames that are due, each with its scheduled departure.
    due: Vec<(Frame<Slot>, u64)>,
    frame_bytes: usize,
    framing_bytes: u64,
    ignore_reports: bool,
    delays: LatencyHistogram,
    unhandled: u64,
    second_bytes: u64,
    peak_bps: u64,
    before: Before,
}

/// Counters at the start of the current second.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    dropped: u64,
    unhandled: u64,
    queue_byte_ns: u128,
}

/// Counters of one direction at the end of an emulation.
#[derive(Debug)]
pub struct DirectionOutcome {
    pub(crate) counters: DirectionCounters,
    /// Whether reordered frames are counted.
    pub(crate) counts_reordered: bool,
    pub(crate) hops: Vec<HopCounters>,
    pub(crate) delays: LatencyHistogram,
    pub(crate) unhandled: u64,
    pub(crate) framing_bytes: u64,
    pub(crate) peak_bps: u64,
    pub(crate) store_used_max: u64,
    pub(crate) store_capacity: u64,
}

/// Result of handling a received frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The frame was handled.
    Handled,
    /// The frame is the loop probe: the interfaces are connected to each other.
    Probe,
}

impl Direction {
    pub(crate) fn new(plan: &DirectionPlan, seed: u64, store: Store, ignore_reports: bool) -> Self {
        Self {
            line: DirectionModel::new(plan, seed),
            store,
            events: Vec::new(),
            due: Vec::new(),
            frame_bytes: plan.frame_bytes() as usize,
            framing_bytes: plan.framing_bytes(),
            ignore_reports,
            delays: LatencyHistogram::new(),
            unhandled: 0,
            second_bytes: 0,
            peak_bps: 0,
            before: Before::default(),
        }
    }

    /// Handles a frame that arrived at `at_ns` after the start.
    pub(crate) fn receive(
        &mut self,
        received: &ReceivedFrame<'_>,
        at_ns: u64,
        probe: Option<&[u8]>,
        seconds: &mut Seconds,
    ) -> Received {
        let data = received.data;
        if probe.is_some_and(|probe| is_probe(data, probe)) {
            return Received::Probe;
        }
        if self.ignore_reports && data.starts_with(&MULTICAST_REPORTS) {
            return Received::Handled;
        }
        // A VLAN tag may add 4 bytes to a frame of the full MTU.
        if received.original_bytes as usize > self.frame_bytes + 4 || data.len() < received.original_bytes as usize {
            seconds.now().super_packets += 1;
            self.unhandled += 1;
            return Received::Handled;
        }
        let slot = match (&received.vlan, data.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => self.store.insert(&[addresses, tag, rest]),
            _ => self.store.insert(&[data]),
        };
        let Some(slot) = slot else {
            seconds.now().store_full += 1;
            self.unhandled += 1;
            return Received::Handled;
        };
        let bytes = self.store.frame_mut(slot);
        if received.checksum_missing {
            frame::complete_checksum(bytes);
        }
        let frame = Frame::inspected(slot, bytes);
        self.line.offer(at_ns, frame, &mut self.events);
        self.process_events();
        Received::Handled
    }

    /// Collects the frames that leave by `now_ns` after the start.
    pub(crate) fn collect(&mut self, now_ns: u64) {
        self.line.take(now_ns, &mut self.events);
        self.process_events();
    }

    fn process_events(&mut self) {
        for event in self.events.drain(..) {
            match event {
                Event::Deliver { frame, due_ns } => self.due.push((frame, due_ns)),
                Event::Copy { item } => self.store.retain(item),
                Event::Drop { item, .. } => self.store.release(item),
            }
        }
    }

    /// Time of the next departure, nanoseconds after the start.
    pub(crate) fn next_departure(&self) -> Option<u64> {
        self.line.next_departure()
    }

    /// Sends the frames that are due; returns their number. `start_ns` is the start of the emulation on the
    /// monotonic clock.
    ///
    /// # Errors
    /// Only those that mean that the interface is gone.
    pub(crate) fn send(
        &mut self,
        ring: &FrameRing,
        start_ns: u64,
        seconds: &mut Seconds,
        errors: &mut LatencyHistogram,
    ) -> io::Result<usize> {
        let count = self.due.len();
        let mut at = 0;
        let mut patience_until_ns = None;
        while at < count {
            let batch = &self.due[at..count.min(at + SEND_BATCH)];
            for (frame, _) in batch.iter().filter(|(frame, _)| frame.marked) {
                frame::mark_ce(self.store.frame_mut(frame.item));
            }
            let mut frames: [&[u8]; SEND_BATCH] = [&[]; SEND_BATCH];
            for (bytes, (frame, _)) in frames.iter_mut().zip(batch) {
                *bytes = self.store.frame(frame.item);
            }
            let outcome = ring.send(&frames[..batch.len()]);
            let now_ns = monotonic_ns();
            let (sent, failed) = match outcome {
                Ok(0) => (0, 1),
                Ok(sent) => (sent, 0),
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) if is_busy(&error) => {
                    let until_ns = *patience_until_ns.get_or_insert(now_ns + SEND_RETRY_NS);
                    (0, usize::from(now_ns >= until_ns))
                }
                Err(_) => (0, 1),
            };
            if sent + failed > 0 {
                patience_until_ns = None;
            }
            for (frame, due_ns) in &self.due[at..at + sent] {
                let late_ns = now_ns.saturating_sub(start_ns + due_ns);
                seconds.sent(late_ns);
                errors.record(late_ns);
                self.delays.record(now_ns.saturating_sub(start_ns + frame.offered_ns));
                self.second_bytes += u64::from(frame.bytes) + self.framing_bytes;
                self.store.release(frame.item);
            }
            for (frame, _) in &self.due[at + sent..at + sent + failed] {
                seconds.now().send_failed += 1;
                self.unhandled += 1;
                self.store.release(frame.item);
            }
            at += sent + failed;
        }
        self.due.clear();
        Ok(count)
    }

    /// Ends the current second, of `length_ns`.
    pub(crate) fn conclude_second(&mut self, length_ns: u64) -> EmulateSecondDirection {
        let length = u128::from(length_ns.max(1));
        let bytes = std::mem::take(&mut self.second_bytes);
        let rate_bps = (u128::from(bytes) * 8 * u128::from(SECOND_NS) / length) as u64;
        // Only whole seconds count for the peak rate; the last one may be shorter.
        if length_ns >= SECOND_NS {
            self.peak_bps = self.peak_bps.max(rate_bps);
        }
        let now = Before {
            dropped: self.line.counters().dropped,
            unhandled: self.unhandled,
            queue_byte_ns: self.line.hops().map(|hop| hop.queue_byte_ns).sum(),
        };
        let before = std::mem::replace(&mut self.before, now);
        EmulateSecondDirection {
            rate_bps,
            dropped_packets: now.dropped - before.dropped,
            unhandled_packets: now.unhandled - before.unhandled,
            queue_bytes: ((now.queue_byte_ns - before.queue_byte_ns) / length) as u64,
        }
    }

    /// Returns the final counters.
    pub(crate) fn finish(self) -> DirectionOutcome {
        DirectionOutcome {
            counters: self.line.counters(),
            counts_reordered: true,
            hops: self.line.hops().collect(),
            delays: self.delays,
            unhandled: self.unhandled,
            framing_bytes: self.framing_bytes,
            peak_bps: self.peak_bps,
            store_used_max: self.store.used_max() as u64,
            store_capacity: self.store.capacity() as u64,
        }
    }

    /// Counts frames that the receive ring dropped.
    pub(crate) fn missed(&mut self, frames: u64) {
        self.unhandled += frames;
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{NetworkDown, NotFound};
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    matches!(error.kind(), NetworkDown | NotFound) || matches!(error.raw_os_error(), Some(ENXIO | ENODEV))
}

fn is_busy(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.raw_os_error() == Some(ENOBUFS)
}
