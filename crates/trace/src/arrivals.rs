//! Data after the last tap before its receiver: which packets the receiver host dropped.
//!
//! A packet whose sequence numbers pass again before they are acknowledged was either dropped after the tap or
//! duplicated. The receiver's ACKs show which. The receiver processes packets in the order of their arrival: an
//! ACK caused by a later packet that still lacks this one proves the drop; a DSACK (RFC 2883) proves the
//! opposite. Without either the packet is undetermined: receivers without DSACK do not report duplicates, and
//! Linux omits DSACKs while it compresses ACKs, and replaces one that it has not sent yet by the next. A packet that the
//! network duplicated is not a retransmit: without a proven drop it is not counted at all.

use std::collections::VecDeque;

use landspeed_model::LossPlace;
use landspeed_wire::{Flags, TcpHeader};

use crate::sequence::{anchor, unwrap};

/// Maximum number of unacknowledged packets kept per direction; no path has more in flight.
const MAX_PENDING: usize = 1 << 18;
/// Maximum number of SACKed ranges kept.
const MAX_SACKED_RANGES: usize = 256;
/// Maximum amount of data recorded after the ACK that it caused, bytes.
const MAX_AHEAD: u64 = 1 << 20;
/// Maximum time between a packet and its copy made by the network, nanoseconds: Linux's minimum RTO, about.
const MAX_COPY_DELAY_NS: i64 = 190_000_000;
/// Maximum time from a duplicate to its DSACK, nanoseconds.
const DSACK_TIMEOUT_NS: i64 = 1_000_000_000;
/// Maximum time from the tap to the processing by the receiver host, nanoseconds.
const MAX_PROCESSING_NS: i64 = 10_000_000;
/// Maximum delay of a delayed ACK in Linux (`TCP_DELACK_MAX`), nanoseconds.
const MAX_DELAYED_ACK_NS: i64 = 200_000_000;

/// A data packet seen at the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    start: u64,
    end: u64,
    /// Timestamp by the tap's clock, nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// IPv4 identification; 0 if there is none.
    pub identification: u16,
    /// Whether an ACK proves that the receiver does not have it.
    proven_missing: bool,
    /// Whether its timestamp is older than one that the receiver has accepted: its TCP discards it (PAWS).
    is_old: bool,
    /// TSval of its timestamps option.
    stamp: Option<u32>,
    /// Number of its frame, from 1.
    pub frame: u64,
    /// Position among the packets of this direction, in the order of the capture.
    rank: u64,
}

impl Arrival {
    /// Returns its first sequence number.
    pub fn sequence(&self) -> u32 {
        self.start as u32
    }

    /// Returns the length of its payload, bytes.
    pub fn payload(&self) -> u32 {
        (self.end - self.start) as u32
    }

    /// Returns where it was dropped.
    pub fn place(&self) -> LossPlace {
        if self.is_old { LossPlace::Paws } else { LossPlace::Receiver }
    }

    /// Returns whether a later packet is a copy of it made by the network, not a retransmit.
    fn is_copied_by(&self, later: &Self) -> bool {
        (self.start, self.end, self.stamp) == (later.start, later.end, later.stamp)
            && self.identification != 0
            && self.identification == later.identification
            && later.time_ns - self.time_ns < MAX_COPY_DELAY_NS
    }

    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// A packet whose data passed the tap again: dropped by the receiver host, or duplicated.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    arrival: Arrival,
    /// Timestamp of the next copy, nanoseconds.
    repeat_ns: i64,
    /// Whether the network made the next copy.
    is_copied: bool,
}

/// Numbers of packets that passed the last tap and did not reach the receiver's socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrivalTotals {
    /// Dropped by the receiver host.
    pub lost: u64,
    /// Discarded by its TCP because of an old timestamp.
    pub paws: u64,
    /// Without proof for or against a drop.
    pub undetermined: u64,
}

/// State of one direction of a connection at the tap.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// Packets not acknowledged yet, by sequence number.
    waiting: VecDeque<Arrival>,
    suspects: Vec<Suspect>,
    /// SACKed ranges: data that the receiver has above the cumulative ACK.
    sacked_ranges: Vec<(u64, u64)>,
    next: u64,
    acked: u64,
    ranks: u64,
    /// Rank of the latest packet that the receiver has certainly processed.
    processed_rank: u64,
    latest_ack_ns: Option<i64>,
    window: Option<u16>,
    /// Whether SACK blocks were seen, and (`incomplete`) whether the latest ACK may lack some.
    selective: bool,
    incomplete: bool,
    /// Latest timestamp that the receiver has accepted (`ts_recent`).
    recent_stamp: Option<u32>,
    totals: ArrivalTotals,
}

impl Arrivals {
    /// Accounts for a packet towards the receiver; `frame` is its frame number.
    pub fn data(&mut self, tcp: &TcpHeader, identification: u16, time_ns: i64, frame: u64) {
        if self.next == 0 {
            self.next = anchor(tcp.sequence);
        }
        let start = unwrap(tcp.sequence, self.next) + u64::from(tcp.flags.has(Flags::SYN));
        let end = start + u64::from(tcp.payload);
        self.ranks += 1;
        // A byte sent into a closed window is a probe, which the receiver may discard.
        let probe = tcp.payload == 1 && self.window == Some(0);
        if start >= end || probe {
            return;
        }
        if end <= self.acked || self.is_sacked(start, end) {
            if start >= self.next {
                // Recorded after the ACK that it caused, as in captures with several queues.
                self.next = end;
                self.processed_rank = self.processed_rank.max(self.ranks);
            }
            return;
        }
        let rank = self.ranks;
        let stamp = tcp.options.timestamps.map(|(value, _)| value);
        let is_old =
            stamp.zip(self.recent_stamp).is_some_and(|(stamp, recent)| (stamp.wrapping_sub(recent) as i32) < 0);
        if !is_old && (start <= self.acked || self.recent_stamp.is_none()) {
            self.recent_stamp = stamp;
        }
        let arrival =
            Arrival { start, end, time_ns, identification, proven_missing: false, is_old, stamp, frame, rank };
        if start >= self.next {
            self.next = end;
            self.waiting.push_back(arrival);
        } else {
            self.next = self.next.max(end);
            self.repeated(arrival);
        }
        if self.waiting.len() > MAX_PENDING {
            self.waiting.pop_front();
        }
    }

    fn is_sacked(&self, start: u64, end: u64) -> bool {
        self.sacked_ranges.iter().any(|&(from, to)| from <= start && end <= to)
    }

    /// Handles a packet with old sequence numbers: earlier copies of its data become suspects.
    #[cold]
    fn repeated(&mut self, arrival: Arrival) {
        let from = self.waiting.partition_point(|other| other.end <= arrival.start);
        let mut to = from;
        while let Some(&other) = self.waiting.get(to).filter(|other| other.start < arrival.end) {
            let repeat_ns = arrival.time_ns;
            // Every packet that arrives is acknowledged within this time.
            let silent = self.latest_ack_ns.is_none_or(|ack_ns| ack_ns < other.time_ns);
            let proven_missing = other.proven_missing || silent && repeat_ns - other.time_ns >= MAX_DELAYED_ACK_NS;
            let is_copied = other.is_copied_by(&arrival);
            self.suspects.push(Suspect { arrival: Arrival { proven_missing, ..other }, repeat_ns, is_copied });
            to += 1;
        }
        self.waiting.drain(from..to);
        self.waiting.insert(from, arrival);
    }

    /// Accounts for an ACK of the receiver. Appends packets that are now known to be dropped to `lost`.
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
                    self.processed_rank = self.processed_rank.max(arrival.rank);
                } else {
                    self.take(&arrival);
                }
                self.waiting.pop_front();
            }
        } else if !repeats && tcp.options.sack.as_slice().is_empty() && self.suspects.is_empty() {
            return;
        }
        let plain = tcp.options.sack.as_slice().is_empty() && !tcp.options.incomplete;
        let lacks_none =
            |first: &Arrival| first.rank > self.processed_rank && time_ns - first.time_ns < MAX_PROCESSING_NS;
        if plain && self.suspects.is_empty() && self.waiting.front().is_none_or(lacks_none) {
            if repeats && !self.selective {
                self.processed_rank = (self.processed_rank + 1).min(self.ranks);
            }
            self.sacked_ranges.clear();
            self.incomplete = false;
            return;
        }
        self.compare(tcp, ack, repeats, time_ns, lost);
    }

    /// Records that the receiver has a packet: of several copies, the first one it may have processed.
    fn take(&mut self, arrival: &Arrival) {
        let copies = self.suspects.iter().map(|suspect| &suspect.arrival);
        let copies = copies.filter(|copy| !copy.proven_missing && copy.overlaps(arrival.start, arrival.end));
        let first = copies.map(|copy| copy.rank).min().unwrap_or(arrival.rank);
        self.processed_rank = self.processed_rank.max(first.min(arrival.rank));
    }

    /// Compares the packets seen with an ACK and its SACK blocks.
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
        self.sacked_ranges.retain(|&(_, to)| to > ack);
        if blocks.is_empty() && !tcp.options.incomplete {
            self.sacked_ranges.clear();
        }
        for &(from, to) in blocks {
            self.add_sacked_range(unwrap(from, self.next), unwrap(to, self.next));
        }
        if repeats && !self.selective {
            // Each duplicate ACK is caused by at least one out-of-order packet.
            self.processed_rank = (self.processed_rank + 1).min(self.ranks);
        }
        self.mark(ack, time_ns, tcp.options.incomplete);
        if !self.suspects.is_empty() {
            self.settle(time_ns - DSACK_TIMEOUT_NS, lost);
        }
    }

    /// Adds a SACKed range.
    fn add_sacked_range(&mut self, mut from: u64, mut to: u64) {
        // Data not seen yet may be recorded late, but not by more than this.
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
        self.sacked_ranges.retain(|&(low, high)| {
            let is_disjoint = high < from || to < low;
            if !is_disjoint {
                (from, to) = (from.min(low), to.max(high));
            }
            is_disjoint
        });
        if self.sacked_ranges.len() < MAX_SACKED_RANGES {
            self.sacked_ranges.push((from, to));
        }
    }

    /// Marks packets that the receiver does not have although it has processed later ones, or had the time to.
    fn mark(&mut self, ack: u64, time_ns: i64, unknown: bool) {
        let (processed_rank, sacked_ranges) = (self.processed_rank, &self.sacked_ranges);
        let top = sacked_ranges.iter().map(|&(_, to)| to).max().unwrap_or(ack).max(ack);
        // The packet at the cumulative ACK is certainly missing; those above are only if the SACK blocks are
        // complete.
        let all = self.selective && !self.incomplete && !unknown;
        let proven_missing = |arrival: &Arrival| {
            let first = arrival.start == ack;
            let missing = arrival.start >= ack
                && !sacked_ranges.iter().any(|&(from, to)| from < arrival.end && arrival.start < to)
                && (first || all && arrival.start <= top);
            missing && (arrival.rank < processed_rank || first && time_ns - arrival.time_ns >= MAX_PROCESSING_NS)
        };
        for arrival in self.waiting.iter_mut().take_while(|arrival| arrival.start <= top) {
            arrival.proven_missing |= proven_missing(arrival);
        }
        for suspect in &mut self.suspects {
            suspect.arrival.proven_missing |= proven_missing(&suspect.arrival);
        }
    }

    /// Clears suspects that a DSACK reports as received twice, one copy per DSACK. Returns whether the ACK has a
    /// DSACK.
    fn reported(&mut self, blocks: &[(u32, u32)], ack: u64) -> bool {
        let Some(&(from, to)) = blocks.first() else { return false };
        let (from, to) = (unwrap(from, self.next), unwrap(to, self.next));
        let inside_second =
            blocks.get(1).is_some_and(|&(low, high)| unwrap(low, self.next) <= from && to <= unwrap(high, self.next));
        if to > ack && !inside_second {
            return false;
        }
        // A DSACK may cover several packets, but only one copy of each: if possible, one that was not dropped.
        let mut cleared: Vec<Arrival> = Vec::new();
        for proven_missing in [false, true] {
            self.suspects.retain(|Suspect { arrival, .. }| {
                let decided = arrival.proven_missing == proven_missing
                    && arrival.overlaps(from, to)
                    && !cleared.iter().any(|other| other.overlaps(arrival.start, arrival.end));
                if decided {
                    cleared.push(*arrival);
                }
                !decided
            });
        }
        true
    }

    /// Decides on suspects whose data passed again before `until_ns` and is acknowledged.
    fn settle(&mut self, until_ns: i64, lost: &mut Vec<Arrival>) {
        let Self { acked, totals, .. } = self;
        self.suspects.retain(|Suspect { arrival, repeat_ns, is_copied }| {
            let due = *repeat_ns <= until_ns && arrival.end <= *acked;
            if due && (arrival.proven_missing || arrival.is_old) {
                *(if arrival.is_old { &mut totals.paws } else { &mut totals.lost }) += 1;
                lost.push(*arrival);
            } else if due && !is_copied {
                totals.undetermined += 1;
            }
            !due
        });
    }

    /// Decides on all remaining suspects. Returns the totals.
    pub fn finish(&mut self, lost: &mut Vec<Arrival>) -> ArrivalTotals {
        self.settle(i64::MAX, lost);
        self.totals
    }
}
