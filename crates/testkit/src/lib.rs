//! Helpers shared by tests; only ever a dev-dependency.
#![forbid(unsafe_code)]

pub mod skip;
