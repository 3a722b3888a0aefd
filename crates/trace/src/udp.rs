//! A UDP flow, and the sequence numbers in its datagrams.
//!
//! Ports do not identify the protocol. Every known one is tried, and the one whose numbers increase by datagram, whose
//! tag stays and whose clock runs as the capture's does, is it.

use landspeed_model::{TraceDirection, TraceNumbered};
use landspeed_wire::{Numbered, Numbering};

/// Window behind the greatest number in which duplicates are recognised.
const WINDOW: u64 = 256;
/// A number further ahead than this does not go on from the one before: nothing loses so many at once.
const FURTHEST: u64 = 1 << 20;
/// RTP's number wraps too soon for that (`MAX_DROPOUT`, RFC 3550).
const FURTHEST_RTP: u64 = 3_000;
/// A sender's clock may differ from the capture's by this much more than at the start, nanoseconds: queues, drift.
const CLOCKS_NS: u64 = 2_000_000_000;
/// Datagrams that go on from each other before anything is said.
const ENOUGH: u64 = 10;
/// A greater value is not a sequence number.
const HIGHEST: u64 = 1 << 62;
/// Where unwrapped numbers begin, so that there is room below.
const BASE: u64 = 1 << 40;

/// One direction of a UDP flow.
#[derive(Debug, Clone, Default)]
pub struct Datagrams {
    /// Packets.
    pub packets: u64,
    wire_bytes: u64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    candidates: [Option<Candidate>; 4],
}

/// A protocol it may be.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    tag: u32,
    /// The sender's clock when the first came, and the capture's.
    clocks: Option<(u64, u64)>,
    highest: u64,
    first: u64,
    /// Of the last numbers up to `highest`, those that came, by their number modulo the window.
    seen: [u64; 4],
    received: u64,
    reordered: u64,
    duplicates: u64,
    /// Datagrams that went on from the others, and those that did not.
    hits: u64,
    misses: u64,
}

impl Datagrams {
    /// A datagram passes; `head` is the captured beginning of its payload.
    pub fn pass(&mut self, wire: u32, length: u32, head: &[u8], time_ns: u64) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire);
        self.payload_bytes += u64::from(length);
        // Once a protocol is out of the question, it stays so.
        let known = self.packets > ENOUGH;
        for (numbering, slot) in Numbering::ALL.into_iter().zip(&mut self.candidates) {
            match (slot.as_mut(), numbering.read(head)) {
                (Some(candidate), Some(read)) if read.number < HIGHEST => {
                    candidate.take(numbering, read, time_ns);
                    if candidate.hits == 0 {
                        // The first may have been something else: a greeting.
                        let misses = candidate.misses;
                        *candidate = Candidate { misses, ..Candidate::new(numbering, read, time_ns) };
                    }
                }
                (Some(candidate), _) => candidate.misses += 1,
                (None, Some(read)) if !known && read.number < HIGHEST => {
                    *slot = Some(Candidate::new(numbering, read, time_ns));
                }
                (None, _) => {}
            }
            if slot.is_some_and(|candidate| candidate.misses > candidate.hits + ENOUGH) {
                *slot = None;
            }
        }
    }

    /// Returns it as in the document.
    pub fn document(&self) -> TraceDirection {
        let candidates = Numbering::ALL.into_iter().zip(self.candidates);
        let candidates = candidates.filter_map(|(numbering, candidate)| Some((numbering, candidate?)));
        let likely = candidates.filter(|(_, candidate)| candidate.hits >= ENOUGH && candidate.confidence() >= 0.75);
        let best = likely.max_by(|one, other| one.1.confidence().total_cmp(&other.1.confidence()));
        TraceDirection {
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            payload_bytes: self.payload_bytes,
            unique_bytes: self.payload_bytes,
            numbered: best.map(|(numbering, candidate)| candidate.document(numbering)),
            ..TraceDirection::default()
        }
    }
}

impl Candidate {
    fn new(numbering: Numbering, read: Numbered, time_ns: u64) -> Self {
        let highest = BASE.wrapping_add(read.number);
        // A stream whose first datagrams are missing has lost them; one that began long before the capture has not.
        let missed =
            numbering.first().and_then(|first| read.number.checked_sub(first)).filter(|&missed| missed < WINDOW);
        let mut candidate = Self {
            tag: read.tag,
            clocks: read.sent_ns.map(|sent_ns| (sent_ns, time_ns)),
            highest,
            first: highest - missed.unwrap_or(0),
            seen: [0; 4],
            received: 1,
            reordered: 0,
            duplicates: 0,
            hits: 0,
            misses: 0,
        };
        candidate.mark(highest);
        candidate
    }

    fn mark(&mut self, position: u64) {
        self.seen[(position % WINDOW / 64) as usize] |= 1 << (position % 64);
    }

    fn marked(&self, position: u64) -> bool {
        self.seen[(position % WINDOW / 64) as usize] >> (position % 64) & 1 == 1
    }

    fn clear(&mut self, position: u64) {
        self.seen[(position % WINDOW / 64) as usize] &= !(1 << (position % 64));
    }

    fn take(&mut self, numbering: Numbering, read: Numbered, time_ns: u64) {
        let in_time = self.clocks.zip(read.sent_ns).is_none_or(|((sent, seen), sent_ns)| {
            let (ran, passed) = (sent_ns.wrapping_sub(sent).cast_signed(), time_ns.wrapping_sub(seen).cast_signed());
            ran.abs_diff(passed) < CLOCKS_NS
        });
        // How far ahead, as a signed number of the protocol's bits.
        let spare = 64 - numbering.bits();
        let ahead = read.number.wrapping_sub(self.highest.wrapping_sub(BASE)) << spare;
        let ahead = ahead.cast_signed() >> spare;
        let furthest = if numbering == Numbering::Rtp { FURTHEST_RTP } else { FURTHEST };
        if read.tag != self.tag || !in_time || ahead.unsigned_abs() > furthest {
            self.misses += 1;
            return;
        }
        // A constant value is not a sequence number; a rare repetition is a copy.
        if ahead == 0 {
            self.duplicates += 1;
            self.misses += 1;
            return;
        }
        self.hits += 1;
        if ahead > 0 {
            let from = self.highest + 1;
            self.highest += ahead.unsigned_abs();
            for position in from.max((self.highest + 1).saturating_sub(WINDOW))..=self.highest {
                self.clear(position);
            }
            self.mark(self.highest);
            self.received += 1;
            return;
        }
        let behind = ahead.unsigned_abs();
        let position = self.highest - behind;
        if behind >= WINDOW {
            // Too late to distinguish a copy from a reordered datagram; it did arrive.
            self.reordered += 1;
            self.received += u64::from(position >= self.first);
        } else if position >= self.first && self.marked(position) {
            self.duplicates += 1;
        } else {
            // One from before the first that was seen: that one had overtaken it.
            self.first = self.first.min(position);
            self.mark(position);
            self.reordered += 1;
            self.received += 1;
        }
    }

    fn confidence(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }

    fn document(&self, numbering: Numbering) -> TraceNumbered {
        TraceNumbered {
            protocol: numbering.name().into(),
            confidence: self.confidence(),
            received: self.received,
            lost: (self.highest - self.first + 1).saturating_sub(self.received),
            reordered: self.reordered,
            duplicates: self.duplicates,
        }
    }
}
