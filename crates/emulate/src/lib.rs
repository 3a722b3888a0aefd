//! Paths in real time: frames go from one interface to another as a path file says, and the run certifies itself.
//!
//! [`Namespaces`] puts a path around a command, [`Between`] between two interfaces of this host, [`OnInterface`] on one for given peers;
//! all end in [`carry`] or [`carry_by_kernel`]. The former moves the frames by a separate thread: it takes them out of packet rings
//! with the kernel's timestamps, asks [`landspeed_emulation::Line`] what becomes of them, and sends each at its time. With the latter
//! queueing disciplines move them.
#![forbid(unsafe_code)]

mod between;
mod between_by_kernel;
mod carry;
mod certificate;
mod clock;
mod direction;
mod error;
mod in_band;
mod kernel;
mod live;
mod memory;
mod namespaces;
mod on;
mod peers;
mod program;
mod seconds;
mod sockets;
mod status;
mod store;

pub use between::Between;
pub use between_by_kernel::{BetweenByKernel, TakenBetween};
pub use carry::{Carried, Ends, carry};
pub use certificate::{About, certificate};
pub use error::EmulateError;
pub use in_band::request_in_band;
pub use kernel::{carry_by_kernel, check_kernel};
pub use live::{Live, Snapshot};
pub use memory::check_memory;
pub use namespaces::{LOCAL, Namespaces, REMOTE};
pub use on::{Diversion, OnInterface};
pub use program::{Program, ProgramEnd};
pub use sockets::wait_for_listener;
pub use status::{StatusRequests, request_status, serve_status};
