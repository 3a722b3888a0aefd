//! Paths of the lab match the calculated values, flows match Linux, and both are deterministic.
//!
//! These tests use the real binary and kernel, and skip without a built kernel. `LANDSPEED_BINARY=FILE`
//! tests another build; `LANDSPEED_LAB_LONG=1` adds the cases that take minutes; `LANDSPEED_LAB_TABLE=FILE`
//! appends each expected and measured value to a table. `cargo xtask lab-validate` sets all three.

mod changes;
mod cpu;
mod determinism;
mod exact;
mod kernels;
mod linux;
mod precision;
mod programs;
mod queues;
mod scenario;
mod section;
mod sharing;
mod slots;
mod suite;
mod vary;
mod windows;
