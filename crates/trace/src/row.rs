//! Rows: one frame and its analysis each, for columns, graphs and the list of packets.

use landspeed_wire::Flags;

use crate::intake::Seen;
use crate::key::Endpoint;

/// The class of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// No sequence numbers: an ACK, a reset.
    #[default]
    Bare,
    /// New data, in order.
    New,
    /// Fast retransmit: SACKs or duplicate ACKs asked for it.
    Fast,
    /// Retransmitted after an RTO, or in the recovery that the RTO began.
    Timeout,
    /// Tail loss probe (TLP).
    Tail,
    /// Retransmitted; lost before the tap.
    LostBeforeTap,
    /// Retransmitted without evidence why.
    Unclassified,
    /// Reordered: filled a hole, and was sent before the packet that opened it.
    OutOfOrder,
    /// The previous packet, duplicated in the network.
    Copy,
    /// Keep-alive or window probe.
    Probe,
}

impl Class {
    /// Returns whether it is a retransmit.
    pub fn is_retransmission(self) -> bool {
        matches!(self, Self::Fast | Self::Timeout | Self::Tail | Self::LostBeforeTap | Self::Unclassified)
    }

    /// Returns the name for columns and legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::New => "new",
            Self::Fast => "fast",
            Self::Timeout => "timeout",
            Self::Tail => "tail",
            Self::LostBeforeTap => "lost-before-tap",
            Self::Unclassified => "unclassified",
            Self::OutOfOrder => "out-of-order",
            Self::Copy => "copy",
            Self::Probe => "probe",
        }
    }
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Number of the frame in the capture, from 1.
    pub number: u64,
    /// When, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Interface of the capture.
    pub interface: u32,
    /// Bytes on the wire.
    pub wire: u32,
    /// Gap to the previous frame of the same station, nanoseconds.
    pub gap_ns: Option<u64>,
    /// Its flow; `None` for frames without ports.
    pub flow: Option<RowFlow>,
}

/// A frame as part of its flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowFlow {
    /// The flow's number, in the order they began, from 0. A flow that was evicted and comes back gets another.
    pub number: u64,
    /// Source.
    pub source: Endpoint,
    /// Destination.
    pub destination: Endpoint,
    /// Whether the direction is from the flow's lesser end to its greater one.
    pub upward: bool,
    /// Payload on the wire, bytes.
    pub payload: u32,
    /// IPv4's identification; 0 says nothing.
    pub identification: u16,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Of a TCP segment.
    pub tcp: Option<RowTcp>,
}

/// A TCP segment. Numbers are unwrapped to 64 bits and count from the first one of their direction at the tap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowTcp {
    /// Flags.
    pub flags: Flags,
    /// Its class.
    pub class: Class,
    /// Whether it is a duplicate acknowledgement.
    pub duplicate_ack: bool,
    /// Its first number.
    pub sequence: i64,
    /// One past its last number.
    pub end: i64,
    /// Acknowledgement number; `None` without the flag, or before the other direction was seen.
    pub acknowledgement: Option<i64>,
    /// The window it announces, scaled, bytes.
    pub window: u64,
    /// SACK blocks, half open, in the order sent.
    pub sack: [(i64, i64); 4],
    /// How many of them there are.
    pub sacks: u8,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// RTT of an ACK (Karn's rule), nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Data in flight at the tap after this segment, bytes: of its direction with data, else of the acknowledged direction.
    pub in_flight: u64,
}

impl RowFlow {
    pub(crate) fn of(number: u64, seen: &Seen) -> Self {
        let Seen { key, upward, identification, traffic_class, .. } = *seen;
        let (source, destination) = if upward { (key.low(), key.high()) } else { (key.high(), key.low()) };
        Self {
            number,
            source,
            destination,
            upward,
            payload: seen.payload(),
            identification,
            traffic_class,
            tcp: None,
        }
    }
}

impl RowTcp {
    /// Returns the SACK blocks.
    pub fn sack(&self) -> &[(i64, i64)] {
        self.sack.get(..usize::from(self.sacks)).unwrap_or_default()
    }
}

/// A consumer of rows.
pub trait Observer {
    /// Whether rows are made at all.
    const WANTED: bool = true;

    /// Takes a row, in the order of the capture.
    fn row(&mut self, row: &Row);
}

/// No consumer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WANTED: bool = false;

    fn row(&mut self, _: &Row) {}
}

impl<F: FnMut(&Row)> Observer for F {
    fn row(&mut self, row: &Row) {
        self(row);
    }
}
