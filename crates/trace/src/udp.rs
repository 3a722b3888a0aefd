//! A UDP flow, and the sequence numbers in its datagrams.
//!
//! Ports do not identify the protocol. Every known one is tried, and the one is chosen whose numbers increase
//! from datagram to datagram, whose tag is constant, and whose clock runs like the capture's.

use landspeed_model::{TraceDirection, TraceNumbered};
use landspeed_wire::{NumberedDatagram, Numbering};

/// Window below the highest number in which duplicates are recognised.
const DUPLICATE_WINDOW: u64 = 256;
/// Maximum jump of the sequence number within a stream: more than is lost at once.
const MAX_JUMP: u64 = 1 << 20;
/// Maximum jump for RTP, whose numbers wrap too soon for the above (`MAX_DROPOUT`, RFC 3550).
const MAX_JUMP_RTP: u64 = 3_000;
/// Maximum change of the difference between the sender's clock and the capture's, nanoseconds: queues, drift.
const MAX_CLOCK_CHANGE_NS: u64 = 2_000_000_000;
/// Minimum number of datagrams in sequence for a result.
const MIN_DATAGRAMS: u64 = 10;
/// Maximum plausible sequence number.
const MAX_SEQUENCE: u64 = 1 << 62;
/// Start of the unwrapped numbers, with room for earlier ones below.
const BASE: u64 = 1 << 40;

/// One direction of a UDP flow.
#[derive(Debug, Clone, Default)]
pub struct Datagrams {
    /// Number of packets.
    pub packets: u64,
    wire_bytes: u64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    candidates: [Option<Candidate>; 4],
}

/// A protocol that the flow may use.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    tag: u32,
    /// The sender's clock and the capture's at the first datagram, nanoseconds.
    clocks: Option<(u64, u64)>,
    highest: u64,
    first: u64,
    /// Bitmap of the latest numbers up to `highest` that were received, by number modulo the window.
    seen: [u64; 4],
    received: u64,
    reordered: u64,
    duplicates: u64,
    /// Datagrams that continue the sequence, and (`misses`) those that do not.
    hits: u64,
    misses: u64,
}

impl Datagrams {
    /// Accounts for a datagram; `head` is the captured start of its payload.
    pub fn account(&mut self, wire: u32, length: u32, head: &[u8], time_ns: u64) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire);
        self.payload_bytes += u64::from(length);
        // A protocol that was excluded is not tried again.
        let known = self.packets > MIN_DATAGRAMS;
        for (numbering, slot) in Numbering::ALL.into_iter().zip(&mut self.candidates) {
            match (slot.as_mut(), numbering.read(head)) {
                (Some(candidate), Some(read)) if read.number < MAX_SEQUENCE => {
                    candidate.take(numbering, read, time_ns);
                    if candidate.hits == 0 {
                        // The first datagram may have been something else, such as a greeting.
                        let misses = candidate.misses;
                        *candidate = Candidate { misses, ..Candidate::new(numbering, read, time_ns) };
                    }
                }
                (Some(candidate), _) => candidate.misses += 1,
                (None, Some(read)) if !known && read.number < MAX_SEQUENCE => {
                    *slot = Some(Candidate::new(numbering, read, time_ns));
                }
                (None, _) => {}
            }
            if slot.is_some_and(|candidate| candidate.misses > candidate.hits + MIN_DATAGRAMS) {
                *slot = None;
            }
        }
    }

    /// Returns the direction for the document.
    pub fn document(&self) -> TraceDirection {
        let candidates = Numbering::ALL.into_iter().zip(self.candidates);
        let candidates = candidates.filter_map(|(numbering, candidate)| Some((numbering, candidate?)));
        let likely =
            candidates.filter(|(_, candidate)| candidate.hits >= MIN_DATAGRAMS && candidate.confidence() >= 0.75);
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
    fn new(numbering: Numbering, read: NumberedDatagram, time_ns: u64) -> Self {
        let highest = BASE.wrapping_add(read.number);
        // If few datagrams are missing at the start, they are lost; if many, the stream began long before the
        // capture.
        let missed = numbering
            .first()
            .and_then(|first| read.number.checked_sub(first))
            .filter(|&missed| missed < DUPLICATE_WINDOW);
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
        self.seen[(position % DUPLICATE_WINDOW / 64) as usize] |= 1 << (position % 64);
    }

    fn marked(&self, position: u64) -> bool {
        self.seen[(position % DUPLICATE_WINDOW / 64) as usize] >> (position % 64) & 1 == 1
    }

    fn clear(&mut self, position: u64) {
        self.seen[(position % DUPLICATE_WINDOW / 64) as usize] &= !(1 << (position % 64));
    }

    fn take(&mut self, numbering: Numbering, read: NumberedDatagram, time_ns: u64) {
        let in_time = self.clocks.zip(read.sent_ns).is_none_or(|((sent, seen), sent_ns)| {
            let (ran, passed) = (sent_ns.wrapping_sub(sent).cast_signed(), time_ns.wrapping_sub(seen).cast_signed());
            ran.abs_diff(passed) < MAX_CLOCK_CHANGE_NS
        });
        // Distance to the highest number, as a signed number of the protocol's width.
        let spare = 64 - numbering.bits();
        let ahead = read.number.wrapping_sub(self.highest.wrapping_sub(BASE)) << spare;
        let ahead = ahead.cast_signed() >> spare;
        let furthest = if numbering == Numbering::Rtp { MAX_JUMP_RTP } else { MAX_JUMP };
        if read.tag != self.tag || !in_time || ahead.unsigned_abs() > furthest {
            self.misses += 1;
            return;
        }
        // A constant value is not a sequence number; a rare repetition is a duplicate.
        if ahead == 0 {
            self.duplicates += 1;
            self.misses += 1;
            return;
        }
        self.hits += 1;
        if ahead > 0 {
            let from = self.highest + 1;
            self.highest += ahead.unsigned_abs();
            for position in from.max((self.highest + 1).saturating_sub(DUPLICATE_WINDOW))..=self.highest {
                self.clear(position);
            }
            self.mark(self.highest);
            self.received += 1;
            return;
        }
        let behind = ahead.unsigned_abs();
        let position = self.highest - behind;
        if behind >= DUPLICATE_WINDOW {
            // Too late to distinguish a duplicate from a reordered datagram; it counts as received.
            self.reordered += 1;
            self.received += u64::from(position >= self.first);
        } else if position >= self.first && self.marked(position) {
            self.duplicates += 1;
        } else {
            // A datagram from before the first one seen, which had overtaken it.
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
