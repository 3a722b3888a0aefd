//! `landspeed tune` on real kernels: whatever happens during a command, afterwards the host is byte for
//! byte as before, or as planned and confirmed.
//!
//! Each test has its own network namespaces and journal directory; nothing is written to the machine
//! itself. Without root these tests skip.
#![forbid(unsafe_code)]

mod bench;
mod crash;
mod deadline;
mod files;
mod guest;
mod held;
mod input;
mod others;
mod persist;
mod qdisc;
mod reboot;
mod rivals;
mod snapshot;
mod sysctls;
