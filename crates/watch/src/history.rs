//! Condensed history of a flow, beyond the samples that its verdict needs: fixed memory, however long the
//! watch.

use std::collections::VecDeque;

use landspeed_model::{Cause, Confidence, Sample, WatchChange, WatchRole, WatchSeries};

/// Interval between points of the last minute, and initially of the whole watch, nanoseconds.
const SPACING_NS: u64 = 500_000_000;
/// Tolerance for points that are early, nanoseconds: sampling times are not exact.
const EARLY_TOLERANCE_NS: u64 = 50_000_000;
/// Length of the detailed recent history, nanoseconds.
const MINUTE_NS: u64 = 60_000_000_000;
/// Maximum number of points of the whole watch; when it is reached, every second one is dropped.
const MAX_POINTS: usize = 120;
/// Maximum number of stored verdict changes.
const MAX_CHANGES: usize = 32;

/// A flow at one time. Counters are the kernel's, since the start of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Time, nanoseconds after the start of the watch.
    pub t_ns: u64,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Bytes received.
    pub received: u64,
    /// Segments retransmitted, modulo 2³².
    pub retransmits: u32,
    /// Smoothed RTT, µs; `None` before the first measurement.
    pub rtt_us: Option<u32>,
    /// Congestion window, segments.
    pub cwnd: u32,
}

impl Point {
    fn of(sample: &Sample) -> Option<Self> {
        let tcp = sample.tcp.as_deref()?;
        Some(Self {
            t_ns: sample.t_ns,
            acked: tcp.bytes_acked.unwrap_or(0),
            received: tcp.bytes_received.unwrap_or(0),
            retransmits: tcp.total_retrans,
            rtt_us: Some(tcp.rtt_us).filter(|&us| us > 0),
            cwnd: tcp.snd_cwnd,
        })
    }

    /// Bytes transferred in the direction of `role`.
    pub fn moved(&self, role: WatchRole) -> u64 {
        match role {
            WatchRole::Sender => self.acked,
            WatchRole::Receiver => self.received,
        }
    }
}

/// History of a flow.
#[derive(Debug, Default)]
pub(crate) struct History {
    minute: VecDeque<Point>,
    whole: Vec<Point>,
    /// Interval between points of the whole watch, in multiples of [`SPACING_NS`]; a power of two.
    stride: u64,
    last: Option<Point>,
    changes: VecDeque<WatchChange>,
}

impl History {
    /// Adds a sample.
    pub fn push(&mut self, sample: &Sample) {
        let Some(point) = Point::of(sample) else { return };
        let due = |last: Option<&Point>, spacing_ns: u64| {
            last.is_none_or(|last| point.t_ns >= last.t_ns.saturating_add(spacing_ns - EARLY_TOLERANCE_NS))
        };
        if due(self.minute.back(), SPACING_NS) {
            self.minute.push_back(point);
            let oldest_ns = point.t_ns.saturating_sub(MINUTE_NS);
            // One older point is kept as the base of the first difference.
            while self.minute.get(1).is_some_and(|second| second.t_ns <= oldest_ns) {
                self.minute.pop_front();
            }
        }
        self.stride = self.stride.max(1);
        if due(self.whole.last(), SPACING_NS * self.stride) {
            if self.whole.len() == MAX_POINTS {
                let mut index = 0;
                self.whole.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            self.whole.push(point);
        }
        self.last = Some(point);
    }

    /// Records a verdict reached at `t_ns`, if it differs from the last one.
    pub fn record_verdict(&mut self, t_ns: u64, cause: Cause, confidence: Confidence) {
        if self.verdict().is_some_and(|last| (last.cause, last.confidence) == (cause, confidence)) {
            return;
        }
        if self.changes.len() == MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(WatchChange { t_ns, cause, confidence });
    }

    /// The latest verdict, with the time of its change.
    pub fn verdict(&self) -> Option<&WatchChange> {
        self.changes.back()
    }

    /// The changes of the verdict, oldest first.
    pub fn changes(&self) -> Vec<WatchChange> {
        self.changes.iter().copied().collect()
    }

    /// The points of the last minute, and one before it.
    pub fn minute(&self) -> Vec<Point> {
        let last = self.last.filter(|last| self.minute.back().is_some_and(|point| point.t_ns < last.t_ns));
        self.minute.iter().copied().chain(last).collect()
    }

    /// Series of the whole watch; `None` with fewer than two points.
    pub fn series(&self, role: WatchRole) -> Option<WatchSeries> {
        let first = self.whole.first()?;
        let last = self.last.filter(|last| self.whole.last().is_some_and(|point| point.t_ns < last.t_ns));
        let points = || self.whole.iter().chain(&last);
        (points().count() > 1).then(|| WatchSeries {
            t_ns: points().map(|point| point.t_ns).collect(),
            bytes: points().map(|point| point.moved(role).saturating_sub(first.moved(role))).collect(),
            retransmits: points().map(|point| point.retransmits.wrapping_sub(first.retransmits).into()).collect(),
            rtt_us: points().map(|point| point.rtt_us).collect(),
            cwnd: points().map(|point| point.cwnd).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::TcpInfo;

    use super::*;

    /// Sample number `n`, one every 100 ms, of a flow of 1000 bytes/s.
    fn sample(n: u64) -> Sample {
        let mut tcp = TcpInfo::decode(&[0; 248]);
        (tcp.bytes_acked, tcp.total_retrans, tcp.rtt_us, tcp.snd_cwnd) = (Some(n * 100), n as u32, 20, 10);
        Sample { t_ns: n * 100_000_000, tcp: Some(Box::new(tcp)), ..Sample::default() }
    }

    fn after(readings: u64) -> History {
        let mut history = History::default();
        (0..readings).for_each(|n| history.push(&sample(n)));
        history
    }

    #[test]
    fn history_memory_is_independent_of_duration() {
        for seconds in [600, 86_400] {
            let mut history = History::default();
            (0..=seconds).for_each(|second| history.push(&sample(second * 10)));
            let series = history.series(WatchRole::Sender).expect("a series");
            assert!(series.t_ns.len() <= MAX_POINTS + 1, "{}", series.t_ns.len());
            assert!(series.t_ns.len() > MAX_POINTS / 2, "{}", series.t_ns.len());
            let (first, last) = (series.t_ns[0], series.t_ns[series.t_ns.len() - 1]);
            assert_eq!((first, last), (0, seconds * 1_000_000_000), "the first and the last reading are kept");
            assert_eq!(series.bytes[series.bytes.len() - 1], seconds * 1000, "and what moved between them");
            assert_eq!(series.bytes.len(), series.cwnd.len());
            assert!(history.minute().len() <= 123);
        }
    }

    #[test]
    fn the_last_minute_has_two_points_a_second() {
        let minute = after(2_000).minute();
        assert!((121..=123).contains(&minute.len()), "{}", minute.len());
        assert!(minute.windows(2).all(|pair| pair[1].t_ns > pair[0].t_ns));
        let (first, last) = (minute[0].t_ns, minute[minute.len() - 1].t_ns);
        assert!((MINUTE_NS..MINUTE_NS + 1_000_000_000).contains(&(last - first)), "{}", last - first);
    }

    #[test]
    fn wrapped_retransmit_counters_continue() {
        let mut history = History::default();
        for (n, retransmits) in [(0, u32::MAX - 1), (10, 3)] {
            let mut sample = sample(n);
            sample.tcp.as_mut().expect("there").total_retrans = retransmits;
            history.push(&sample);
        }
        assert_eq!(history.series(WatchRole::Sender).expect("a series").retransmits, [0, 5]);
    }

    #[test]
    fn only_verdict_changes_are_recorded() {
        let mut history = History::default();
        for n in 0..200 {
            history.record_verdict(n, Cause::Application, Confidence::Low);
        }
        assert_eq!(history.changes().len(), 1);
        for n in 0..200 {
            let cause = if n % 2 == 0 { Cause::NetworkLoss } else { Cause::Application };
            history.record_verdict(1000 + n, cause, Confidence::Medium);
        }
        assert_eq!(history.changes().len(), MAX_CHANGES);
        assert_eq!(history.verdict().map(|change| change.t_ns), Some(1199));
    }

    #[test]
    fn rtts_before_the_first_measurement_are_unknown() {
        let mut history = History::default();
        let mut first = sample(0);
        first.tcp.as_mut().expect("there").rtt_us = 0;
        history.push(&first);
        history.push(&sample(10));
        assert_eq!(history.series(WatchRole::Sender).expect("a series").rtt_us, [None, Some(20)]);
    }

    #[test]
    fn flows_with_one_sample_have_no_series() {
        assert_eq!(after(1).series(WatchRole::Sender), None);
        assert_eq!(History::default().series(WatchRole::Receiver), None);
    }
}
