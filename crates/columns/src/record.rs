//! A packet as stored in the columns.

use landspeed_trace::{Endpoint, Row, RowTcp};
use landspeed_wire::capture::Frame;
use landspeed_wire::{LinkType, TcpHeader, Transport, dissect};

/// Stored bytes of a datagram's payload: enough for the sequence numbers of known protocols.
pub const PAYLOAD_PREFIX_BYTES: usize = 32;

/// Columns of one packet.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Position in the capture, from 1.
    pub number: i64,
    /// Timestamp, nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Index of the capture's interface.
    pub interface: i64,
    /// Length on the wire, bytes.
    pub wire: i64,
    /// Link-layer addresses: destination, source.
    pub macs: Option<[[u8; 6]; 2]>,
    /// Columns of its flow; `None` if the packet belongs to no flow.
    pub flow: Option<Flow>,
    /// Time since the previous frame of its station, nanoseconds.
    pub gap_ns: Option<i64>,
}

/// Columns of a packet that belongs to a flow.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Number of the flow.
    pub number: i64,
    /// Sender's address and port.
    pub source: Endpoint,
    /// Receiver's address and port.
    pub destination: Endpoint,
    /// Whether the direction is from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// IP protocol number.
    pub protocol: u8,
    /// Hop limit, or TTL.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub traffic_class: u8,
    /// IPv4 identification.
    pub identification: u16,
    /// Payload length, bytes.
    pub payload: u32,
    /// TCP header, and its analysis.
    pub tcp: Option<(TcpHeader, Option<RowTcp>)>,
    /// First payload bytes of a datagram, and their number.
    pub head: ([u8; PAYLOAD_PREFIX_BYTES], u8),
}

impl Record {
    /// Creates a record from a frame and its row.
    pub fn new(frame: &Frame<'_>, row: &Row) -> Self {
        let chunk = |at: usize| frame.data.get(at..).and_then(<[u8]>::first_chunk).copied();
        let macs = (frame.link == LinkType::ETHERNET).then(|| Some([chunk(0)?, chunk(6)?])).flatten();
        let flow = row.flow.and_then(|flow| {
            let packet = dissect(frame.link, frame.data, frame.original).ok()?;
            let mut kept = Flow {
                number: flow.number as i64,
                source: flow.source,
                destination: flow.destination,
                upward: flow.upward,
                protocol: packet.network.protocol,
                hop_limit: packet.network.hop_limit,
                traffic_class: flow.traffic_class,
                identification: flow.identification,
                payload: flow.payload,
                ..Flow::default()
            };
            match packet.transport {
                Transport::Tcp(tcp) => kept.tcp = Some((tcp, flow.tcp)),
                Transport::Udp { at, .. } => {
                    let payload = frame.data.get(at..).unwrap_or_default();
                    let length = payload.len().min(PAYLOAD_PREFIX_BYTES);
                    kept.head.0[..length].copy_from_slice(&payload[..length]);
                    kept.head.1 = length as u8;
                }
                Transport::Icmp(_) | Transport::Fragment | Transport::Other => {}
            }
            Some(kept)
        });
        Self {
            number: row.number as i64,
            time_ns: row.time_ns as i64,
            interface: i64::from(row.interface),
            wire: i64::from(row.wire),
            macs,
            flow,
            gap_ns: row.gap_ns.map(|gap_ns| gap_ns as i64),
        }
    }

    /// Returns the sort key inside a row group: flow, direction, number.
    pub fn order(&self) -> (Option<(i64, bool)>, i64) {
        (self.flow.as_ref().map(|flow| (flow.number, flow.upward)), self.number)
    }

    /// Returns the TCP header, if the packet is a segment.
    pub fn tcp(&self) -> Option<&TcpHeader> {
        Some(&self.flow.as_ref()?.tcp.as_ref()?.0)
    }

    /// Returns the analysis of the segment, if there is one.
    pub fn seen(&self) -> Option<&RowTcp> {
        self.flow.as_ref()?.tcp.as_ref()?.1.as_ref()
    }
}
