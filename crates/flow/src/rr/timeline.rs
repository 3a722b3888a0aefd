//! Latencies over time, in bins of bounded number.

use landspeed_model::LatencyPoint;

/// Maximum number of bins: above it, each two become one.
const MAX_BINS: usize = 8192;

/// Round-trip times by the time at which their requests were intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    from_ns: u64,
    bin_ns: u64,
    bins: Vec<Bin>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bin {
    completed: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Timeline {
    /// Creates a timeline from `from_ns` on, monotonic nanoseconds, with bins of at least one nanosecond.
    pub fn new(from_ns: u64, bin_ns: u64) -> Self {
        Self { from_ns, bin_ns: bin_ns.max(1), bins: Vec::new() }
    }

    /// Counts a round trip whose request was intended at this time, monotonic nanoseconds.
    pub fn record(&mut self, intended_ns: u64, latency_ns: u64) {
        let since_ns = intended_ns.saturating_sub(self.from_ns);
        while since_ns / self.bin_ns >= MAX_BINS as u64 {
            self.coarsen();
        }
        let at = (since_ns / self.bin_ns) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, Bin::default());
        }
        let bin = &mut self.bins[at];
        bin.completed += 1;
        bin.sum_ns = bin.sum_ns.saturating_add(latency_ns);
        bin.max_ns = bin.max_ns.max(latency_ns);
    }

    fn coarsen(&mut self) {
        self.bin_ns = self.bin_ns.saturating_mul(2);
        let joined = self.bins.chunks(2).map(|pair| {
            pair.iter().fold(Bin::default(), |sum, bin| Bin {
                completed: sum.completed + bin.completed,
                sum_ns: sum.sum_ns.saturating_add(bin.sum_ns),
                max_ns: sum.max_ns.max(bin.max_ns),
            })
        });
        self.bins = joined.collect();
    }

    /// Returns the bins with round trips; times are relative to `origin_ns`.
    pub fn points(&self, origin_ns: u64) -> Vec<LatencyPoint> {
        let filled = self.bins.iter().enumerate().filter(|(_, bin)| bin.completed > 0);
        let point = |(at, bin): (usize, &Bin)| {
            let start_ns = self.from_ns as i64 - origin_ns as i64 + at as i64 * self.bin_ns as i64;
            LatencyPoint {
                start_ns,
                end_ns: start_ns + self.bin_ns as i64,
                completed: bin.completed,
                mean_ns: bin.sum_ns as f64 / bin.completed as f64,
                max_ns: bin.max_ns,
            }
        };
        filled.map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_in_the_bin_of_their_intended_time() {
        let mut timeline = Timeline::new(1000, 100);
        for (intended_ns, latency_ns) in [(1000, 10), (1099, 30), (1300, 50)] {
            timeline.record(intended_ns, latency_ns);
        }
        let points = timeline.points(1200);
        let found: Vec<_> = points.iter().map(|p| (p.start_ns, p.end_ns, p.completed, p.mean_ns, p.max_ns)).collect();
        assert_eq!(found, [(-200, -100, 2, 20.0, 30), (100, 200, 1, 50.0, 50)]);
    }

    #[test]
    fn a_long_timeline_has_coarser_bins_and_loses_nothing() {
        let mut timeline = Timeline::new(0, 1);
        for n in 0..5 * MAX_BINS as u64 {
            timeline.record(n, n);
        }
        let points = timeline.points(0);
        assert!(points.len() <= MAX_BINS, "{}", points.len());
        assert_eq!(points.iter().map(|p| p.completed).sum::<u64>(), 5 * MAX_BINS as u64);
        let sum: f64 = points.iter().map(|p| p.mean_ns * p.completed as f64).sum();
        let n = 5.0 * MAX_BINS as f64;
        assert!((sum - n * (n - 1.0) / 2.0).abs() < 1.0, "{sum}");
        assert!(points.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    }
}
