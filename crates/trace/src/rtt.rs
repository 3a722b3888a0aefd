//! RTT samples from data to the ACK that covers it, by Karn's rule.

use std::collections::VecDeque;

use landspeed_model::TraceRtt;

use crate::histogram::Histogram;

/// Segments timed without an allocation.
const MAX_INLINE: usize = 8;
/// Maximum number of segments timed at once: 23 MB of full-sized ones. Beyond it, neighbours are merged.
const MAX_TIMED_SEGMENTS: usize = 1 << 14;
/// The same before the first ACK: the other direction may not be in the capture.
const MAX_TIMED_WITHOUT_ACK: usize = 64;
/// Maximum capacity of a queue that is kept while it is empty.
const MAX_KEPT: usize = 256;
/// Number of samples from which a direction gets a histogram.
const MIN_HISTOGRAM_SAMPLES: u64 = 32;

/// A segment waiting for its ACK, in as few bytes as possible: every flow has several.
#[derive(Debug, Clone, Copy, Default)]
struct TimedSegment {
    /// Lower half of the sequence number at its end.
    end: u32,
    length: u32,
    /// Timestamp, nanoseconds: upper half, lower half.
    time: [u32; 2],
}

impl TimedSegment {
    #[inline]
    fn new(start: u64, end: u64, time_ns: u64) -> Self {
        Self { end: end as u32, length: (end - start) as u32, time: [(time_ns >> 32) as u32, time_ns as u32] }
    }

    fn time_ns(self) -> u64 {
        u64::from(self.time[0]) << 32 | u64::from(self.time[1])
    }

    /// Returns whether it ends at or below a number less than 2 GiB away.
    #[inline]
    fn is_below(self, number: u64) -> bool {
        (number as u32).wrapping_sub(self.end) as i32 >= 0
    }

    /// Returns whether it contains the byte before a number.
    fn reaches(self, number: u64) -> bool {
        self.end.wrapping_sub(number as u32) < self.length
    }
}

/// RTT samples, and their distribution.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Samples {
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

/// RTT samples of one direction, between tap and receiver.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct RoundTrips {
    waiting: u8,
    /// Whether neighbours were merged: an ACK within a merged segment has no sample.
    merged: bool,
    pending: [TimedSegment; MAX_INLINE],
    /// All segments that wait, if they are more than `pending` holds; otherwise absent or empty.
    #[expect(clippy::box_collection, reason = "most connections have none: 8 bytes instead of 32")]
    more: Option<Box<VecDeque<TimedSegment>>>,
    /// RTT samples.
    pub samples: Samples,
}

/// What an ACK says about the segments it covers.
#[derive(Debug, Clone, Copy)]
pub struct AckCause {
    /// Highest cumulative ACK before this one.
    pub before: u64,
    /// Whether the receiver reported out-of-order data before: then the ACK is caused by the segment that filled the
    /// hole, and later segments have waited for it.
    pub fills_hole: bool,
}

impl RoundTrips {
    /// Reads a byte of each cache line that a sample needs, to prefetch it; the value is meaningless.
    pub fn prefetch(&self) -> u64 {
        u64::from(self.pending[0].end) ^ u64::from(self.pending[MAX_INLINE - 1].end) ^ self.samples.count
    }

    /// Records new data from `start` to `end`; `any_acked` is whether any data was acknowledged before.
    #[inline]
    pub fn sent(&mut self, start: u64, end: u64, time_ns: u64, any_acked: bool) {
        let segment = TimedSegment::new(start, end, time_ns);
        if self.queue().is_none() && usize::from(self.waiting) < MAX_INLINE {
            self.pending[usize::from(self.waiting)] = segment;
            self.waiting += 1;
        } else {
            self.push(segment, any_acked);
        }
    }

    /// Returns the queue, if segments wait in it.
    #[inline]
    fn queue(&mut self) -> Option<&mut VecDeque<TimedSegment>> {
        self.more.as_deref_mut().filter(|more| !more.is_empty())
    }

    #[inline(never)]
    fn push(&mut self, segment: TimedSegment, any_acked: bool) {
        let more = self.more.get_or_insert_default();
        more.extend(&self.pending[..usize::from(self.waiting)]);
        self.waiting = 0;
        more.push_back(segment);
        let most = if any_acked { MAX_TIMED_SEGMENTS } else { MAX_TIMED_WITHOUT_ACK };
        if more.len() > most {
            self.merged = true;
            let halved: VecDeque<_> = more
                .make_contiguous()
                .chunks(2)
                .map(|pair| match *pair {
                    [one, other] => {
                        TimedSegment { length: other.end.wrapping_sub(one.end).wrapping_add(one.length), ..other }
                    }
                    _ => pair[0],
                })
                .collect();
            **more = halved;
        }
    }

    /// Discards samples of retransmitted data, and of data above it, which may have waited for it.
    pub fn ambiguous(&mut self, start: u64) {
        while self.waiting > 0 && !self.pending[usize::from(self.waiting) - 1].is_below(start) {
            self.waiting -= 1;
        }
        if let Some(more) = self.queue() {
            let kept = more.iter().take_while(|segment| segment.is_below(start)).count();
            more.truncate(kept);
            self.return_inline();
        }
    }

    /// Records a segment that fills a hole at the tap: the ACK of everything from its `start` to `end`, the next hole,
    /// answers it and not the segments that waited for it.
    pub fn filled(&mut self, start: u64, end: u64, time_ns: u64) {
        self.ambiguous(start);
        self.sent(start, end, time_ns, true);
    }

    /// Accounts for a cumulative ACK. Returns the RTT sample, if a segment was timed, nanoseconds.
    #[inline]
    pub fn acked(&mut self, acked: u64, time_ns: u64, cause: AckCause, histograms_left: &mut u32) -> Option<u64> {
        let cover = |covered: &[TimedSegment], next: Option<&TimedSegment>, merged: bool| -> Option<u64> {
            let answered = if cause.fills_hole {
                covered.first().filter(|segment| segment.reaches(cause.before + 1))
            } else {
                // The ACK answers the segment with the last byte it covers; earlier ones may have waited for that one.
                let last = covered.last().filter(|segment| segment.end == acked as u32);
                last.or_else(|| next.filter(|segment| !merged && segment.reaches(acked)))
            };
            Some(time_ns.saturating_sub(answered?.time_ns()))
        };
        let merged = self.merged;
        let sample = if let Some(more) = self.queue() {
            let covered = more.iter().take_while(|segment| segment.is_below(acked)).count();
            let first = more.front().copied().filter(|_| covered > 0);
            let last = covered.checked_sub(1).and_then(|last| more.get(last).copied());
            let ends = if cause.fills_hole { first } else { last };
            let sample = cover(ends.as_slice(), more.get(covered), merged);
            more.drain(..covered);
            self.return_inline();
            sample
        } else {
            let pending = &self.pending[..usize::from(self.waiting)];
            let covered = pending.iter().take_while(|segment| segment.is_below(acked)).count();
            let sample = cover(&pending[..covered], pending.get(covered), false);
            if covered > 0 {
                self.pending.copy_within(covered.., 0);
                self.waiting -= covered as u8;
            }
            sample
        }?;
        self.samples.record(sample, histograms_left);
        Some(sample)
    }

    /// Goes on without the queue once nothing waits in it.
    fn return_inline(&mut self) {
        if self.queue().is_none() {
            self.merged = false;
            self.more.take_if(|more| more.capacity() > MAX_KEPT);
        }
    }

    /// Returns the time since the segment that ends at `end` was sent, if it is timed, nanoseconds.
    pub fn since(&self, end: u64, time_ns: u64) -> Option<u64> {
        let inline = self.pending[..usize::from(self.waiting)].iter();
        let mut all = inline.chain(self.more.iter().flat_map(|more| more.iter())).rev();
        let segment = all.find(|segment| segment.is_below(end))?;
        (segment.end == end as u32).then(|| time_ns.saturating_sub(segment.time_ns()))
    }

    /// Returns the median RTT, or without a histogram the mean. `None` without a sample.
    pub fn typical_ns(&self) -> Option<u64> {
        self.samples.quantile(0.5).or_else(|| self.samples.sum_ns.checked_div(self.samples.count))
    }
}

impl Samples {
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

    /// Returns a quantile; `None` without a histogram.
    fn quantile(&self, share: f64) -> Option<u64> {
        let value = self.histogram.as_ref()?.quantile(share)?;
        // The middle of a bucket may lie outside the measured range.
        Some(value.clamp(self.min_ns, self.max_ns))
    }

    /// Returns the samples for the document; `None` if there are none.
    pub fn document(&self) -> Option<TraceRtt> {
        (self.count > 0).then(|| TraceRtt {
            samples: self.count,
            min_ns: self.min_ns,
            mean_ns: self.sum_ns / self.count,
            p50_ns: self.quantile(0.5),
            p90_ns: self.quantile(0.9),
            p99_ns: self.quantile(0.99),
            max_ns: self.max_ns,
            histogram: self.histogram.as_ref().map(Histogram::buckets).unwrap_or_default(),
        })
    }
}

/// Segments timed at once by their TCP timestamps.
const MAX_TIMED_STAMPS: usize = 8;

/// RTT samples from TCP timestamps (RFC 7323): from the first data segment with a TSval to the first ACK that echoes it.
/// Includes the time of a delayed ACK, and holds for retransmits.
#[derive(Debug, Clone, Default)]
pub struct TimestampRoundTrips {
    pending: VecDeque<(u32, u64)>,
    /// RTT samples.
    pub samples: Samples,
}

impl TimestampRoundTrips {
    /// Records the first data segment with a TSval.
    #[inline(never)]
    pub fn sent(&mut self, stamp: u32, time_ns: u64) {
        if self.pending.len() < MAX_TIMED_STAMPS {
            self.pending.push_back((stamp, time_ns));
        }
    }

    /// Accounts for the first ACK with a TSecr.
    #[inline(never)]
    pub fn echoed(&mut self, echo: u32, time_ns: u64, histograms_left: &mut u32) {
        while let Some(&(stamp, sent_ns)) = self.pending.front()
            && echo.wrapping_sub(stamp) as i32 >= 0
        {
            self.pending.pop_front();
            if stamp == echo {
                self.samples.record(time_ns.saturating_sub(sent_ns), histograms_left);
            }
        }
    }
}
