//! The real binary against hostile users, networks and peers.
//!
//! One test program, so that it is linked once. Everything started here has a deadline, is killed by its
//! process id, and listens on a port assigned by the kernel.
#![forbid(unsafe_code)]

mod bad_input;
mod claims;
mod clock;
pub mod common;
mod document;
mod dripping;
mod files;
mod hostile_server;
mod inputs;
mod interrupts;
mod ipv6;
mod keys;
mod lab;
mod many;
mod outputs;
mod outside_text;
mod proxy;
pub mod raw;
mod run_output;
mod server_abuse;
mod server_limits;
mod server_shares;
mod strangers;
mod thief;
mod third_party;
mod udp_abuse;
mod unknown;
