//! The random numbers of hostile paths: a run prints its seed and replays from it.

pub use landspeed_stats::SplitMix64 as Random;
