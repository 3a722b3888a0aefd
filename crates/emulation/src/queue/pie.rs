//! PIE, proportional integral controller enhanced (RFC 8033, section 4), with delays from timestamps (section
//! 5.2).

use landspeed_stats::SplitMix64;

use super::{Drops, Fifo};
use crate::event::{DropCause, Frame};

/// Update period, nanoseconds (RFC 8033, section 4.2: T_UPDATE).
const UPDATE_NS: u64 = 15_000_000;
/// Weights of the delay's deviation from the target and of its change, 1/s (section 4.2: alpha, beta).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Burst allowance, nanoseconds (section 4.4: MAX_BURST).
const MAX_BURST_NS: u64 = 150_000_000;
/// Maximum probability at which ECN-capable frames are marked; above it they are dropped (section 5.1:
/// MARK_ECNTH).
const MARK_ECNTH: f64 = 0.1;

/// A queue with PIE.
#[derive(Debug)]
pub(crate) struct Pie<T> {
    pub(super) fifo: Fifo<T>,
    target_ns: u64,
    ecn: bool,
    frame_bytes: u64,
    probability: f64,
    delay_ns: u64,
    old_delay_ns: u64,
    burst_ns: u64,
    next_update_ns: u64,
    random: SplitMix64,
}

impl<T: Copy> Pie<T> {
    pub(crate) fn new(limit_packets: usize, target_ns: u64, ecn: bool, frame_bytes: u64, random: SplitMix64) -> Self {
        Self {
            fifo: Fifo::of_packets(limit_packets),
            target_ns,
            ecn,
            frame_bytes,
            probability: 0.0,
            delay_ns: 0,
            old_delay_ns: 0,
            burst_ns: MAX_BURST_NS,
            next_update_ns: UPDATE_NS,
            random,
        }
    }

    /// Performs the updates that were due by `now_ns`.
    fn catch_up(&mut self, now_ns: u64) {
        while self.next_update_ns <= now_ns {
            self.update();
            self.next_update_ns += UPDATE_NS;
            let at_rest = self.probability == 0.0 && self.delay_ns == 0 && self.old_delay_ns == 0;
            if at_rest && self.burst_ns >= MAX_BURST_NS && self.next_update_ns < now_ns {
                self.next_update_ns += (now_ns - self.next_update_ns) / UPDATE_NS * UPDATE_NS;
            }
        }
    }

    fn update(&mut self) {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let (delay, old, target) = (seconds(self.delay_ns), seconds(self.old_delay_ns), seconds(self.target_ns));
        let mut step = ALPHA * (delay - target) + BETA * (delay - old);
        // Section 4.2: smaller steps at lower probabilities.
        step *= match self.probability {
            p if p < 0.000_001 => 1.0 / 2048.0,
            p if p < 0.000_01 => 1.0 / 512.0,
            p if p < 0.000_1 => 1.0 / 128.0,
            p if p < 0.001 => 1.0 / 32.0,
            p if p < 0.01 => 1.0 / 8.0,
            p if p < 0.1 => 1.0 / 2.0,
            _ => 1.0,
        };
        if self.probability >= 0.1 {
            // Section 5.5: steps of at most 2 %.
            step = step.min(0.02);
        }
        self.probability += step;
        if self.delay_ns == 0 && self.old_delay_ns == 0 {
            self.probability *= 0.98;
        }
        if delay > 0.25 {
            self.probability += 0.02;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay_ns = self.delay_ns;
        self.burst_ns = self.burst_ns.saturating_sub(UPDATE_NS);
        if self.probability == 0.0 && self.delay_ns < self.target_ns / 2 && self.old_delay_ns < self.target_ns / 2 {
            self.burst_ns = MAX_BURST_NS;
        }
    }

    fn drops_early(&mut self) -> bool {
        if self.burst_ns > 0 {
            return false;
        }
        // Section 4.1: no early drops for bursts and short queues.
        if self.old_delay_ns < self.target_ns / 2 && self.probability < 0.2 {
            return false;
        }
        if self.fifo.bytes() <= 2 * self.frame_bytes {
            return false;
        }
        self.random.random_bool(self.probability)
    }

    pub(super) fn enqueue(&mut self, now_ns: u64, mut frame: Frame<T>, drops: &mut Drops<T>) {
        self.catch_up(now_ns);
        if self.fifo.fits(frame.bytes) && self.drops_early() {
            if self.ecn && frame.ecn_capable && self.probability <= MARK_ECNTH {
                frame.marked = true;
            } else {
                drops.push((frame, DropCause::Aqm));
                return;
            }
        }
        self.fifo.enqueue(frame, drops);
    }

    pub(super) fn dequeue(&mut self, now_ns: u64) -> Option<Frame<T>> {
        self.catch_up(now_ns);
        let frame = self.fifo.pop()?;
        self.delay_ns = if self.fifo.packets() == 0 { 0 } else { now_ns - frame.queued_ns };
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pie() -> Pie<()> {
        Pie::new(1000, 15 * MS, false, 1514, SplitMix64::new(1))
    }

    #[test]
    fn drop_probability_follows_rfc_8033() {
        let mut pie = pie();
        (pie.probability, pie.delay_ns, pie.old_delay_ns) = (0.05, 40 * MS, 30 * MS);
        pie.update();
        let expected = 0.05 + f64::midpoint(0.125 * (0.040 - 0.015), 1.25 * (0.040 - 0.030));
        assert!((pie.probability - expected).abs() < 1e-12, "{} {expected}", pie.probability);
        (pie.probability, pie.delay_ns, pie.old_delay_ns) = (0.5, 240 * MS, 0);
        pie.update();
        assert!((pie.probability - 0.52).abs() < 1e-12, "a step of at most 2 %");
        (pie.probability, pie.delay_ns, pie.old_delay_ns) = (0.05, 0, 0);
        pie.update();
        assert!((pie.probability - (0.05 - 0.125 * 0.015 / 2.0) * 0.98).abs() < 1e-12, "{}", pie.probability);
    }

    #[test]
    fn bursts_pass_and_standing_queues_are_dropped() {
        let mut pie = pie();
        let mut drops = Vec::new();
        // Two frames arrive for each frame that leaves.
        let mut first = None;
        for ms in 0..600_u64 {
            for _ in 0..2 {
                pie.enqueue(ms * MS, Frame { queued_ns: ms * MS, ..Frame::new((), 1514) }, &mut drops);
            }
            pie.dequeue(ms * MS);
            if first.is_none() && !drops.is_empty() {
                first = Some(ms);
            }
        }
        assert!(first.is_some_and(|ms| ms >= 150), "{first:?}: not before the burst allowance of 150 ms is spent");
        assert!(drops.len() > 20, "{}", drops.len());
    }

    #[test]
    fn updates_missed_while_idle_are_caught_up() {
        let run = |looks: &[u64]| {
            let mut pie = pie();
            (pie.probability, pie.delay_ns, pie.old_delay_ns, pie.burst_ns) = (0.3, 20 * MS, 20 * MS, 0);
            looks.iter().for_each(|ms| pie.catch_up(ms * MS));
            (pie.probability, pie.next_update_ns)
        };
        assert_eq!(run(&[1000]), run(&(0..=1000).collect::<Vec<_>>()));
    }
}
