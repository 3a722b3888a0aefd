//! One direction of a link with its policer and queue.

use landspeed_stats::SplitMix64;

use crate::event::{DropCause, Event, Frame};
use crate::path::{Framing, HopChange, HopPlan, QueuePlan};
use crate::policer::TokenBucket;
use crate::queue::{AnyQueue, Codel, Drops, Fifo, FqCodel, Pie, Red};
use crate::serialiser::Serialiser;
use crate::wire::{TransmitOutcome, Wire};

/// Counters of a hop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Frames that arrived.
    pub arrived: u64,
    /// Frames dropped by the policer.
    pub policed: u64,
    /// Frames dropped because the queue was full.
    pub queue_full: u64,
    /// Frames dropped by active queue management.
    pub aqm: u64,
    /// Frames marked CE.
    pub marked: u64,
    /// Frames sent onto the link.
    pub sent: u64,
    /// Bytes sent onto the link, with framing.
    pub sent_bytes: u64,
    /// Frames lost on the link.
    pub lost: u64,
    /// Frames sent while the link was down.
    pub down: u64,
    /// Copies added by the link.
    pub duplicated: u64,
    /// Maximum queue length, bytes.
    pub queue_bytes_max: u64,
    /// Maximum queue length, frames.
    pub queue_packets_max: u64,
    /// Integral of the queue length over time, bytes × nanoseconds.
    pub queue_byte_ns: u128,
}

/// State of the sender of a link.
#[derive(Debug)]
enum Sending<T> {
    /// Idle, because the queue is empty.
    Idle,
    /// Waiting for a delivery opportunity at this time.
    Waiting(u64),
    /// Sending this frame, whose last bit leaves at this time.
    Transmitting(Frame<T>, u64),
}

/// A link with its policer and queue, in one direction.
#[derive(Debug)]
pub(crate) struct Hop<T> {
    policer: Option<TokenBucket>,
    queue: AnyQueue<T>,
    serialiser: Serialiser,
    framing: Framing,
    sending: Sending<T>,
    pub(crate) wire: Wire<T>,
    pub(crate) counters: HopCounters,
    drops: Drops<T>,
    changed_ns: u64,
    /// Source of random numbers for queues that events bring.
    seed: SplitMix64,
}

fn build_queue<T: Copy>(plan: &QueuePlan, seed: &mut SplitMix64) -> AnyQueue<T> {
    let mut random = || SplitMix64::new(seed.bits());
    match plan {
        QueuePlan::Bytes(limit) => AnyQueue::Fifo(Fifo::of_bytes(*limit)),
        QueuePlan::Packets(limit) => AnyQueue::Fifo(Fifo::of_packets(*limit)),
        QueuePlan::Red(settings) => AnyQueue::Red(Red::new(*settings, random())),
        QueuePlan::Codel { settings, packets } => AnyQueue::Codel(Codel::new(*settings, *packets)),
        QueuePlan::FqCodel { settings, packets, quantum } => {
            AnyQueue::FqCodel(Box::new(FqCodel::new(*settings, *packets, *quantum, random().bits())))
        }
        QueuePlan::Pie { packets, target_ns, ecn, frame_bytes } => {
            AnyQueue::Pie(Pie::new(*packets, *target_ns, *ecn, *frame_bytes, random()))
        }
    }
}

impl<T: Copy> Hop<T> {
    pub(crate) fn new(plan: &HopPlan, mut seed: SplitMix64) -> Self {
        let queue = build_queue(&plan.queue, &mut seed);
        let wire = Wire::new(plan.wire.clone(), SplitMix64::new(seed.bits()));
        Self {
            policer: plan.policer.map(|(bps, burst_bytes)| TokenBucket::new(bps, burst_bytes)),
            queue,
            serialiser: Serialiser::new(plan.schedule.clone(), plan.wire.patterns_from_ns),
            framing: plan.framing,
            sending: Sending::Idle,
            wire,
            seed,
            counters: HopCounters::default(),
            drops: Vec::new(),
            changed_ns: 0,
        }
    }

    /// Length of a frame on this link with framing, bytes.
    fn link_bytes(&self, frame: &Frame<T>) -> u64 {
        u64::from(frame.bytes) + self.framing.bytes()
    }

    /// Handles a frame that arrives at `now_ns`.
    pub(crate) fn arrive(&mut self, now_ns: u64, mut frame: Frame<T>, events: &mut Vec<Event<T>>) {
        self.counters.arrived += 1;
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now_ns, frame.bytes)) {
            self.counters.policed += 1;
            events.push(Event::Drop { item: frame.item, cause: DropCause::Policer });
            return;
        }
        frame.queued_ns = now_ns;
        self.account(now_ns);
        self.queue.enqueue(now_ns, frame, &mut self.drops);
        self.report_drops(events);
        if matches!(self.sending, Sending::Idle) {
            self.begin(now_ns, events);
        }
        // The frame being sent does not count towards the queue length.
        self.counters.queue_bytes_max = self.counters.queue_bytes_max.max(self.queue.bytes());
        self.counters.queue_packets_max = self.counters.queue_packets_max.max(self.queue.packets() as u64);
    }

    fn account(&mut self, now_ns: u64) {
        self.counters.queue_byte_ns += u128::from(self.queue.bytes()) * u128::from(now_ns - self.changed_ns);
        self.changed_ns = now_ns;
    }

    fn report_drops(&mut self, events: &mut Vec<Event<T>>) {
        for (frame, cause) in self.drops.drain(..) {
            match cause {
                DropCause::Aqm => self.counters.aqm += 1,
                _ => self.counters.queue_full += 1,
            }
            events.push(Event::Drop { item: frame.item, cause });
        }
    }

    /// Starts to send the next frame, if there is one and the schedule allows it.
    fn begin(&mut self, now_ns: u64, events: &mut Vec<Event<T>>) {
        self.sending = Sending::Idle;
        if self.queue.packets() == 0 {
            return;
        }
        let start_ns = self.serialiser.start(now_ns);
        if start_ns > now_ns {
            self.sending = Sending::Waiting(start_ns);
            return;
        }
        self.account(now_ns);
        let frame = self.queue.dequeue(now_ns, &mut self.drops);
        self.report_drops(events);
        if let Some(frame) = frame {
            let bits = self.link_bytes(&frame) * 8;
            let ip_bytes = frame.bytes.saturating_sub(crate::frame::ETHERNET_HEADER);
            let end_ns = self.serialiser.send(now_ns, bits, u64::from(ip_bytes));
            self.sending = Sending::Transmitting(frame, end_ns);
        }
    }

    /// Changes the link and its queue at `now_ns`. The frame that is being sent ends as it would have; waiting frames
    /// move to a new queue in order.
    pub(crate) fn change(&mut self, now_ns: u64, change: &HopChange, events: &mut Vec<Event<T>>) {
        self.wire.change(change);
        if let Some(plan) = &change.queue {
            self.account(now_ns);
            let mut old = std::mem::replace(&mut self.queue, build_queue(plan, &mut self.seed));
            while let Some(frame) = old.dequeue(now_ns, &mut self.drops) {
                self.queue.enqueue(now_ns, frame, &mut self.drops);
            }
            self.report_drops(events);
        }
        if let Some(rate_bps) = change.rate_bps {
            self.serialiser.set_rate(rate_bps);
            if matches!(self.sending, Sending::Waiting(_)) {
                self.begin(now_ns, events);
            }
        }
    }

    /// Queued bytes and frames, at the time to which the model has advanced.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        (self.queue.bytes(), self.queue.packets() as u64)
    }

    /// Time of the next action; `None` if idle.
    pub(crate) fn next_action(&self) -> Option<u64> {
        match self.sending {
            Sending::Idle => None,
            Sending::Waiting(at_ns) | Sending::Transmitting(_, at_ns) => Some(at_ns),
        }
    }

    /// Performs the action that [`Hop::next_action`] announced for `now_ns`.
    pub(crate) fn perform_action(&mut self, now_ns: u64, events: &mut Vec<Event<T>>) {
        if let Sending::Transmitting(frame, _) = std::mem::replace(&mut self.sending, Sending::Idle) {
            self.counters.sent += 1;
            self.counters.sent_bytes += self.link_bytes(&frame);
            self.counters.marked += u64::from(frame.marked);
            match self.wire.draw_outcome(now_ns, &frame) {
                TransmitOutcome::Lost => {
                    self.counters.lost += 1;
                    events.push(Event::Drop { item: frame.item, cause: DropCause::Lost });
                }
                TransmitOutcome::Down => {
                    self.counters.down += 1;
                    events.push(Event::Drop { item: frame.item, cause: DropCause::LinkDown });
                }
                TransmitOutcome::Passes { copies } => {
                    self.wire.put_in_flight(now_ns, frame);
                    for _ in 1..copies {
                        self.counters.duplicated += 1;
                        events.push(Event::Copy { item: frame.item });
                        self.wire.put_in_flight(now_ns, frame);
                    }
                }
            }
        }
        self.begin(now_ns, events);
    }

    /// Number of frames in the hop: queued, being sent, in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        let sending = usize::from(matches!(self.sending, Sending::Transmitting(..)));
        (self.queue.packets() + sending + self.wire.in_flight()) as u64
    }
}
