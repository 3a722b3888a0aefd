//! Packets of one tap that wait for the other one to show them.

use std::collections::VecDeque;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::pairing::Seen;

/// Places further on where twins of a fingerprint wait: what is sent twice alike arrives in the order sent.
const TWINS: u64 = 64;

/// A packet.
#[derive(Debug, Clone, Copy)]
struct Kept {
    seen: Seen,
    /// Its fingerprint, moved on if it is a twin.
    print: u64,
    waits: bool,
    /// Whether others of its fingerprint may wait behind it.
    twins: bool,
}

/// The packets. They are kept in the order read and leave in nearly that order, which memory is good at; what is looked up at
/// random, four bytes for each that waits, fits a core's cache.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Numbers of those that wait, by fingerprint.
    index: HashTable<u32>,
    /// All since the oldest that was not forgotten, also those that do not wait any more.
    kept: VecDeque<Kept>,
    /// The number of the oldest one.
    first: u32,
}

fn twin(print: u64, number: u64) -> u64 {
    print.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Waiting {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Keeps a packet behind its twins. `false` if there are too many of them.
    #[inline]
    pub fn put(&mut self, print: u64, seen: Seen) -> bool {
        let Self { index, kept, first } = self;
        let at = |number: u32| number.wrapping_sub(*first) as usize;
        let occupied =
            match index.entry(print, |&number| kept[at(number)].print == print, |&number| kept[at(number)].print) {
                Entry::Vacant(place) => {
                    place.insert(first.wrapping_add(kept.len() as u32));
                    None
                }
                Entry::Occupied(place) => Some(at(*place.get())),
            };
        if let Some(occupied) = occupied {
            return self.put_behind(occupied, print, seen);
        }
        kept.push_back(Kept { seen, print, waits: true, twins: false });
        true
    }

    #[cold]
    fn put_behind(&mut self, oldest: usize, print: u64, seen: Seen) -> bool {
        self.kept[oldest].twins = true;
        let free = (0..TWINS).map(|number| twin(print, number)).find(|&print| self.find(print).is_none());
        let Some(print) = free else { return false };
        self.insert(print, self.first.wrapping_add(self.kept.len() as u32));
        self.kept.push_back(Kept { seen, print, waits: true, twins: true });
        true
    }

    /// The place of the packet that waits with a fingerprint.
    fn find(&self, print: u64) -> Option<usize> {
        let at = |number: u32| number.wrapping_sub(self.first) as usize;
        self.index.find(print, |&number| self.kept[at(number)].print == print).map(|&number| at(number))
    }

    fn insert(&mut self, print: u64, number: u32) {
        let Self { index, kept, first } = self;
        index.insert_unique(print, number, |&number| kept[number.wrapping_sub(*first) as usize].print);
    }

    /// Takes a packet out of the index. What was kept of it stays until it is the oldest.
    #[inline]
    fn remove(&mut self, print: u64) -> Option<usize> {
        let Self { index, kept, first } = self;
        let at = |number: u32| number.wrapping_sub(*first) as usize;
        let (number, _) = index.find_entry(print, |&number| kept[at(number)].print == print).ok()?.remove();
        Some(at(number))
    }

    /// Takes the packet of a fingerprint; of twins the least unusual one, then the oldest.
    #[inline]
    pub fn take_best(&mut self, print: u64, unusual: impl Fn(&Seen) -> i64) -> Option<Seen> {
        let at = self.remove(print)?;
        let kept = &mut self.kept[at];
        if kept.twins {
            let number = self.first.wrapping_add(at as u32);
            self.insert(print, number);
            return self.take_of_twins(print, unusual);
        }
        kept.waits = false;
        Some(kept.seen)
    }

    #[cold]
    fn take_of_twins(&mut self, print: u64, unusual: impl Fn(&Seen) -> i64) -> Option<Seen> {
        let seen = |number| self.find(twin(print, number)).map(|at| &self.kept[at].seen);
        let twins = (0..TWINS).map_while(|number| seen(number).map(|other| (number, unusual(other))));
        let (number, _) = twins.min_by_key(|&(_, unusual)| unusual)?;
        self.take(print, number)
    }

    /// Takes one of the packets of a fingerprint, the oldest being number 0, and moves its younger twins up.
    fn take(&mut self, print: u64, number: u64) -> Option<Seen> {
        let taken = self.remove(twin(print, number))?;
        self.kept[taken].waits = false;
        for number in number + 1..TWINS {
            let Some(next) = self.remove(twin(print, number)) else { break };
            let print = twin(print, number - 1);
            self.kept[next].print = print;
            self.insert(print, self.first.wrapping_add(next as u32));
        }
        Some(self.kept[taken].seen)
    }

    /// When the packet that was kept first passed, whether it still waits or not.
    #[inline]
    pub fn oldest(&self) -> Option<i64> {
        self.kept.front().map(|kept| kept.seen.time_ns)
    }

    /// Forgets the packet that was kept first, and returns it if it still waits.
    #[inline]
    pub fn take_oldest(&mut self) -> Option<Seen> {
        let oldest = self.kept.front()?;
        // Twins move up in the order of their age: if it waits, it is the first of them.
        let taken = if oldest.waits { self.take(oldest.print, 0) } else { None };
        self.kept.pop_front();
        self.first = self.first.wrapping_add(1);
        taken
    }
}
