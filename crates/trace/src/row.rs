//! One frame as the analysis saw it, for who wants each of them: columns, graphs, single packets.

use landspeed_wire::Flags;

use crate::intake::Seen;
use crate::key::Endpoint;

/// What a segment turned out to be when it passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// Nothing that takes numbers: an acknowledgement, a reset.
    #[default]
    Bare,
    /// Numbers seen for the first time, in their order.
    New,
    /// Sent again, asked for by selective or duplicate acknowledgements.
    Fast,
    /// Sent again after a silence of a retransmission timeout, or in the repair it began.
    Timeout,
    /// Sent again after a shorter silence (tail loss probe).
    Tail,
    /// Sent again, where the tap never saw the first copy.
    LostBeforeTap,
    /// Sent again without evidence that tells why.
    Unclassified,
    /// Filled a hole and had been overtaken on the way.
    OutOfOrder,
    /// The very packet before, copied on the way.
    Copy,
    /// Keep-alive or window probe.
    Probe,
}

impl Class {
    /// Whether the sender sent it again.
    pub fn is_retransmission(self) -> bool {
        matches!(self, Self::Fast | Self::Timeout | Self::Tail | Self::LostBeforeTap | Self::Unclassified)
    }

    /// A word for columns and legends.
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
    /// Its place in the capture, from 1.
    pub number: u64,
    /// When, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Interface of the capture.
    pub interface: u32,
    /// Bytes on the wire.
    pub wire: u32,
    /// Since the frame before of the same station, nanoseconds.
    pub gap_ns: Option<u64>,
    /// What flow it belongs to; `None` for frames without ports.
    pub flow: Option<RowFlow>,
}

/// A frame as part of its flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowFlow {
    /// The flow's number, in the order they began, from 0. A flow that was evicted and comes back gets another.
    pub number: u64,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Whether from the flow's lesser end to its greater one.
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
    /// What it turned out to be.
    pub class: Class,
    /// Whether it is a duplicate acknowledgement.
    pub duplicate_ack: bool,
    /// Its first number.
    pub sequence: i64,
    /// One past its last number.
    pub end: i64,
    /// What it acknowledges; `None` without the flag, or where the other direction was not seen yet.
    pub acknowledgement: Option<i64>,
    /// The window it announces, scaled, bytes.
    pub window: u64,
    /// Selective acknowledgements, half open, as sent.
    pub sack: [(i64, i64); 4],
    /// How many of them there are.
    pub sacks: u8,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Of an acknowledgement: since the data it answers passed, by Karn's rule, nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Data in flight as the tap sees it after this: its own if it brings data, else what it acknowledges, bytes.
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
    /// Selective acknowledgements.
    pub fn sack(&self) -> &[(i64, i64)] {
        self.sack.get(..usize::from(self.sacks)).unwrap_or_default()
    }
}

/// Who wants every row.
pub trait Observer {
    /// Whether rows are made at all.
    const WANTED: bool = true;

    /// Takes a row, in the order of the capture.
    fn row(&mut self, row: &Row);
}

/// Nobody.
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
