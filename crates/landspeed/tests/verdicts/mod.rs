//! Every cause, provoked, is named: in the lab, where the same scenario always gives the same figures, and never wrongly on
//! real traffic, however busy this machine is. How often verdicts on a quiet machine are right is a benchmark:
//! `cargo xtask bench verdicts --host`.
//!
//! `LANDSPEED_BINARY=FILE` measures with another build.

mod lab;
mod real;
