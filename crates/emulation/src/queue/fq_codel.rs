//! FQ-CoDel: fair queueing with CoDel per flow (RFC 8290).

use std::collections::VecDeque;

use super::codel::{CodelSettings, CodelState};
use super::{Drops, Fifo};
use crate::event::{DropCause, Frame};

/// Number of queues to which flows are hashed (RFC 8290, section 5.2.2).
const QUEUES: usize = 1024;
/// Maximum number of frames dropped at once from the longest queue on overflow (RFC 8290, section 4.1.3, as in
/// Linux).
const BATCH: usize = 64;

#[derive(Debug)]
struct Flow<T> {
    fifo: Fifo<T>,
    state: CodelState,
    credit: i64,
    /// Whether the queue is in the list of new or old flows.
    listed: bool,
}

/// A set of queues, one per flow hash, served by deficit round robin.
#[derive(Debug)]
pub(crate) struct FqCodel<T> {
    flows: Vec<Flow<T>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    settings: CodelSettings,
    limit_packets: usize,
    quantum: i64,
    perturbation: u64,
    packets: usize,
    bytes: u64,
}

impl<T: Copy> FqCodel<T> {
    /// `quantum` is the number of bytes per round; `perturbation` is the seed of the flow hash.
    pub(crate) fn new(settings: CodelSettings, limit_packets: usize, quantum: u64, perturbation: u64) -> Self {
        let flow =
            || Flow { fifo: Fifo::of_packets(usize::MAX), state: CodelState::default(), credit: 0, listed: false };
        Self {
            flows: (0..QUEUES).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            settings,
            limit_packets,
            quantum: quantum as i64,
            perturbation,
            packets: 0,
            bytes: 0,
        }
    }

    fn queue_of(&self, flow: u32) -> usize {
        let mut random = landspeed_stats::SplitMix64::new(u64::from(flow) ^ self.perturbation);
        random.below(QUEUES as u64) as usize
    }

    pub(super) fn enqueue(&mut self, frame: Frame<T>, drops: &mut Drops<T>) {
        let index = self.queue_of(frame.flow);
        self.packets += 1;
        self.bytes += u64::from(frame.bytes);
        let flow = &mut self.flows[index];
        flow.fifo.push(frame);
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.quantum;
            self.new.push_back(index);
        }
        if self.packets > self.limit_packets {
            self.drop_from_longest(drops);
        }
    }

    /// Drops half of the longest queue's frames from its head, at most [`BATCH`].
    fn drop_from_longest(&mut self, drops: &mut Drops<T>) {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.fifo.bytes()) else { return };
        let half = longest.fifo.packets().div_ceil(2).min(BATCH);
        for _ in 0..half {
            let Some(frame) = longest.fifo.pop() else { return };
            self.packets -= 1;
            self.bytes -= u64::from(frame.bytes);
            drops.push((frame, DropCause::QueueFull));
        }
    }

    pub(super) fn dequeue(&mut self, now_ns: u64, drops: &mut Drops<T>) -> Option<Frame<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (flow.fifo.packets(), flow.fifo.bytes());
            let frame = flow.state.dequeue(&self.settings, now_ns, &mut flow.fifo, drops);
            self.packets -= packets - flow.fifo.packets();
            self.bytes -= bytes - flow.fifo.bytes();
            let Some(frame) = frame else {
                list.pop_front();
                // An empty new queue moves to the old ones for a round, so that it cannot become new again at once.
                if is_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            flow.credit -= i64::from(frame.bytes);
            return Some(frame);
        }
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CodelSettings =
        CodelSettings { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: false, frame_bytes: 1514 };

    fn frame(flow: u32, bytes: u32) -> Frame<u32> {
        Frame { flow, ..Frame::new(flow, bytes) }
    }

    #[test]
    fn flows_share_the_link_by_bytes() {
        let mut queue = FqCodel::new(SETTINGS, 10_000, 1514, 3);
        let mut drops = Vec::new();
        for _ in 0..1000 {
            queue.enqueue(frame(1, 1514), &mut drops);
            queue.enqueue(frame(2, 757), &mut drops);
            queue.enqueue(frame(2, 757), &mut drops);
        }
        let mut sent = [0_u64; 3];
        for _ in 0..1500 {
            let frame = queue.dequeue(1_000, &mut drops).expect("backlogged");
            sent[frame.item as usize] += u64::from(frame.bytes);
        }
        assert_eq!(drops, []);
        assert!(sent[1].abs_diff(sent[2]) <= 1514, "{sent:?}");
    }

    #[test]
    fn sparse_flows_are_served_first() {
        let mut queue = FqCodel::new(SETTINGS, 10_000, 1514, 3);
        let mut drops = Vec::new();
        for _ in 0..100 {
            queue.enqueue(frame(1, 1514), &mut drops);
        }
        queue.dequeue(0, &mut drops);
        queue.dequeue(0, &mut drops);
        queue.enqueue(frame(2, 100), &mut drops);
        assert_eq!(queue.dequeue(0, &mut drops).map(|frame| frame.item), Some(2));
    }

    #[test]
    fn overload_drops_from_the_head_of_the_longest_queue() {
        let mut queue = FqCodel::new(SETTINGS, 100, 1514, 3);
        let mut drops = Vec::new();
        queue.enqueue(frame(2, 1514), &mut drops);
        for number in 0..100 {
            queue.enqueue(Frame { number, ..frame(1, 1514) }, &mut drops);
        }
        let numbers: Vec<u64> = drops.iter().map(|(frame, _)| frame.number).collect();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        assert!(drops.iter().all(|(frame, cause)| frame.flow == 1 && *cause == DropCause::QueueFull));
        assert_eq!((queue.packets(), queue.bytes()), (51, 51 * 1514));
    }

    #[test]
    fn emptied_queues_send_nothing_and_can_refill() {
        let mut queue: FqCodel<u32> = FqCodel::new(SETTINGS, 100, 1514, 3);
        let mut drops = Vec::new();
        assert_eq!(queue.dequeue(0, &mut drops), None);
        queue.enqueue(frame(1, 60), &mut drops);
        assert!(queue.dequeue(0, &mut drops).is_some() && queue.dequeue(0, &mut drops).is_none());
        queue.enqueue(frame(1, 60), &mut drops);
        assert!(queue.dequeue(0, &mut drops).is_some(), "an emptied queue comes back");
    }
}
