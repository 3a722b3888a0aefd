//! iperf3's protocol, documents and text, on top of the traffic engine.
//!
//! [`client`] tests against an `iperf3 -s`; [`server`] answers iperf3's clients at a port of a landspeed server. Only the
//! agreement is iperf3's: the bytes are moved, counted and sampled by [`landspeed_flow::end`] like those of any test. What an
//! iperf3 peer does not report stays empty in the document, and the document says so.
//!
//! One TCP connection carries the control protocol: a cookie of 37 bytes, then states of one byte and two JSON texts
//! (`wire`), the [`request`] and the [`results`]. Data connections go to the same port.
//!
//! [`convert`] makes iperf3's [`document`] of a run, [`text`] its lines, and [`report`] writes either as the test goes on.
#![forbid(unsafe_code)]

pub mod auth;
pub mod client;
pub mod convert;
mod dialect;
pub mod document;
mod extras;
mod identity;
mod moments;
pub mod quantity;
pub mod report;
pub mod request;
pub mod results;
pub mod server;
mod server_output;
mod session;
pub mod text;
mod wire;

pub use extras::{Credentials, Extras};
pub use moments::Moments;
pub use wire::Refusal;

/// Where iperf3 listens when nothing else is said.
pub const DEFAULT_PORT: u16 = 5201;
