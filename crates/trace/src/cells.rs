//! One flow split into time cells of equal width, to measure the variation of a figure within a capture.

use landspeed_model::{TraceDocument, TraceEndpoint, TraceTransport};

use crate::key::document_endpoint;
use crate::row::{Class, Observer, Row};

/// Sums over one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    /// Payload seen for the first time, bytes.
    pub new_bytes: u64,
    /// Packets with data.
    pub packets: u64,
    /// Retransmits among them.
    pub retransmits: u64,
    /// ACKs of the reverse direction.
    pub acks: u64,
    /// Duplicate ACKs among them.
    pub duplicate_acks: u64,
    /// Number of RTT samples.
    pub rtts: u64,
    /// Sum of the RTT samples, nanoseconds.
    pub rtt_sum_ns: u64,
    /// Sum of the data in flight after each data packet, bytes.
    pub in_flight_sum: u64,
}

impl Cell {
    /// Adds the sums of another cell.
    pub fn join(&mut self, other: &Self) {
        self.new_bytes += other.new_bytes;
        self.packets += other.packets;
        self.retransmits += other.retransmits;
        self.acks += other.acks;
        self.duplicate_acks += other.duplicate_acks;
        self.rtts += other.rtts;
        self.rtt_sum_ns += other.rtt_sum_ns;
        self.in_flight_sum += other.in_flight_sum;
    }
}

/// The first flow of a document, split into cells.
#[derive(Debug, Clone)]
pub struct Cells {
    source: TraceEndpoint,
    destination: TraceEndpoint,
    start_ns: u64,
    /// Width of a cell, nanoseconds.
    pub width_ns: u64,
    /// The cells, from the start of the flow to its end.
    pub cells: Vec<Cell>,
}

impl Cells {
    /// Creates `count` empty cells for the first flow of a document of the same capture. `None` unless that is a TCP
    /// flow with a duration.
    pub fn new(document: &TraceDocument, count: usize) -> Option<Self> {
        let flow = document.flows.first().filter(|flow| flow.transport == TraceTransport::Tcp)?;
        let width_ns = flow.duration_ns / count.max(1) as u64;
        let start_ns = document.capture.start_ns.saturating_add(flow.start_ns);
        let (source, destination) = (flow.source.clone(), flow.destination.clone());
        (width_ns > 0).then(|| Self { source, destination, start_ns, width_ns, cells: vec![Cell::default(); count] })
    }
}

impl Observer for Cells {
    fn row(&mut self, row: &Row) {
        let Some(flow) = &row.flow else { return };
        let Some(tcp) = &flow.tcp else { return };
        let (from, to) = (document_endpoint(flow.source), document_endpoint(flow.destination));
        let is_forward = from == self.source && to == self.destination;
        if !(is_forward || from == self.destination && to == self.source) {
            return;
        }
        let Some(since_ns) = row.time_ns.checked_sub(self.start_ns) else { return };
        let number = (since_ns / self.width_ns) as usize;
        if number > self.cells.len() {
            // Another connection with the same four-tuple.
            return;
        }
        let number = number.min(self.cells.len() - 1);
        let Some(cell) = self.cells.get_mut(number) else { return };
        if is_forward && flow.payload > 0 {
            cell.packets += 1;
            cell.in_flight_sum = cell.in_flight_sum.saturating_add(tcp.in_flight);
            if tcp.class.is_retransmission() {
                cell.retransmits += 1;
            } else if matches!(tcp.class, Class::New | Class::OutOfOrder) {
                cell.new_bytes += u64::from(flow.payload);
            }
        } else if !is_forward && tcp.acknowledgement.is_some() {
            cell.acks += 1;
            cell.duplicate_acks += u64::from(tcp.duplicate_ack);
            if let Some(rtt_ns) = tcp.rtt_ns {
                cell.rtts += 1;
                cell.rtt_sum_ns = cell.rtt_sum_ns.saturating_add(rtt_ns);
            }
        }
    }
}
