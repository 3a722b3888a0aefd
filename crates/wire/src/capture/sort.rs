//! Sorting of frames by timestamp, for captures that are slightly out of order because the queues of an
//! interface are written one after the other.

use std::collections::VecDeque;

use super::{Frame, InterfaceStatistics, Sink};
use crate::LinkType;

/// Frames at most this much earlier than the latest one are sorted, nanoseconds; an earlier frame is taken as a
/// clock step.
pub const SORTED_WITHIN_NS: u64 = 100_000;
/// Number of frames that are buffered at the start and after an out-of-order frame.
const BUFFERED_FRAMES: u32 = 4_096;

/// A buffered frame.
#[derive(Debug, Clone)]
struct BufferedFrame {
    interface: u32,
    link: LinkType,
    time_ns: u64,
    original: u32,
    data: Vec<u8>,
}

/// Sorts frames within [`SORTED_WITHIN_NS`]. Frames of an ordered capture are not copied, except for the first
/// ones.
#[derive(Debug, Clone)]
pub struct Sorter {
    held: VecDeque<BufferedFrame>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    latest_ns: u64,
    /// Number of frames to buffer before the capture is considered ordered.
    left: u32,
    sorted: u64,
}

impl Default for Sorter {
    fn default() -> Self {
        Self { held: VecDeque::new(), spare: Vec::new(), latest_ns: 0, left: BUFFERED_FRAMES, sorted: 0 }
    }
}

/// A sink that passes frames through a sorter to another sink.
#[derive(Debug)]
pub struct SortingSink<'a, S> {
    sorter: &'a mut Sorter,
    sink: &'a mut S,
}

impl Sorter {
    /// Returns a sink that sorts frames before they reach `sink`.
    pub fn before<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> SortingSink<'a, S> {
        SortingSink { sorter: self, sink }
    }

    /// Passes all buffered frames to `sink`, at the end of the capture.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        self.release(u64::MAX, sink);
    }

    /// Number of frames that were out of order and have been sorted.
    pub fn sorted(&self) -> u64 {
        self.sorted
    }

    #[cold]
    fn hold(&mut self, frame: &Frame<'_>, sink: &mut impl Sink) {
        let time_ns = frame.time_ns;
        if time_ns.saturating_add(SORTED_WITHIN_NS) < self.latest_ns {
            // The clock was set back: frames before the step stay first.
            self.flush(sink);
            self.latest_ns = time_ns;
        }
        let place = self.held.iter().rposition(|held| held.time_ns <= time_ns).map_or(0, |place| place + 1);
        if place < self.held.len() {
            self.sorted += 1;
            self.left = BUFFERED_FRAMES;
        }
        let mut data = self.spare.pop().unwrap_or_default();
        data.clear();
        data.extend_from_slice(frame.data);
        let Frame { interface, link, original, .. } = *frame;
        self.held.insert(place, BufferedFrame { interface, link, time_ns, original, data });
        self.latest_ns = self.latest_ns.max(time_ns);
        self.left = self.left.saturating_sub(1);
        let until_ns = if self.left == 0 { u64::MAX } else { self.latest_ns.saturating_sub(SORTED_WITHIN_NS) };
        self.release(until_ns, sink);
    }

    /// Passes the buffered frames up to a timestamp to `sink`.
    fn release(&mut self, until_ns: u64, sink: &mut impl Sink) {
        while let Some(held) = self.held.front().filter(|held| held.time_ns <= until_ns) {
            let BufferedFrame { interface, link, time_ns, original, data } = held;
            let (interface, link, time_ns, original) = (*interface, *link, *time_ns, *original);
            sink.frame(&Frame { interface, link, time_ns, original, data });
            if let Some(held) = self.held.pop_front() {
                self.spare.push(held.data);
            }
        }
    }
}

impl<S: Sink> Sink for SortingSink<'_, S> {
    #[inline(always)]
    fn frame(&mut self, frame: &Frame<'_>) {
        let sorter = &mut *self.sorter;
        if sorter.left > 0 {
            sorter.hold(frame, self.sink);
            return;
        }
        if frame.time_ns < sorter.latest_ns {
            // This frame can no longer be sorted; later out-of-order frames are.
            sorter.left = BUFFERED_FRAMES;
        }
        sorter.latest_ns = frame.time_ns;
        self.sink.frame(frame);
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.sink.statistics(statistics);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Timestamp and first byte of each frame received.
    #[derive(Default)]
    struct Recorder(Vec<(u64, u8)>);

    impl Sink for Recorder {
        fn frame(&mut self, frame: &Frame<'_>) {
            self.0.push((frame.time_ns, frame.data[0]));
        }

        fn statistics(&mut self, _: InterfaceStatistics) {}
    }

    fn through(times: &[u64]) -> (Vec<(u64, u8)>, u64) {
        let (mut sorter, mut seen) = (Sorter::default(), Recorder::default());
        for (number, &time_ns) in times.iter().enumerate() {
            let data = [number as u8];
            let frame = Frame { interface: 0, link: LinkType::ETHERNET, time_ns, original: 60, data: &data };
            sorter.before(&mut seen).frame(&frame);
        }
        sorter.flush(&mut seen);
        (seen.0, sorter.sorted())
    }

    proptest! {
        #[test]
        fn slightly_late_frames_are_sorted(apart in prop::collection::vec((0_u64..20_000, 0_u64..20_000), 1..300)) {
            let mut now = 1_000_000_000;
            let mut frames: Vec<(u64, u64)> = Vec::new();
            for (gap, late) in apart {
                now += gap;
                frames.push((now + late, now));
            }
            // Frames are written up to 20 µs late.
            frames.sort_unstable();
            let written: Vec<u64> = frames.iter().map(|(_, time_ns)| *time_ns).collect();
            let mut truth = written.clone();
            truth.sort_unstable();
            let (seen, sorted) = through(&written);
            prop_assert_eq!(seen.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), truth.clone());
            prop_assert_eq!(sorted == 0, written == truth);
        }

        #[test]
        fn sorted_frames_pass_unchanged(times in prop::collection::vec(0_u64..1 << 40, 0..300)) {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let (seen, moved) = through(&sorted);
            prop_assert_eq!((seen.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), moved), (sorted, 0));
            prop_assert_eq!(through(&times).0.len(), times.len());
        }
    }

    #[test]
    fn a_backward_clock_step_is_not_disorder() {
        let times: Vec<u64> = (0..100).map(|number| number * 1_000_000).chain(50..60).collect();
        let (seen, sorted) = through(&times);
        assert_eq!((seen.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), sorted), (times, 0));
    }

    #[test]
    fn late_disorder_is_sorted() {
        let mut times: Vec<u64> = (0..6_000).map(|number| number * 10_000).collect();
        (5_000..5_900).step_by(2).for_each(|at| times.swap(at, at + 1));
        let (seen, _) = through(&times);
        let back = seen.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
        assert_eq!((seen.len(), back), (6_000, 1));
    }
}
