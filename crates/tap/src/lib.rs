//! Captures packets from interfaces into pcapng files, with software or hardware timestamps, and reports what
//! the capture cost the host.
//!
//! ```text
//! interface ─► filter ─► ring (kernel writes) ─► merge by time ─► pcapng ─► file, or a ring of files
//!                             │ full: dropped, counted        ▲
//!                        kernel events (tracefs) ─────────────┘
//! ```
//!
//! One thread reads all rings and writes. It polls the rings instead of being woken for each block, because
//! waking it would cost the sender, in whose context packets are copied. Nothing is lost at the end: the rings
//! are stopped and then read until as many packets came out as the kernel counted.
#![forbid(unsafe_code)]

mod capture;
mod cpu;
mod error;
mod events;
mod excerpt;
mod files;
mod filter;
mod merge;
mod options;
mod selection;
mod setup;
mod slices;
mod subject;
mod tcpdump;

pub use capture::{Progress, Tap};
pub use error::TapError;
pub use events::{Event, Events};
pub use excerpt::{Excerpt, excerpt};
pub use options::{Clock, Limits, Options, Output, Pipe, Rotation, TapDirection};
pub use selection::{Selection, TapFlow, TapTransport};
