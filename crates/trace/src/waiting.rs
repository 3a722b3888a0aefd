//! Packets of one tap that wait for the other one to show them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::pairing::Seen;

/// Places further on where twins of a fingerprint wait: what is sent twice alike arrives in the order sent.
const TWINS: u64 = 64;

/// Where a packet is. Places are used again, each time for another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    at: u32,
    turn: u32,
}

/// A place and who has it.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    seen: Seen,
    print: u64,
    turn: u32,
    /// Whether others of its fingerprint may wait behind it.
    twins: bool,
}

/// The packets. What is looked up for each of them is kept small, and what is large is used again soon, so that both stay in a
/// core's cache.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By fingerprint.
    index: HashMap<u64, u32, FixedState>,
    kept: Vec<Kept>,
    free: Vec<u32>,
    /// Times and places in the order read, of those too that do not wait any more.
    order: VecDeque<(i64, Place)>,
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
        let place = match self.index.entry(print) {
            Entry::Vacant(vacant) => {
                let place = keep(&mut self.kept, &mut self.free, Kept { seen, print, turn: 0, twins: false });
                vacant.insert(place.at);
                place
            }
            Entry::Occupied(first) => {
                let first = *first.get();
                let Some(place) = self.put_behind(first, print, seen) else { return false };
                place
            }
        };
        self.order.push_back((seen.time_ns, place));
        true
    }

    #[cold]
    fn put_behind(&mut self, first: u32, print: u64, seen: Seen) -> Option<Place> {
        self.kept[first as usize].twins = true;
        let free = (0..TWINS).map(|number| twin(print, number)).find(|print| !self.index.contains_key(print))?;
        let place = keep(&mut self.kept, &mut self.free, Kept { seen, print, turn: 0, twins: true });
        self.index.insert(free, place.at);
        Some(place)
    }

    fn release(&mut self, at: u32) -> Seen {
        let kept = &mut self.kept[at as usize];
        kept.turn = kept.turn.wrapping_add(1);
        let seen = kept.seen;
        self.free.push(at);
        seen
    }

    /// Takes the packet of a fingerprint; of twins the least unusual one, then the oldest.
    #[inline]
    pub fn take_best(&mut self, print: u64, unusual: impl Fn(&Seen) -> i64) -> Option<Seen> {
        let Entry::Occupied(only) = self.index.entry(print) else { return None };
        if self.kept[*only.get() as usize].twins {
            return self.take_of_twins(print, unusual);
        }
        let at = only.remove();
        Some(self.release(at))
    }

    #[cold]
    fn take_of_twins(&mut self, print: u64, unusual: impl Fn(&Seen) -> i64) -> Option<Seen> {
        let seen = |number| self.index.get(&twin(print, number)).map(|&at| &self.kept[at as usize].seen);
        let twins = (0..TWINS).map_while(|number| seen(number).map(|other| (number, unusual(other))));
        let (number, _) = twins.min_by_key(|&(_, unusual)| unusual)?;
        self.take(print, number)
    }

    /// Takes one of the packets of a fingerprint, the oldest being number 0, and moves its younger twins up.
    fn take(&mut self, print: u64, number: u64) -> Option<Seen> {
        let taken = self.index.remove(&twin(print, number))?;
        for number in number + 1..TWINS {
            let Some(next) = self.index.remove(&twin(print, number)) else { break };
            self.index.insert(twin(print, number - 1), next);
        }
        Some(self.release(taken))
    }

    /// When the packet that was kept first passed, whether it still waits or not.
    #[inline]
    pub fn oldest(&self) -> Option<i64> {
        self.order.front().map(|&(time_ns, _)| time_ns)
    }

    /// Forgets the packet that was kept first, and returns it if it still waits.
    #[inline]
    pub fn take_oldest(&mut self) -> Option<Seen> {
        let (_, place) = self.order.pop_front()?;
        let kept = &self.kept[place.at as usize];
        if kept.turn != place.turn {
            return None;
        }
        // Twins move up in the order of their age: if it still waits, it is the first of them.
        let print = kept.print;
        if self.index.get(&print) == Some(&place.at) { self.take(print, 0) } else { None }
    }
}

#[inline]
fn keep(all: &mut Vec<Kept>, free: &mut Vec<u32>, new: Kept) -> Place {
    let Some(at) = free.pop() else {
        all.push(new);
        return Place { at: all.len() as u32 - 1, turn: new.turn };
    };
    let kept = &mut all[at as usize];
    let turn = kept.turn;
    *kept = Kept { turn, ..new };
    Place { at, turn }
}
