//! Storage for the frames in the path: a ring buffer of fixed size, freed in the order of arrival.

use std::io;

use landspeed_emulation::SLOT_HEADER_BYTES;
use landspeed_sys::payload::Buffer;

/// Alignment of slots, bytes.
const ALIGN: usize = 16;

/// Offset of a frame's slot in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// A ring buffer of frames. Each slot has a header: frame length, reference count, slot length.
#[derive(Debug)]
pub(crate) struct Store {
    bytes: Buffer,
    capacity: usize,
    /// Offset of the oldest slot; `used` is the number of bytes from there to the newest.
    oldest: usize,
    used: usize,
    used_max: usize,
}

impl Store {
    /// A store of about `capacity` bytes. All pages are touched, so a lack of memory shows at once. Frames pass
    /// through the whole ring, so it uses huge pages where available.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        let bytes = Buffer::new(capacity.next_multiple_of(ALIGN))?;
        let capacity = bytes.as_slice().len();
        Ok(Self { bytes, capacity, oldest: 0, used: 0, used_max: 0 })
    }

    /// Stores a frame given in parts; `None` if the store is full.
    pub(crate) fn insert(&mut self, parts: &[&[u8]]) -> Option<Slot> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let slot = (SLOT_HEADER_BYTES + length).next_multiple_of(ALIGN);
        let capacity = self.capacity;
        let mut at = (self.oldest + self.used) % capacity;
        if at + slot > capacity {
            // A slot is contiguous: skip the remainder at the end of the ring.
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

    /// Frame length, reference count and slot length.
    fn header(&self, at: usize) -> (usize, u32, usize) {
        let header = &self.bytes.as_slice()[at..at + SLOT_HEADER_BYTES];
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let slot = u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|i| header[i]));
        (word(0) as usize, word(4), slot as usize)
    }

    fn set_references(&mut self, at: usize, references: u32) {
        self.bytes.as_mut_slice()[at + 4..at + 8].copy_from_slice(&references.to_ne_bytes());
    }

    /// The bytes of a frame.
    pub(crate) fn frame(&self, slot: Slot) -> &[u8] {
        let start = slot.0 + SLOT_HEADER_BYTES;
        &self.bytes.as_slice()[start..start + self.header(slot.0).0]
    }

    /// The bytes of a frame, mutable.
    pub(crate) fn frame_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.0 + SLOT_HEADER_BYTES;
        let length = self.header(slot.0).0;
        &mut self.bytes.as_mut_slice()[start..start + length]
    }

    /// Adds a reference: the frame needs one more [`Store::release`].
    pub(crate) fn retain(&mut self, slot: Slot) {
        self.set_references(slot.0, self.header(slot.0).1 + 1);
    }

    /// Drops a reference; frees the oldest slots without references.
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

    /// Capacity, bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Maximum number of bytes used so far.
    pub(crate) fn used_max(&self) -> usize {
        self.used_max
    }
}

#[cfg(test)]
mod tests {
    use landspeed_stats::SplitMix64;

    use super::*;

    #[test]
    fn stored_frames_are_returned_unchanged() {
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
            // Mostly the oldest frame leaves, sometimes another.
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
    fn full_store_refuses_frames_until_the_oldest_is_released() {
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
    fn retained_frames_stay_until_the_second_release() {
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
