//! Helpers shared by tests; only ever a dev-dependency.
#![forbid(unsafe_code)]

pub mod claims;
pub mod detour;
pub mod golden;
pub mod iperf3;
pub mod netns;
pub mod pair;
pub mod process;
pub mod random;
pub mod relay;
pub mod skip;
pub mod wire;
