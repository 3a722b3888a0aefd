//! Our iperf3 protocol against real iperf3 releases, and against invalid peers.
//!
//! Everything started here has a deadline, is killed by its process id, and listens on a port assigned by
//! the kernel.
#![forbid(unsafe_code)]

mod hostile_clients;
mod hostile_servers;
mod long_path;
mod ours_to_theirs;
pub mod parties;
mod several;
mod theirs_to_ours;
mod users;
