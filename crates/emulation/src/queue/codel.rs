//! CoDel, controlled delay: the pseudocode of RFC 8289, section 5.

use super::{Drops, Fifo};
use crate::event::{DropCause, Frame};

/// Settings of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodelSettings {
    /// Target queueing delay, nanoseconds.
    pub target_ns: u64,
    /// Interval within which the delay must fall below the target once, nanoseconds.
    pub interval_ns: u64,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
    /// Maximum frame length, bytes: at most this much is not a standing queue.
    pub frame_bytes: u64,
}

/// Controller state of one queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodelState {
    first_above_ns: Option<u64>,
    drop_next_ns: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl CodelState {
    /// Time of the next drop: `from_ns + interval / sqrt(count)`.
    fn control_law(settings: &CodelSettings, from_ns: u64, count: u64) -> u64 {
        from_ns + (settings.interval_ns as f64 / (count.max(1) as f64).sqrt()) as u64
    }

    /// Removes a frame from the queue; also returns whether the delay has been above the target for an interval.
    fn do_dequeue<T: Copy>(
        &mut self,
        settings: &CodelSettings,
        now_ns: u64,
        queue: &mut Fifo<T>,
    ) -> (Option<Frame<T>>, bool) {
        let Some(frame) = queue.pop() else {
            self.first_above_ns = None;
            return (None, false);
        };
        let sojourn_ns = now_ns - frame.queued_ns;
        if sojourn_ns < settings.target_ns || queue.bytes() <= settings.frame_bytes {
            self.first_above_ns = None;
            return (Some(frame), false);
        }
        match self.first_above_ns {
            None => {
                self.first_above_ns = Some(now_ns + settings.interval_ns);
                (Some(frame), false)
            }
            Some(first_above_ns) => (Some(frame), now_ns >= first_above_ns),
        }
    }

    /// Returns the next frame to send; drops or marks frames according to the control law.
    pub(crate) fn dequeue<T: Copy>(
        &mut self,
        settings: &CodelSettings,
        now_ns: u64,
        queue: &mut Fifo<T>,
        drops: &mut Drops<T>,
    ) -> Option<Frame<T>> {
        let (mut frame, mut ok_to_drop) = self.do_dequeue(settings, now_ns, queue);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now_ns >= self.drop_next_ns {
                let Some(found) = frame else { break };
                self.count += 1;
                if settings.ecn && found.ecn_capable {
                    self.drop_next_ns = Self::control_law(settings, self.drop_next_ns, self.count);
                    return Some(Frame { marked: true, ..found });
                }
                drops.push((found, DropCause::Aqm));
                (frame, ok_to_drop) = self.do_dequeue(settings, now_ns, queue);
                if ok_to_drop {
                    self.drop_next_ns = Self::control_law(settings, self.drop_next_ns, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let found = frame?;
            let marks = settings.ecn && found.ecn_capable;
            if marks {
                frame = Some(Frame { marked: true, ..found });
            } else {
                drops.push((found, DropCause::Aqm));
                (frame, _) = self.do_dequeue(settings, now_ns, queue);
            }
            self.dropping = true;
            // If the previous dropping state ended recently, resume with its drop rate.
            let delta = self.count - self.last_count;
            let recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * settings.interval_ns;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next_ns = Self::control_law(settings, now_ns, self.count);
            self.last_count = self.count;
        }
        frame
    }
}

/// A single queue with CoDel.
#[derive(Debug)]
pub(crate) struct Codel<T> {
    fifo: Fifo<T>,
    settings: CodelSettings,
    state: CodelState,
}

impl<T: Copy> Codel<T> {
    pub(crate) fn new(settings: CodelSettings, limit_packets: usize) -> Self {
        Self { fifo: Fifo::of_packets(limit_packets), settings, state: CodelState::default() }
    }

    pub(super) fn enqueue(&mut self, frame: Frame<T>, drops: &mut Drops<T>) {
        self.fifo.enqueue(frame, drops);
    }

    pub(super) fn dequeue(&mut self, now_ns: u64, drops: &mut Drops<T>) -> Option<Frame<T>> {
        self.state.dequeue(&self.settings, now_ns, &mut self.fifo, drops)
    }

    pub(super) fn packets(&self) -> usize {
        self.fifo.packets()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SETTINGS: CodelSettings =
        CodelSettings { target_ns: 5 * MS, interval_ns: 100 * MS, ecn: false, frame_bytes: 1514 };

    /// Times at which frames are dropped or marked while one frame leaves each millisecond and the queue never
    /// empties, milliseconds.
    fn drops_of_a_standing_queue(settings: CodelSettings) -> Vec<u64> {
        let mut codel = Codel::new(settings, 10_000);
        let mut drops = Vec::new();
        let mut times = Vec::new();
        for _ in 0..5_000 {
            codel.enqueue(Frame { ecn_capable: settings.ecn, ..Frame::new((), 1514) }, &mut drops);
        }
        for ms in 10..1_000 {
            let before = drops.len();
            let frame = codel.dequeue(ms * MS, &mut drops);
            let marked = usize::from(frame.is_some_and(|frame| frame.marked));
            times.extend(std::iter::repeat_n(ms, drops.len() - before + marked));
        }
        times
    }

    #[test]
    fn drops_follow_the_control_law() {
        let times = drops_of_a_standing_queue(SETTINGS);
        // The frame of 10 ms is the first one above the target; the first drop follows one interval later.
        let mut expected = vec![110];
        let mut next = 110.0;
        for count in 1_u32.. {
            next += 100.0 / f64::from(count).sqrt();
            if next >= 999.0 {
                break;
            }
            expected.push(next.ceil() as u64);
        }
        assert_eq!(times, expected);
    }

    #[test]
    fn ecn_marks_follow_the_drop_schedule() {
        let marks = drops_of_a_standing_queue(CodelSettings { ecn: true, ..SETTINGS });
        assert_eq!(marks, drops_of_a_standing_queue(SETTINGS));
    }

    #[test]
    fn queues_below_the_target_have_no_drops() {
        let mut codel = Codel::new(SETTINGS, 10_000);
        let mut drops = Vec::new();
        for ms in 0..10_000 {
            codel.enqueue(Frame { queued_ns: ms * MS, ..Frame::new((), 1514) }, &mut drops);
            if ms >= 4 {
                assert!(codel.dequeue(ms * MS, &mut drops).is_some());
            }
        }
        assert_eq!(drops, []);
    }
}
