//! Saved documents of any kind, and the figures by which they are compared.
//!
//! [`Document::read`] takes the bytes of a file and says what it is, or why it cannot be read. [`Document::records`] gives what an
//! archive indexes, a comparison compares and a report draws: one [`Record`] for each flow.
#![forbid(unsafe_code)]

mod document;
mod figures;
pub mod foreign;
mod hosts;
mod record;
mod reference;

pub use document::{Document, ReadError};
pub use figures::{Figures, balance, figures, same_host, steady_bps, streams_bps};
pub use record::{Record, RecordStatus};
pub use reference::{compare_reference, flow_series, mean_rtt_ns};
