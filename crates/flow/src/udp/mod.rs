//! UDP streams: datagrams with sequence number and timestamp, sent on schedule and accounted for individually.
//!
//! [`send_stream`] and [`receive_stream`] each use one connected socket and the calling thread until their
//! stream is over. All memory is allocated before the first datagram; the loops do not allocate.
//!
//! **Accounting.** Each datagram accepted by the kernel has its own sequence number; refused ones have none.
//! With the sender's final count, `sent = delivered + lost` is exact, tail included, and duplicates cannot hide
//! loss ([`SequenceLedger`]).
//!
//! **Coalescing.** GRO saves the receiver most of its work, but only the first datagram of a batch keeps its
//! arrival time. It is enabled from [`GRO_FROM_PPS`] and disabled below, where it saves little.
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

/// Expected packet rate from which GRO is enabled. Below, a core easily handles packets one by one, and each
/// keeps its own kernel timestamp.
pub const GRO_FROM_PPS: u64 = 100_000;

/// Payload length of a datagram, bytes: at least a header, at most what a datagram can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payload(NonZeroU32);

impl Payload {
    /// Accepts 24 (for iperf3 16 or 12) to 65,507 bytes.
    pub fn new(bytes: u64, format: Format) -> Result<Self, PayloadError> {
        let least = format.bytes();
        let fits = (least as u64..=MAX_DATAGRAM_BYTES as u64).contains(&bytes);
        let bytes = u32::try_from(bytes).ok().filter(|_| fits).ok_or(PayloadError { bytes, least })?;
        Ok(Self(NonZeroU32::new(bytes).expect("at least a header's length")))
    }

    /// Returns the length, bytes.
    pub fn bytes(self) -> u32 {
        self.0.get()
    }
}

/// Error for a payload length out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a UDP payload of {bytes} bytes: it takes {least} (the header) to 65507 (the most a datagram holds)")]
pub struct PayloadError {
    /// Requested length.
    pub bytes: u64,
    /// Length of a header, which is the minimum.
    pub least: usize,
}

/// Pacing to a constant mean rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Payload bits per second.
    pub rate_bps: NonZeroU64,
    /// Packets sent back to back: 1 spaces them evenly, 65 is what `nuttcp -Ri300m/65` does.
    pub burst_packets: NonZeroU32,
    /// Length of schedule that may be sent together, nanoseconds.
    ///
    /// With 0 every burst is sent at its own time: the thread sleeps as long as possible and then spins, which at
    /// short gaps uses a whole core. Otherwise the thread sleeps for this long and then sends everything due as one
    /// batch, late by at most this (plus the wake-up latency); [`Pacing::ECONOMICAL_GRAIN_NS`] is a good choice. If
    /// gaps are so long that spinning costs almost nothing, it spins anyway.
    pub grain_ns: u64,
}

impl Pacing {
    /// Micro-bursts of 250 µs: a quarter of those of iperf3's timer, at little CPU time.
    pub const ECONOMICAL_GRAIN_NS: u64 = 250_000;
}

/// Plan of a sender. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Clone)]
pub struct SendPlan {
    /// Start time.
    pub start_ns: u64,
    /// End time; only datagrams due before it are sent. With `u64::MAX` the budget or `Stop` ends the stream.
    pub end_ns: u64,
    /// Header format.
    pub format: Format,
    /// Length of every datagram.
    pub payload: Payload,
    /// Pacing; `None` sends as fast as possible.
    pub pacing: Option<Pacing>,
    /// Whether GSO may be used if the kernel supports it.
    pub gso: bool,
}

/// Plan of a receiver. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Clone)]
pub struct ReceivePlan {
    /// Header format of this stream; other datagrams are foreign.
    pub format: Format,
    /// Length of the sender's datagrams.
    pub payload: Payload,
    /// Sender's rate, payload bits per second; unlimited if `None`. Determines the use of GRO ([`GRO_FROM_PPS`]).
    pub rate_bps: Option<u64>,
    /// Whether GRO may be used.
    pub gro: bool,
    /// Time without arrivals, after the sender's final count is known, until missing datagrams count as lost.
    pub quiet_ns: u64,
    /// Datagrams the socket had dropped before the stream's first packet; if `None`, read when the receiver starts.
    pub drops_before: Option<u32>,
}

/// Outcome of a sender. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Sender's part of the accounting.
    pub udp: UdpEnd,
    /// Payload bytes of datagrams accepted by the kernel.
    pub bytes: u64,
    /// Number of send system calls.
    pub syscalls: u64,
    /// Time spent waiting for the schedule, sleeping or spinning.
    pub app_wait_ns: u64,
    /// Departure of the first datagram.
    pub first_ns: Option<u64>,
    /// Departure of the last datagram.
    pub last_ns: Option<u64>,
    /// Slip of the schedule because this host was too slow: the mean rate is lower accordingly.
    pub slipped_ns: u64,
    /// Number of ICMP unreachable messages from the peer's host or the path; they cause no local loss.
    pub refusals: u64,
    /// Notes for the user: offloads refused, errors that are not visible.
    pub notes: Vec<String>,
    /// Error that ended the stream early.
    pub error: Option<StreamError>,
}

/// Outcome of a receiver. Times are `CLOCK_MONOTONIC` nanoseconds.
#[derive(Debug, Default)]
pub struct ReceiveOutcome {
    /// Receiver's part of the accounting.
    pub udp: UdpEnd,
    /// Payload bytes without duplicates.
    pub bytes: u64,
    /// Number of receive system calls.
    pub syscalls: u64,
    /// Arrival of the stream's first datagram, by the kernel's timestamp.
    pub first_ns: Option<u64>,
    /// Arrival of the last datagram, by the kernel's timestamp.
    pub last_ns: Option<u64>,
    /// Packets missing according to the sender's final count; `None` if that is unknown. May be negative: see
    /// [`SequenceLedger::missing`].
    pub missing_packets: Option<i64>,
    /// Missing packets that were sent after the last arrival.
    pub missing_tail_packets: Option<u64>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Error that ended the stream early.
    pub error: Option<StreamError>,
}

/// Errors that end a stream early.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A required socket option could not be set.
    #[error("cannot set {option} on a UDP socket: {source}")]
    Setup {
        /// Name of the option.
        option: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// Datagrams exceed the path MTU and may not be fragmented.
    #[error("{payload} bytes of UDP payload do not fit the path MTU; try a smaller --len, or allow fragmentation")]
    TooLong {
        /// Payload length, bytes.
        payload: u32,
    },
    /// The peer's host has refused datagrams (ICMP) for seconds.
    #[error("the peer refuses UDP: {source}; is its receiver gone, or a firewall in the way?")]
    Refused {
        /// Error of the last refusal.
        source: io::Error,
    },
    /// Another error while sending.
    #[error("cannot send UDP: {source}")]
    Send {
        /// Error of the system call.
        source: io::Error,
    },
    /// An error while receiving.
    #[error("cannot receive UDP: {source}")]
    Receive {
        /// Error of the system call.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_lengths_out_of_range_are_rejected() {
        for (format, least) in [(Format::Landspeed { tag: 0 }, 24), (Format::Timeval { wide: true }, 16)] {
            assert_eq!(Payload::new(least, format).unwrap().bytes(), least as u32);
            assert_eq!(Payload::new(65_507, format).unwrap().bytes(), 65_507);
            for bytes in [0, least - 1, 65_508, u64::MAX] {
                assert_eq!(Payload::new(bytes, format), Err(PayloadError { bytes, least: least as usize }));
            }
        }
    }
}
