//! UDP streams: datagrams that are numbered, stamped, sent on schedule and accounted for one by one.
//!
//! [`send_stream`] and [`receive_stream`] each take over one connected socket and the calling thread until their
//! stream is over. All memory is allocated before the first datagram; the loops allocate nothing.
//!
//! **Accounting.** A datagram that the kernel accepted has its own sequence number; one it refused has none. So with
//! the sender's final count, `sent = delivered + lost` to the packet, the tail included, and duplicates cannot hide
//! loss ([`SequenceLedger`]).
//!
//! **Coalescing.** GRO saves the receiver most of its work, and costs it the arrival times of all but the first
//! datagram of a batch. It is on from [`GRO_FROM_PPS`] on and off below, where there is little work to save.
//!
//! **Pacing.** See [`Pacing`] and [`crate::schedule::Pacer`].

mod arrivals;
mod finish;
pub mod header;
mod ledger;
mod receive;
mod send;
mod wait;

use std::io;
use std::num::{NonZeroU32, NonZeroU64};

use landspeed_model::UdpEnd;
use landspeed_sys::udp::MAX_DATAGRAM_BYTES;

pub use finish::Finish;
use header::Format;
pub use ledger::SequenceLedger;
pub use receive::receive_stream;
pub use send::send_stream;

/// Expected packets per second from which a receiver lets the kernel coalesce. Below, a core takes the packets one by
/// one without effort, and each keeps its own kernel timestamp.
pub const GRO_FROM_PPS: u64 = 100_000;

/// Payload of each datagram, bytes: holds a header and fits a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payload(NonZeroU32);

impl Payload {
    /// Takes 24 (for iperf3 16 or 12) to 65,507 bytes.
    pub fn new(bytes: u64, format: Format) -> Result<Self, PayloadError> {
        let least = format.bytes();
        let fits = (least as u64..=MAX_DATAGRAM_BYTES as u64).contains(&bytes);
        let bytes = u32::try_from(bytes).ok().filter(|_| fits).ok_or(PayloadError { bytes, least })?;
        Ok(Self(NonZeroU32::new(bytes).expect("at least a header's length")))
    }

    /// The length, bytes.
    pub fn bytes(self) -> u32 {
        self.0.get()
    }
}

/// A datagram of this payload cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a UDP payload of {bytes} bytes: it takes {least} (the header) to 65507 (the most a datagram holds)")]
pub struct PayloadError {
    /// What was asked for.
    pub bytes: u64,
    /// Length of a header.
    pub least: usize,
}

/// A constant mean rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Payload bits per second.
    pub rate_bps: NonZeroU64,
    /// Packets that leave back to back each time: 1 spaces evenly, 65 is what `nuttcp -Ri300m/65` does.
    pub burst_packets: NonZeroU32,
    /// How much of the schedule may leave together, nanoseconds.
    ///
    /// 0 sends every burst on its own time: sleeps while there is time to, then spins, which at short gaps takes a
    /// whole core. More lets the thread sleep for so long and then send what has come due as one batch, late by at
    /// most that (and the wake-up); [`Pacing::ECONOMICAL_GRAIN_NS`] is a good choice. Where gaps are so long that
    /// spinning costs next to nothing, it spins all the same.
    pub grain_ns: u64,
}

impl Pacing {
    /// Micro-bursts of 250 µs: a quarter of what iperf3's timer makes, for little CPU time.
    pub const ECONOMICAL_GRAIN_NS: u64 = 250_000;
}

/// What a sender is to do. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Clone)]
pub struct SendPlan {
    /// When to start.
    pub start_ns: u64,
    /// When to stop; nothing due at or after it is sent. `u64::MAX` leaves it to the budget and to `Stop`.
    pub end_ns: u64,
    /// How datagrams are numbered and stamped.
    pub format: Format,
    /// Length of every datagram.
    pub payload: Payload,
    /// The rate; as fast as possible if `None`.
    pub pacing: Option<Pacing>,
    /// Whether segmentation offload may be used where the kernel has it.
    pub gso: bool,
}

/// What a receiver is to expect. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Clone)]
pub struct ReceivePlan {
    /// How this stream's datagrams are numbered and stamped; all else is foreign.
    pub format: Format,
    /// Length of the sender's datagrams.
    pub payload: Payload,
    /// The sender's rate, payload bits per second; unlimited if `None`. Decides on GRO ([`GRO_FROM_PPS`]).
    pub rate_bps: Option<u64>,
    /// Whether GRO may be used.
    pub gro: bool,
    /// After the sender's final count is known: how long nothing must arrive before what is missing is taken for lost.
    pub quiet_ns: u64,
    /// What the socket had dropped before the stream's first packet; `None`: read when the receiver starts.
    pub drops_before: Option<u32>,
}

/// What a sender did. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// The sender's fields of the accounting.
    pub udp: UdpEnd,
    /// Payload bytes of the datagrams that the kernel accepted.
    pub bytes: u64,
    /// Sending system calls made.
    pub syscalls: u64,
    /// Time spent waiting for the schedule, asleep or spinning.
    pub app_wait_ns: u64,
    /// When the first datagram left.
    pub first_ns: Option<u64>,
    /// When the last one left.
    pub last_ns: Option<u64>,
    /// Schedule given up because this host fell too far behind it: the mean rate is lower by this share.
    pub slipped_ns: u64,
    /// ICMP unreachable messages of the peer's host or the path; they cause no local loss.
    pub refusals: u64,
    /// What a reader of the result should know: offloads refused, errors that stay invisible.
    pub notes: Vec<String>,
    /// Why the stream ended early, if it did.
    pub error: Option<StreamError>,
}

/// What a receiver saw. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Default)]
pub struct ReceiveOutcome {
    /// The receiver's fields of the accounting.
    pub udp: UdpEnd,
    /// Payload bytes of first copies.
    pub bytes: u64,
    /// Receiving system calls made.
    pub syscalls: u64,
    /// When the first datagram of this stream arrived, by the kernel's stamp.
    pub first_ns: Option<u64>,
    /// When the last one arrived, by the kernel's stamp.
    pub last_ns: Option<u64>,
    /// Packets missing against the sender's final count; `None` if that never came. May be negative: see
    /// [`SequenceLedger::missing`].
    pub missing_packets: Option<i64>,
    /// How many of them were sent after the last that arrived.
    pub missing_tail_packets: Option<u64>,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
    /// Why the stream ended early, if it did.
    pub error: Option<StreamError>,
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The socket does not take an option the stream cannot do without.
    #[error("cannot set {option} on a UDP socket: {source}")]
    Setup {
        /// The option's name.
        option: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Datagrams do not fit the path and may not be fragmented.
    #[error("{payload} bytes of UDP payload do not fit the path MTU; try a smaller --len, or allow fragmentation")]
    TooLong {
        /// The payload, bytes.
        payload: u32,
    },
    /// The peer's host has been refusing for seconds.
    #[error("the peer refuses UDP: {source}; is its receiver gone, or a firewall in the way?")]
    Refused {
        /// The last refusal.
        source: io::Error,
    },
    /// Sending failed otherwise.
    #[error("cannot send UDP: {source}")]
    Send {
        /// What the kernel said.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("cannot receive UDP: {source}")]
    Receive {
        /// What the kernel said.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_holds_a_header_and_fits_a_datagram() {
        for (format, least) in [(Format::Landspeed { tag: 0 }, 24), (Format::Timeval { wide: true }, 16)] {
            assert_eq!(Payload::new(least, format).unwrap().bytes(), least as u32);
            assert_eq!(Payload::new(65_507, format).unwrap().bytes(), 65_507);
            for bytes in [0, least - 1, 65_508, u64::MAX] {
                assert_eq!(Payload::new(bytes, format), Err(PayloadError { bytes, least: least as usize }));
            }
        }
    }
}
