//! Tests of a section of a path against a target for the whole path: Model-Based Metrics (RFC 8337).
//!
//! TCP hides losses at a short RTT, and pays for them at a long one. [`Target::derive`] computes from the target what
//! every section of the path must show; [`Suite`] says which streams to send over the section to [`Sprt`], the sequential test,
//! and what their losses mean for the whole path. Nothing here sends or waits: the caller sends each [`Stream`] and returns a
//! [`StreamOutcome`].
//!
//! ```
//! use landspeed_qualify::{QualifyCongestion, Target};
//!
//! let mut target = Target::new("10G".parse().unwrap(), "92ms".parse().unwrap());
//! target.congestion = QualifyCongestion::Reno;
//! let derived = target.derive().unwrap();
//! assert_eq!(derived.window_packets, 79_420);
//! assert_eq!(derived.run_length_packets, 3 * 79_420 * 79_420);
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod explain;
mod onset;
mod outcome;
mod plan;
mod section;
mod sprt;
mod steady;
mod suite;
mod target;
mod trial;

pub use explain::items;
pub use landspeed_calc::IpVersion;
pub use landspeed_model::{QualifyCongestion, QualifyDerived, QualifyResult, QualifyTest, QualifyWeight};
pub use outcome::StreamOutcome;
pub use plan::{Plan, Stream};
pub use section::{Unfit, check_section};
pub use sprt::Sprt;
pub use steady::steady_rate;
pub use suite::{Suite, SuiteOptions};
pub use target::{
    BBR_LOSS_THRESHOLD, Target, bbr_run_length, cubic_run_length, highest_target_bps, reno_run_length,
    window_packets, wire_rate_bps,
};
