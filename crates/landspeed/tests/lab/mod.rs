//! What the lab's paths do is what arithmetic says, what its flows do is what Linux does, and both are the same every time.
//!
//! Real binary, real kernel: without one that is built these tests skip. `LANDSPEED_BINARY=FILE` tries another build;
//! `LANDSPEED_LAB_LONG=1` adds the cases that take minutes; `LANDSPEED_LAB_TABLE=FILE` collects each expectation beside
//! what was measured. `cargo xtask lab-validate` sets all three.

mod determinism;
mod exact;
mod linux;
mod precision;
mod queues;
mod scenario;
mod sharing;
mod slots;
mod windows;
