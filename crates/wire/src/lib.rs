//! Parsers for packet headers and capture files, with minimal copying.
//!
//! [`capture::Reader`] splits a capture (pcap and pcapng, both byte orders, any resolution) into frames;
//! [`dissect`] finds the addresses and the transport header of a frame inside any encapsulation. Neither
//! allocates per packet or trusts lengths in the input, and data missing because of the snap length is
//! reported, never guessed.
#![forbid(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "what goes the short way stays in registers: built elsewhere and copied it stalls, which costs as much as all the rest"
)]

mod alike;
mod bytes;
pub mod capture;
mod checksum;
mod dissect;
pub mod filter;
mod fragments;
mod icmp;
mod link;
mod numbered;
mod tcp;

pub use alike::{FastHeader, HeaderTemplate};
pub use checksum::{Checksum, Checksums, checksums};
pub use dissect::{
    DissectError, Encapsulations, Fragment, FragmentedPacket, Network, Packet, Transport, dissect, dissect_headers,
    plain,
};
pub use fragments::Reassembler;
pub use icmp::IcmpError;
pub use link::{Contents, LinkType};
pub use numbered::{NumberedDatagram, Numbering};
pub use tcp::{DataNumber, DataSignal, Flags, MultipathOption, SackBlocks, TcpHeader, TcpOptions};
