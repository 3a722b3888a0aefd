//! A UDP flow, and the numbers in its datagrams where the protocol is known.

use landspeed_model::{TraceDirection, TraceNumbered};

/// Numbers behind the greatest one that are told apart.
const WINDOW: u64 = 64;

/// One direction of a UDP flow.
#[derive(Debug, Clone, Default)]
pub struct Datagrams {
    /// Packets.
    pub packets: u64,
    wire_bytes: u64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    numbers: Option<Numbers>,
    /// Datagrams that did not look like the protocol.
    odd: bool,
}

/// Sequence numbers of RTP (RFC 3550), unwrapped from 16 bits.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    source: u32,
    highest: u64,
    /// Of the numbers below `highest`, those that came: bit `n` is `highest - n`.
    seen: u64,
    received: u64,
    first: u64,
    reordered: u64,
    duplicates: u64,
}

impl Datagrams {
    /// A datagram passes; `payload` is what was captured of it.
    pub fn pass(&mut self, wire: u32, length: u32, payload: &[u8]) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire);
        self.payload_bytes += u64::from(length);
        if !self.odd {
            self.number(payload);
        }
    }

    fn number(&mut self, payload: &[u8]) {
        let Some((number, source)) = rtp(payload) else {
            self.odd = true;
            return;
        };
        let Some(numbers) = &mut self.numbers else {
            let first = 1 << 16 | u64::from(number);
            self.numbers =
                Some(Numbers { source, highest: first, seen: 1, received: 1, first, reordered: 0, duplicates: 0 });
            return;
        };
        if numbers.source != source {
            self.odd = true;
            return;
        }
        numbers.take(number);
    }

    /// As the document says it.
    pub fn document(&self) -> TraceDirection {
        let numbered = self.numbers.filter(|numbers| !self.odd && numbers.received > 10);
        TraceDirection {
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            payload_bytes: self.payload_bytes,
            unique_bytes: self.payload_bytes,
            numbered: numbered.map(|numbers| TraceNumbered {
                protocol: "RTP".into(),
                lost: (numbers.highest - numbers.first + 1).saturating_sub(numbers.received),
                reordered: numbers.reordered,
                duplicates: numbers.duplicates,
            }),
            ..TraceDirection::default()
        }
    }
}

impl Numbers {
    fn take(&mut self, number: u16) {
        let ahead = number.wrapping_sub(self.highest as u16) as i16;
        if ahead > 0 {
            self.seen = self.seen.checked_shl(u32::from(ahead.unsigned_abs())).unwrap_or(0) | 1;
            self.highest += u64::from(ahead.unsigned_abs());
            self.received += 1;
            return;
        }
        let behind = u64::from(ahead.unsigned_abs());
        let position = self.highest.saturating_sub(behind);
        if behind >= WINDOW || position < self.first {
            // Too late to tell a copy from a latecomer; it did arrive.
            self.reordered += 1;
            self.received += u64::from(position >= self.first);
        } else if self.seen >> behind & 1 == 1 {
            self.duplicates += 1;
        } else {
            self.seen |= 1 << behind;
            self.reordered += 1;
            self.received += 1;
        }
    }
}

/// Sequence number and source of what may be an RTP packet: version 2 and a payload type that is no RTCP.
fn rtp(payload: &[u8]) -> Option<(u16, u32)> {
    let header: &[u8; 12] = payload.first_chunk()?;
    let kind = header[1] & 0x7f;
    let plausible = header[0] >> 6 == 2 && !(64..=95).contains(&kind);
    let number = u16::from_be_bytes([header[2], header[3]]);
    plausible.then(|| (number, u32::from_be_bytes([header[8], header[9], header[10], header[11]])))
}
