//! Seeded random draws.

use landspeed_stats::SplitMix64;

/// Random draws, reproducible on every machine for the same seed.
#[derive(Debug, Clone)]
pub struct Draw(SplitMix64);

impl Draw {
    /// Seeds the draws with a seed and a name, so that a new scenario does not change the others.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(SplitMix64::new(seed ^ hash))
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number in `low..high`.
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.bits() % choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Draw;

    #[test]
    fn draws_depend_only_on_seed_and_name() {
        let draws = |seed, name| {
            let mut draw = Draw::new(seed, name);
            [draw.bits(), draw.bits(), draw.bits()]
        };
        assert_eq!(draws(1, "a"), draws(1, "a"));
        assert_ne!(draws(1, "a"), draws(2, "a"));
        assert_ne!(draws(1, "a"), draws(1, "b"));
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut draw = Draw::new(1, "bounds");
        assert!((0..1000).map(|_| draw.within(0.25, 0.5)).all(|value| (0.25..0.5).contains(&value)));
        assert!((0..1000).map(|_| draw.pick(&[1, 2, 3])).all(|value| (1..=3).contains(&value)));
    }
}
