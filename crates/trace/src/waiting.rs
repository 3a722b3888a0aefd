//! Packets of one tap that wait for their match at the other.

use std::collections::VecDeque;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Maximum number of twins (identical packets) compared; they usually arrive in the order sent.
const MAX_TWINS_COMPARED: usize = 64;

/// A packet at one tap, not yet matched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TapPacket {
    pub time_ns: i64,
    pub rank: u64,
    pub flow: u32,
    pub upward: bool,
    pub data: bool,
    /// TCP sequence number; 0 for UDP.
    pub sequence: u32,
    pub payload: u32,
    pub identification: u16,
    /// Number of its frame, from 1.
    pub frame: u32,
}

/// A packet, linked to its twins.
#[derive(Debug, Clone, Copy)]
struct UnmatchedPacket {
    seen: TapPacket,
    print: u64,
    waits: bool,
    /// Number of the next younger waiting twin; its own if there is none.
    next: u32,
    /// In the oldest twin: number of the youngest.
    last: u32,
}

/// The packets, in the order read, and leaving in nearly that order: memory is accessed sequentially. Only the
/// index is accessed at random, and with four bytes per waiting fingerprint it fits a core's cache.
#[derive(Debug, Default)]
pub struct UnmatchedPackets {
    /// Number of the oldest waiting packet, by fingerprint.
    index: HashTable<u32>,
    /// All packets since the oldest one kept, also those that no longer wait.
    kept: VecDeque<UnmatchedPacket>,
    /// Number of the oldest packet kept.
    first: u32,
    waiting: usize,
}

impl UnmatchedPackets {
    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a packet after its twins.
    #[inline]
    pub fn put(&mut self, print: u64, seen: TapPacket) {
        let Self { index, kept, first, waiting } = self;
        let at = |number: u32| number.wrapping_sub(*first) as usize;
        let number = first.wrapping_add(kept.len() as u32);
        *waiting += 1;
        match index.entry(print, |&number| kept[at(number)].print == print, |&number| kept[at(number)].print) {
            Entry::Vacant(entry) => {
                entry.insert(number);
            }
            Entry::Occupied(entry) => {
                let oldest = at(*entry.get());
                let last = at(kept[oldest].last);
                kept[last].next = number;
                kept[oldest].last = number;
            }
        }
        kept.push_back(UnmatchedPacket { seen, print, waits: true, next: number, last: number });
    }

    /// Takes the packet with a fingerprint: of twins the least unusual one, then the oldest.
    #[inline]
    pub fn take_best_match(&mut self, print: u64, unusual: impl Fn(&TapPacket) -> i64) -> Option<TapPacket> {
        let Self { index, kept, first, waiting } = self;
        let at = |number: u32| number.wrapping_sub(*first) as usize;
        let entry = index.find_entry(print, |&number| kept[at(number)].print == print).ok()?;
        let oldest = *entry.get();
        if kept[at(oldest)].next == oldest {
            entry.remove();
            *waiting -= 1;
            let taken = &mut kept[at(oldest)];
            taken.waits = false;
            return Some(taken.seen);
        }
        Some(self.take_of_twins(oldest, unusual))
    }

    #[cold]
    fn take_of_twins(&mut self, oldest: u32, unusual: impl Fn(&TapPacket) -> i64) -> TapPacket {
        let at = |number: u32| number.wrapping_sub(self.first) as usize;
        let next = |number: u32| Some(self.kept[at(number)].next).filter(|&next| next != number);
        let twins = std::iter::successors(Some(oldest), |&number| next(number)).take(MAX_TWINS_COMPARED);
        let best = twins.min_by_key(|&number| unusual(&self.kept[at(number)].seen)).unwrap_or(oldest);
        let seen = self.kept[at(best)].seen;
        self.unlink(oldest, best);
        seen
    }

    /// Removes a twin from the list that begins with `oldest`.
    fn unlink(&mut self, oldest: u32, number: u32) {
        let Self { index, kept, first, waiting } = self;
        let at = |number: u32| number.wrapping_sub(*first) as usize;
        *waiting -= 1;
        kept[at(number)].waits = false;
        let UnmatchedPacket { next, print, .. } = kept[at(number)];
        if number == oldest {
            let last = kept[at(oldest)].last;
            if let Ok(mut entry) = index.find_entry(print, |&number| number == oldest) {
                if next == oldest {
                    entry.remove();
                } else {
                    *entry.get_mut() = next;
                    kept[at(next)].last = last;
                }
            }
            return;
        }
        let mut before = oldest;
        while kept[at(before)].next != number {
            before = kept[at(before)].next;
        }
        let is_last = next == number;
        kept[at(before)].next = if is_last { before } else { next };
        if is_last {
            kept[at(oldest)].last = before;
        }
    }

    /// Returns the timestamp of the oldest packet kept, waiting or not.
    #[inline]
    pub fn oldest(&self) -> Option<i64> {
        self.kept.front().map(|kept| kept.seen.time_ns)
    }

    /// Drops the oldest packet kept, and returns it if it still waits.
    #[inline]
    pub fn take_oldest(&mut self) -> Option<TapPacket> {
        let oldest = *self.kept.front()?;
        if oldest.waits {
            // It is also the oldest of its twins.
            self.unlink(self.first, self.first);
        }
        self.kept.pop_front();
        self.first = self.first.wrapping_add(1);
        oldest.waits.then_some(oldest.seen)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(time_ns: i64) -> TapPacket {
        TapPacket { time_ns, ..TapPacket::default() }
    }

    #[test]
    fn identical_packets_leave_in_order() {
        let mut waiting = UnmatchedPackets::default();
        (0..1_000).for_each(|time_ns| waiting.put(7, seen(time_ns)));
        assert_eq!(waiting.len(), 1_000);
        for time_ns in 0..500 {
            assert_eq!(waiting.take_best_match(7, |_| 0).map(|seen| seen.time_ns), Some(time_ns));
        }
        let mut remaining = Vec::new();
        while waiting.oldest().is_some() {
            remaining.extend(waiting.take_oldest().map(|seen| seen.time_ns));
        }
        assert_eq!((remaining, waiting.len()), ((500..1_000).collect(), 0));
    }

    proptest! {
        /// Compares the result with one list per fingerprint.
        #[test]
        fn identical_packets_behave_like_a_list(steps in prop::collection::vec((0_u8..4, 0_u64..3, 0_i64..50), 1..400)) {
            let mut waiting = UnmatchedPackets::default();
            let mut lists: Vec<Vec<i64>> = vec![Vec::new(); 3];
            let mut order: VecDeque<(u64, i64)> = VecDeque::new();
            for (number, (step, print, wanted)) in steps.into_iter().enumerate() {
                let list = &mut lists[print as usize];
                match step {
                    0 | 1 => {
                        waiting.put(print, seen(number as i64));
                        list.push(number as i64);
                        order.push_back((print, number as i64));
                    }
                    2 => {
                        let best = list.iter().copied().take(MAX_TWINS_COMPARED).min_by_key(|time_ns| (time_ns - wanted).abs());
                        let taken = waiting.take_best_match(print, |seen| (seen.time_ns - wanted).abs());
                        prop_assert_eq!(taken.map(|seen| seen.time_ns), best);
                        list.retain(|&time_ns| Some(time_ns) != best);
                    }
                    _ => {
                        let front = order.pop_front();
                        let waits = front.filter(|(print, time_ns)| lists[*print as usize].contains(time_ns));
                        prop_assert_eq!(waiting.take_oldest().map(|seen| seen.time_ns), waits.map(|(_, time_ns)| time_ns));
                        if let Some((print, time_ns)) = waits {
                            lists[print as usize].retain(|&other| other != time_ns);
                        }
                    }
                }
                prop_assert_eq!(waiting.len(), lists.iter().map(Vec::len).sum::<usize>());
            }
        }
    }
}
