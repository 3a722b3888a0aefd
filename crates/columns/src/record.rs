//! One packet between a frame and the columns.

use landspeed_trace::{Endpoint, Row, RowTcp};
use landspeed_wire::capture::Frame;
use landspeed_wire::{LinkType, TcpHeader, Transport, dissect};

/// Bytes of a datagram's payload that are kept: the numbers of known protocols are in there.
pub const HEAD: usize = 32;

/// A packet.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Its place in the capture, from 1.
    pub number: i64,
    /// Nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Interface of the capture.
    pub interface: i64,
    /// Bytes on the wire.
    pub wire: i64,
    /// Destination's and source's addresses of the link.
    pub macs: Option<[[u8; 6]; 2]>,
    /// Its flow.
    pub flow: Option<Flow>,
    /// Since the frame before of its station, nanoseconds.
    pub gap_ns: Option<i64>,
}

/// What a packet of a flow has.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// The flow's number.
    pub number: i64,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Whether from the flow's lesser end to its greater one.
    pub upward: bool,
    /// IP protocol.
    pub protocol: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// IPv4's identification.
    pub identification: u16,
    /// Payload, bytes.
    pub payload: u32,
    /// A segment's header, and what became of it.
    pub tcp: Option<(TcpHeader, Option<RowTcp>)>,
    /// A datagram's first bytes, and how many.
    pub head: ([u8; HEAD], u8),
}

impl Record {
    /// Of a frame and its row.
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
                    let length = payload.len().min(HEAD);
                    kept.head.0[..length].copy_from_slice(&payload[..length]);
                    kept.head.1 = length as u8;
                }
                Transport::Fragment | Transport::Other => {}
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

    /// Where it is sorted to inside a row group.
    pub fn order(&self) -> (Option<(i64, bool)>, i64) {
        (self.flow.as_ref().map(|flow| (flow.number, flow.upward)), self.number)
    }

    /// Its segment.
    pub fn tcp(&self) -> Option<&TcpHeader> {
        Some(&self.flow.as_ref()?.tcp.as_ref()?.0)
    }

    /// What became of its segment.
    pub fn seen(&self) -> Option<&RowTcp> {
        self.flow.as_ref()?.tcp.as_ref()?.1.as_ref()
    }
}
