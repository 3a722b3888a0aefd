//! Streaming packet-by-packet analysis of captures: one pass, memory bounded by the number of live flows.
//!
//! [`Analysis`] takes frames in the order of the capture and returns a document at the end. It knows only what
//! the tap saw: a sequence hole is a loss before the tap, a reordering, or a frame that the tap missed. Evidence
//! decides which (the fields of [`Direction`](landspeed_model::TraceDirection) show how much of it there was).
#![forbid(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "what goes the short way stays in registers: built elsewhere and copied it stalls, which costs as much as all the rest"
)]

mod analysis;
mod arrivals;
mod bursts;
mod cells;
mod clocks;
pub mod compare;
mod connection;
mod copies;
mod direction;
mod flows;
mod framing;
mod graph;
mod histogram;
mod intake;
mod key;
mod known;
mod lifetime;
mod limits;
mod multipath;
mod notices;
mod pairing;
mod placed;
mod print;
mod row;
mod rtt;
mod sequence;
mod station;
mod subflows;
mod table;
mod udp;
mod waiting;
mod xplot;

pub use analysis::Analysis;
pub use cells::{Cell, Cells};
pub use flows::Flows;
pub use graph::{GraphLimits, Graphs};
pub use intake::{FrameMeta, Intake, ParsedFrame};
pub use key::Endpoint;
pub use limits::Limits;
pub use pairing::{Pairing, Tap};
pub use placed::TapComparison;
pub use row::{Class, NoObserver, Observer, Row, RowFlow, RowTcp};
pub use xplot::{Write as XplotWrite, Xplot};
