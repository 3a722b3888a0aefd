//! RTT samples from data to the ACK that covers it, by Karn's rule.

use crate::histogram::Histogram;

/// Maximum number of segments timed at once.
const MAX_TIMED_SEGMENTS: usize = 8;
/// Number of samples from which a direction gets a histogram.
const MIN_HISTOGRAM_SAMPLES: u64 = 32;

/// A segment waiting for its ACK, in as few bytes as possible: every flow has several.
#[derive(Debug, Clone, Copy, Default)]
struct TimedSegment {
    /// Lower half of the sequence number at its end.
    end: u32,
    /// Timestamp, nanoseconds: upper half, lower half.
    time: [u32; 2],
}

impl TimedSegment {
    fn new(end: u64, time_ns: u64) -> Self {
        Self { end: end as u32, time: [(time_ns >> 32) as u32, time_ns as u32] }
    }

    fn time_ns(self) -> u64 {
        u64::from(self.time[0]) << 32 | u64::from(self.time[1])
    }

    /// Returns whether it ends at or below a number less than 2 GiB away.
    fn is_below(self, number: u64) -> bool {
        (number as u32).wrapping_sub(self.end) as i32 >= 0
    }
}

/// RTT samples of one direction, between tap and receiver.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct RoundTrips {
    waiting: u8,
    last_end: u64,
    pending: [TimedSegment; MAX_TIMED_SEGMENTS],
    /// Number of samples.
    pub count: u64,
    /// In nanoseconds.
    pub min_ns: u64,
    /// In nanoseconds.
    pub max_ns: u64,
    /// In nanoseconds.
    pub sum_ns: u64,
    /// Distribution of the samples; `None` for few samples, or if too many directions have one.
    pub histogram: Option<Histogram>,
}

impl RoundTrips {
    /// Reads a byte of each cache line that a sample needs, to prefetch it; the value is meaningless.
    pub fn prefetch(&self) -> u64 {
        u64::from(self.pending[0].end) ^ self.count
    }

    /// Records new data up to `end`, with `in_flight` bytes in flight.
    #[inline]
    pub fn sent(&mut self, end: u64, time_ns: u64, in_flight: u64) {
        let spaced = end.wrapping_sub(self.last_end) >= in_flight / MAX_TIMED_SEGMENTS as u64;
        if usize::from(self.waiting) < MAX_TIMED_SEGMENTS && (self.waiting == 0 || spaced) {
            self.pending[usize::from(self.waiting)] = TimedSegment::new(end, time_ns);
            self.waiting += 1;
            self.last_end = end;
        }
    }

    /// Discards samples of retransmitted data: an ACK of it is ambiguous.
    pub fn ambiguous(&mut self, start: u64) {
        while self.waiting > 0 && !self.pending[usize::from(self.waiting) - 1].is_below(start) {
            self.waiting -= 1;
        }
    }

    /// Accounts for a cumulative ACK. Returns the RTT sample, if a segment was timed, nanoseconds.
    #[inline]
    pub fn acked(&mut self, acked: u64, time_ns: u64, histograms_left: &mut u32) -> Option<u64> {
        if self.waiting == 0 || !self.pending[0].is_below(acked) {
            return None;
        }
        let covered =
            self.pending[..usize::from(self.waiting)].iter().take_while(|sent| sent.is_below(acked)).count();
        // The ACK answers the last segment it covers; earlier ones may have waited for that one.
        let sample = time_ns.saturating_sub(self.pending[covered - 1].time_ns());
        self.pending.copy_within(covered.., 0);
        self.waiting -= covered as u8;
        self.record(sample, histograms_left);
        Some(sample)
    }

    /// Adds a sample; `histograms_left` is the number of histograms that may still be allocated.
    pub fn record(&mut self, sample: u64, histograms_left: &mut u32) {
        self.min_ns = if self.count == 0 { sample } else { self.min_ns.min(sample) };
        self.max_ns = self.max_ns.max(sample);
        self.sum_ns = self.sum_ns.saturating_add(sample);
        self.count += 1;
        match &mut self.histogram {
            Some(histogram) => histogram.record(sample),
            None if self.count >= MIN_HISTOGRAM_SAMPLES && *histograms_left > 0 => {
                *histograms_left -= 1;
                let mut histogram = Histogram::new();
                histogram.record(sample);
                self.histogram = Some(histogram);
            }
            None => {}
        }
    }

    /// Returns the median RTT, or without a histogram the mean. `None` without a sample.
    pub fn typical_ns(&self) -> Option<u64> {
        let median = self.histogram.as_ref().and_then(|histogram| histogram.quantile(0.5));
        // The middle of a bucket may lie outside the measured range.
        let median = median.map(|median| median.clamp(self.min_ns, self.max_ns));
        median.or_else(|| self.sum_ns.checked_div(self.count))
    }
}
