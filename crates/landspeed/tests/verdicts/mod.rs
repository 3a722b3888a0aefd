//! Every provoked cause is named: in the lab, where a scenario always gives the same figures, and never a
//! wrong cause on real traffic, however busy this machine is. How often verdicts on a quiet machine are
//! right is a benchmark: `cargo xtask bench verdicts --host`.
//!
//! `LANDSPEED_BINARY=FILE` tests another build.

mod lab;
mod real;
