//! Groups of results against each other: intervals, verdicts, noise.
//!
//! [`compare`] gives, for each metric and candidate, the ratio to the baseline, its interval, and the verdict that follows from
//! the interval. [`noise`] compares a group with itself. [`precision`] says how well the median of a group is known.
#![forbid(unsafe_code)]

mod conditions;
mod differences;
mod document;
mod group;
mod noise;
mod verdict;

pub use conditions::{Condition, ConditionError};
pub use differences::differences;
pub use document::document;
pub use group::{DEFAULT_METRICS, Group, Options};
pub use noise::noise;
pub use verdict::{compare, precision};
