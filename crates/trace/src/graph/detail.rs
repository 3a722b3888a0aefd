//! Individual packets, a few bytes each, in chunks; the chunks with the most events are kept.
//!
//! A record is a tag byte (low half: kind of packet, high half: fields that follow), the time since the previous
//! record, and differences. All numbers are LEB128; signed ones are zigzag-encoded first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_model::TraceDetail;

use super::event::{Event, PacketKind};
use crate::row::Class;

/// Records per chunk.
const RECORDS_PER_CHUNK: u32 = 512;
/// Number of chunks at the start that are never dropped.
const KEPT_CHUNKS: usize = 8;

/// Kinds of packet: the low half of the tag byte.
mod kind {
    pub const NEW_DATA: u8 = 0;
    pub const FAST: u8 = 1;
    pub const TIMEOUT: u8 = 2;
    pub const TAIL_LOSS_PROBE: u8 = 3;
    pub const LOST_BEFORE: u8 = 4;
    pub const UNCLASSIFIED: u8 = 5;
    pub const OUT_OF_ORDER: u8 = 6;
    pub const NETWORK_DUPLICATE: u8 = 7;
    pub const PROBE: u8 = 8;
    pub const ACK: u8 = 9;
    pub const DUPLICATE_ACK: u8 = 10;
    pub const SYN: u8 = 11;
    pub const FIN: u8 = 12;
    pub const RESET: u8 = 13;
}

/// Data: starts at the highest number so far, so no start follows.
const EXPECTED: u8 = 0x10;
/// Data: as long as the previous data, so no length follows.
const SAME_LENGTH: u8 = 0x20;
/// ACK: an RTT follows.
const ROUND_TRIP: u8 = 0x10;
/// ACK: SACK blocks follow.
const SACK_BLOCKS_FOLLOW: u8 = 0x20;
/// ACK: the window is unchanged, so no window follows.
const SAME_WINDOW: u8 = 0x40;

/// Values of the previous record, the base of differences.
#[derive(Debug, Clone, Copy, Default)]
struct PreviousRecord {
    since_ns: u64,
    next: i64,
    length: i64,
    ack: i64,
    window: u64,
}

/// Consecutive packets.
#[derive(Debug, Clone, Default)]
struct Chunk {
    begin: PreviousRecord,
    from: u64,
    end_ns: u64,
    packets: u32,
    bytes: Vec<u8>,
    /// Importance for the graph.
    weight: u64,
    pinned: bool,
}

/// The packets kept of a series.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    chunks: Vec<Chunk>,
    before: PreviousRecord,
    seen: u64,
    packets: u64,
    pinned: u64,
}

fn write_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    write_leb128(bytes, ((value << 1) ^ (value >> 63)) as u64);
}

impl Detail {
    /// Returns the number of packets kept.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets kept that may be dropped.
    pub fn removable(&self) -> u64 {
        self.packets - self.pinned
    }

    /// Adds an event; `pinned` ones are never dropped.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, pinned: bool) {
        let full =
            self.chunks.last().is_none_or(|chunk| chunk.packets >= RECORDS_PER_CHUNK || chunk.pinned != pinned);
        if full {
            self.before.since_ns = event.since_ns;
            let begin = PreviousRecord { length: 0, ..self.before };
            self.before = begin;
            self.chunks.push(Chunk { begin, from: self.seen, pinned, end_ns: event.since_ns, ..Chunk::default() });
        }
        let Some(chunk) = self.chunks.last_mut() else { return };
        // Idle time counts by its length in milliseconds, a retransmit like one second.
        chunk.weight += event.since_ns.saturating_sub(self.before.since_ns).div_euclid(1_000_000);
        chunk.weight += importance(event);
        chunk.packets += 1;
        chunk.end_ns = chunk.end_ns.max(event.since_ns);
        self.seen += 1;
        self.packets += 1;
        self.pinned += u64::from(pinned);
        write(&mut chunk.bytes, &mut self.before, event);
    }

    /// Drops the least important chunks until at most `to` unpinned packets remain, or no chunk may be dropped.
    pub fn shrink(&mut self, to: u64) {
        while self.removable() > to {
            let last = self.chunks.len().saturating_sub(1);
            let may_go = |&(at, chunk): &(usize, &Chunk)| !chunk.pinned && at >= KEPT_CHUNKS && at < last;
            // Of equals, the one whose neighbours are closest, so that the rest samples the whole time.
            let spread = |at: usize| self.chunks[at + 1].begin.since_ns.saturating_sub(self.chunks[at - 1].end_ns);
            let least = self.chunks.iter().enumerate().filter(may_go).min_by_key(|&(at, c)| (c.weight, spread(at)));
            let Some((at, _)) = least else { return };
            let gone = self.chunks.remove(at);
            self.packets -= u64::from(gone.packets);
        }
    }

    /// Returns the chunks for the document.
    pub fn document(self) -> Vec<TraceDetail> {
        let document = |chunk: Chunk| TraceDetail {
            start_ns: chunk.begin.since_ns,
            end_ns: chunk.end_ns,
            from: chunk.from,
            packets: u64::from(chunk.packets),
            next: chunk.begin.next,
            ack: chunk.begin.ack,
            window: chunk.begin.window,
            records: STANDARD.encode(chunk.bytes),
        };
        self.chunks.into_iter().map(document).collect()
    }
}

/// Returns the importance of an event beyond what its bucket shows.
fn importance(event: &Event<'_>) -> u64 {
    match event.what {
        PacketKind::Data { syn: true, .. } | PacketKind::Data { fin: true, .. } | PacketKind::Reset => 1_000,
        PacketKind::Data { class, .. } if class.is_retransmission() => 1_000,
        PacketKind::Data { class: Class::OutOfOrder | Class::Copy | Class::Probe, .. } => 500,
        PacketKind::Ack { duplicate: true, .. } => 10,
        PacketKind::Ack { sack, window, .. } => {
            if window == 0 {
                100
            } else {
                10 * u64::from(!sack.is_empty())
            }
        }
        PacketKind::Data { .. } => 0,
    }
}

fn write(bytes: &mut Vec<u8>, before: &mut PreviousRecord, event: &Event<'_>) {
    let lapse = event.since_ns.wrapping_sub(before.since_ns) as i64;
    before.since_ns = event.since_ns;
    match event.what {
        PacketKind::Data { class, start, end, syn, fin } => {
            let kind = match class {
                _ if syn => kind::SYN,
                Class::New | Class::Bare if fin => kind::FIN,
                Class::New | Class::Bare => kind::NEW_DATA,
                Class::Fast => kind::FAST,
                Class::Timeout | Class::AfterTimeout => kind::TIMEOUT,
                Class::Tail => kind::TAIL_LOSS_PROBE,
                Class::LostBeforeTap => kind::LOST_BEFORE,
                Class::Unclassified => kind::UNCLASSIFIED,
                Class::OutOfOrder => kind::OUT_OF_ORDER,
                Class::Copy => kind::NETWORK_DUPLICATE,
                Class::Probe => kind::PROBE,
            };
            let (expected, length) = (start == before.next, end - start);
            let same = length == before.length;
            bytes.push(kind | if expected { EXPECTED } else { 0 } | if same { SAME_LENGTH } else { 0 });
            zigzag(bytes, lapse);
            if !expected {
                zigzag(bytes, start.wrapping_sub(before.next));
            }
            if !same {
                write_leb128(bytes, length.unsigned_abs());
            }
            before.next = before.next.max(end);
            before.length = length;
        }
        PacketKind::Ack { ack, window, duplicate, sack, rtt_ns } => {
            let kind = if duplicate { kind::DUPLICATE_ACK } else { kind::ACK };
            let same = window == before.window;
            let follows = if rtt_ns.is_some() { ROUND_TRIP } else { 0 }
                | if sack.is_empty() { 0 } else { SACK_BLOCKS_FOLLOW }
                | if same { SAME_WINDOW } else { 0 };
            bytes.push(kind | follows);
            zigzag(bytes, lapse);
            zigzag(bytes, ack.wrapping_sub(before.ack));
            if !same {
                zigzag(bytes, window.wrapping_sub(before.window) as i64);
            }
            if let Some(rtt_ns) = rtt_ns {
                write_leb128(bytes, rtt_ns);
            }
            if !sack.is_empty() {
                write_leb128(bytes, sack.len() as u64);
                for &(low, high) in sack {
                    zigzag(bytes, low.wrapping_sub(ack));
                    zigzag(bytes, high.wrapping_sub(low));
                }
            }
            // The highest ACK: an old ACK that is recorded late moves nothing.
            before.ack = before.ack.max(ack);
            before.window = window;
        }
        PacketKind::Reset => {
            bytes.push(kind::RESET);
            zigzag(bytes, lapse);
        }
    }
}
