//! Matching of packets at two taps: losses between them, reordering, and delay.
//!
//! A packet is recognised by what no hop changes: sequence numbers, flags, TCP timestamps, length and IP
//! identification, and addresses and ports unless a NAT between the taps rewrites them. The clock differences
//! show which tap a packet passes first: they are greater in one direction than in the other by the RTT between
//! the taps, whatever the clock offset.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use landspeed_wire::capture::{Frame, MAX_TIMESTAMP_NS};
use landspeed_wire::{Network, Packet, Reassembler, TcpHeader, Transport, dissect, plain};

use crate::clocks::Clocks;
use crate::copies::{Candidate, Copies, Verdict};
use crate::key::Key;
use crate::lifetime::{LIFECYCLE_FLAGS, Lifetime};
use crate::placed::{MatchedDirection, PairedFlow, ReceiverLosses, TapComparison, Taps};
use crate::print::{Body, DATAGRAM_HEAD, fingerprint};
use crate::waiting::{TapPacket, UnmatchedPackets};

/// A packet counts as lost when one sent this much later has passed the other tap, nanoseconds.
const MATCH_TIMEOUT_NS: i64 = 1_000_000_000;
/// Change of the clock difference between two packets that means a clock was set, nanoseconds: no queue fills
/// that fast.
const JUMP_NS: i64 = 250_000_000;
/// Decrease of the first capture's time between two frames that means its clock was set back, nanoseconds.
const SET_BACK_NS: i64 = 1_000_000;
/// Maximum number of such steps followed.
const MAX_SET_BACK: usize = 64;
/// Number of packets of each tap examined for copies.
const LOOK_FOR_COPIES: u64 = 16_384;
/// Time by which the first capture is read ahead, nanoseconds.
const READ_AHEAD_NS: i64 = 50_000_000;
/// Maximum number of unmatched packets kept per tap. Beyond it, the oldest are given up and counted as such.
const MAX_WAITING: usize = 4_000_000;
/// Number of matches until which the captures are read in step from their beginnings.
const MIN_MATCHES: u64 = 16;

/// One of the two taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tap {
    /// The tap named first.
    First,
    /// The tap named second.
    Second,
}

/// Maximum number of losses listed of a kind.
const MAX_LISTED: usize = 1_000;
/// Maximum number of matches of a flow kept until its forward direction is known.
const MAX_UNDECIDED: usize = 256;

/// State of one tap.
#[derive(Debug, Default)]
struct TapState {
    waiting: UnmatchedPackets,
    first_ns: Option<i64>,
    /// Timestamp of the latest frame; it decreases when the clock is set back.
    now_ns: i64,
    /// Timestamp of the latest matched packet, and (`jumped_ns`) of the latest clock step.
    matched_ns: i64,
    jumped_ns: Option<i64>,
    frames: u32,
    copies: Copies<(u64, TapPacket)>,
    fragments: Reassembler,
    ended: bool,
}

/// A flow, its directions (upward first), and whether upward is from the first tap to the second, once known.
#[derive(Debug)]
struct Flow {
    key: Key,
    /// Initial sequence number of the client, once known.
    client: Option<u32>,
    first_ns: i64,
    directions: [MatchedDirection; 2],
    upward_is_forward: Option<bool>,
    undecided: Vec<(bool, i64, i64)>,
}

/// A four-tuple, and the connections that used it.
#[derive(Debug, Default)]
struct FourTuple {
    flows: Vec<u32>,
    /// The current connection at each tap, and its progress there.
    now: [Option<(u32, Lifetime)>; 2],
}

/// Two captures being matched.
#[derive(Debug)]
pub struct Pairing {
    sides: [TapState; 2],
    flows: Vec<Flow>,
    tuples: Vec<FourTuple>,
    index: HashMap<Key, u32, FixedState>,
    /// The four-tuple of the last packet.
    latest: Option<(Key, u32)>,
    translated: bool,
    matched: u64,
    given_up: u64,
    /// Clock differences as in [`MatchedDirection`], over all flows.
    began: Option<(i64, i64)>,
    span: Option<(i64, i64)>,
    /// The second clock minus the first at the latest match, delay included.
    difference_ns: i64,
    ranks: u64,
    /// Steps back of the first clock: rank from which each applies, and total so far.
    set_back: Vec<(u64, i64)>,
    clocks: Clocks,
    listed: usize,
    /// With `translated`: flow and direction at the second tap, to those at the first.
    translations: HashMap<(u32, bool), (u32, bool), FixedState>,
}

impl Pairing {
    /// Starts the matching. `translated`: addresses and ports may change between the taps (NAT).
    pub fn new(translated: bool) -> Self {
        Self {
            sides: [(); 2].map(|()| TapState { copies: Copies::new(LOOK_FOR_COPIES), ..TapState::default() }),
            flows: Vec::new(),
            tuples: Vec::new(),
            index: HashMap::default(),
            latest: None,
            translated,
            matched: 0,
            given_up: 0,
            began: None,
            span: None,
            difference_ns: 0,
            ranks: 0,
            set_back: Vec::new(),
            clocks: Clocks::new(),
            listed: 0,
            translations: HashMap::default(),
        }
    }

    /// Returns the tap whose next frame is due, so that both stay at the same time; `None` when both have ended.
    pub fn next_tap(&self) -> Option<Tap> {
        let [first, second] = &self.sides;
        match (first.ended, second.ended) {
            (true, true) => return None,
            (true, false) => return Some(Tap::Second),
            (false, true) => return Some(Tap::First),
            (false, false) => {}
        }
        let progress = |side: &TapState| side.first_ns.map(|begun| side.now_ns - begun);
        let (Some(one), Some(two)) = (progress(first), progress(second)) else {
            return Some(if first.first_ns.is_none() { Tap::First } else { Tap::Second });
        };
        let settled = self.matched >= MIN_MATCHES;
        let behind =
            if settled { (second.now_ns - first.now_ns).saturating_sub(self.difference_ns) } else { two - one };
        // The first tap leads, so that retransmits are known before they pass the second tap.
        Some(if behind.saturating_add(READ_AHEAD_NS) >= 0 { Tap::First } else { Tap::Second })
    }

    /// Marks the end of a tap's capture.
    pub fn end(&mut self, tap: Tap) {
        self.sides[tap as usize].ended = true;
    }

    /// Matches the next frame of a tap.
    pub fn frame(&mut self, tap: Tap, frame: &Frame<'_>) {
        let time_ns = frame.time_ns.min(MAX_TIMESTAMP_NS) as i64;
        let side = &mut self.sides[tap as usize];
        if tap == Tap::First
            && side.now_ns.saturating_sub(time_ns) > SET_BACK_NS
            && self.set_back.len() < MAX_SET_BACK
        {
            let before_ns = self.set_back.last().map_or(0, |(_, total_ns)| *total_ns);
            self.set_back.push((self.ranks, before_ns.saturating_add(side.now_ns - time_ns)));
        }
        side.first_ns.get_or_insert(time_ns);
        side.now_ns = time_ns;
        side.frames = side.frames.saturating_add(1);
        let (mut network, mut tcp) = (Network::default(), TcpHeader::default());
        let body = if plain(frame.link, frame.data, &mut network, &mut tcp) {
            Body::Tcp(&tcp)
        } else {
            let packet = dissect(frame.link, frame.data, frame.original).ok();
            let packet = packet.and_then(|packet| side.fragments.add(packet, time_ns.max(0).unsigned_abs()));
            let Some(Packet { network: dissected, transport, .. }) = packet else { return };
            network = dissected;
            match transport {
                Transport::Tcp(dissected) => {
                    tcp = dissected;
                    Body::Tcp(&tcp)
                }
                Transport::Udp { source, destination, payload, at } => {
                    let length = (payload as usize).min(DATAGRAM_HEAD);
                    let head = frame.data.get(at..at + length).filter(|head| !head.is_empty());
                    Body::Udp([source, destination], payload, head)
                }
                Transport::Icmp(_) | Transport::Fragment | Transport::Other => return,
            }
        };
        let [source, destination] = body.ports();
        let (key, upward) = Key::of(&network, source, destination);
        let tuple = self.tuple(key);
        let ends = if self.translated { 0 } else { (u64::from(tuple) << 1 | u64::from(upward)) + 1 };
        let identification = network.identification;
        let print = fingerprint(identification, body, ends);
        let verdict = match print {
            Some(print) if self.sides[tap as usize].copies.is_looking() => {
                self.judge(tap, print, (body, key, upward, identification), time_ns)
            }
            _ => Verdict::Original,
        };
        if verdict == Verdict::Copy {
            return;
        }
        let flow = self.flow(tap, tuple, body, upward, time_ns);
        if let Body::Tcp(tcp) = body
            && verdict == Verdict::Original
        {
            self.arrived(tap, flow, upward, tcp, identification, time_ns);
        }
        let Some(print) = print else { return };
        self.ranks += 1;
        let (sequence, payload, data) = match body {
            Body::Tcp(tcp) => (tcp.sequence, tcp.payload, tcp.payload > 0),
            Body::Udp(_, payload, _) => (0, payload, true),
        };
        let frame = self.sides[tap as usize].frames;
        if verdict == Verdict::Held {
            let rank = self.ranks;
            let seen = TapPacket { time_ns, rank, flow, upward, data, sequence, payload, identification, frame };
            self.sides[tap as usize].copies.hold(key.mixed(), upward, (print, seen));
            return;
        }
        let between = &mut self.flows[flow as usize].directions[usize::from(!upward)];
        between.passed[tap as usize] += 1;
        between.data_bytes += u64::from(payload);
        let seen =
            TapPacket { time_ns, rank: self.ranks, flow, upward, data, sequence, payload, identification, frame };
        self.find_match(tap, print, seen);
    }

    /// Matches a packet with one of the other tap, or lets it wait for one.
    fn find_match(&mut self, tap: Tap, print: u64, seen: TapPacket) {
        if let Some(other) = self.take_best_match(tap, print, &seen) {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            self.matched(&first, &second);
            self.give_up();
        } else {
            self.sides[tap as usize].waiting.put(print, seen);
            if self.sides[tap as usize].waiting.len() > MAX_WAITING {
                self.give_up();
            }
        }
    }

    /// Returns whether a packet is a mirror port's copy of an earlier one.
    fn judge(
        &mut self,
        tap: Tap,
        print: u64,
        (body, key, upward, identification): (Body<'_>, Key, bool, u16),
        time_ns: i64,
    ) -> Verdict {
        let has_ip_id = identification != 0;
        let Some(has_content) = body.has_content(has_ip_id) else { return Verdict::Original };
        let (flow, time_ns) = (key.mixed(), time_ns.max(0).unsigned_abs());
        let candidate = Candidate { print, flow, time_ns, upward, has_ip_id, has_content };
        self.sides[tap as usize].copies.judge(candidate)
    }

    /// Takes the matching packet of the other tap: of identical ones the one with the most usual delay, then the
    /// oldest. A retransmit without IP identification or timestamps is identical to the lost packet.
    fn take_best_match(&mut self, tap: Tap, print: u64, seen: &TapPacket) -> Option<TapPacket> {
        let flows = &self.flows;
        let unusual = |other: &TapPacket| {
            let (first, second) = if tap == Tap::First { (seen, other) } else { (other, seen) };
            let between = &flows[first.flow as usize].directions[usize::from(!first.upward)];
            let difference = second.time_ns - first.time_ns;
            let (least, greatest) = between.span.unwrap_or((difference, difference));
            (least - difference).max(difference - greatest).max(0)
        };
        self.sides[1 - tap as usize].waiting.take_best_match(print, unusual)
    }

    fn tuple(&mut self, key: Key) -> u32 {
        // Packets of one flow usually come in trains.
        if let Some((latest, number)) = self.latest
            && latest == key
        {
            return number;
        }
        let tuples = &mut self.tuples;
        let number = *self.index.entry(key).or_insert_with(|| {
            tuples.push(FourTuple::default());
            tuples.len() as u32 - 1
        });
        self.latest = Some((key, number));
        number
    }

    /// Returns the connection that a packet of a tap belongs to.
    #[inline]
    fn flow(&mut self, tap: Tap, tuple: u32, body: Body<'_>, upward: bool, time_ns: i64) -> u32 {
        let turns = matches!(body, Body::Tcp(tcp) if tcp.flags.has(LIFECYCLE_FLAGS));
        match self.tuples[tuple as usize].now[tap as usize] {
            Some((flow, _)) if !turns => flow,
            _ => self.find_flow(tap, tuple, body, upward, time_ns),
        }
    }

    /// Finds or creates the connection of a packet that may open a new one. Both taps identify it by the client's
    /// initial sequence number.
    #[cold]
    fn find_flow(&mut self, tap: Tap, tuple: u32, body: Body<'_>, upward: bool, time_ns: i64) -> u32 {
        let Some((key, _)) = self.latest else { return 0 };
        let FourTuple { flows: own, now } = &mut self.tuples[tuple as usize];
        let now = &mut now[tap as usize];
        let client = match (&mut *now, body) {
            (Some((flow, lifetime)), Body::Tcp(tcp)) => {
                if !lifetime.opens_new_connection(tcp, upward) {
                    return *flow;
                }
                lifetime.client()
            }
            (Some((flow, _)), Body::Udp(..)) => return *flow,
            (None, Body::Tcp(tcp)) => Lifetime::of(tcp, upward).client(),
            (None, Body::Udp(..)) => None,
        };
        let flows = &mut self.flows;
        // At its first packet, one tap may be in the middle of a connection of which the other has the beginning.
        let same = |number: &&u32| {
            let known = flows[**number as usize].client;
            known == client || now.is_none() && (known.is_none() || client.is_none())
        };
        let found = own.iter().find(same).copied();
        let number = found.unwrap_or_else(|| {
            let (directions, undecided) = (Default::default(), Vec::new());
            flows.push(Flow { key, client, first_ns: time_ns, directions, upward_is_forward: None, undecided });
            flows.len() as u32 - 1
        });
        if found.is_none() {
            own.push(number);
        }
        let flow = &mut flows[number as usize];
        flow.client = flow.client.or(client);
        if tap == Tap::First {
            flow.first_ns = time_ns;
        }
        let lifetime = match (&*now, body) {
            (Some((_, lifetime)), _) => *lifetime,
            (None, Body::Tcp(tcp)) => Lifetime::of(tcp, upward),
            (None, Body::Udp(..)) => Lifetime::default(),
        };
        *now = Some((number, lifetime));
        number
    }

    /// Passes a segment to the analysis of arrivals after this tap.
    fn arrived(&mut self, tap: Tap, flow: u32, upward: bool, tcp: &TcpHeader, identification: u16, time_ns: i64) {
        let frame = u64::from(self.sides[tap as usize].frames);
        let directions = &mut self.flows[flow as usize].directions;
        if tcp.payload > 0 {
            let arrivals = &mut directions[usize::from(!upward)].arrivals[tap as usize];
            arrivals.get_or_insert_default().data(tcp, identification, time_ns, frame);
        }
        let MatchedDirection { arrivals, lost_after, .. } = &mut directions[usize::from(upward)];
        if let Some(arrivals) = &mut arrivals[tap as usize] {
            let lost = &mut lost_after[tap as usize];
            arrivals.acknowledged(tcp, time_ns, lost);
            lost.truncate(MAX_LISTED);
        }
    }

    fn matched(&mut self, first: &TapPacket, second: &TapPacket) {
        let difference = second.time_ns - first.time_ns;
        self.matched += 1;
        if self.translated {
            self.translations.insert((second.flow, second.upward), (first.flow, first.upward));
        }
        self.difference_ns = difference;
        self.sides[0].matched_ns = first.time_ns;
        self.sides[1].matched_ns = second.time_ns;
        let flow = &mut self.flows[first.flow as usize];
        let between = &mut flow.directions[usize::from(!first.upward)];
        between.matched += 1;
        let jumped = between.latest_ns.is_some_and(|latest| (difference - latest).abs() > JUMP_NS);
        if jumped {
            (between.began, between.span) = (between.began.or(between.span), None);
            if self.sides[0].jumped_ns != Some(first.time_ns) {
                (self.began, self.span) = (self.began.or(self.span), None);
                self.sides[0].jumped_ns = Some(first.time_ns);
                self.sides[1].jumped_ns = Some(second.time_ns);
            }
        }
        let widened = |span: Option<(i64, i64)>| {
            let (least, greatest) = span.unwrap_or((difference, difference));
            Some((least.min(difference), greatest.max(difference)))
        };
        (between.span, self.span) = (widened(between.span), widened(self.span));
        between.latest_ns = Some(difference);
        between.first_ranks.get_or_insert((first.rank, second.rank));
        let (one, two) = (first.rank, second.rank);
        if between.matched > 1 && (one < between.last_ranks.0) != (two < between.last_ranks.1) {
            between.reordered += 1;
        }
        if one > between.last_ranks.0 {
            between.last_ranks = (one, two);
        }
        // Continue as if the first clock had not been set back: repeated times would mix packets before and after the
        // step.
        let set_back = self.set_back.iter().rev().find(|(rank, _)| *rank < first.rank);
        let time_ns = first.time_ns.saturating_add(set_back.map_or(0, |(_, total_ns)| *total_ns));
        if let Some(upward_is_forward) = flow.upward_is_forward {
            self.clocks.matched(time_ns, difference, first.upward != upward_is_forward);
        } else {
            flow.undecided.push((first.upward, time_ns, difference));
            self.determine_forward(first.flow);
        }
    }

    /// Determines the forward direction of a flow. Towards the second tap the clock difference is greater, by the RTT
    /// between the taps: true for any clock offset, if the packets are close in time.
    fn determine_forward(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let [up, down] = [0, 1].map(|direction| flow.directions[direction].latest_ns);
        let decided = match (up, down) {
            (Some(up), Some(down)) if up != down => Some(up > down),
            _ => None,
        };
        if decided.is_none() && flow.undecided.len() < MAX_UNDECIDED {
            return;
        }
        let upward_is_forward = decided.unwrap_or_else(|| guess(flow, self.clocks.floors()));
        flow.upward_is_forward = Some(upward_is_forward);
        for (upward, time_ns, difference) in std::mem::take(&mut flow.undecided) {
            self.clocks.matched(time_ns, difference, upward != upward_is_forward);
        }
    }

    /// Gives up packets that the other tap should have captured by now: it has captured later ones, by the clock of
    /// their tap.
    #[inline]
    fn give_up(&mut self) {
        // The directions differ by the RTT.
        let spread = self.span.map_or(0, |(least, greatest)| greatest - least).min(10 * MATCH_TIMEOUT_NS);
        for tap in 0..2 {
            let side = &self.sides[tap];
            let settled = self.matched >= MIN_MATCHES
                && side
                    .jumped_ns
                    .is_none_or(|jumped_ns| side.matched_ns > jumped_ns.saturating_add(MATCH_TIMEOUT_NS));
            let until_ns = side.matched_ns.saturating_sub(MATCH_TIMEOUT_NS + spread);
            while let Some(time_ns) = self.sides[tap].waiting.oldest() {
                let crowded = self.sides[tap].waiting.len() > MAX_WAITING;
                if !(crowded || settled && time_ns < until_ns) {
                    break;
                }
                if let Some(seen) = self.sides[tap].waiting.take_oldest() {
                    if crowded {
                        self.given_up += 1;
                    } else {
                        self.count_unmatched(tap, &seen, false);
                    }
                }
            }
        }
    }

    /// Counts a packet at one tap only as lost, or as undetermined if the other tap was not capturing.
    fn count_unmatched(&mut self, side: usize, seen: &TapPacket, end: bool) {
        let own = (seen.flow, seen.upward);
        let (flow, upward) = if side == 0 { own } else { self.translations.get(&own).copied().unwrap_or(own) };
        let outside = self.is_outside_capture(side, seen, (flow, upward), end);
        let between = &mut self.flows[flow as usize].directions[usize::from(!upward)];
        if outside {
            between.undetermined[side] += 1;
            return;
        }
        between.only[side][usize::from(seen.data)] += 1;
        if seen.data && self.listed < 4 * MAX_LISTED && between.listed[side].len() < MAX_LISTED {
            self.listed += 1;
            between.listed[side].push(*seen);
        }
    }

    /// Returns whether a packet of one tap would have passed the other before its capture began, or after its end, by
    /// the delays seen. A match of an earlier packet excludes the first, of a later one the second.
    fn is_outside_capture(&self, side: usize, seen: &TapPacket, (flow, upward): (u32, bool), end: bool) -> bool {
        let other = &self.sides[1 - side];
        let Some(first_ns) = other.first_ns else { return false };
        let between = &self.flows[flow as usize].directions[usize::from(!upward)];
        let began = between.began.or(between.span).or(self.began).or(self.span);
        let Some((began, span)) = began.zip(between.span.or(self.span)) else { return false };
        // Earliest and latest time by the other tap's clock.
        let (soonest, latest) = match side {
            0 => (seen.time_ns.saturating_add(began.0), seen.time_ns.saturating_add(span.1)),
            _ => (seen.time_ns.saturating_sub(began.1), seen.time_ns.saturating_sub(span.0)),
        };
        let own = |(first, second): (u64, u64)| if side == 0 { first } else { second };
        let (first_ranks, last_ranks) = (between.first_ranks.map_or(u64::MAX, own), own(between.last_ranks));
        soonest < first_ns && seen.rank < first_ranks || end && latest > other.now_ns && seen.rank > last_ranks
    }

    /// Finishes the matching. Returns the losses and delays between the taps and of each flow.
    pub fn finish(mut self, from: String, to: String) -> TapComparison {
        for tap in [Tap::First, Tap::Second] {
            // Packets that the network duplicated before this tap.
            for (print, seen) in self.sides[tap as usize].copies.release() {
                let between = &mut self.flows[seen.flow as usize].directions[usize::from(!seen.upward)];
                between.passed[tap as usize] += 1;
                between.data_bytes += u64::from(seen.payload);
                self.find_match(tap, print, seen);
            }
        }
        for side in 0..2 {
            while self.sides[side].waiting.oldest().is_some() {
                if let Some(seen) = self.sides[side].waiting.take_oldest() {
                    self.count_unmatched(side, &seen, true);
                }
            }
        }
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.upward_is_forward.is_some() {
                continue;
            }
            let upward_is_forward = guess(flow, self.clocks.floors());
            flow.upward_is_forward = Some(upward_is_forward);
            for (upward, time_ns, difference) in std::mem::take(&mut flow.undecided) {
                self.clocks.matched(time_ns, difference, upward != upward_is_forward);
            }
        }
        let translations =
            self.translations.iter().map(|(&(second, upward), &first)| ((first.0, first.1), (second, upward)));
        let seconds: HashMap<(u32, bool), (u32, bool)> = translations.collect();
        let mut ended = Vec::new();
        for number in 0..self.flows.len() {
            let upward_is_forward = self.flows[number].upward_is_forward.unwrap_or(true);
            let behind = [true, false].map(|upward| {
                // Forward packets are lost after the second tap, reverse ones after the first.
                let side = usize::from(upward == upward_is_forward);
                let own = (number as u32, upward);
                let (flow, upward) = if side == 1 { seconds.get(&own).copied().unwrap_or(own) } else { own };
                let MatchedDirection { arrivals, lost_after, .. } =
                    &mut self.flows[flow as usize].directions[usize::from(!upward)];
                let mut listed = std::mem::take(&mut lost_after[side]);
                let totals = arrivals[side].as_mut().map(|arrivals| arrivals.finish(&mut listed));
                ReceiverLosses { totals, listed }
            });
            let Flow { key, client, first_ns, directions, .. } = &mut self.flows[number];
            let (client, first_ns) = (*client, *first_ns);
            ended.push(PairedFlow {
                key: *key,
                client,
                first_ns,
                directions: std::mem::take(directions),
                upward_is_forward,
                behind,
            });
        }
        let copies = [0, 1].map(|side| self.sides[side].copies.ignored());
        let taps = Taps { from, to, translated: self.translated, copies };
        TapComparison::new(taps, (self.matched, self.given_up), ended, self.clocks)
    }
}

/// Guesses the forward direction of a flow with packets in one direction only, or without delay.
fn guess(flow: &Flow, floors: [Option<i64>; 2]) -> bool {
    let [up, down] = &flow.directions;
    let upward = up.matched >= down.matched;
    let difference = if upward { up.span } else { down.span }.map(|(least, _)| least);
    let forward = match (difference, floors) {
        // Other flows bound the clock offset.
        (Some(difference), [Some(forward), Some(reverse)]) => difference >= i64::midpoint(forward, reverse),
        // The sender's capture is named first, and most packets come from the sender.
        _ => true,
    };
    upward == forward
}
