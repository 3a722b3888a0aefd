//! Our iperf3 dialect against iperf3 itself, release by release, and against peers that only look like it.
//!
//! Everything started here has a deadline, is ended by its own number, and listens on a port of the system's choosing.
#![forbid(unsafe_code)]

mod hostile_clients;
mod hostile_servers;
mod ours_to_theirs;
pub mod parties;
mod several;
mod theirs_to_ours;
mod users;
