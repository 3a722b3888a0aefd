//! Wire bytes over time.

use landspeed_model::TraceRate;

const MILLISECOND_NS: u64 = 1_000_000;
/// Maximum number of bins: about a minute of milliseconds. Beyond it, ten neighbours are merged.
const MAX_BINS: usize = 65_536;
const MERGED_BINS: usize = 10;

/// Bytes in bins of one millisecond, or of a power of ten of that.
#[derive(Debug, Clone, Default)]
pub struct Rate {
    joined: u64,
    bytes: Vec<u64>,
    /// Maximum bytes per millisecond in each bin; empty while bins are a millisecond wide.
    max_bytes: Vec<u64>,
    /// The current millisecond, and its bytes.
    latest: (u64, u64),
}

impl Rate {
    fn width_ns(&self) -> u64 {
        self.joined.max(1) * MILLISECOND_NS
    }

    /// Adds a frame.
    #[inline]
    pub fn frame(&mut self, since_ns: u64, wire: u32) {
        let mut at = (since_ns / self.width_ns()) as usize;
        while at >= MAX_BINS {
            self.join();
            at = (since_ns / self.width_ns()) as usize;
        }
        if at >= self.bytes.len() {
            self.bytes.resize(at + 1, 0);
        }
        self.bytes[at] += u64::from(wire);
        if self.joined > 1 {
            let millisecond = since_ns / MILLISECOND_NS;
            if millisecond != self.latest.0 {
                self.latest = (millisecond, 0);
            }
            self.latest.1 += u64::from(wire);
            self.max_bytes.resize(self.bytes.len(), 0);
            self.max_bytes[at] = self.max_bytes[at].max(self.latest.1);
        }
    }

    fn join(&mut self) {
        let finest = if self.joined > 1 { &self.max_bytes } else { &self.bytes };
        self.max_bytes = finest.chunks(MERGED_BINS).map(|bins| bins.iter().copied().max().unwrap_or(0)).collect();
        self.bytes = self.bytes.chunks(MERGED_BINS).map(|bins| bins.iter().sum()).collect();
        self.joined = self.joined.max(1) * MERGED_BINS as u64;
    }

    /// Returns the rate for the document.
    pub fn document(self) -> TraceRate {
        TraceRate { width_ns: self.width_ns(), bytes: self.bytes, most_in_1ms: self.max_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_keeps_all_bytes_and_the_max_millisecond() {
        let mut rate = Rate::default();
        let mut total = 0;
        for millisecond in 0..200_000_u64 {
            let wire = if millisecond == 777 || millisecond == 150_000 { 9_000 } else { 100 };
            rate.frame(millisecond * MILLISECOND_NS, wire);
            total += u64::from(wire);
        }
        let document = rate.document();
        assert_eq!(document.width_ns, 10 * MILLISECOND_NS);
        assert_eq!(document.bytes.len(), 20_000);
        assert_eq!(document.bytes.iter().sum::<u64>(), total);
        let full: Vec<usize> = (0..20_000).filter(|&at| document.most_in_1ms[at] == 9_000).collect();
        assert_eq!(full, [77, 15_000]);
    }
}
