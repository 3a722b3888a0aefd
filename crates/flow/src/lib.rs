//! Traffic engine: sends, receives and counts the data of a test, and exchanges the reports of both sides.
#![forbid(unsafe_code)]
// A server's only output is its events, which are limited (`flow::server::event_log`).
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod address;
pub mod assemble;
pub mod call_cost;
pub mod client;
pub mod control;
pub mod dialect;
pub mod end;
pub mod error;
pub mod layout;
pub mod mtu;
pub mod progress;
pub mod rr;
pub mod schedule;
pub mod server;
pub mod shared;
pub mod sockets;
pub mod tcp;
pub mod udp;
pub mod validate;
mod wall_clock;
