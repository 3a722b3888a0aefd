//! Flow table and time bins: the half of an analysis that does not need the frames' bytes.

use std::collections::HashMap;

use landspeed_model::{TraceBins, UnlistedFlows};
use landspeed_wire::{FastHeader, Flags};

use crate::connection::PacketTime;
use crate::direction::FlowDirection;
use crate::intake::{Body, FrameMeta, ParsedFrame};
use crate::key::Key;
use crate::lifetime::{LIFECYCLE_FLAGS, Lifetime};
use crate::limits::Limits;
use crate::row::{NoObserver, Observer, Row, RowFlow};
use crate::table::{Flow, State, Table};

/// Maximum number of directions with an RTT histogram (2.4 KB each).
const MAX_HISTOGRAMS: u32 = 4_096;
/// Maximum number of bins; beyond it, neighbours are merged.
const MAX_BINS: usize = 8_192;
/// Maximum time between a SYN on both sides of a firewall, nanoseconds.
const MAX_TRANSLATION_NS: u64 = 500_000_000;
/// Number of flows prefetched at once.
const PREFETCH_BATCH: usize = 32;

/// The flow table and the time bins.
#[derive(Debug)]
pub struct Flows {
    table: Table,
    bins: TraceBins,
    /// The bin of the last frame.
    open: OpenBin,
    histograms_left: u32,
    evicted: UnlistedFlows,
    /// ICMP errors about packets of no flow in the table.
    other_notices: u64,
}

/// The open bin: index, time range (nanoseconds after the start), and sums since it was opened.
#[derive(Debug, Clone, Copy, Default)]
struct OpenBin {
    at: usize,
    from_ns: u64,
    to_ns: u64,
    bytes: u64,
    retransmits: u32,
}

/// Position of a flow in the table, and its number, which shows whether another flow replaced it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowPosition {
    at: u32,
    number: u64,
}

impl Flows {
    /// Creates an empty table.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            table: Table::new(limits.flows, limits.window_scale),
            bins: TraceBins { width_ns: limits.bin_ns.max(1), ..TraceBins::default() },
            open: OpenBin::default(),
            histograms_left: MAX_HISTOGRAMS,
            evicted: UnlistedFlows::default(),
            other_notices: 0,
        }
    }

    /// Analyses packets from the intake, in order.
    pub fn batch(&mut self, batch: &[ParsedFrame]) {
        for chunk in batch.chunks(PREFETCH_BATCH) {
            let guesses = self.prefetch(chunk);
            for (seen, place) in chunk.iter().zip(guesses) {
                self.seen::<NoObserver>(seen, place);
            }
        }
    }

    /// Prefetches the flows of a batch: with many flows each is a cache miss, and several misses at once take no
    /// longer than one. Returns their likely positions.
    fn prefetch(&self, batch: &[ParsedFrame]) -> [Option<u32>; PREFETCH_BATCH] {
        let mut guesses = [None; PREFETCH_BATCH];
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

    /// Analyses a packet from the intake and passes its row to `observer`.
    pub(crate) fn show<O: Observer>(&mut self, seen: &ParsedFrame, place: FrameMeta, observer: &mut O) {
        let flow = self.seen::<O>(seen, None);
        if O::NEEDS_ROWS {
            let FrameMeta { number, interface, gap_ns } = place;
            observer.row(&Row { number, time_ns: seen.time_ns, interface, wire: seen.wire, gap_ns, flow });
        }
    }

    /// Returns the position of a flow.
    pub(crate) fn at(&self, key: &Key) -> Option<FlowPosition> {
        let at = self.table.position(key)?;
        Some(FlowPosition { at, number: self.table.at(at)?.number })
    }

    /// Fast path: accounts for a plain segment of a known flow if its connection expects it. Otherwise returns
    /// `false` without changing anything.
    #[inline(always)]
    pub(crate) fn expected(
        &mut self,
        flow: FlowPosition,
        upward: bool,
        fast_header: &FastHeader<'_>,
        at: PacketTime,
        wire: u32,
    ) -> bool {
        let Some(Flow { number, last_ns, has_two_sides, state: State::Tcp(connection), .. }) =
            self.table.at_mut(flow.at)
        else {
            return false;
        };
        if *number != flow.number
            || *has_two_sides
            || !connection.account_expected(fast_header, at, wire, upward, &mut self.histograms_left)
        {
            return false;
        }
        *last_ns = (*last_ns).max(at.time_ns);
        self.bin(at.since_ns, wire, false);
        true
    }

    #[inline]
    fn seen<O: Observer>(&mut self, seen: &ParsedFrame, guess: Option<u32>) -> Option<RowFlow> {
        let (retransmitted, flow) = match seen.body {
            Body::None => (false, None),
            Body::Icmp => {
                self.notice(seen);
                (false, None)
            }
            _ => self.packet::<O>(seen, guess),
        };
        self.bin(seen.since_ns, seen.wire, retransmitted);
        flow
    }

    /// Accounts for a packet in its flow, which is probably at `guess`. Returns whether it is a retransmit, and its
    /// row if rows are wanted.
    #[inline]
    fn packet<O: Observer>(&mut self, seen: &ParsedFrame, guess: Option<u32>) -> (bool, Option<RowFlow>) {
        let Self { table, histograms_left, evicted, .. } = self;
        let at = match table.find(&seen.key, guess) {
            Some(at) if seen.body == Body::Tcp => {
                let at = if table.at(at).is_some_and(|flow| flow.has_two_sides) { side(table, at, seen) } else { at };
                if seen.tcp.flags.has(LIFECYCLE_FLAGS) { restart_connection(table, at, seen, evicted) } else { at }
            }
            Some(at) => at,
            None => begin(table, seen, evicted),
        };
        let Some(flow) = table.at_mut(at) else { return (false, None) };
        flow.last_ns = flow.last_ns.max(seen.time_ns);
        let mut row = O::NEEDS_ROWS.then(|| RowFlow::of(flow.number, seen));
        let mut retransmitted = false;
        match (&mut flow.state, seen.body) {
            (State::Tcp(connection), Body::Tcp) => {
                let passed = connection.account(seen, histograms_left);
                retransmitted = passed.class.is_retransmission();
                if let Some(row) = &mut row {
                    row.tcp = Some(connection.row(&seen.tcp, seen.upward, passed));
                }
            }
            (State::Udp(datagrams), Body::Udp) => {
                let datagram = &seen.datagram;
                let datagrams = &mut datagrams[usize::from(!seen.upward)];
                datagrams.account(seen.wire, datagram.payload, datagram.head(), seen.time_ns);
            }
            _ => {}
        }
        (retransmitted, row)
    }

    /// Adds an ICMP error to the flow of the packet that it quotes.
    #[cold]
    fn notice(&mut self, seen: &ParsedFrame) {
        match self.table.position(&seen.key).and_then(|at| self.table.at_mut(at)) {
            Some(flow) => flow.notices.get_or_insert_default().add(seen),
            None => self.other_notices += 1,
        }
    }

    /// Accounts for a packet that the network duplicated, known only at the end.
    pub(crate) fn duplicate(&mut self, seen: &ParsedFrame) {
        let at = self.table.position(&seen.key);
        if let Some(Flow { state: State::Tcp(connection), .. }) = at.and_then(|at| self.table.at_mut(at)) {
            connection.duplicate(seen);
        } else {
            self.evicted.packets += 1;
            self.evicted.payload_bytes += u64::from(seen.tcp.payload);
        }
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
    fn flush_bin(&mut self) {
        let OpenBin { at, bytes, retransmits, .. } = std::mem::take(&mut self.open);
        if let (Some(sum), Some(count)) = (self.bins.bytes.get_mut(at), self.bins.retransmits.get_mut(at)) {
            *sum += bytes;
            *count += retransmits;
        }
    }

    /// Opens the bin that contains a time.
    #[cold]
    fn open_bin(&mut self, since_ns: u64) {
        self.flush_bin();
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
        self.open = OpenBin { at, from_ns, to_ns: from_ns + bins.width_ns, ..OpenBin::default() };
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Distributes the flows over `shares` new tables, by [`ParsedFrame::share`].
    pub fn split(mut self, limits: Limits, shares: usize) -> Vec<Self> {
        self.flush_bin();
        let Self { table, bins, open, histograms_left, evicted, other_notices } = self;
        let part = limits.flows.div_ceil(Key::parts(shares));
        let most = |share| if share == 0 { part } else { part * Key::PARTS };
        let mut parts: Vec<_> =
            (0..shares.max(1)).map(|share| Self::new(Limits { flows: most(share), ..limits })).collect();
        for flow in table.into_flows() {
            let share = flow.key.share(parts.len());
            parts[share].table.take(flow);
        }
        if let Some(first) = parts.first_mut() {
            (first.bins, first.open, first.histograms_left, first.evicted) = (bins, open, histograms_left, evicted);
            first.other_notices = other_notices;
        }
        parts
    }

    /// Merges another share of the same capture.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.flush_bin();
        other.flush_bin();
        let Self { table, bins, evicted, other_notices, .. } = other;
        self.table.join(table);
        self.other_notices += other_notices;
        self.evicted.flows += evicted.flows;
        self.evicted.packets += evicted.packets;
        self.evicted.payload_bytes += evicted.payload_bytes;
        self.evicted.unique_bytes += evicted.unique_bytes;
        self.evicted.retransmits += evicted.retransmits;
        // Every width is the initial one times a power of two.
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

    /// Returns the flows in memory, the sums of evicted flows, the bins, and the number of ICMP errors about other flows.
    pub(crate) fn finish(mut self) -> (Vec<Flow>, UnlistedFlows, TraceBins, u64) {
        self.flush_bin();
        (self.table.into_flows(), self.evicted, self.bins, self.other_notices)
    }
}

/// Adds the flow of a packet. Returns its position.
#[cold]
fn begin(table: &mut Table, seen: &ParsedFrame, evicted: &mut UnlistedFlows) -> u32 {
    let (at, gone) = table.begin(seen.key, seen.time_ns);
    if let Some(gone) = gone {
        add(evicted, &gone);
    }
    if let Some(flow) = table.at_mut(at).filter(|_| seen.body == Body::Tcp) {
        open(flow, seen);
    }
    at
}

/// Replaces the connection at a position by a new one, if the segment opens one. Returns the position of the segment's
/// connection.
#[cold]
fn restart_connection(table: &mut Table, at: u32, seen: &ParsedFrame, evicted: &mut UnlistedFlows) -> u32 {
    let Some(flow) = table.at_mut(at) else { return at };
    if is_translated_syn(flow, seen) {
        flow.has_two_sides = true;
        return begin_other_side(table, seen, evicted);
    }
    if !flow.lifetime.opens_new_connection(&seen.tcp, seen.upward) {
        return at;
    }
    replace(table, at, seen, evicted);
    at
}

/// Replaces the connection at a position, which is the latest.
fn replace(table: &mut Table, at: u32, seen: &ParsedFrame, evicted: &mut UnlistedFlows) {
    if let Some(gone) = table.replace_latest(seen.time_ns) {
        add(evicted, &gone);
    }
    if let Some(flow) = table.at_mut(at) {
        open(flow, seen);
    }
}

/// Records the first segment of a connection.
fn open(flow: &mut Flow, seen: &ParsedFrame) {
    flow.lifetime = Lifetime::of(&seen.tcp, seen.upward);
    if seen.tcp.flags.has(Flags::SYN) {
        flow.syn = Some((seen.identification, seen.tcp.options.timestamps.map(|(value, _)| value)));
    }
}

/// Returns whether a SYN is that of the flow with another initial sequence number, from the other side of a firewall that
/// changes them: the same packet by its timestamp or IP identification, before any answer.
fn is_translated_syn(flow: &Flow, seen: &ParsedFrame) -> bool {
    let tcp = &seen.tcp;
    let is_syn = tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK);
    let other = flow.lifetime.unanswered(seen.upward).filter(|initial| *initial != tcp.sequence);
    let stamp = tcp.options.timestamps.map(|(value, _)| value);
    let is_same = flow.syn.is_some_and(|(identification, other)| match (stamp, other) {
        (Some(stamp), Some(other)) => stamp == other,
        _ => identification != 0 && identification == seen.identification && stamp == other,
    });
    is_syn && other.is_some() && is_same && seen.time_ns.saturating_sub(flow.first_ns) < MAX_TRANSLATION_NS
}

/// Begins the other side of a connection. Returns its position.
fn begin_other_side(table: &mut Table, seen: &ParsedFrame, evicted: &mut UnlistedFlows) -> u32 {
    let other = ParsedFrame { key: seen.key.other_side(), ..*seen };
    match table.position(&other.key) {
        // That of an earlier connection.
        Some(at) => {
            table.select(at);
            replace(table, at, &other, evicted);
            at
        }
        None => begin(table, &other, evicted),
    }
}

/// Returns the side of a connection that a segment belongs to: the one whose numbers are closer.
#[cold]
fn side(table: &mut Table, at: u32, seen: &ParsedFrame) -> u32 {
    let Some(other) = table.position(&seen.key.other_side()) else { return at };
    let distance = |at: u32| match table.at(at).map(|flow| &flow.state) {
        Some(State::Tcp(connection)) => connection.distance(&seen.tcp, seen.upward),
        _ => u64::MAX,
    };
    let nearer = if distance(other) < distance(at) { other } else { at };
    table.select(nearer);
    nearer
}

/// Returns the payload of both directions, retransmits included, bytes.
pub(crate) fn payload(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(FlowDirection::payload_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

/// Returns the payload of both directions, each byte once, bytes.
pub(crate) fn unique(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(FlowDirection::unique_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

/// Maximum time between the first packets of a connection on both sides of a NAT, nanoseconds.
const MAX_NAT_NS: u64 = 1_000_000_000;

/// Returns the flows that are the same connection as an earlier one, by number, with the key of that. Both sides of a NAT have
/// the same initial sequence numbers.
pub(crate) fn seen_twice(flows: &[Flow]) -> HashMap<u64, Key> {
    let mut twice = HashMap::new();
    let mut firsts: HashMap<(u32, u32), (u64, Key)> = HashMap::new();
    let mut in_order: Vec<&Flow> = flows.iter().filter(|flow| flow.key.is_tcp()).collect();
    in_order.sort_by_key(|flow| (flow.first_ns, flow.number));
    for flow in in_order {
        if flow.key.is_other_side() {
            twice.insert(flow.number, flow.key);
            continue;
        }
        let Some(initial) = flow.lifetime.both() else { continue };
        match firsts.get(&initial) {
            Some((first_ns, key)) if flow.first_ns - first_ns < MAX_NAT_NS && *key != flow.key => {
                twice.insert(flow.number, *key);
            }
            _ => {
                firsts.insert(initial, (flow.first_ns, flow.key));
            }
        }
    }
    twice
}

/// Adds a flow to the sums of unlisted flows.
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
