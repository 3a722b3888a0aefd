//! The same packets at two taps: what was lost between them, what came out of order, and how the delay varied.
//!
//! A packet is known again by what no hop changes: its numbers, flags, options' timestamps, length and IP identification,
//! and its ends unless they are translated on the way. Which tap a packet passes first is told by the clocks' differences
//! themselves: they are greater one way than the other by the round trip between the taps, whatever the clocks say.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::fast::FixedState;
use landspeed_model::{PathDirection, TraceDocument, TraceEndpoint, TraceFlow, TracePath, TraceTransport, Warning};
use landspeed_wire::capture::{Frame, LATEST_NS};
use landspeed_wire::{Flags, Packet, Transport, dissect};

use crate::histogram::Histogram;
use crate::key::{Key, told};

/// A packet that did not come past the other tap for so long after the others of its time is lost, nanoseconds.
const PATIENCE_NS: i64 = 1_000_000_000;
/// The first capture is read this far ahead, nanoseconds.
const LEAD_NS: i64 = 50_000_000;
/// Packets waited for at each tap at once. Older ones are given up and counted as such.
const MOST_WAITING: usize = 4_000_000;
/// Until this many packets are matched, the captures are read in step from their beginnings.
const ENOUGH_MATCHES: u64 = 16;

/// One of the two taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tap {
    /// The first one named.
    First,
    /// The second one.
    Second,
}

/// A packet at one tap that the other has not shown yet.
#[derive(Debug, Clone, Copy)]
struct Seen {
    time_ns: i64,
    rank: u64,
    flow: u32,
    upward: bool,
    data: bool,
}

/// One tap.
#[derive(Debug, Default)]
struct Side {
    waiting: HashMap<u64, Seen, FixedState>,
    /// Times and fingerprints in the order read.
    order: VecDeque<(i64, u64)>,
    first_ns: Option<i64>,
    latest_ns: i64,
    ended: bool,
}

/// One direction of one flow.
#[derive(Debug, Clone, Default)]
struct Between {
    matched: u64,
    /// Packets only the first tap showed: without payload, with payload.
    only_first: [u64; 2],
    /// Packets only the second tap showed, likewise.
    only_second: [u64; 2],
    /// Second tap's clock minus the first's: least and greatest.
    least_ns: Option<i64>,
    greatest_ns: Option<i64>,
    reordered: u64,
    top: (u64, u64),
}

/// Two captures side by side.
#[derive(Debug)]
pub struct Pairing {
    sides: [Side; 2],
    flows: Vec<(Key, [Between; 2])>,
    index: HashMap<Key, u32, FixedState>,
    translated: bool,
    matched: u64,
    given_up: u64,
    least_ns: Option<i64>,
    greatest_ns: Option<i64>,
    ranks: u64,
    /// Of each direction of a flow, how far the differences are from the extreme so far: from the least, which is the delay's
    /// variation towards the second tap, and from the greatest, which is that on the way back. Only the end tells which.
    spread: HashMap<(u32, bool), [Histogram; 2], FixedState>,
    /// What a flow and its direction at the second tap are called at the first, where ends are translated.
    names: HashMap<(u32, bool), (u32, bool), FixedState>,
}

/// A flow between the taps: data packets lost upward and downward, and which way is to the second tap.
#[derive(Debug)]
struct FlowBetween {
    key: Key,
    lost: [u64; 2],
    upward_is_there: bool,
}

/// What lies between two taps.
#[derive(Debug)]
pub struct Placed {
    path: TracePath,
    flows: Vec<FlowBetween>,
}

impl Placed {
    /// Puts it into the first tap's document, with what the second tap's says of what came after it.
    pub fn tell(self, document: &mut TraceDocument, second: &TraceDocument) {
        for flow in &mut document.flows {
            let ends = [&flow.source, &flow.destination];
            let Some((between, upward)) = self.flows.iter().find_map(|between| between.is(ends)) else { continue };
            let lost = between.lost[usize::from(!upward)];
            // Taps of a chain add up.
            flow.lost_network = Some(flow.lost_network.unwrap_or(0) + lost);
            let there = upward == between.upward_is_there;
            let same = |other: &&TraceFlow| other.source == flow.source && other.destination == flow.destination;
            if let Some(beyond) =
                second.flows.iter().find(same).filter(|_| there && flow.transport == TraceTransport::Tcp)
            {
                let again = &beyond.forward.retransmits;
                // What passed the last tap, was asked for once more, and had not arrived twice.
                let asked = again.total() - again.lost_before_tap;
                flow.lost_receiver = Some(asked.saturating_sub(again.spurious));
            }
        }
        if self.path.matched == 0 {
            let message = format!("{} and {} have no packet in common", self.path.from, self.path.to);
            document.warnings.push(Warning { code: "nothing-in-common".into(), message });
        }
        if document.capture.super_packets + second.capture.super_packets > 0 {
            let message = "super-packets cannot be matched with the frames they become: capture both ends on the wire, \
                           or with TSO and GRO off, before counting losses between the taps";
            document.warnings.push(Warning { code: "super-packets-between".into(), message: message.into() });
        }
        document.path.push(self.path);
    }
}

impl FlowBetween {
    /// Whether it has these ends, and if it does, whether from the first to the second of them is upward.
    fn is(&self, [source, destination]: [&TraceEndpoint; 2]) -> Option<(&Self, bool)> {
        let (low, high) = (told(self.key.low), told(self.key.high));
        if low == *source && high == *destination {
            return Some((self, true));
        }
        (high == *source && low == *destination).then_some((self, false))
    }
}

/// Directions that get a distribution of their delays.
const HISTOGRAMS: usize = 512;

impl Pairing {
    /// Nothing read yet. `translated`: addresses and ports change between the taps.
    pub fn new(translated: bool) -> Self {
        Self {
            sides: Default::default(),
            flows: Vec::new(),
            index: HashMap::default(),
            translated,
            matched: 0,
            given_up: 0,
            least_ns: None,
            greatest_ns: None,
            ranks: 0,
            spread: HashMap::default(),
            names: HashMap::default(),
        }
    }

    /// Which tap's next frame is due, so that both stay at the same moment; `None` when both are at their end.
    pub fn wants(&self) -> Option<Tap> {
        let [first, second] = &self.sides;
        match (first.ended, second.ended) {
            (true, true) => return None,
            (true, false) => return Some(Tap::Second),
            (false, true) => return Some(Tap::First),
            (false, false) => {}
        }
        let progress = |side: &Side| side.first_ns.map(|begun| side.latest_ns - begun);
        let (Some(one), Some(two)) = (progress(first), progress(second)) else {
            return Some(if first.first_ns.is_none() { Tap::First } else { Tap::Second });
        };
        let settled = self.matched >= ENOUGH_MATCHES;
        let behind =
            if settled { (second.latest_ns - first.latest_ns).saturating_sub(self.offset()) } else { two - one };
        // The first tap leads, so that what was sent again is known before it comes past the second.
        Some(if behind.saturating_add(LEAD_NS) >= 0 { Tap::First } else { Tap::Second })
    }

    /// The second clock minus the first, by the middle between the extremes seen.
    fn offset(&self) -> i64 {
        i64::midpoint(self.least_ns.unwrap_or(0), self.greatest_ns.unwrap_or(0))
    }

    /// A tap's capture is at its end.
    pub fn end(&mut self, tap: Tap) {
        self.sides[tap as usize].ended = true;
    }

    /// A frame of a tap.
    pub fn frame(&mut self, tap: Tap, frame: &Frame<'_>) {
        let time_ns = frame.time_ns.min(LATEST_NS) as i64;
        let side = &mut self.sides[tap as usize];
        side.first_ns.get_or_insert(time_ns);
        side.latest_ns = side.latest_ns.max(time_ns);
        let Ok(packet) = dissect(frame.link, frame.data, frame.original) else { return };
        let Some((key, upward)) = Key::of_packet(&packet) else { return };
        let ends = (!self.translated).then_some((key, upward));
        let Some((print, data)) = fingerprint(&packet, ends) else { return };
        self.ranks += 1;
        let flow = self.flow(key);
        let seen = Seen { time_ns, rank: self.ranks, flow, upward, data };
        if let Some(other) = self.take_best(tap, print, &seen) {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            self.matched(&first, &second);
        } else {
            let side = &mut self.sides[tap as usize];
            put(&mut side.waiting, print, seen);
            side.order.push_back((time_ns, print));
        }
        self.give_up(tap);
    }

    /// The packet of the other tap that this one is: among twins the one whose delay is the most usual, then the oldest. A
    /// copy sent again, without an identification or timestamps, is the twin of the one that was lost.
    fn take_best(&mut self, tap: Tap, print: u64, seen: &Seen) -> Option<Seen> {
        let waiting = &mut self.sides[1 - tap as usize].waiting;
        if !waiting.contains_key(&twin(print, 1)) {
            return waiting.remove(&print);
        }
        let unusual = |other: &Seen| {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            let between = &self.flows[first.flow as usize].1[usize::from(!first.upward)];
            let difference = second.time_ns - first.time_ns;
            let (least, greatest) =
                (between.least_ns.unwrap_or(difference), between.greatest_ns.unwrap_or(difference));
            (least - difference).max(difference - greatest).max(0)
        };
        let twins =
            (0..TWINS).map_while(|number| waiting.get(&twin(print, number)).map(|other| (number, unusual(other))));
        let (number, _) = twins.min_by_key(|&(_, unusual)| unusual)?;
        take(waiting, print, number)
    }

    fn flow(&mut self, key: Key) -> u32 {
        let flows = &mut self.flows;
        *self.index.entry(key).or_insert_with(|| {
            flows.push((key, <[Between; 2]>::default()));
            flows.len() as u32 - 1
        })
    }

    fn matched(&mut self, first: &Seen, second: &Seen) {
        let difference = second.time_ns - first.time_ns;
        self.matched += 1;
        if self.translated {
            self.names.insert((second.flow, second.upward), (first.flow, first.upward));
        }
        self.least_ns = Some(self.least_ns.map_or(difference, |least| least.min(difference)));
        self.greatest_ns = Some(self.greatest_ns.map_or(difference, |most| most.max(difference)));
        let between = &mut self.flows[first.flow as usize].1[usize::from(!first.upward)];
        between.matched += 1;
        let least = between.least_ns.map_or(difference, |least| least.min(difference));
        let greatest = between.greatest_ns.map_or(difference, |most| most.max(difference));
        (between.least_ns, between.greatest_ns) = (Some(least), Some(greatest));
        let (one, two) = (first.rank, second.rank);
        if between.matched > 1 && (one < between.top.0) != (two < between.top.1) {
            between.reordered += 1;
        }
        if one > between.top.0 {
            between.top = (one, two);
        }
        let place = (first.flow, first.upward);
        if self.spread.len() < HISTOGRAMS || self.spread.contains_key(&place) {
            let [there, back] = self.spread.entry(place).or_insert_with(|| [Histogram::new(), Histogram::new()]);
            there.record((difference - least).unsigned_abs());
            back.record((greatest - difference).unsigned_abs());
        }
    }

    /// Packets of the other tap that this one, being so far, would have shown.
    fn give_up(&mut self, tap: Tap) {
        let reached = self.sides[tap as usize].latest_ns;
        let other = 1 - tap as usize;
        // How much later than the other tap's clock this one's may show a packet, at most as seen.
        let later = match tap {
            Tap::First => -self.least_ns.unwrap_or(0),
            Tap::Second => self.greatest_ns.unwrap_or(0),
        };
        let settled = self.matched >= ENOUGH_MATCHES;
        while let Some(&(time_ns, print)) = self.sides[other].order.front() {
            let crowded = self.sides[other].waiting.len() > MOST_WAITING;
            if !(crowded || settled && time_ns.saturating_add(later).saturating_add(PATIENCE_NS) < reached) {
                break;
            }
            self.sides[other].order.pop_front();
            if let Some(seen) = self.still_waiting(other, print, time_ns) {
                if crowded {
                    self.given_up += 1;
                } else {
                    self.lose(other, &seen);
                }
            }
        }
    }

    /// Takes out a packet by the fingerprint and time it was put in with, if it was not matched meanwhile.
    fn still_waiting(&mut self, side: usize, print: u64, time_ns: i64) -> Option<Seen> {
        let waiting = &mut self.sides[side].waiting;
        // Twins move up in the order of their age: if it still waits, it is the first of them.
        let first = waiting.get(&print)?;
        if first.time_ns == time_ns { take(waiting, print, 0) } else { None }
    }

    /// A packet that only one tap showed.
    fn lose(&mut self, side: usize, seen: &Seen) {
        let own = (seen.flow, seen.upward);
        let (flow, upward) = if side == 0 { own } else { self.names.get(&own).copied().unwrap_or(own) };
        let between = &mut self.flows[flow as usize].1[usize::from(!upward)];
        let only = if side == 0 { &mut between.only_first } else { &mut between.only_second };
        only[usize::from(seen.data)] += 1;
    }

    /// Ends it: what lies between the taps, and what that means for each flow.
    pub fn finish(mut self, from: String, to: String) -> Placed {
        for side in 0..2 {
            while let Some((time_ns, print)) = self.sides[side].order.pop_front() {
                if let Some(seen) = self.still_waiting(side, print, time_ns) {
                    self.lose(side, &seen);
                }
            }
        }
        let mut path = TracePath { from, to, matched: self.matched, given_up: self.given_up, ..TracePath::default() };
        let mut flows = Vec::new();
        let (mut there, mut back) = (Sum::default(), Sum::default());
        for (number, (key, ways)) in self.flows.iter().enumerate() {
            let (up, down) = (&ways[0], &ways[1]);
            // Towards the second tap the difference is greater, by the round trip between the taps.
            let upward_is_there = match (up.least_ns, down.least_ns) {
                (Some(up), Some(down)) => up >= down,
                (Some(up), None) => up >= self.offset(),
                (None, Some(down)) => down < self.offset(),
                (None, None) => true,
            };
            let mut lost = [0; 2];
            for (way, between) in ways.iter().enumerate() {
                let is_there = (way == 0) == upward_is_there;
                let sum = if is_there { &mut there } else { &mut back };
                let spread =
                    self.spread.get(&(number as u32, way == 0)).map(|spread| &spread[usize::from(!is_there)]);
                sum.add(between, is_there, spread);
                lost[way] = if is_there { between.only_first[1] } else { between.only_second[1] };
            }
            flows.push(FlowBetween { key: *key, lost, upward_is_there });
        }
        if let (Some(least), Some(greatest)) = (there.least_ns, back.greatest_ns) {
            path.clock_offset_ns = Some(i64::midpoint(least, greatest));
            path.round_trip_ns = u64::try_from(least - greatest).ok();
        }
        path.forward = there.document();
        path.backward = back.document();
        Placed { path, flows }
    }
}

/// What all flows say of one way between the taps.
#[derive(Default)]
struct Sum {
    matched: u64,
    lost: [u64; 2],
    appeared: u64,
    reordered: u64,
    least_ns: Option<i64>,
    greatest_ns: Option<i64>,
    delays: Option<Histogram>,
}

impl Sum {
    fn add(&mut self, between: &Between, is_there: bool, delays: Option<&Histogram>) {
        let (met, other) = if is_there {
            (between.only_first, between.only_second)
        } else {
            (between.only_second, between.only_first)
        };
        self.matched += between.matched;
        self.lost[0] += met[0];
        self.lost[1] += met[1];
        self.appeared += other[0] + other[1];
        self.reordered += between.reordered;
        self.least_ns = self.least_ns.into_iter().chain(between.least_ns).min();
        self.greatest_ns = self.greatest_ns.into_iter().chain(between.greatest_ns).max();
        if let Some(delays) = delays {
            self.delays.get_or_insert_with(Histogram::new).merge(delays);
        }
    }

    fn document(&self) -> PathDirection {
        let quantile = |share| self.delays.as_ref().and_then(|delays| delays.quantile(share));
        PathDirection {
            matched: self.matched,
            lost_data: self.lost[1],
            lost_other: self.lost[0],
            appeared: self.appeared,
            reordered: self.reordered,
            delay_variation_p50_ns: quantile(0.5),
            delay_variation_p99_ns: quantile(0.99),
            delay_variation_max_ns: self.least_ns.zip(self.greatest_ns).and_then(|(l, g)| u64::try_from(g - l).ok()),
        }
    }
}

/// What a packet is known again by, and whether it carries data. `None` for one that cannot be told from others.
fn fingerprint(packet: &Packet, ends: Option<(Key, bool)>) -> Option<(u64, bool)> {
    let mut hasher = FixedState::default().build_hasher();
    (ends, packet.network.identification).hash(&mut hasher);
    let data = match packet.transport {
        Transport::Tcp(tcp) => {
            (tcp.sequence, tcp.acknowledgement, tcp.flags.0 & !(Flags::ECE.0 | Flags::CWR.0)).hash(&mut hasher);
            (tcp.window, tcp.payload, tcp.options.timestamps, tcp.options.sack.as_slice()).hash(&mut hasher);
            tcp.payload > 0
        }
        // A datagram without an identification is like every other of its length.
        Transport::Udp { payload, .. } if packet.network.identification != 0 => {
            payload.hash(&mut hasher);
            true
        }
        _ => return None,
    };
    Some((hasher.finish(), data))
}

/// Places further on where twins of a fingerprint wait: what is sent twice alike arrives in the order sent.
const TWINS: u64 = 64;

fn twin(print: u64, number: u64) -> u64 {
    print.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Keeps a packet behind its twins.
fn put(waiting: &mut HashMap<u64, Seen, FixedState>, print: u64, seen: Seen) {
    let free = (0..TWINS).map(|number| twin(print, number)).find(|print| !waiting.contains_key(print));
    waiting.insert(free.unwrap_or(print), seen);
}

/// Takes one of the packets of a fingerprint, the oldest being number 0, and moves its younger twins up.
fn take(waiting: &mut HashMap<u64, Seen, FixedState>, print: u64, number: u64) -> Option<Seen> {
    let taken = waiting.remove(&twin(print, number))?;
    for number in number + 1..TWINS {
        let Some(next) = waiting.remove(&twin(print, number)) else { break };
        waiting.insert(twin(print, number - 1), next);
    }
    Some(taken)
}
