//! The control protocol of iperf3, spoken from both ends: [`client`] tests against an `iperf3 -s`, and a server answers
//! iperf3's clients through [`door`].
//!
//! Only the agreement is iperf3's. The bytes are moved, counted and sampled by [`crate::end`] like those of any test; what
//! an iperf3 far end cannot tell stays empty in the document, and the document says so.
//!
//! One TCP connection carries the control protocol: a cookie of 37 bytes, then states of one byte (`words::State`) and
//! two JSON texts, what is wanted ([`wanted`]) and what came of it ([`results`]). Data connections go to the same port.

pub mod auth;
pub mod client;
pub mod door;
mod extras;
mod identity;
mod moments;
mod printed;
pub mod results;
mod session;
pub mod wanted;
mod words;

pub use extras::{Credentials, Extras};
pub use moments::Moments;
pub use words::Refusal;

/// Where iperf3 listens when nothing else is said.
pub const DEFAULT_PORT: u16 = 5201;
