//! Rows: one frame with its analysis each, for columns, graphs and the packet list.

use landspeed_wire::Flags;

use crate::intake::ParsedFrame;
use crate::key::Endpoint;

/// The class of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// No sequence numbers: a pure ACK, or a RST.
    #[default]
    Bare,
    /// New data, in order.
    New,
    /// Fast retransmit, requested by SACKs or duplicate ACKs.
    Fast,
    /// Retransmitted because an RTO expired.
    Timeout,
    /// Retransmitted in the recovery that an RTO began, when an ACK or the pacing allowed it (slow start).
    AfterTimeout,
    /// Tail loss probe (TLP).
    Tail,
    /// Retransmitted; lost before the tap.
    LostBeforeTap,
    /// Retransmitted for an unknown reason.
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
        matches!(
            self,
            Self::Fast | Self::Timeout | Self::AfterTimeout | Self::Tail | Self::LostBeforeTap | Self::Unclassified
        )
    }

    /// Returns the name for columns and legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::New => "new",
            Self::Fast => "fast",
            Self::Timeout | Self::AfterTimeout => "timeout",
            Self::Tail => "tail",
            Self::LostBeforeTap => "lost-before-tap",
            Self::Unclassified => "unclassified",
            Self::OutOfOrder => "out-of-order",
            Self::Copy => "copy",
            Self::Probe => "probe",
        }
    }
}

/// A frame and its analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Number of the frame in the capture, from 1.
    pub number: u64,
    /// Capture timestamp, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Interface number in the capture.
    pub interface: u32,
    /// Frame length on the wire, bytes.
    pub wire: u32,
    /// Gap to the previous frame of the same station, nanoseconds.
    pub gap_ns: Option<u64>,
    /// Its flow; `None` for frames without ports.
    pub flow: Option<RowFlow>,
}

/// A frame as part of its flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowFlow {
    /// Number of the flow in order of appearance, from 0. A flow that returns after its eviction gets a new one.
    pub number: u64,
    /// Source address and port.
    pub source: Endpoint,
    /// Destination address and port.
    pub destination: Endpoint,
    /// Whether the packet goes from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// Payload on the wire, bytes.
    pub payload: u32,
    /// IPv4 identification; 0 if unknown.
    pub identification: u16,
    /// DSCP and ECN bits of the IP header.
    pub traffic_class: u8,
    /// TCP fields; `None` for UDP.
    pub tcp: Option<RowTcp>,
}

/// A TCP segment. Sequence numbers are unwrapped to 64 bits, relative to the first one of their direction at the
/// tap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowTcp {
    /// TCP flags.
    pub flags: Flags,
    /// Class of the segment.
    pub class: Class,
    /// Whether it is a duplicate acknowledgement.
    pub duplicate_ack: bool,
    /// First sequence number.
    pub sequence: i64,
    /// One past the last sequence number.
    pub end: i64,
    /// ACK number; `None` without the ACK flag, or before the other direction was seen.
    pub acknowledgement: Option<i64>,
    /// Announced window, scaled, bytes.
    pub window: u64,
    /// SACK blocks, half open, in the order sent.
    pub sack: [(i64, i64); 4],
    /// Number of valid entries in `sack`.
    pub sacks: u8,
    /// TSval and TSecr of the timestamps option.
    pub timestamps: Option<(u32, u32)>,
    /// RTT of an ACK (Karn's rule), nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Data in flight at the tap after this segment, bytes: of its direction with data, else of the acknowledged direction.
    pub in_flight: u64,
}

impl RowFlow {
    pub(crate) fn of(number: u64, seen: &ParsedFrame) -> Self {
        let ParsedFrame { key, upward, identification, traffic_class, .. } = *seen;
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
    /// Whether rows are produced at all.
    const NEEDS_ROWS: bool = true;

    /// Receives a row, in the order of the capture.
    fn row(&mut self, row: &Row);
}

/// An observer that wants no rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    const NEEDS_ROWS: bool = false;

    fn row(&mut self, _: &Row) {}
}

impl<F: FnMut(&Row)> Observer for F {
    fn row(&mut self, row: &Row) {
        self(row);
    }
}
