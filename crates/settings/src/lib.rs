//! Settings of a test, each declared once in [`SETTINGS`]: name, unit, range, protocols, negotiation, iperf3's key.
//!
//! A setting reads and writes its field of [`Parameters`](landspeed_model::Parameters) by the field's path in JSON, so that the
//! table is data: validation, negotiation, the lab's scenarios, sweep plans, `tuneup`'s commands, the iperf3 protocol and the
//! reference page all read it.
#![forbid(unsafe_code)]

mod check;
mod command;
mod page;
mod setting;
mod table;

pub use check::{Problem, Reason, differences, problems, protocol_name, reset_inapplicable};
pub use command::options;
pub use page::page;
pub use setting::{Acts, Agreement, FieldValue, Form, Iperf3Key, Range, Setting, Unit};
pub use table::{MAX_BUFFERS, MAX_STREAMS, MAX_TIME_NS, MAX_UDP_PAYLOAD, SETTINGS, by_name};
