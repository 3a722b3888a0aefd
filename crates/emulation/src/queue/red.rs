//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993; RFC 2309).

use landspeed_stats::SplitMix64;

use super::{Drops, EnqueueDecision, Fifo};
use crate::event::{DropCause, Frame};

/// Weight of one arrival in the average queue length (Floyd and Jacobson, section 6).
const WEIGHT: f64 = 0.002;

/// Settings of RED.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedSettings {
    /// Queue limit, bytes.
    pub limit_bytes: u64,
    /// Average queue length from which frames are dropped or marked, bytes.
    pub min_bytes: u64,
    /// Average queue length from which every frame is dropped, bytes.
    pub max_bytes: u64,
    /// Drop probability at `max_bytes`, 0–1.
    pub probability: f64,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
    /// Serialisation time of a typical frame, nanoseconds: while idle, the average decays by one step in this time.
    pub frame_ns: u64,
}

/// A queue with RED.
#[derive(Debug)]
pub(crate) struct Red<T> {
    pub(super) fifo: Fifo<T>,
    settings: RedSettings,
    average: f64,
    /// Frames since the last drop; -1 while the average is below `min_bytes`.
    count: i64,
    idle_since_ns: Option<u64>,
    random: SplitMix64,
}

impl<T: Copy> Red<T> {
    pub(crate) fn new(settings: RedSettings, random: SplitMix64) -> Self {
        let fifo = Fifo::of_bytes(settings.limit_bytes);
        Self { fifo, settings, average: 0.0, count: -1, idle_since_ns: Some(0), random }
    }

    /// Updates the average queue length for an arrival at `now_ns`.
    fn update(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.idle_since_ns.take() {
            let frames = (now_ns - since_ns) as f64 / self.settings.frame_ns.max(1) as f64;
            self.average *= (1.0 - WEIGHT).powf(frames);
        }
        self.average += WEIGHT * (self.fifo.bytes() as f64 - self.average);
    }

    fn decide(&mut self) -> EnqueueDecision {
        let (min, max) = (self.settings.min_bytes as f64, self.settings.max_bytes as f64);
        if self.average < min {
            self.count = -1;
            return EnqueueDecision::Accept;
        }
        if self.average >= max {
            self.count = 0;
            return EnqueueDecision::Reject;
        }
        self.count += 1;
        let base = self.settings.probability * (self.average - min) / (max - min);
        // p_a = p_b / (1 - count p_b) makes the gaps between drops uniform.
        let spread = 1.0 - self.count as f64 * base;
        if spread <= 0.0 || self.random.random_bool(base / spread) {
            self.count = 0;
            return EnqueueDecision::Congested;
        }
        EnqueueDecision::Accept
    }

    pub(super) fn enqueue(&mut self, now_ns: u64, mut frame: Frame<T>, drops: &mut Drops<T>) {
        self.update(now_ns);
        match self.decide() {
            EnqueueDecision::Accept => {}
            EnqueueDecision::Congested if self.settings.ecn && frame.ecn_capable => frame.marked = true,
            EnqueueDecision::Congested | EnqueueDecision::Reject => {
                drops.push((frame, DropCause::Aqm));
                // Without this, an average above max would never fall: dropped frames must not end the idle time.
                if self.fifo.packets() == 0 {
                    self.idle_since_ns = Some(now_ns);
                }
                return;
            }
        }
        self.fifo.enqueue(frame, drops);
    }

    pub(super) fn dequeue(&mut self, now_ns: u64) -> Option<Frame<T>> {
        let frame = self.fifo.pop();
        if frame.is_some() && self.fifo.packets() == 0 {
            self.idle_since_ns = Some(now_ns);
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: RedSettings = RedSettings {
        limit_bytes: 1_000_000,
        min_bytes: 50_000,
        max_bytes: 150_000,
        probability: 0.1,
        ecn: false,
        frame_ns: 1_000,
    };

    /// A queue with a length and average of `bytes`.
    fn at(bytes: u64) -> Red<()> {
        let mut red = Red::new(SETTINGS, SplitMix64::new(1));
        for _ in 0..bytes / 1000 {
            red.fifo.push(Frame::new((), 1000));
        }
        red.average = bytes as f64;
        red.idle_since_ns = None;
        red
    }

    #[test]
    fn drops_start_at_min_and_are_total_above_max() {
        for (bytes, dropped) in [(49_000, 0), (150_000, 1000)] {
            let mut red = at(bytes);
            let mut drops = Vec::new();
            for _ in 0..1000 {
                red.enqueue(0, Frame::new((), 1000), &mut drops);
                if dropped == 0 {
                    red.dequeue(0);
                }
            }
            assert_eq!(drops.len(), dropped, "{bytes}");
        }
    }

    #[test]
    fn drop_rate_follows_the_average_queue() {
        // Gaps are uniform from 1 to 1/p_b - 1 frames, so the mean gap is 1 / (2 p_b).
        for bytes in [75_000_u64, 100_000, 125_000] {
            let mut red = at(bytes);
            let mut drops = Vec::new();
            let frames = 200_000;
            for _ in 0..frames {
                let before = drops.len();
                red.enqueue(0, Frame::new((), 1000), &mut drops);
                if drops.len() == before {
                    red.dequeue(0);
                }
            }
            let base = 0.1 * (bytes - 50_000) as f64 / 100_000.0;
            let expected = f64::from(frames) * 2.0 * base;
            let found = drops.len() as f64;
            assert!((found / expected - 1.0).abs() < 0.03, "{bytes}: {found} dropped, {expected} expected");
        }
    }

    #[test]
    fn average_decays_while_idle() {
        let mut red: Red<()> = Red::new(SETTINGS, SplitMix64::new(1));
        red.average = 100_000.0;
        red.idle_since_ns = Some(0);
        red.enqueue(500_000, Frame::new((), 1000), &mut Vec::new());
        let expected = 100_000.0 * 0.998_f64.powi(500) * 0.998;
        assert!((red.average - expected).abs() < 1e-6, "{} {expected}", red.average);
    }

    #[test]
    fn ecn_capable_frames_are_marked() {
        let mut red = at(140_000);
        red.settings.ecn = true;
        let mut drops = Vec::new();
        let mut marked = 0;
        for _ in 0..1000 {
            let frame = Frame { ecn_capable: true, ..Frame::new((), 1000) };
            red.enqueue(0, frame, &mut drops);
            marked += u32::from(red.fifo.pop().is_some_and(|frame| frame.marked));
        }
        assert_eq!(drops.len(), 0);
        // Count the marked frames that are still queued.
        while let Some(frame) = red.fifo.pop() {
            marked += u32::from(frame.marked);
        }
        assert!(marked > 100, "{marked}");
    }
}
