//! Data after the last tap before its receiver: which packets the receiver host dropped.
//!
//! A packet whose numbers pass again before they are acknowledged was dropped behind the tap, or came twice. The receiver's
//! acknowledgements say which. It takes packets in the order they passed, so an acknowledgement that was caused by a later
//! packet and still lacks this one proves that it was dropped; a report of what came twice (DSACK, RFC 2883) proves the
//! opposite. Where neither is there, the answer is open: receivers without DSACK say nothing of copies, and Linux leaves
//! reports out while it compresses acknowledgements.

use std::collections::VecDeque;

use landspeed_wire::{Flags, TcpHeader};

use crate::sequence::{anchor, unwrap};

/// Packets of a direction remembered at once: more are not in flight on any path.
const MOST: usize = 1 << 18;
/// Ranges held by the receiver that are remembered.
const MAX_HELD: usize = 256;
/// Data that may be recorded after what it caused, bytes.
const MAX_AHEAD: u64 = 1 << 20;
/// A report of what came twice follows at once; after this long, none will, nanoseconds.
const PATIENCE_NS: i64 = 1_000_000_000;
/// A receiver host takes a packet within this time after it passed its tap, nanoseconds.
const TAKEN_NS: i64 = 10_000_000;
/// Linux delays no acknowledgement for longer (`TCP_DELACK_MAX`), nanoseconds.
const DELAYED_NS: i64 = 200_000_000;

/// A data packet after the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    start: u64,
    end: u64,
    /// When it passed, by the tap's clock.
    pub time_ns: i64,
    /// IP identification.
    pub identification: u16,
    /// Whether the receiver provably lacks it.
    lacked: bool,
    /// Number of its frame, from 1.
    pub frame: u64,
    /// In the order data passed.
    rank: u64,
}

impl Arrival {
    /// Its first sequence number.
    pub fn sequence(&self) -> u32 {
        self.start as u32
    }

    /// Payload, bytes.
    pub fn payload(&self) -> u32 {
        (self.end - self.start) as u32
    }

    fn meets(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// A packet whose data passed again.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    arrival: Arrival,
    /// When the next copy passed.
    repeat_ns: i64,
    /// Whether a receiver that has it would report the next copy at once: it reports copies, and holds nothing out of order,
    /// for which Linux compresses acknowledgements.
    would_report: bool,
}

/// One direction of a connection at the tap.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// Not acknowledged yet, by their numbers.
    waiting: VecDeque<Arrival>,
    suspects: Vec<Suspect>,
    /// What the receiver holds above what it acknowledges.
    held: Vec<(u64, u64)>,
    next: u64,
    acked: u64,
    ranks: u64,
    /// The receiver has taken what passed up to this one.
    taken: u64,
    latest_ack_ns: Option<i64>,
    window: Option<u16>,
    /// Whether selective acknowledgements were seen, and whether some may be missing from the latest.
    selective: bool,
    incomplete: bool,
    /// Whether the receiver sends DSACKs.
    reports: bool,
    lost: u64,
    undetermined: u64,
}

impl Arrivals {
    /// Data passes towards the receiver, in the frame of a number.
    pub fn data(&mut self, tcp: &TcpHeader, identification: u16, time_ns: i64, frame: u64) {
        if self.next == 0 {
            self.next = anchor(tcp.sequence);
        }
        let start = unwrap(tcp.sequence, self.next) + u64::from(tcp.flags.has(Flags::SYN));
        let end = start + u64::from(tcp.payload);
        self.ranks += 1;
        // A byte sent into a closed window is a probe, which the receiver need not take.
        let probe = tcp.payload == 1 && self.window == Some(0);
        if start >= end || probe {
            return;
        }
        if end <= self.acked || self.holds(start, end) {
            if start >= self.next {
                // Recorded after what it caused, as captures of several queues have it.
                self.next = end;
                self.taken = self.taken.max(self.ranks);
            }
            return;
        }
        let rank = self.ranks;
        let arrival = Arrival { start, end, time_ns, identification, lacked: false, frame, rank };
        if start >= self.next {
            self.next = end;
            self.waiting.push_back(arrival);
        } else {
            self.next = self.next.max(end);
            self.repeated(arrival);
        }
        if self.waiting.len() > MOST {
            self.waiting.pop_front();
        }
    }

    fn holds(&self, start: u64, end: u64) -> bool {
        self.held.iter().any(|&(from, to)| from <= start && end <= to)
    }

    /// Numbers from before: their earlier copies are suspects.
    #[cold]
    fn repeated(&mut self, arrival: Arrival) {
        let from = self.waiting.partition_point(|other| other.end <= arrival.start);
        let mut to = from;
        while let Some(&other) = self.waiting.get(to).filter(|other| other.start < arrival.end) {
            let repeat_ns = arrival.time_ns;
            // Whatever arrives is acknowledged after that long at the latest.
            let silent = self.latest_ack_ns.is_none_or(|ack_ns| ack_ns < other.time_ns);
            let lacked = other.lacked || silent && repeat_ns - other.time_ns >= DELAYED_NS;
            let would_report = self.reports && self.held.is_empty() && !self.incomplete;
            self.suspects.push(Suspect { arrival: Arrival { lacked, ..other }, repeat_ns, would_report });
            to += 1;
        }
        self.waiting.drain(from..to);
        self.waiting.insert(from, arrival);
    }

    /// The receiver acknowledges, seen on its way from it. Losses that are certain by now go to `lost`.
    #[inline]
    pub fn acknowledged(&mut self, tcp: &TcpHeader, time_ns: i64, lost: &mut Vec<Arrival>) {
        if self.next == 0 || !tcp.flags.has(Flags::ACK) {
            return;
        }
        let ack = unwrap(tcp.acknowledgement, self.next);
        let repeats = ack == self.acked && tcp.payload == 0 && self.window == Some(tcp.window);
        self.window = Some(tcp.window);
        self.latest_ack_ns = Some(time_ns);
        if ack > self.acked {
            self.acked = ack;
            while let Some(&arrival) = self.waiting.front().filter(|arrival| arrival.end <= ack) {
                if self.suspects.is_empty() {
                    self.taken = self.taken.max(arrival.rank);
                } else {
                    self.take(&arrival);
                }
                self.waiting.pop_front();
            }
        } else if !repeats && tcp.options.sack.as_slice().is_empty() && self.suspects.is_empty() {
            return;
        }
        let plain = tcp.options.sack.as_slice().is_empty() && !tcp.options.incomplete;
        let lacks_none = |first: &Arrival| first.rank > self.taken && time_ns - first.time_ns < TAKEN_NS;
        if plain && self.suspects.is_empty() && self.waiting.front().is_none_or(lacks_none) {
            if repeats && !self.selective {
                self.taken = (self.taken + 1).min(self.ranks);
            }
            self.held.clear();
            self.incomplete = false;
            return;
        }
        self.compare(tcp, ack, repeats, time_ns, lost);
    }

    /// The receiver has a packet: of several copies the first one that it may have taken.
    fn take(&mut self, arrival: &Arrival) {
        let copies = self.suspects.iter().map(|suspect| &suspect.arrival);
        let copies = copies.filter(|copy| !copy.lacked && copy.meets(arrival.start, arrival.end));
        let first = copies.map(|copy| copy.rank).min().unwrap_or(arrival.rank);
        self.taken = self.taken.max(first.min(arrival.rank));
    }

    /// Compares what passed with what an acknowledgement says the receiver has.
    #[cold]
    fn compare(&mut self, tcp: &TcpHeader, ack: u64, repeats: bool, time_ns: i64, lost: &mut Vec<Arrival>) {
        let mut blocks = tcp.options.sack.as_slice();
        let most = if tcp.options.timestamps.is_some() { 3 } else { 4 };
        let full = blocks.len() >= most;
        if self.reported(blocks, ack) {
            blocks = &blocks[1..];
        }
        self.selective |= !blocks.is_empty();
        self.incomplete = tcp.options.incomplete || full || self.incomplete && !blocks.is_empty();
        self.held.retain(|&(_, to)| to > ack);
        if blocks.is_empty() && !tcp.options.incomplete {
            self.held.clear();
        }
        for &(from, to) in blocks {
            self.hold(unwrap(from, self.next), unwrap(to, self.next));
        }
        if repeats && !self.selective {
            // Each is caused by one packet out of order, at least.
            self.taken = (self.taken + 1).min(self.ranks);
        }
        self.mark(ack, time_ns, tcp.options.incomplete);
        if !self.suspects.is_empty() {
            self.settle(time_ns - PATIENCE_NS, lost);
        }
    }

    /// The receiver holds a range.
    fn hold(&mut self, mut from: u64, mut to: u64) {
        // What was not seen yet may be recorded late.
        if from >= to || to > self.next + MAX_AHEAD {
            return;
        }
        let first = self.waiting.partition_point(|arrival| arrival.start < from);
        let mut last = first;
        while let Some(&arrival) = self.waiting.get(last).filter(|arrival| arrival.end <= to) {
            self.take(&arrival);
            last += 1;
        }
        self.waiting.drain(first..last);
        self.held.retain(|&(low, high)| {
            let is_disjoint = high < from || to < low;
            if !is_disjoint {
                (from, to) = (from.min(low), to.max(high));
            }
            is_disjoint
        });
        if self.held.len() < MAX_HELD {
            self.held.push((from, to));
        }
    }

    /// Marks what the receiver lacks although it has taken later packets, or had the time to.
    fn mark(&mut self, ack: u64, time_ns: i64, unknown: bool) {
        let (taken, held) = (self.taken, &self.held);
        let top = held.iter().map(|&(_, to)| to).max().unwrap_or(ack).max(ack);
        // Of what is acknowledged next it is certain, of what is above only if all that is held is said.
        let all = self.selective && !self.incomplete && !unknown;
        let lacked = |arrival: &Arrival| {
            let first = arrival.start == ack;
            let missing = arrival.start >= ack
                && !held.iter().any(|&(from, to)| from < arrival.end && arrival.start < to)
                && (first || all && arrival.start <= top);
            missing && (arrival.rank < taken || first && time_ns - arrival.time_ns >= TAKEN_NS)
        };
        for arrival in self.waiting.iter_mut().take_while(|arrival| arrival.start <= top) {
            arrival.lacked |= lacked(arrival);
        }
        for suspect in &mut self.suspects {
            suspect.arrival.lacked |= lacked(&suspect.arrival);
        }
    }

    /// Data that the receiver reports as received twice was not lost: one copy for each report. Returns whether it reports something.
    fn reported(&mut self, blocks: &[(u32, u32)], ack: u64) -> bool {
        let Some(&(from, to)) = blocks.first() else { return false };
        let (from, to) = (unwrap(from, self.next), unwrap(to, self.next));
        let inside_second =
            blocks.get(1).is_some_and(|&(low, high)| unwrap(low, self.next) <= from && to <= unwrap(high, self.next));
        if to > ack && !inside_second {
            return false;
        }
        self.reports = true;
        // A report may cover several packets, but of each only one copy: not one that was dropped, if there is another.
        let mut cleared: Vec<Arrival> = Vec::new();
        for lacked in [false, true] {
            self.suspects.retain(|Suspect { arrival, .. }| {
                let decided = arrival.lacked == lacked
                    && arrival.meets(from, to)
                    && !cleared.iter().any(|other| other.meets(arrival.start, arrival.end));
                if decided {
                    cleared.push(*arrival);
                }
                !decided
            });
        }
        true
    }

    /// Decides on suspects that passed again before `until_ns`, and whose numbers are acknowledged.
    fn settle(&mut self, until_ns: i64, lost: &mut Vec<Arrival>) {
        let Self { acked, lost: count, undetermined, .. } = self;
        self.suspects.retain(|Suspect { arrival, repeat_ns, would_report }| {
            let due = *repeat_ns <= until_ns && arrival.end <= *acked;
            if due && (arrival.lacked || *would_report) {
                *count += 1;
                lost.push(*arrival);
            } else if due {
                *undetermined += 1;
            }
            !due
        });
    }

    /// The capture ends: how many packets the receiver dropped, and of how many it is not known.
    pub fn finish(&mut self, lost: &mut Vec<Arrival>) -> (u64, u64) {
        self.settle(i64::MAX, lost);
        (self.lost, self.undetermined)
    }
}
