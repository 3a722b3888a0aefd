//! The frames in the path: a ring of bytes of fixed size, from which memory is freed in the order of arrival.

use std::io;

use landspeed_emulation::SLOT_HEADER_BYTES;
use landspeed_sys::payload::Buffer;

/// Slots begin at multiples of this.
const ALIGN: usize = 16;

/// A frame in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Frames of any length. Each slot has a header: length of the frame, references, length of the slot.
#[derive(Debug)]
pub(crate) struct Store {
    bytes: Buffer,
    capacity: usize,
    /// Where the oldest slot is, and how many bytes from there on are taken.
    oldest: usize,
    used: usize,
    used_max: usize,
}

impl Store {
    /// A store of about `capacity` bytes, all of them touched: what is missing shows now. Frames come and go through all of it, so it lies
    /// on huge pages where the system gives them.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        let bytes = Buffer::new(capacity.next_multiple_of(ALIGN))?;
        let capacity = bytes.as_slice().len();
        Ok(Self { bytes, capacity, oldest: 0, used: 0, used_max: 0 })
    }

    /// Puts a frame in, which is given in parts; `None` if there is no room.
    pub(crate) fn insert(&mut self, parts: &[&[u8]]) -> Option<Slot> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let slot = (SLOT_HEADER_BYTES + length).next_multiple_of(ALIGN);
        let capacity = self.capacity;
        let mut at = (self.oldest + self.used) % capacity;
        if at + slot > capacity {
            // A slot is in one piece: what is left at the end is skipped.
            let rest = capacity - at;
            if self.used + rest + slot > capacity {
                return None;
            }
            self.write_header(at, 0, 0, rest);
            self.used += rest;
            at = 0;
        }
        if self.used + slot > capacity {
            return None;
        }
        self.write_header(at, length, 1, slot);
        let mut to = at + SLOT_HEADER_BYTES;
        let bytes = self.bytes.as_mut_slice();
        for part in parts {
            bytes[to..to + part.len()].copy_from_slice(part);
            to += part.len();
        }
        self.used += slot;
        self.used_max = self.used_max.max(self.used);
        Some(Slot(at))
    }

    fn write_header(&mut self, at: usize, length: usize, references: u32, slot: usize) {
        let header = &mut self.bytes.as_mut_slice()[at..at + SLOT_HEADER_BYTES];
        header[..4].copy_from_slice(&(length as u32).to_ne_bytes());
        header[4..8].copy_from_slice(&references.to_ne_bytes());
        header[8..].copy_from_slice(&(slot as u64).to_ne_bytes());
    }

    /// Length of the frame, references, length of the slot.
    fn header(&self, at: usize) -> (usize, u32, usize) {
        let header = &self.bytes.as_slice()[at..at + SLOT_HEADER_BYTES];
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let slot = u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|i| header[i]));
        (word(0) as usize, word(4), slot as usize)
    }

    fn set_references(&mut self, at: usize, references: u32) {
        self.bytes.as_mut_slice()[at + 4..at + 8].copy_from_slice(&references.to_ne_bytes());
    }

    /// The frame.
    pub(crate) fn frame(&self, slot: Slot) -> &[u8] {
        let start = slot.0 + SLOT_HEADER_BYTES;
        &self.bytes.as_slice()[start..start + self.header(slot.0).0]
    }

    /// The frame, to change it.
    pub(crate) fn frame_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.0 + SLOT_HEADER_BYTES;
        let length = self.header(slot.0).0;
        &mut self.bytes.as_mut_slice()[start..start + length]
    }

    /// One more release is needed before the frame is gone.
    pub(crate) fn retain(&mut self, slot: Slot) {
        self.set_references(slot.0, self.header(slot.0).1 + 1);
    }

    /// Lets go of the frame.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.set_references(slot.0, self.header(slot.0).1.saturating_sub(1));
        while self.used > 0 {
            let (_, references, size) = self.header(self.oldest);
            if references > 0 {
                break;
            }
            self.used -= size;
            self.oldest = (self.oldest + size) % self.capacity;
        }
    }

    /// Its size, bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Most that was taken, bytes.
    pub(crate) fn used_max(&self) -> usize {
        self.used_max
    }
}

#[cfg(test)]
mod tests {
    use landspeed_stats::SplitMix64;

    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut store = Store::new(64 << 10).expect("memory");
        let mut random = SplitMix64::new(1);
        let mut inside: Vec<(Slot, Vec<u8>)> = Vec::new();
        let mut refused = 0;
        for round in 0..50_000_u32 {
            let length = random.below(1500) as usize;
            let mut frame = vec![0; length];
            random.fill(&mut frame);
            let (head, tail) = frame.split_at(length / 2);
            match store.insert(&[head, tail]) {
                Some(slot) => inside.push((slot, frame)),
                None => refused += 1,
            }
            // Mostly the oldest leaves; sometimes another.
            while inside.len() > 25 || (round % 7 == 0 && !inside.is_empty()) {
                let index = if random.below(4) == 0 { random.below(inside.len() as u64) as usize } else { 0 };
                let (slot, frame) = inside.remove(index);
                assert_eq!(store.frame(slot), frame);
                store.release(slot);
                if round % 7 == 0 {
                    break;
                }
            }
        }
        assert!(refused < 5_000, "{refused}");
        for (slot, frame) in inside {
            assert_eq!(store.frame(slot), frame);
            store.release(slot);
        }
        assert_eq!(store.used, 0);
    }

    #[test]
    fn a_full_store_refuses_until_the_oldest_leaves() {
        let mut store = Store::new(4096).expect("memory");
        let slots: Vec<Slot> = (0..4).map(|i| store.insert(&[&[i; 1000]]).expect("room")).collect();
        assert_eq!(store.insert(&[&[9; 1000]]), None);
        store.release(slots[1]);
        assert_eq!(store.insert(&[&[9; 1000]]), None, "the oldest is still there");
        store.release(slots[0]);
        let new = store.insert(&[&[9; 1000]]).expect("room");
        assert_eq!(store.frame(new), [9; 1000]);
        assert_eq!(store.frame(slots[3]), [3; 1000]);
    }

    #[test]
    fn a_copied_frame_stays_until_both_are_gone() {
        let mut store = Store::new(4096).expect("memory");
        let slot = store.insert(&[b"twice"]).expect("room");
        store.retain(slot);
        store.release(slot);
        assert_eq!(store.frame(slot), b"twice");
        assert!(store.used > 0);
        store.release(slot);
        assert_eq!(store.used, 0);
    }
}
