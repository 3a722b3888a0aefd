//! Shared helpers for tests; used only as a dev-dependency.
#![forbid(unsafe_code)]

pub mod detour;
pub mod drip;
pub mod golden;
pub mod hosts;
pub mod iperf3;
pub mod lab_kernel;
pub mod machine;
pub mod missing;
pub mod netns;
pub mod pair;
pub mod process;
pub mod random;
pub mod relay;
pub mod skip;
pub mod slurm;
pub mod wire;
