//! Pseudorandom numbers from a seed; the only seeded generator in the workspace.

/// SplitMix64: small, of good quality, and identical on every machine (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, 2014). Not for secrets.
#[derive(Debug, Clone, Default)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0; the bias of the multiplication is below limit / 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number in 0..1.
    pub fn unit(&mut self) -> f64 {
        // A double's mantissa has 53 bits.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `len` incompressible bytes, always the same.
    pub fn padding(len: usize) -> Box<[u8]> {
        let mut bytes = vec![0; len].into_boxed_slice();
        Self::default().fill(&mut bytes);
        bytes
    }

    /// Fills `bytes` with pseudorandom bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns true with this probability.
    pub fn random_bool(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_matches_the_published_sequence() {
        // From the reference splitmix64.c by Vigna, seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }
}
