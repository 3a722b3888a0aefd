//! iperf3's protocol, documents and text output, on top of the traffic engine.
//!
//! [`client`] tests against an `iperf3 -s`; [`server`] serves iperf3 clients at a port of a landspeed server.
//! Only the control protocol is iperf3's: data is sent, counted and sampled by [`landspeed_flow::end`] as in
//! any test. Values that an iperf3 peer does not report are empty in the document, which lists them.
//!
//! One TCP connection carries the control protocol: a cookie of 37 bytes, then states of one byte and two JSON
//! texts (`wire`), the [`request`] and the [`results`]. Data connections use the same port.
//!
//! [`convert`] turns a run into iperf3's [`document`], [`text`] prints it as iperf3 does, and [`report`] writes
//! either during the test.
#![forbid(unsafe_code)]
// A server's only output is its events, which are limited (`flow::server::event_log`).
#![deny(clippy::print_stdout, clippy::print_stderr)]

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

pub use extras::{Credentials, Extras, KeepAlive};
pub use moments::ReportTimes;
pub use wire::Refusal;

/// Default port of an iperf3 server.
pub const DEFAULT_PORT: u16 = 5201;
