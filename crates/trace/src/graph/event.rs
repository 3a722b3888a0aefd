//! What a packet means to one direction's graph.

use crate::Class;

/// A packet, seen from one direction's data.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When, nanoseconds from the start of the capture.
    pub since_ns: u64,
    /// What it was.
    pub what: What<'a>,
}

/// The kind of a packet.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// It takes numbers of this direction.
    Data {
        /// Its class.
        class: Class,
        /// Its first number.
        start: i64,
        /// One past its last.
        end: i64,
        /// Whether it opens the connection.
        syn: bool,
        /// Whether it closes the direction.
        fin: bool,
    },
    /// It acknowledges this direction's data.
    Ack {
        /// Up to here.
        ack: i64,
        /// Bytes that may follow.
        window: u64,
        /// Whether it repeats the one before.
        duplicate: bool,
        /// Returns the SACK blocks.
        sack: &'a [(i64, i64)],
        /// The round trip it ends.
        rtt_ns: Option<u64>,
    },
    /// Either end gives up.
    Reset,
}
