//! Views of packet headers and of capture files: bytes in, values out, nothing copied that does not have to be.
//!
//! [`capture::Reader`] cuts a capture (pcap and pcapng, both byte orders, any resolution) into frames; [`dissect`] finds the
//! addresses and the transport header of one frame below whatever it is wrapped in. Neither allocates per packet, neither
//! trusts a length in the input, and what was cut by the snap length is said, never guessed.
#![forbid(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "what goes the short way stays in registers: built elsewhere and copied it stalls, which costs as much as all the rest"
)]

mod alike;
mod bytes;
pub mod capture;
mod dissect;
pub mod filter;
mod link;
mod numbered;
mod tcp;

pub use alike::{Alike, Brief};
pub use dissect::{Network, Packet, Transport, Undissected, Wrapping, dissect, dissect_headers, plain};
pub use link::LinkType;
pub use numbered::{Numbered, Numbering};
pub use tcp::{Flags, SackBlocks, TcpHeader, TcpOptions};
