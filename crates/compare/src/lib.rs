//! Comparison of groups of results: intervals, verdicts, noise.
//!
//! [`compare`] returns for each metric and candidate the ratio to the baseline with its interval and verdict.
//! [`noise`] compares a group with itself. [`precision`] returns the relative precision of a group's median.
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
