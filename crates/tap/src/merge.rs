//! Merging of several rings by timestamp.
//!
//! A ring passes on packets in blocks, some of them late: a block that is not full waits for its timeout. So a
//! packet can be passed on only when every ring without packets would have passed on an older one by now.

use landspeed_sys::ring::{Ring, RingPacket};

/// A ring with its read position and counters.
pub struct Source {
    pub ring: Ring,
    /// Index of its interface.
    pub interface: usize,
    /// Offset of the next packet and number of packets left in the current block.
    cursor: Option<(usize, u32)>,
    /// Packets read from the ring.
    pub read: u64,
    /// Packets counted by the kernel, including drops.
    pub counted: u64,
    /// Packets dropped by the kernel because the ring was full.
    pub dropped: u64,
    /// Number of times the whole ring was full (freezes).
    pub freezes: u64,
    /// Maximum fill level, 0..=1.
    pub fill_max: f64,
    /// Whether the interface no longer exists.
    pub gone: bool,
    /// Packets that could not be parsed; 0 unless the kernel is broken.
    pub broken: u64,
}

impl Source {
    pub fn new(ring: Ring, interface: usize) -> Self {
        Self {
            ring,
            interface,
            cursor: None,
            read: 0,
            counted: 0,
            dropped: 0,
            freezes: 0,
            fill_max: 0.0,
            gone: false,
            broken: 0,
        }
    }

    /// Reads the kernel's counters.
    pub fn count(&mut self) {
        if let Ok(more) = self.ring.statistics() {
            self.counted += u64::from(more.packets);
            self.dropped += u64::from(more.drops);
            self.freezes += u64::from(more.freezes);
        }
        let (waiting, blocks) = self.ring.fill();
        self.fill_max = self.fill_max.max(waiting as f64 / blocks as f64);
    }

    /// Whether all counted packets have been read.
    pub fn is_drained(&self) -> bool {
        self.read + self.broken + self.dropped >= self.counted
    }

    /// Returns the next packet, if available, and the offset after it.
    fn peek(&mut self) -> Option<(RingPacket<'_>, usize)> {
        loop {
            let block = self.ring.block(0)?;
            let (at, left) = *self.cursor.get_or_insert((block.first(), block.packets()));
            // A packet that cannot be parsed ends its block.
            let found = if left == 0 { None } else { block.packet(at) };
            if found.is_some() {
                break;
            }
            self.broken += u64::from(left);
            self.cursor = None;
            self.ring.release();
        }
        // Looked up again, because the borrow above cannot leave the loop.
        self.ring.block(0)?.packet(self.cursor?.0)
    }

    fn step(&mut self, next: usize) {
        self.read += 1;
        if let Some((at, left)) = &mut self.cursor {
            (*at, *left) = (next, *left - 1);
            if *left == 0 {
                self.cursor = None;
                self.ring.release();
            }
        }
    }
}

/// Passes available packets to `each` in the order of time; with a single ring, in its order. Rings without
/// packets cannot have any before `bound_ns`. Stops when `each` returns `false`. Returns the number of packets.
pub fn drain(
    sources: &mut [Source],
    bound_ns: u64,
    mut each: impl FnMut(usize, usize, &RingPacket<'_>) -> bool,
) -> u64 {
    if let [only] = sources {
        return drain_single(only, |interface, packet| each(0, interface, packet));
    }
    let mut passed = 0;
    let mut heads: Vec<Option<u64>> =
        sources.iter_mut().map(|source| source.peek().map(|(packet, _)| packet.timestamp_ns)).collect();
    loop {
        let Some((least, &Some(time_ns))) =
            heads.iter().enumerate().filter(|(_, head)| head.is_some()).min_by_key(|(_, head)| **head)
        else {
            return passed;
        };
        if time_ns > bound_ns && heads.iter().any(Option::is_none) {
            return passed;
        }
        let source = &mut sources[least];
        let interface = source.interface;
        let Some((packet, next)) = source.peek() else { return passed };
        let more = each(least, interface, &packet);
        source.step(next);
        passed += 1;
        if !more {
            return passed;
        }
        heads[least] = source.peek().map(|(packet, _)| packet.timestamp_ns);
    }
}

/// Drains a single ring, block by block.
fn drain_single(source: &mut Source, mut each: impl FnMut(usize, &RingPacket<'_>) -> bool) -> u64 {
    let mut passed = 0;
    while let Some(block) = source.ring.block(0) {
        let (mut at, mut left) = source.cursor.take().unwrap_or((block.first(), block.packets()));
        while left > 0 {
            let Some((packet, next)) = block.packet(at) else {
                source.broken += u64::from(left);
                break;
            };
            let more = each(source.interface, &packet);
            (at, left) = (next, left - 1);
            source.read += 1;
            passed += 1;
            if !more {
                if left > 0 {
                    source.cursor = Some((at, left));
                } else {
                    source.ring.release();
                }
                return passed;
            }
        }
        source.ring.release();
    }
    passed
}
