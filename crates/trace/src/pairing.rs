//! The same packets at two taps: what was lost between them, what came out of order, and how the delay varied.
//!
//! A packet is known again by what no hop changes: its numbers, flags, options' timestamps, length and IP identification,
//! and its ends unless they are translated on the way. Which tap a packet passes first is told by the clocks' differences
//! themselves: they are greater one way than the other by the round trip between the taps, whatever the clocks say.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use landspeed_wire::capture::{Frame, LATEST_NS};
use landspeed_wire::{Flags, Network, Packet, TcpHeader, Transport, dissect, plain};

use crate::arrivals::{Arrival, Arrivals};
use crate::clocks::Clocks;
use crate::key::Key;
use crate::placed::{Ended, Placed};
use crate::waiting::Waiting;

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

/// Losses listed of a kind.
const MOST_LISTED: usize = 1_000;
/// Matches of a flow kept until it is known which way is which.
const MOST_UNDECIDED: usize = 256;

/// A packet at one tap that the other has not shown yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub time_ns: i64,
    rank: u64,
    flow: u32,
    upward: bool,
    data: bool,
    /// TCP sequence number.
    pub sequence: u32,
    pub payload: u32,
    pub identification: u16,
}

/// One tap.
#[derive(Debug, Default)]
struct Side {
    waiting: Waiting,
    first_ns: Option<i64>,
    latest_ns: i64,
    ended: bool,
}

/// One direction of one flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Between {
    pub matched: u64,
    /// Packets only one tap showed, by tap: without payload, with payload.
    pub only: [[u64; 2]; 2],
    /// The first of those with payload.
    pub listed: [Vec<Seen>; 2],
    /// Packets only one tap showed when the other was not capturing, for all that is known, by tap.
    pub undetermined: [u64; 2],
    /// Second tap's clock minus the first's: least, greatest, latest.
    least_ns: Option<i64>,
    greatest_ns: Option<i64>,
    latest_ns: Option<i64>,
    pub reordered: u64,
    top: (u64, u64),
    /// What was lost in the receiver if this tap is the last before it, by tap.
    arrivals: [Option<Box<Arrivals>>; 2],
    lost_behind: [Vec<Arrival>; 2],
}

/// A flow, its directions (upward first), and which of them is from the first tap to the second, once that is known.
#[derive(Debug)]
struct Flow {
    key: Key,
    ways: [Between; 2],
    upward_is_there: Option<bool>,
    undecided: Vec<(bool, i64, i64)>,
}

/// Two captures side by side.
#[derive(Debug)]
pub struct Pairing {
    sides: [Side; 2],
    flows: Vec<Flow>,
    index: HashMap<Key, u32, FixedState>,
    /// The flow of the last packet.
    latest: Option<(Key, u32)>,
    translated: bool,
    matched: u64,
    given_up: u64,
    least_ns: Option<i64>,
    greatest_ns: Option<i64>,
    ranks: u64,
    clocks: Clocks,
    listed: usize,
    /// What a flow and its direction at the second tap are called at the first, where ends are translated.
    names: HashMap<(u32, bool), (u32, bool), FixedState>,
}

impl Pairing {
    /// Nothing read yet. `translated`: addresses and ports change between the taps.
    pub fn new(translated: bool) -> Self {
        Self {
            sides: Default::default(),
            flows: Vec::new(),
            index: HashMap::default(),
            latest: None,
            translated,
            matched: 0,
            given_up: 0,
            least_ns: None,
            greatest_ns: None,
            ranks: 0,
            clocks: Clocks::new(),
            listed: 0,
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
        let (mut network, mut tcp) = (Network::default(), TcpHeader::default());
        let body = if plain(frame.link, frame.data, &mut network, &mut tcp) {
            Body::Tcp(&tcp)
        } else {
            let Ok(Packet { network: dissected, transport, .. }) = dissect(frame.link, frame.data, frame.original)
            else {
                return;
            };
            network = dissected;
            match transport {
                Transport::Tcp(dissected) => {
                    tcp = dissected;
                    Body::Tcp(&tcp)
                }
                Transport::Udp { source, destination, payload, at } => {
                    let told = (payload as usize).min(DATAGRAM_HEAD);
                    let head = frame.data.get(at..at + told).filter(|head| !head.is_empty());
                    Body::Udp([source, destination], payload, head)
                }
                Transport::Fragment | Transport::Other => return,
            }
        };
        let [source, destination] = body.ports();
        let (key, upward) = Key::of(&network, source, destination);
        let flow = self.flow(key);
        let ends = (!self.translated).then_some((flow, upward));
        let identification = network.identification;
        if let Body::Tcp(tcp) = body {
            self.arrived(tap, flow, upward, tcp, identification, time_ns);
        }
        let Some(print) = fingerprint(identification, body, ends) else { return };
        self.ranks += 1;
        let (sequence, payload, data) = match body {
            Body::Tcp(tcp) => (tcp.sequence, tcp.payload, tcp.payload > 0),
            Body::Udp(_, payload, _) => (0, payload, true),
        };
        let seen = Seen { time_ns, rank: self.ranks, flow, upward, data, sequence, payload, identification };
        if let Some(other) = self.take_best(tap, print, &seen) {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            self.matched(&first, &second);
        } else {
            self.given_up += u64::from(!self.sides[tap as usize].waiting.put(print, seen));
        }
        self.give_up(tap);
    }

    /// The packet of the other tap that this one is: among twins the one whose delay is the most usual, then the oldest. A
    /// copy sent again, without an identification or timestamps, is the twin of the one that was lost.
    fn take_best(&mut self, tap: Tap, print: u64, seen: &Seen) -> Option<Seen> {
        let flows = &self.flows;
        let unusual = |other: &Seen| {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            let between = &flows[first.flow as usize].ways[usize::from(!first.upward)];
            let difference = second.time_ns - first.time_ns;
            let (least, greatest) =
                (between.least_ns.unwrap_or(difference), between.greatest_ns.unwrap_or(difference));
            (least - difference).max(difference - greatest).max(0)
        };
        self.sides[1 - tap as usize].waiting.take_best(print, unusual)
    }

    fn flow(&mut self, key: Key) -> u32 {
        // Trains of one flow are the rule.
        if let Some((latest, number)) = self.latest
            && latest == key
        {
            return number;
        }
        let flows = &mut self.flows;
        let number = *self.index.entry(key).or_insert_with(|| {
            flows.push(Flow { key, ways: Default::default(), upward_is_there: None, undecided: Vec::new() });
            flows.len() as u32 - 1
        });
        self.latest = Some((key, number));
        number
    }

    /// Shows a segment to what follows data behind this tap.
    fn arrived(&mut self, tap: Tap, flow: u32, upward: bool, tcp: &TcpHeader, identification: u16, time_ns: i64) {
        let ways = &mut self.flows[flow as usize].ways;
        if tcp.payload > 0 {
            let arrivals = &mut ways[usize::from(!upward)].arrivals[tap as usize];
            arrivals.get_or_insert_default().data(tcp, identification, time_ns);
        }
        let Between { arrivals, lost_behind, .. } = &mut ways[usize::from(upward)];
        if let Some(arrivals) = &mut arrivals[tap as usize] {
            let lost = &mut lost_behind[tap as usize];
            arrivals.acknowledged(tcp, time_ns, lost);
            lost.truncate(MOST_LISTED);
        }
    }

    fn matched(&mut self, first: &Seen, second: &Seen) {
        let difference = second.time_ns - first.time_ns;
        self.matched += 1;
        if self.translated {
            self.names.insert((second.flow, second.upward), (first.flow, first.upward));
        }
        self.least_ns = Some(self.least_ns.map_or(difference, |least| least.min(difference)));
        self.greatest_ns = Some(self.greatest_ns.map_or(difference, |most| most.max(difference)));
        let flow = &mut self.flows[first.flow as usize];
        let between = &mut flow.ways[usize::from(!first.upward)];
        between.matched += 1;
        let least = between.least_ns.map_or(difference, |least| least.min(difference));
        let greatest = between.greatest_ns.map_or(difference, |most| most.max(difference));
        (between.least_ns, between.greatest_ns) = (Some(least), Some(greatest));
        between.latest_ns = Some(difference);
        let (one, two) = (first.rank, second.rank);
        if between.matched > 1 && (one < between.top.0) != (two < between.top.1) {
            between.reordered += 1;
        }
        if one > between.top.0 {
            between.top = (one, two);
        }
        if let Some(upward_is_there) = flow.upward_is_there {
            self.clocks.matched(first.time_ns, difference, first.upward != upward_is_there);
        } else {
            flow.undecided.push((first.upward, first.time_ns, difference));
            self.decide(first.flow);
        }
    }

    /// Finds out which way a flow's directions go. Towards the second tap the difference is greater, by the round trip
    /// between the taps: that holds whatever the clocks say, of packets that are not far from each other in time.
    fn decide(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let [up, down] = [0, 1].map(|way| flow.ways[way].latest_ns);
        let decided = match (up, down) {
            (Some(up), Some(down)) if up != down => Some(up > down),
            _ => None,
        };
        if decided.is_none() && flow.undecided.len() < MOST_UNDECIDED {
            return;
        }
        let upward_is_there = decided.unwrap_or_else(|| guess(flow, self.clocks.floors()));
        flow.upward_is_there = Some(upward_is_there);
        for (upward, time_ns, difference) in std::mem::take(&mut flow.undecided) {
            self.clocks.matched(time_ns, difference, upward != upward_is_there);
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
        while let Some(time_ns) = self.sides[other].waiting.oldest() {
            let crowded = self.sides[other].waiting.len() > MOST_WAITING;
            if !(crowded || settled && time_ns.saturating_add(later).saturating_add(PATIENCE_NS) < reached) {
                break;
            }
            if let Some(seen) = self.sides[other].waiting.take_oldest() {
                if crowded {
                    self.given_up += 1;
                } else {
                    self.lose(other, &seen, false);
                }
            }
        }
    }

    /// A packet that only one tap showed; at the `end`, maybe because the other's capture was over.
    fn lose(&mut self, side: usize, seen: &Seen, end: bool) {
        let own = (seen.flow, seen.upward);
        let (flow, upward) = if side == 0 { own } else { self.names.get(&own).copied().unwrap_or(own) };
        let outside = self.is_outside(side, seen, (flow, upward), end);
        let between = &mut self.flows[flow as usize].ways[usize::from(!upward)];
        if outside {
            between.undetermined[side] += 1;
            return;
        }
        between.only[side][usize::from(seen.data)] += 1;
        if seen.data && self.listed < 4 * MOST_LISTED && between.listed[side].len() < MOST_LISTED {
            self.listed += 1;
            between.listed[side].push(*seen);
        }
    }

    /// Whether a packet of one tap would have come past the other before its capture began, or after its end, by the delays
    /// seen. What was sent after it and came is a proof that it would have come in time.
    fn is_outside(&self, side: usize, seen: &Seen, (flow, upward): (u32, bool), end: bool) -> bool {
        let other = &self.sides[1 - side];
        let Some(first_ns) = other.first_ns else { return false };
        let between = &self.flows[flow as usize].ways[usize::from(!upward)];
        let least = between.least_ns.or(self.least_ns);
        let Some((least, greatest)) = least.zip(between.greatest_ns.or(self.greatest_ns)) else { return false };
        // By the other tap's clock, at the soonest and at the latest.
        let (soonest, latest) = match side {
            0 => (seen.time_ns.saturating_add(least), seen.time_ns.saturating_add(greatest)),
            _ => (seen.time_ns.saturating_sub(greatest), seen.time_ns.saturating_sub(least)),
        };
        let (top, rank) = if side == 0 { (between.top.0, seen.rank) } else { (between.top.1, seen.rank) };
        soonest < first_ns || end && latest > other.latest_ns && rank > top
    }

    /// Ends it: what lies between the taps, and what that means for each flow.
    pub fn finish(mut self, from: String, to: String) -> Placed {
        for side in 0..2 {
            while self.sides[side].waiting.oldest().is_some() {
                if let Some(seen) = self.sides[side].waiting.take_oldest() {
                    self.lose(side, &seen, true);
                }
            }
        }
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.upward_is_there.is_some() {
                continue;
            }
            let upward_is_there = guess(flow, self.clocks.floors());
            flow.upward_is_there = Some(upward_is_there);
            for (upward, time_ns, difference) in std::mem::take(&mut flow.undecided) {
                self.clocks.matched(time_ns, difference, upward != upward_is_there);
            }
        }
        let names = self.names.iter().map(|(&(second, upward), &first)| ((first.0, first.1), (second, upward)));
        let seconds: HashMap<(u32, bool), (u32, bool)> = names.collect();
        let mut ended = Vec::new();
        for number in 0..self.flows.len() {
            let upward_is_there = self.flows[number].upward_is_there.unwrap_or(true);
            let behind = [true, false].map(|upward| {
                // There it is lost behind the second tap, back behind the first.
                let side = usize::from(upward == upward_is_there);
                let own = (number as u32, upward);
                let (flow, upward) = if side == 1 { seconds.get(&own).copied().unwrap_or(own) } else { own };
                let Between { arrivals, lost_behind, .. } = &mut self.flows[flow as usize].ways[usize::from(!upward)];
                let mut listed = std::mem::take(&mut lost_behind[side]);
                let lost = arrivals[side].as_mut().map(|arrivals| arrivals.finish(&mut listed));
                (lost, listed)
            });
            let Flow { key, ways, .. } = &mut self.flows[number];
            ended.push(Ended { key: *key, ways: std::mem::take(ways), upward_is_there, behind });
        }
        Placed::new(from, to, (self.matched, self.given_up), ended, self.clocks)
    }
}

/// Which way a flow goes whose packets passed in one direction only, or without any delay.
fn guess(flow: &Flow, floors: [Option<i64>; 2]) -> bool {
    let [up, down] = &flow.ways;
    let upward = up.matched >= down.matched;
    let difference = if upward { up.least_ns } else { down.least_ns };
    let there = match (difference, floors) {
        // Other flows tell where the clocks' difference lies.
        (Some(difference), [Some(there), Some(back)]) => difference >= i64::midpoint(there, back),
        // The sender's capture is named first, and most packets come from the sender.
        _ => true,
    };
    upward == there
}

/// What of a packet tells it from others.
#[derive(Debug, Clone, Copy)]
enum Body<'a> {
    /// A segment.
    Tcp(&'a TcpHeader),
    /// A datagram: ports, payload, what it begins with if that was captured.
    Udp([u16; 2], u32, Option<&'a [u8]>),
}

impl Body<'_> {
    fn ports(self) -> [u16; 2] {
        match self {
            Self::Tcp(tcp) => [tcp.source, tcp.destination],
            Self::Udp(ports, ..) => ports,
        }
    }
}

/// What a packet is known again by: `ends` are its flow and direction, where those are the same at both taps. `None` for one
/// that cannot be told from others.
#[inline]
fn fingerprint(identification: u16, body: Body<'_>, ends: Option<(u32, bool)>) -> Option<u64> {
    let mut hasher = FixedState::default().build_hasher();
    let ends = ends.map_or(0, |(flow, upward)| (u64::from(flow) << 1 | u64::from(upward)) + 1);
    hasher.write_u64(ends << 16 | u64::from(identification));
    match body {
        Body::Tcp(tcp) => {
            let flags = u64::from(tcp.flags.0 & !(Flags::ECE.0 | Flags::CWR.0));
            hasher.write_u64(u64::from(tcp.sequence) << 32 | u64::from(tcp.acknowledgement));
            hasher.write_u64(flags << 48 | u64::from(tcp.window) << 32 | u64::from(tcp.payload));
            if let Some((value, echo)) = tcp.options.timestamps {
                hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
            }
            for &(from, to) in tcp.options.sack.as_slice() {
                hasher.write_u64(u64::from(from) << 32 | u64::from(to));
            }
        }
        Body::Udp(_, payload, head) => {
            hasher.write_u64(u64::from(payload));
            // IPv6 has no identification: what is in it has to tell it, of which both taps must have as much. Its checksum
            // does not: a host that leaves it to its interface shows another one.
            if identification == 0 {
                hasher.write(head?);
            }
        }
    }
    Some(hasher.finish())
}

/// Bytes of a datagram by which it is known again. Sequence numbers are in them, and the least that captures keep has them.
const DATAGRAM_HEAD: usize = 16;
