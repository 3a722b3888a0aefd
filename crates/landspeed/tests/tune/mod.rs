//! `landspeed tune` on real kernels: whatever happens while it is at work, afterwards the host is byte for byte as it was, or
//! exactly as it was planned and confirmed.
//!
//! Each test has its own network namespaces and journal directory; nothing of the machine is written
//! to. Where there is no root, these tests skip.
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
