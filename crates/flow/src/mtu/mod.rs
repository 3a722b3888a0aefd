//! Path MTU measurement with don't-fragment probes, in both directions.
//!
//! The client drives: it sends probes (upload) and requests probes from the server (download), over a connected
//! UDP socket whose address the server has validated. Both sides set the don't-fragment bit and ignore the path
//! MTU cached by their kernels. The result is exact to the byte, in bytes of IP packet: UDP payload plus 28
//! (IPv4) or 48 (IPv6).
//!
//! # Telling loss from the MTU
//!
//! A small packet follows each probe immediately. A probe counts as lost only if the small packet is answered
//! and the probe is not; if neither is, the path was briefly down, which is no evidence about sizes. A size
//! fails after three such losses — or at once when ICMP from a router, the sender's kernel (`EMSGSIZE`) or a
//! fragment gives the reason. The smallest failing size determines the result, so it is probed until nine
//! losses. One probe that passes outweighs any number of failures. Probes are sent in volleys with a quarter of
//! the RTT between them, so that an intercontinental path takes seconds.
//!
//! # Messages
//!
//! Big-endian. A probe is this header and incompressible padding; all other messages are the header alone.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `LMTU` |
//! | 4 | 1 | kind: 1 probe-up, 2 ack, 3 request-down, 4 down-probe, 5 refused, 6 done |
//! | 5 | 1 | zero |
//! | 6 | 2 | refused: error number of the server's send (`EMSGSIZE` 90), else 0 |
//! | 8 | 4 | tag of the test |
//! | 12 | 4 | sequence number of the request, repeated in its answer |
//! | 16 | 4 | UDP payload of the probe, 40..=65,527 (done: 0) |
//! | 20 | 4 | answers: MTU of the server's interface, 0 unknown |
//! | 24 | 4 | ack: largest fragment (IP packet) of the probe, 0 if unfragmented |
//! | 28 | 4 | answers: number of ICMP "too big" messages about down-probes |
//! | 32 | 4 | answers: UDP payload of the down-probe that the last of them was about, 0 if none |
//! | 36 | 4 | answers: MTU reported in it, 0 if none |
//!
//! | client sends | server answers with |
//! |---|---|
//! | probe-up | ack |
//! | request-down | down-probe of that size, or refused |
//! | done | ack, and exits |
//!
//! The server only sends answers, at most one per request, and exits after 3 s without a request or 20 s in
//! total, both longer on paths with a long RTT.

mod port;
mod probe;
mod search;
mod serve;
mod wire;
mod words;

pub use probe::probe;
pub use serve::serve;
pub use wire::{HEADER_LEN, Kind, MAX_PAYLOAD, Message, decode};
