//! Quantiles, histograms and intervals in fixed memory.
//!
//! Types fed per packet or per request ([`LatencyHistogram`], [`Jitter`]) allocate once, at creation, and never
//! while recording. Functions called once per report ([`quantile`], [`median`], [`median_interval`],
//! [`Bootstrap`]) work on slices and may allocate. Nothing here reads a clock or a source of randomness: times
//! and seeds are arguments.
#![forbid(unsafe_code)]

mod bootstrap;
mod changes;
mod contrast;
mod correlation;
mod histogram;
mod holm;
mod jitter;
mod quantile;
mod random;
mod ratio;
mod trimmed;

pub use bootstrap::{Bootstrap, BootstrapError, Interval};
pub use changes::{ChangePoint, MIN_VALUES, change_points};
pub use contrast::{
    Contrast, UNBOUNDED_CHANGE, block_mean, median_interval, min_values, relative_change, stopping_level,
};
pub use correlation::autocorrelation;
pub use histogram::{Bucket, LatencyHistogram};
pub use holm::{HolmStep, holm};
pub use jitter::Jitter;
pub use quantile::{median, quantile};
pub use random::SplitMix64;
pub use ratio::{ratio, smallest_tail};
pub use trimmed::trimmed_mean;
