//! Readings of a test in bounded memory.

use landspeed_model::{HostSample, SoftnetDelta};

use crate::parse::CoreTicks;

/// Maximum number of cells (cores × spans) before spans are merged: 4 MB, and a document of some tens of MB.
const MAX_CELLS: usize = 64 * 1024;
const MIN_SPANS: usize = 128;
const MAX_SPANS: usize = 4096;

/// Changes between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    /// Time on the monotonic clock, nanoseconds.
    pub start_ns: u64,
    pub end_ns: u64,
    pub cores: Vec<Option<CoreTicks>>,
    pub mhz: Vec<f32>,
    pub softnet: SoftnetDelta,
}

impl Span {
    /// Merges the `next` span into this one: ticks and packets are added, so that only time resolution is lost.
    fn merge(&mut self, next: Self) {
        self.end_ns = next.end_ns;
        if self.cores.len() < next.cores.len() {
            self.cores.resize(next.cores.len(), None);
        }
        for (mine, theirs) in self.cores.iter_mut().zip(next.cores) {
            *mine = match (*mine, theirs) {
                (Some(a), Some(b)) => Some(a.sum_with(b)),
                (one, other) => one.or(other),
            };
        }
        if !next.mhz.is_empty() {
            self.mhz = next.mhz;
        }
        add(&mut self.softnet, next.softnet);
    }

    fn sample(self, t0_ns: u64) -> HostSample {
        HostSample {
            start_ns: self.start_ns as i64 - t0_ns as i64,
            end_ns: self.end_ns as i64 - t0_ns as i64,
            cores: self.cores.into_iter().map(|ticks| ticks.map(CoreTicks::shares)).collect(),
            mhz: self.mhz,
            softnet: self.softnet,
        }
    }
}

/// The spans of a test. If there are too many, neighbours are merged, and later spans are as long as the merged
/// ones.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
    /// Readings per span: 1, 2, 4 …
    readings_per_span: u32,
    /// Readings in the last span so far.
    filled: u32,
}

impl Spans {
    pub(crate) fn push(&mut self, span: Span) {
        let readings_per_span = self.readings_per_span.max(1);
        match self.spans.last_mut() {
            Some(last) if self.filled < readings_per_span => {
                last.merge(span);
                self.filled += 1;
            }
            _ => {
                let limit = (MAX_CELLS / span.cores.len().max(1)).clamp(MIN_SPANS, MAX_SPANS);
                if self.spans.len() >= limit {
                    self.halve();
                    self.readings_per_span = readings_per_span.saturating_mul(2);
                }
                self.spans.push(span);
                self.filled = 1;
            }
        }
    }

    /// Adds a span that is too short on its own to the last one.
    pub(crate) fn extend_last(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) => last.merge(span),
            None => self.spans.push(span),
        }
    }

    pub(crate) fn into_samples(self, t0_ns: u64) -> Vec<HostSample> {
        self.spans.into_iter().map(|span| span.sample(t0_ns)).collect()
    }

    fn halve(&mut self) {
        let mut joined: Vec<Span> = Vec::with_capacity(self.spans.len());
        for (number, span) in self.spans.drain(..).enumerate() {
            match joined.last_mut() {
                Some(last) if number % 2 == 1 => last.merge(span),
                _ => joined.push(span),
            }
        }
        self.spans = joined;
    }
}

/// Adds `more` to `sum`.
pub(crate) fn add(sum: &mut SoftnetDelta, more: SoftnetDelta) {
    sum.processed += more.processed;
    sum.dropped += more.dropped;
    sum.time_squeeze += more.time_squeeze;
    sum.received_rps += more.received_rps;
    sum.flow_limit += more.flow_limit;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_readings_stays_small_and_loses_no_tick() {
        const READING_COUNT: u64 = 864_000;
        let mut spans = Spans::default();
        for n in 0..READING_COUNT {
            let cores = vec![Some(CoreTicks { user: 3, idle: 7, ..CoreTicks::default() }); 2];
            let softnet = SoftnetDelta { processed: 5, ..SoftnetDelta::default() };
            spans.push(Span { start_ns: n, end_ns: n + 1, cores, mhz: Vec::new(), softnet });
        }
        assert!(spans.spans.len() <= MAX_SPANS && spans.spans.len() >= MAX_SPANS / 2, "{}", spans.spans.len());
        let users: u64 = spans.spans.iter().filter_map(|s| s.cores[1]).map(|ticks| ticks.user).sum();
        assert_eq!(users, 3 * READING_COUNT);
        assert_eq!(spans.spans.iter().map(|s| s.softnet.processed).sum::<u64>(), 5 * READING_COUNT);
        assert!(spans.spans.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "no gap, no overlap");
        assert_eq!((spans.spans[0].start_ns, spans.spans.last().map(|s| s.end_ns)), (0, Some(READING_COUNT)));
    }

    #[test]
    fn a_core_offline_for_part_of_a_span_counts_partly() {
        let ticks = Some(CoreTicks { user: 1, ..CoreTicks::default() });
        let mut span = Span { cores: vec![None, ticks], ..Span::default() };
        span.merge(Span { cores: vec![ticks, ticks, ticks], ..Span::default() });
        assert_eq!(span.cores, [ticks, ticks.map(|t| t.sum_with(t)), ticks]);
    }
}
