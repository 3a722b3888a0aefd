//! What became of the data that passed the last tap before its receiver, packet for packet.
//!
//! A packet that passed, and whose numbers passed again before they were acknowledged, either was lost behind the tap or
//! came twice. A receiver with DSACK (RFC 2883) says which: it reports what came twice. What it does not report, and
//! acknowledges later, it had lost.

use std::collections::VecDeque;

use landspeed_wire::{Flags, TcpHeader};

use crate::sequence::{anchor, unwrap};

/// Packets of a direction remembered at once: more are not in flight on any path.
const MOST: usize = 1 << 18;
/// A report of what came twice follows at once; after this long, none will, nanoseconds.
const PATIENCE_NS: i64 = 1_000_000_000;

/// A packet behind the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    start: u64,
    end: u64,
    /// When it passed, by the tap's clock.
    pub time_ns: i64,
    /// IP identification.
    pub identification: u16,
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

/// One direction of a connection at the tap.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// Not acknowledged yet, by their numbers.
    waiting: VecDeque<Arrival>,
    /// Passed again before they were acknowledged, and when that was.
    suspects: Vec<(Arrival, i64)>,
    next: u64,
    acked: u64,
    lost: u64,
}

impl Arrivals {
    /// Data passes towards the receiver.
    pub fn data(&mut self, tcp: &TcpHeader, identification: u16, time_ns: i64) {
        if self.next == 0 {
            self.next = anchor(tcp.sequence);
        }
        let start = unwrap(tcp.sequence, self.next) + u64::from(tcp.flags.has(Flags::SYN));
        let end = start + u64::from(tcp.payload);
        if start >= end || end <= self.acked {
            return;
        }
        let arrival = Arrival { start, end, time_ns, identification };
        if start >= self.next {
            self.next = end;
            self.waiting.push_back(arrival);
        } else {
            self.next = self.next.max(end);
            self.again(arrival);
        }
        if self.waiting.len() > MOST {
            self.waiting.pop_front();
        }
    }

    /// Numbers from before: their earlier copies are suspects.
    #[cold]
    fn again(&mut self, arrival: Arrival) {
        let from = self.waiting.partition_point(|other| other.end <= arrival.start);
        let mut to = from;
        while let Some(other) = self.waiting.get(to).filter(|other| other.start < arrival.end) {
            self.suspects.push((*other, arrival.time_ns));
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
        if !self.suspects.is_empty() {
            self.reported(tcp, ack);
        }
        if ack > self.acked {
            self.acked = ack;
            while self.waiting.front().is_some_and(|arrival| arrival.end <= ack) {
                self.waiting.pop_front();
            }
        }
        if !self.suspects.is_empty() {
            self.settle(time_ns - PATIENCE_NS, lost);
        }
    }

    /// What the receiver reports as received twice was no loss: one copy for each report.
    #[cold]
    fn reported(&mut self, tcp: &TcpHeader, ack: u64) {
        let blocks = tcp.options.sack.as_slice();
        let Some(&(from, to)) = blocks.first() else { return };
        let (from, to) = (unwrap(from, self.next), unwrap(to, self.next));
        let inside_second =
            blocks.get(1).is_some_and(|&(low, high)| unwrap(low, self.next) <= from && to <= unwrap(high, self.next));
        if to > ack && !inside_second {
            return;
        }
        // A report may cover several packets, but of each only one copy.
        let mut cleared: Vec<Arrival> = Vec::new();
        self.suspects.retain(|(suspect, _)| {
            let told =
                suspect.meets(from, to) && !cleared.iter().any(|other| other.meets(suspect.start, suspect.end));
            if told {
                cleared.push(*suspect);
            }
            !told
        });
    }

    /// Suspects that passed again before `until_ns`, and whose numbers are acknowledged, are losses.
    fn settle(&mut self, until_ns: i64, lost: &mut Vec<Arrival>) {
        let acked = self.acked;
        let count = &mut self.lost;
        self.suspects.retain(|(suspect, again_ns)| {
            let certain = *again_ns <= until_ns && suspect.end <= acked;
            if certain {
                *count += 1;
                lost.push(*suspect);
            }
            !certain
        });
    }

    /// The capture ends: whatever was acknowledged by then and not reported was lost. How many in all.
    pub fn finish(&mut self, lost: &mut Vec<Arrival>) -> u64 {
        self.settle(i64::MAX, lost);
        self.lost
    }
}
