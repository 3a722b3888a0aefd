//! Proving the path MTU with don't-fragment probes, in both directions.
//!
//! The client drives: it sends probes (upload) and asks the server for some (download), over a connected
//! UDP socket whose address the server has proved before. Both ends set the don't-fragment bit and ignore the path MTU
//! their kernels have cached. The answer is exact to the byte, in bytes of IP packet: UDP payload plus 28 (IPv4) or 48
//! (IPv6).
//!
//! # Loss is not MTU
//!
//! Right behind each probe goes a small packet. Only when that one is answered and the probe is not does the probe
//! count as lost; if neither is, the path was down for a moment, which says nothing about sizes. A size counts as
//! failing after three such losses — or at once when a router (ICMP), the sender's kernel (`EMSGSIZE`) or a fragment
//! says why — and the smallest failing size, on which the answer rests, is tried until nine are lost. One probe that
//! passes outweighs any number of failures. Probes go in volleys a quarter of the round trip apart, so that a path
//! across an ocean is settled in seconds.
//!
//! # Messages
//!
//! Big-endian. A probe is this header and incompressible padding; everything else is the header alone.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `LMTU` |
//! | 4 | 1 | kind: 1 probe-up, 2 ack, 3 request-down, 4 down-probe, 5 refused, 6 done |
//! | 5 | 1 | zero |
//! | 6 | 2 | refused: error number of the server's send (`EMSGSIZE` 90), else 0 |
//! | 8 | 4 | tag of the test |
//! | 12 | 4 | sequence number of the request, repeated by its answer |
//! | 16 | 4 | UDP payload of the probe in question, 40..=65,527 (done: 0) |
//! | 20 | 4 | answers: MTU of the server's interface, 0 unknown |
//! | 24 | 4 | ack: largest fragment (IP packet) the probe came in, 0 if whole |
//! | 28 | 4 | answers: count of ICMP messages that called a down-probe too big |
//! | 32 | 4 | answers: UDP payload of the down-probe the last of them was about, 0 if none |
//! | 36 | 4 | answers: MTU it named, 0 if none |
//!
//! | client sends | server answers with |
//! |---|---|
//! | probe-up | ack |
//! | request-down | down-probe of that size, or refused |
//! | done | ack, and leaves |
//!
//! The server never sends unasked, at most one answer to a request, and leaves after 3 s without one or 20 s in all.

mod port;
mod probe;
mod search;
mod serve;
mod wire;
mod words;

pub use probe::probe;
pub use serve::serve;
pub use wire::{HEADER_LEN, Kind, MAX_PAYLOAD, Message, decode};
