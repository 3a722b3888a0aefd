//! One direction of a path: a sequence of hops.

use landspeed_stats::SplitMix64;

use crate::event::{Event, Frame};
use crate::hop::{Hop, HopCounters};
use crate::path::{DirectionPlan, PlannedChange};

/// Counters of a line. Invariant: `offered + duplicated = delivered + dropped + in_flight`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Frames that arrived, dropped ones included.
    pub offered: u64,
    /// Bytes offered, from the Ethernet header on.
    pub offered_bytes: u64,
    /// Frames delivered, including copies.
    pub delivered: u64,
    /// Bytes delivered, from the Ethernet header on.
    pub delivered_bytes: u64,
    /// Frames dropped or lost in any hop.
    pub dropped: u64,
    /// Copies added by links.
    pub duplicated: u64,
    /// Frames delivered after a frame that was offered later.
    pub reordered: u64,
    /// Frames in queues and on links.
    pub in_flight: u64,
}

/// One direction of a path. `T` is the caller's handle of a frame.
#[derive(Debug)]
pub struct DirectionModel<T> {
    hops: Vec<Hop<T>>,
    /// Changes in the order of time, and how many have been made.
    changes: Vec<PlannedChange>,
    changed: usize,
    now_ns: u64,
    counters: DirectionCounters,
    /// Highest sequence number delivered, plus one.
    highest: u64,
}

impl<T: Copy> DirectionModel<T> {
    /// Creates an empty line. Its random numbers depend on `seed` only.
    pub fn new(plan: &DirectionPlan, seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        let hops = plan.hops.iter().map(|hop| Hop::new(hop, SplitMix64::new(seeds.bits()))).collect();
        let changes = plan.changes().to_vec();
        Self { hops, changes, changed: 0, now_ns: 0, counters: DirectionCounters::default(), highest: 0 }
    }

    /// Adds a frame that arrives at `now_ns`; if that is before an earlier call's time, the earlier call's time is
    /// used. Appends the resulting events. Returns the frame's sequence number.
    pub fn offer(&mut self, now_ns: u64, frame: Frame<T>, events: &mut Vec<Event<T>>) -> u64 {
        let before = events.len();
        self.advance(now_ns, events);
        let number = self.counters.offered;
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(frame.bytes);
        let frame = Frame { offered_ns: self.now_ns, number, marked: false, ..frame };
        self.hops[0].arrive(self.now_ns, frame, events);
        self.count(&events[before..]);
        number
    }

    /// Earliest time at which a frame may leave, nanoseconds: a lower bound of the next departure.
    pub fn next_departure(&self) -> Option<u64> {
        let mut least_ns = 0_u64;
        let mut next: Option<u64> = None;
        for hop in self.hops.iter().rev() {
            let arrival_ns = hop.wire.next_arrival().map(|at_ns| at_ns.saturating_add(least_ns));
            least_ns = least_ns.saturating_add(hop.wire.min_delay_ns());
            let action_ns = hop.next_action().map(|at_ns| at_ns.saturating_add(least_ns));
            next = [next, arrival_ns, action_ns].into_iter().flatten().min();
        }
        // After a change, frames may leave earlier.
        let change_ns = self.changes.get(self.changed).map(|change| change.at_ns);
        next.map(|at_ns| change_ns.map_or(at_ns, |change_ns| at_ns.min(change_ns)))
    }

    /// Appends the events up to `now_ns` (departures, drops, copies) in the order of time.
    pub fn take(&mut self, now_ns: u64, events: &mut Vec<Event<T>>) {
        let before = events.len();
        self.advance(now_ns, events);
        self.count(&events[before..]);
    }

    /// Advances the model to `now_ns`.
    fn advance(&mut self, now_ns: u64, events: &mut Vec<Event<T>>) {
        self.now_ns = self.now_ns.max(now_ns);
        let last = self.hops.len() - 1;
        // Handle events by time; at the same time, those of later hops first.
        loop {
            let next = self.next_event().filter(|(at_ns, ..)| *at_ns <= self.now_ns);
            // Changes come before what happens to frames at the same time.
            if let Some(change) = self.changes.get(self.changed)
                && change.at_ns <= next.map_or(self.now_ns, |(at_ns, ..)| at_ns)
            {
                self.hops[change.hop].change(change.at_ns, &change.change, events);
                self.changed += 1;
                continue;
            }
            let Some((at_ns, index, arrives)) = next else { break };
            if !arrives {
                self.hops[index].perform_action(at_ns, events);
            } else if let Some((at_ns, frame)) = self.hops[index].wire.arrive(at_ns) {
                if index == last {
                    self.counters.reordered += u64::from(frame.number + 1 < self.highest);
                    self.highest = self.highest.max(frame.number + 1);
                    events.push(Event::Deliver { frame, due_ns: at_ns });
                } else {
                    self.hops[index + 1].arrive(at_ns, frame, events);
                }
            }
        }
    }

    /// Time and hop of the next event, and whether it is an arrival at the end of that hop.
    fn next_event(&self) -> Option<(u64, usize, bool)> {
        let mut next: Option<(u64, usize, bool)> = None;
        for (index, hop) in self.hops.iter().enumerate().rev() {
            for (at_ns, arrives) in [(hop.wire.next_arrival(), true), (hop.next_action(), false)] {
                if let Some(at_ns) = at_ns
                    && next.is_none_or(|(first_ns, ..)| at_ns < first_ns)
                {
                    next = Some((at_ns, index, arrives));
                }
            }
        }
        next
    }

    fn count(&mut self, events: &[Event<T>]) {
        for event in events {
            match event {
                Event::Deliver { frame, .. } => {
                    self.counters.delivered += 1;
                    self.counters.delivered_bytes += u64::from(frame.bytes);
                }
                Event::Copy { .. } => self.counters.duplicated += 1,
                Event::Drop { .. } => self.counters.dropped += 1,
            }
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> DirectionCounters {
        DirectionCounters { in_flight: self.hops.iter().map(Hop::in_flight).sum(), ..self.counters }
    }

    /// Queued bytes and frames of a hop, at the time to which the model has advanced.
    pub fn waiting(&self, hop: usize) -> (u64, u64) {
        self.hops[hop].waiting()
    }

    /// Frames of a hop: queued, being sent and in flight.
    pub fn held(&self, hop: usize) -> u64 {
        self.hops[hop].in_flight()
    }

    /// Number of changes that have been made.
    pub fn changes_made(&self) -> usize {
        self.changed
    }

    /// Counters of each hop, in the order of the path.
    pub fn hops(&self) -> impl Iterator<Item = HopCounters> + '_ {
        self.hops.iter().map(|hop| hop.counters)
    }
}
