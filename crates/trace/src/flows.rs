//! What the flows make of the packets: the half of an analysis that needs no bytes of frames.

use landspeed_model::{TraceBins, UnlistedFlows};
use landspeed_wire::{Packet, Transport};

use crate::analysis::Limits;
use crate::direction::Direction;
use crate::intake::Seen;
use crate::key::Key;
use crate::row::{Observer, Row, RowFlow};
use crate::table::{Flow, State, Table};

/// Directions that get a distribution of their round trips: 2.4 KB each.
const HISTOGRAMS: u32 = 4_096;
/// Bins kept; when there are more, neighbours are joined.
const MOST_BINS: usize = 8_192;

/// The flows and the bins of time.
#[derive(Debug)]
pub struct Flows {
    table: Table,
    bins: TraceBins,
    start_ns: Option<u64>,
    /// The open bin's number and its end, nanoseconds after the start.
    open: Open,
    room: u32,
    evicted: UnlistedFlows,
}

/// The bin the last frame was counted in.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    at: usize,
    from_ns: u64,
    to_ns: u64,
}

impl Flows {
    /// None yet.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            table: Table::new(limits.flows),
            bins: TraceBins { width_ns: limits.bin_ns.max(1), ..TraceBins::default() },
            start_ns: None,
            open: Open::default(),
            room: HISTOGRAMS,
            evicted: UnlistedFlows::default(),
        }
    }

    /// Takes what the intake saw, in the same order, and shows it to `observer`.
    #[inline]
    pub fn seen<O: Observer>(&mut self, seen: &Seen, observer: &mut O) {
        let (mut again, mut flow) = (false, None);
        if let Some(packet) = &seen.packet
            && let Some((key, upward)) = Key::of(packet)
        {
            (again, flow) = self.packet::<O>(packet, key, upward, seen);
        }
        self.bin(seen.time_ns, seen.wire, again);
        if O::WANTED {
            let Seen { number, time_ns, interface, wire, gap_ns, .. } = *seen;
            observer.row(&Row { number, time_ns, interface, wire, gap_ns, flow });
        }
    }

    /// Gives a packet to its flow. Returns whether it was sent again, and its row if rows are wanted.
    #[inline]
    fn packet<O: Observer>(
        &mut self,
        packet: &Packet,
        key: Key,
        upward: bool,
        seen: &Seen,
    ) -> (bool, Option<RowFlow>) {
        let (flow, gone) = self.table.flow(key, seen.time_ns);
        if let Some(gone) = gone {
            add(&mut self.evicted, &gone);
        }
        flow.last_ns = flow.last_ns.max(seen.time_ns);
        let mut row = O::WANTED.then(|| RowFlow::of(flow.number, key, upward, packet));
        let mut again = false;
        match (&mut flow.state, &packet.transport) {
            (State::Tcp(connection), Transport::Tcp(tcp)) => {
                let passed = connection.pass(packet, tcp, upward, seen.time_ns, seen.wire, &mut self.room);
                again = passed.class.is_retransmission();
                if let Some(row) = &mut row {
                    row.tcp = Some(connection.row(tcp, upward, passed));
                }
            }
            (State::Udp(datagrams), &Transport::Udp { payload, .. }) => {
                datagrams[usize::from(!upward)].pass(seen.wire, payload, seen.head());
            }
            _ => {}
        }
        (again, row)
    }

    fn bin(&mut self, time_ns: u64, wire: u32, again: bool) {
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        let since_ns = time_ns.saturating_sub(start_ns);
        if since_ns < self.open.from_ns || since_ns >= self.open.to_ns {
            self.turn(since_ns);
        }
        let at = self.open.at;
        self.bins.bytes[at] += u64::from(wire);
        self.bins.retransmits[at] += u32::from(again);
    }

    /// Opens the bin of a time.
    #[cold]
    fn turn(&mut self, since_ns: u64) {
        let bins = &mut self.bins;
        while since_ns / bins.width_ns >= MOST_BINS as u64 {
            bins.width_ns *= 2;
            bins.bytes = bins.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            bins.retransmits = bins.retransmits.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let at = (since_ns / bins.width_ns) as usize;
        if at >= bins.bytes.len() {
            bins.bytes.resize(at + 1, 0);
            bins.retransmits.resize(at + 1, 0);
        }
        let from_ns = at as u64 * bins.width_ns;
        self.open = Open { at, from_ns, to_ns: from_ns + bins.width_ns };
    }

    /// The flows in memory, the sums of those that were evicted, and the bins.
    pub(crate) fn finish(self) -> (Vec<Flow>, UnlistedFlows, TraceBins) {
        (self.table.into_flows(), self.evicted, self.bins)
    }
}

/// Payload of both directions, bytes.
pub(crate) fn payload(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(Direction::payload_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

/// Adds a flow to the sums.
pub(crate) fn add(sums: &mut UnlistedFlows, flow: &Flow) {
    sums.flows += 1;
    sums.payload_bytes += payload(flow);
    match &flow.state {
        State::Tcp(connection) => {
            for direction in connection.directions() {
                sums.packets += direction.packets();
                sums.retransmits += direction.retransmits();
            }
        }
        State::Udp(datagrams) => sums.packets += datagrams.iter().map(|datagrams| datagrams.packets).sum::<u64>(),
    }
}
