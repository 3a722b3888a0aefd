//! The traffic engine: what moves the bytes, counts them once, and carries both ends' reports.
#![forbid(unsafe_code)]

pub mod rr;
pub mod schedule;
pub mod shared;
pub mod tcp;
pub mod udp;
