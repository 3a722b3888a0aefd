//! Helpers shared by tests; only ever a dev-dependency.
#![forbid(unsafe_code)]

pub mod relay;
pub mod skip;
