//! Token bucket of a policer.

/// A token bucket: frames pass while there are enough tokens.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    /// Token rate, bits/s.
    bps: u64,
    /// Bucket size, in units of 1e-9 bit.
    depth: u128,
    tokens: u128,
    updated_ns: u64,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub(crate) fn new(bps: u64, burst_bytes: u64) -> Self {
        let depth = u128::from(burst_bytes) * 8 * 1_000_000_000;
        Self { bps, depth, tokens: depth, updated_ns: 0 }
    }

    /// Returns whether a frame of `bytes` passes at `now_ns`; if so, takes its tokens.
    pub(crate) fn passes(&mut self, now_ns: u64, bytes: u32) -> bool {
        let gained = u128::from(now_ns - self.updated_ns) * u128::from(self.bps);
        self.updated_ns = now_ns;
        self.tokens = (self.tokens + gained).min(self.depth);
        let cost = u128::from(bytes) * 8 * 1_000_000_000;
        let passes = cost <= self.tokens;
        if passes {
            self.tokens -= cost;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policer_passes_its_burst_then_its_rate() {
        let mut bucket = TokenBucket::new(8_000_000, 10_000);
        let at_once = (0..20).filter(|_| bucket.passes(0, 1000)).count();
        assert_eq!(at_once, 10);
        // 1 MB/s passes one frame of 1000 bytes per millisecond; the others are dropped.
        let passed = (1..=100_000_u64).filter(|i| bucket.passes(i * 100_000, 1000)).count();
        assert_eq!(passed, 10_000);
    }
}
