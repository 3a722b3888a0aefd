//! Events of one direction's graph.

use crate::row::Class;

/// A packet as an event of one direction.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time from the start of the capture, nanoseconds.
    pub since_ns: u64,
    /// Kind of packet, with its fields.
    pub what: PacketKind<'a>,
}

/// Kinds of packet.
#[derive(Debug, Clone, Copy)]
pub enum PacketKind<'a> {
    /// A segment of this direction that consumes sequence numbers.
    Data {
        /// Class of the segment.
        class: Class,
        /// First sequence number, relative to the first of the direction.
        start: i64,
        /// One past the last sequence number.
        end: i64,
        /// Whether SYN is set.
        syn: bool,
        /// Whether FIN is set.
        fin: bool,
    },
    /// An ACK of this direction's data.
    Ack {
        /// ACK number, relative to the first sequence number of the direction.
        ack: i64,
        /// Receive window, scaled, bytes.
        window: u64,
        /// Whether it is a duplicate ACK.
        duplicate: bool,
        /// SACK blocks, half open.
        sack: &'a [(i64, i64)],
        /// RTT sample, nanoseconds.
        rtt_ns: Option<u64>,
    },
    /// A RST in this direction.
    Reset,
}
