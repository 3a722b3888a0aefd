//! Flows: the half of an analysis that needs no bytes of frames.

use landspeed_model::{TraceBins, UnlistedFlows};
use landspeed_wire::Brief;

use crate::analysis::Limits;
use crate::connection::Moment;
use crate::direction::FlowDirection;
use crate::intake::{Body, Place, Seen};
use crate::key::Key;
use crate::lifetime::{Lifetime, TURNING};
use crate::row::{Observer, Row, RowFlow, Unobserved};
use crate::table::{Flow, State, Table};

/// Directions that get a distribution of their round trips: 2.4 KB each.
const HISTOGRAMS: u32 = 4_096;
/// Bins kept; when there are more, neighbours are joined.
const MAX_BINS: usize = 8_192;
/// Flows fetched at once.
const AHEAD: usize = 32;

/// The flows and the bins of time.
#[derive(Debug)]
pub struct Flows {
    table: Table,
    bins: TraceBins,
    /// The open bin's number and its end, nanoseconds after the start.
    open: Open,
    room: u32,
    evicted: UnlistedFlows,
}

/// The bin the last frame was counted in, and what it has got since it was opened.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    at: usize,
    from_ns: u64,
    to_ns: u64,
    bytes: u64,
    retransmits: u32,
}

/// Where a flow is: by its number it is known if another one took its place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowAt {
    at: u32,
    number: u64,
}

impl Flows {
    /// None yet.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            table: Table::new(limits.flows, limits.window_scale),
            bins: TraceBins { width_ns: limits.bin_ns.max(1), ..TraceBins::default() },
            open: Open::default(),
            room: HISTOGRAMS,
            evicted: UnlistedFlows::default(),
        }
    }

    /// Analyses packets from the intake, in order.
    pub fn batch(&mut self, batch: &[Seen]) {
        for chunk in batch.chunks(AHEAD) {
            let guesses = self.prefetch(chunk);
            for (seen, place) in chunk.iter().zip(guesses) {
                self.seen::<Unobserved>(seen, place);
            }
        }
    }

    /// Fetches the flows of a batch before they are needed: with many flows each is far away in memory, and waiting for
    /// several at once takes no longer than for one. Returns where they may be.
    fn prefetch(&self, batch: &[Seen]) -> [Option<u32>; AHEAD] {
        let mut guesses = [None; AHEAD];
        if batch.iter().all(|seen| self.table.is_latest(&seen.key)) {
            return guesses;
        }
        for (place, seen) in guesses.iter_mut().zip(batch) {
            *place = self.table.guess(&seen.key);
        }
        let sum = guesses.iter().flatten().fold(0, |sum, place| sum ^ self.table.prefetch(*place));
        std::hint::black_box(sum);
        guesses
    }

    /// Analyses a packet from the intake, and gives its row to `observer`.
    pub(crate) fn show<O: Observer>(&mut self, seen: &Seen, place: Place, observer: &mut O) {
        let flow = self.seen::<O>(seen, None);
        if O::WANTED {
            let Place { number, interface, gap_ns } = place;
            observer.row(&Row { number, time_ns: seen.time_ns, interface, wire: seen.wire, gap_ns, flow });
        }
    }

    /// Where a flow is.
    pub(crate) fn at(&self, key: &Key) -> Option<FlowAt> {
        let at = self.table.position(key)?;
        Some(FlowAt { at, number: self.table.at(at)?.number })
    }

    /// A plain segment of a known flow, if its connection expects it. `false`, and nothing done, if it does not.
    #[inline(always)]
    pub(crate) fn expected(&mut self, flow: FlowAt, upward: bool, brief: &Brief<'_>, at: Moment, wire: u32) -> bool {
        let Some(Flow { number, last_ns, state: State::Tcp(connection), .. }) = self.table.at_mut(flow.at) else {
            return false;
        };
        if *number != flow.number || !connection.pass_expected(brief, at, wire, upward, &mut self.room) {
            return false;
        }
        *last_ns = (*last_ns).max(at.time_ns);
        self.bin(at.since_ns, wire, false);
        true
    }

    #[inline]
    fn seen<O: Observer>(&mut self, seen: &Seen, guess: Option<u32>) -> Option<RowFlow> {
        let (retransmitted, flow) = match seen.body {
            Body::None => (false, None),
            _ => self.packet::<O>(seen, guess),
        };
        self.bin(seen.since_ns, seen.wire, retransmitted);
        flow
    }

    /// Gives a packet to its flow, which may be where `guess` says. Returns whether it is a retransmit, and its row if rows
    /// are wanted.
    #[inline]
    fn packet<O: Observer>(&mut self, seen: &Seen, guess: Option<u32>) -> (bool, Option<RowFlow>) {
        let Self { table, room, evicted, .. } = self;
        let at = match table.find(&seen.key, guess) {
            Some(at) => {
                if seen.body == Body::Tcp && seen.tcp.flags.has(TURNING) {
                    restart_connection(table, at, seen, evicted);
                }
                at
            }
            None => begin(table, seen, evicted),
        };
        let Some(flow) = table.at_mut(at) else { return (false, None) };
        flow.last_ns = flow.last_ns.max(seen.time_ns);
        let mut row = O::WANTED.then(|| RowFlow::of(flow.number, seen));
        let mut retransmitted = false;
        match (&mut flow.state, seen.body) {
            (State::Tcp(connection), Body::Tcp) => {
                let passed = connection.pass(seen, room);
                retransmitted = passed.class.is_retransmission();
                if let Some(row) = &mut row {
                    row.tcp = Some(connection.row(&seen.tcp, seen.upward, passed));
                }
            }
            (State::Udp(datagrams), Body::Udp) => {
                let datagram = &seen.datagram;
                let datagrams = &mut datagrams[usize::from(!seen.upward)];
                datagrams.pass(seen.wire, datagram.payload, datagram.head(), seen.time_ns);
            }
            _ => {}
        }
        (retransmitted, row)
    }

    #[inline]
    fn bin(&mut self, since_ns: u64, wire: u32, retransmitted: bool) {
        if since_ns < self.open.from_ns || since_ns >= self.open.to_ns {
            self.open_bin(since_ns);
        }
        self.open.bytes += u64::from(wire);
        self.open.retransmits += u32::from(retransmitted);
    }

    /// Adds the open bin to the bins.
    fn settle(&mut self) {
        let Open { at, bytes, retransmits, .. } = std::mem::take(&mut self.open);
        if let (Some(sum), Some(count)) = (self.bins.bytes.get_mut(at), self.bins.retransmits.get_mut(at)) {
            *sum += bytes;
            *count += retransmits;
        }
    }

    /// Opens the bin of a time.
    #[cold]
    fn open_bin(&mut self, since_ns: u64) {
        self.settle();
        let bins = &mut self.bins;
        while since_ns / bins.width_ns >= MAX_BINS as u64 {
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
        self.open = Open { at, from_ns, to_ns: from_ns + bins.width_ns, ..Open::default() };
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Deals its flows out to new ones of so many shares, each to the one that [`Seen::share`] says.
    pub fn split(mut self, limits: Limits, shares: usize) -> Vec<Self> {
        self.settle();
        let Self { table, bins, open, room, evicted } = self;
        let part = limits.flows.div_ceil(Key::parts(shares));
        let most = |share| if share == 0 { part } else { part * Key::PARTS };
        let mut parts: Vec<_> =
            (0..shares.max(1)).map(|share| Self::new(Limits { flows: most(share), ..limits })).collect();
        for flow in table.into_flows() {
            let share = flow.key.share(parts.len());
            parts[share].table.take(flow);
        }
        if let Some(first) = parts.first_mut() {
            (first.bins, first.open, first.room, first.evicted) = (bins, open, room, evicted);
        }
        parts
    }

    /// Takes what another had of the same capture.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        let Self { table, bins, evicted, .. } = other;
        self.table.join(table);
        self.evicted.flows += evicted.flows;
        self.evicted.packets += evicted.packets;
        self.evicted.payload_bytes += evicted.payload_bytes;
        self.evicted.unique_bytes += evicted.unique_bytes;
        self.evicted.retransmits += evicted.retransmits;
        // Every width is the first one doubled some times.
        let most_ns = self.bins.width_ns.max(bins.width_ns);
        let mine = std::mem::replace(&mut self.bins, TraceBins { width_ns: most_ns, ..TraceBins::default() });
        for from in [mine, bins] {
            let joined = (most_ns / from.width_ns) as usize;
            let length = from.bytes.len().div_ceil(joined).max(self.bins.bytes.len());
            self.bins.bytes.resize(length, 0);
            self.bins.retransmits.resize(length, 0);
            for (at, (bytes, retransmits)) in from.bytes.iter().zip(&from.retransmits).enumerate() {
                self.bins.bytes[at / joined] += bytes;
                self.bins.retransmits[at / joined] += retransmits;
            }
        }
    }

    /// The flows in memory, the sums of those that were evicted, and the bins.
    pub(crate) fn finish(mut self) -> (Vec<Flow>, UnlistedFlows, TraceBins) {
        self.settle();
        (self.table.into_flows(), self.evicted, self.bins)
    }
}

/// Begins the flow of a packet. Returns its position.
#[cold]
fn begin(table: &mut Table, seen: &Seen, evicted: &mut UnlistedFlows) -> u32 {
    let (at, gone) = table.begin(seen.key, seen.time_ns);
    if let Some(gone) = gone {
        add(evicted, &gone);
    }
    if let Some(flow) = table.at_mut(at).filter(|_| seen.body == Body::Tcp) {
        flow.lifetime = Lifetime::of(&seen.tcp, seen.upward);
    }
    at
}

/// Begins another connection at a position if a segment that opens or closes one opens it.
#[cold]
fn restart_connection(table: &mut Table, at: u32, seen: &Seen, evicted: &mut UnlistedFlows) {
    let Some(flow) = table.at_mut(at) else { return };
    if !flow.lifetime.opens_another(&seen.tcp, seen.upward) {
        return;
    }
    if let Some(gone) = table.renew(seen.time_ns) {
        add(evicted, &gone);
    }
    if let Some(flow) = table.at_mut(at) {
        flow.lifetime = Lifetime::of(&seen.tcp, seen.upward);
    }
}

/// Payload of both directions, bytes.
pub(crate) fn payload(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(FlowDirection::payload_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

/// Payload of both directions, each byte once, bytes.
pub(crate) fn unique(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(FlowDirection::unique_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

/// Adds a flow to the sums.
pub(crate) fn add(sums: &mut UnlistedFlows, flow: &Flow) {
    sums.flows += 1;
    sums.payload_bytes += payload(flow);
    sums.unique_bytes += unique(flow);
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
