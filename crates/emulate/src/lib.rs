//! Real-time emulation of paths: forwards frames between two interfaces as described in a path file, and
//! certifies each second of the run.
//!
//! [`Namespaces`] places a path around a command, [`Between`] between two interfaces of this host,
//! [`OnInterface`] on one interface for given peers; all use [`carry`] or [`carry_by_kernel`]. The former is
//! the userspace datapath: a thread reads frames with the kernel's timestamps from packet rings, gets each
//! departure time from [`landspeed_emulation::DirectionModel`], and sends the frame then. The latter is the kernel
//! datapath: queueing disciplines forward the frames.
#![forbid(unsafe_code)]

mod between;
mod between_by_kernel;
mod carry;
mod certificate;
mod clock;
mod direction;
mod error;
mod exchange;
mod in_band;
mod kernel;
mod live;
mod lock;
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
pub use between_by_kernel::{BetweenByKernel, BetweenDiversion};
pub use carry::{EmulationOutcome, Ends, carry};
pub use certificate::{CertificateInfo, certificate};
pub use error::EmulateError;
pub use exchange::{ExchangeLimit, StatusError};
pub use in_band::request_in_band;
pub use kernel::{carry_by_kernel, check_kernel};
pub use live::{Live, Snapshot};
pub use lock::InterfaceLock;
pub use memory::check_memory;
pub use namespaces::{LOCAL, Namespaces, REMOTE};
pub use on::{Diversion, OnInterface};
pub use program::{Program, ProgramEnd};
pub use sockets::wait_for_listener;
pub use status::{StatusRequests, request_status, serve_status};
