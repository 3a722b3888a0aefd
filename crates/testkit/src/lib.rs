//! Helpers shared by tests; only ever a dev-dependency.
#![forbid(unsafe_code)]

pub mod netns;
pub mod relay;
pub mod skip;
