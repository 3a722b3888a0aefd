//! Random numbers for impaired paths: a run prints its seed and can be replayed from it.

pub use landspeed_stats::SplitMix64 as Random;
