//! Saved documents of all kinds, and the figures by which they are compared.
//!
//! [`Document::read`] parses the bytes of a file and detects its kind. [`Document::records`] returns the data
//! for archive index, comparison and report: one [`Record`] for each flow.
#![forbid(unsafe_code)]

mod document;
mod figures;
mod flent;
pub mod foreign;
mod hosts;
mod json;
mod labset;
mod levels;
mod parts;
mod record;
mod reference;

pub use document::{Document, ReadError};
pub use figures::{Figures, balance, figures, same_host, steady_bps, streams_bps};
pub use flent::data_file as flent_data_file;
pub use json::{Damage, TooManyValues, check_memory};
pub use levels::numbers;
pub use parts::{Part, split};
pub use record::{Record, RecordStatus};
pub use reference::{check_criteria, compare_reference, flow_series, mean_rtt_ns};
