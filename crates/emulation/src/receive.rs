//! Receive path of a host as queueing stages: a NIC ring, interrupt moderation, and NAPI polls on one core.
//!
//! A frame takes a descriptor of the ring when it arrives, and is dropped if none is free. An interrupt starts a poll,
//! which processes one frame after the other, and returns the descriptor of each. At the end of a poll (the ring is
//! empty, or the budget is used) GRO passes on what it merged. The next poll follows at once while frames wait.

use std::collections::VecDeque;

use landspeed_stats::SplitMix64;

/// Picoseconds per nanosecond.
const PS_PER_NS: u64 = 1_000;
/// Largest payload of a packet that GRO merges, bytes (`GRO_LEGACY_MAX_SIZE` without headers).
const MERGED_BYTES: u32 = 65_400;

/// Settings of a receive path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveSettings {
    /// Descriptors of the ring; at least 1.
    pub ring: usize,
    /// Cost of a frame, picoseconds.
    pub packet_ps: u64,
    /// Cost of a byte, picoseconds.
    pub byte_ps: u64,
    /// Cost of a packet that GRO passes on, merged or not, picoseconds.
    pub merged_ps: u64,
    /// Time from the arrival of a frame at an empty ring to the interrupt, nanoseconds.
    pub moderation_ns: u64,
    /// Number of waiting frames that cause the interrupt earlier.
    pub moderation_packets: usize,
    /// Maximum number of frames of a poll; at least 1.
    pub budget: usize,
    /// Whether GRO merges the TCP segments of a poll.
    pub gro: bool,
    /// Maximum of the random delay of a poll after its interrupt, nanoseconds.
    pub noise_ns: u64,
}

/// A frame on the receive path. `T` is the caller's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedPacket<T> {
    /// Handle by which the caller finds the frame.
    pub item: T,
    /// Length from the Ethernet header on, without the FCS, bytes.
    pub bytes: u32,
    /// Hash of the flow: GRO merges segments of one flow only.
    pub flow: u32,
    /// Payload of a TCP segment that GRO may merge, bytes; 0 for all other frames.
    pub payload: u32,
}

/// Counters of a receive path. Invariant: `arrived = delivered + dropped + held`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Frames that arrived, dropped ones included.
    pub arrived: u64,
    /// Frames dropped because no descriptor was free.
    pub dropped: u64,
    /// Frames that left the receive path for the kernel.
    pub delivered: u64,
    /// Bytes of these, from the Ethernet header on.
    pub delivered_bytes: u64,
    /// Packets passed on by GRO.
    pub merged: u64,
    /// Interrupts raised after moderation.
    pub interrupts: u64,
    /// NAPI polls, each of at most the budget.
    pub polls: u64,
    /// Maximum number of descriptors in use.
    pub ring_max: u64,
}

/// State of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PollState {
    /// The ring is empty, and its interrupt is enabled.
    Idle,
    /// The interrupt, or the poll after it, is due at this time.
    Armed(u64),
    /// The first frame of the ring is processed until this time.
    Processing(u64),
    /// GRO passes on what it merged until this time.
    Flushing(u64),
}

/// The receive path of a host.
#[derive(Debug)]
pub struct ReceivePath<T> {
    settings: ReceiveSettings,
    state: PollState,
    /// Frames with a descriptor.
    ring: VecDeque<ReceivedPacket<T>>,
    /// Frames of the current poll that are processed and not yet passed on.
    polled: Vec<ReceivedPacket<T>>,
    /// Open GRO packets of the current poll: flow, payload so far, payload of the first segment.
    open: Vec<(u32, u32, u32)>,
    /// GRO packets of the current poll.
    merged: u64,
    noise: SplitMix64,
    now_ns: u64,
    /// Part of a nanosecond that the work so far took beyond its whole nanoseconds, picoseconds.
    fraction_ps: u64,
    /// Time of finished work, nanoseconds.
    worked_ns: u64,
    /// Start of the current work.
    work_start_ns: u64,
    counters: ReceiveCounters,
}

impl<T: Copy> ReceivePath<T> {
    /// Creates an idle receive path. Its noise depends on `seed` only.
    pub fn new(settings: ReceiveSettings, seed: u64) -> Self {
        Self {
            settings,
            state: PollState::Idle,
            ring: VecDeque::new(),
            polled: Vec::new(),
            open: Vec::new(),
            merged: 0,
            noise: SplitMix64::new(seed),
            now_ns: 0,
            fraction_ps: 0,
            worked_ns: 0,
            work_start_ns: 0,
            counters: ReceiveCounters::default(),
        }
    }

    /// Takes a frame that arrives at `now_ns`, after what is due until then, which is appended to `delivered` with its
    /// times. Returns whether the frame got a descriptor; otherwise it is dropped.
    pub fn offer(&mut self, now_ns: u64, frame: ReceivedPacket<T>, delivered: &mut Vec<(T, u64)>) -> bool {
        self.take(now_ns, delivered);
        self.counters.arrived += 1;
        if self.ring.len() >= self.settings.ring {
            self.counters.dropped += 1;
            return false;
        }
        self.ring.push_back(frame);
        self.counters.ring_max = self.counters.ring_max.max(self.ring.len() as u64);
        let waiting = self.ring.len();
        match self.state {
            PollState::Idle if waiting >= self.settings.moderation_packets => self.interrupt(self.now_ns),
            PollState::Idle => self.interrupt(self.now_ns + self.settings.moderation_ns),
            PollState::Armed(_) if waiting == self.settings.moderation_packets => self.interrupt(self.now_ns),
            _ => {}
        }
        true
    }

    /// Arms the poll of an interrupt at `at_ns`.
    fn interrupt(&mut self, at_ns: u64) {
        let noise_ns = if self.settings.noise_ns > 0 { self.noise.below(self.settings.noise_ns + 1) } else { 0 };
        self.state = PollState::Armed(at_ns + noise_ns);
    }

    /// Time of the next action; `None` if idle. Frames leave no earlier.
    pub fn next_action(&self) -> Option<u64> {
        match self.state {
            PollState::Idle => None,
            PollState::Armed(at_ns) | PollState::Processing(at_ns) | PollState::Flushing(at_ns) => Some(at_ns),
        }
    }

    /// Advances to `now_ns`. Appends the frames that are passed on, with their times.
    pub fn take(&mut self, now_ns: u64, delivered: &mut Vec<(T, u64)>) {
        self.now_ns = self.now_ns.max(now_ns);
        while let Some(at_ns) = self.next_action().filter(|at_ns| *at_ns <= self.now_ns) {
            match self.state {
                PollState::Idle => {}
                PollState::Armed(_) => {
                    self.counters.interrupts += 1;
                    self.begin_poll(at_ns);
                }
                PollState::Processing(_) => {
                    self.worked_ns += at_ns - self.work_start_ns;
                    if let Some(frame) = self.ring.pop_front() {
                        self.merge(&frame);
                        self.polled.push(frame);
                    }
                    if self.ring.is_empty() || self.polled.len() >= self.settings.budget {
                        let cost_ps = self.merged * self.settings.merged_ps;
                        self.state = PollState::Flushing(self.work(at_ns, cost_ps));
                    } else {
                        self.process(at_ns);
                    }
                }
                PollState::Flushing(_) => {
                    self.worked_ns += at_ns - self.work_start_ns;
                    self.counters.merged += self.merged;
                    self.counters.delivered += self.polled.len() as u64;
                    self.counters.delivered_bytes +=
                        self.polled.iter().map(|frame| u64::from(frame.bytes)).sum::<u64>();
                    delivered.extend(self.polled.drain(..).map(|frame| (frame.item, at_ns)));
                    if self.ring.is_empty() {
                        self.state = PollState::Idle;
                        self.fraction_ps = 0;
                    } else {
                        self.begin_poll(at_ns);
                    }
                }
            }
        }
    }

    fn begin_poll(&mut self, at_ns: u64) {
        self.counters.polls += 1;
        self.merged = 0;
        self.open.clear();
        self.process(at_ns);
    }

    /// Starts to process the first frame of the ring.
    fn process(&mut self, at_ns: u64) {
        let bytes = self.ring.front().map_or(0, |frame| u64::from(frame.bytes));
        let cost_ps = self.settings.packet_ps + self.settings.byte_ps * bytes;
        self.state = PollState::Processing(self.work(at_ns, cost_ps));
    }

    /// Starts work at `at_ns`; returns its end, rounded down to nanoseconds. Fractions carry over.
    fn work(&mut self, at_ns: u64, cost_ps: u64) -> u64 {
        self.work_start_ns = at_ns;
        let total_ps = self.fraction_ps + cost_ps;
        self.fraction_ps = total_ps % PS_PER_NS;
        at_ns + total_ps / PS_PER_NS
    }

    /// Merges a frame into an open GRO packet of its flow, or counts another packet.
    fn merge(&mut self, frame: &ReceivedPacket<T>) {
        let position = self.open.iter().position(|(flow, ..)| *flow == frame.flow);
        if !self.settings.gro || frame.payload == 0 {
            // A packet that cannot be merged ends that of its flow.
            self.merged += 1;
            if let Some(position) = position {
                self.open.swap_remove(position);
            }
            return;
        }
        if let Some(position) = position {
            let (_, bytes, first) = &mut self.open[position];
            let joins = frame.payload <= *first && *bytes + frame.payload <= MERGED_BYTES;
            *bytes += frame.payload;
            let (joined, ends) = (joins, frame.payload < *first);
            if !joined || ends {
                self.open.swap_remove(position);
            }
            if joined {
                return;
            }
        }
        self.merged += 1;
        self.open.push((frame.flow, frame.payload, frame.payload));
    }

    /// Time that the core worked until the time to which the path has advanced, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        match self.state {
            PollState::Processing(_) | PollState::Flushing(_) => self.worked_ns + (self.now_ns - self.work_start_ns),
            PollState::Idle | PollState::Armed(_) => self.worked_ns,
        }
    }

    /// Frames that wait, are processed, or are processed and not yet passed on.
    pub fn held(&self) -> u64 {
        (self.ring.len() + self.polled.len()) as u64
    }

    /// Counters since the start.
    pub fn counters(&self) -> ReceiveCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ReceiveSettings = ReceiveSettings {
        ring: 4,
        packet_ps: 1_000_000,
        byte_ps: 0,
        merged_ps: 0,
        moderation_ns: 0,
        moderation_packets: usize::MAX,
        budget: 64,
        gro: false,
        noise_ns: 0,
    };

    fn datagram(item: usize) -> ReceivedPacket<usize> {
        ReceivedPacket { item, bytes: 1000, flow: 1, payload: 0 }
    }

    fn segment(item: usize, payload: u32) -> ReceivedPacket<usize> {
        ReceivedPacket { item, bytes: payload + 66, flow: 1, payload }
    }

    /// Times at which the frames of a burst are passed on.
    fn burst(settings: ReceiveSettings, frames: &[ReceivedPacket<usize>]) -> (Vec<u64>, ReceivePath<usize>) {
        let mut path = ReceivePath::new(settings, 1);
        let mut delivered = Vec::new();
        for frame in frames {
            path.offer(0, *frame, &mut delivered);
        }
        path.take(u64::MAX / 2, &mut delivered);
        (delivered.into_iter().map(|(_, at_ns)| at_ns).collect(), path)
    }

    #[test]
    fn a_burst_beyond_the_ring_is_dropped() {
        let frames: Vec<_> = (0..10).map(datagram).collect();
        let (times, path) = burst(SETTINGS, &frames);
        assert_eq!(times, [4_000; 4], "the poll passes on what it processed at its end");
        let counters = path.counters();
        assert_eq!((counters.dropped, counters.delivered, counters.polls), (6, 4, 1));
        assert_eq!(path.busy_ns(), 4_000);
    }

    #[test]
    fn overload_delivers_at_the_capacity_of_the_core() {
        // 1.3 µs for each frame, one every 1 µs.
        let settings = ReceiveSettings { packet_ps: 300_500, byte_ps: 1_000, ring: 64, ..SETTINGS };
        let mut path = ReceivePath::new(settings, 1);
        let mut delivered = Vec::new();
        let frames = 1_000_000_u64;
        for number in 0..frames {
            path.offer(number * 1_000, datagram(number as usize), &mut delivered);
        }
        let capacity = frames as f64 * 1_000.0 / 1_300.5;
        let error = path.counters().delivered as f64 / capacity - 1.0;
        assert!(error.abs() < 1e-3, "{error:+.2e}");
        let counters = path.counters();
        assert_eq!(counters.arrived, counters.delivered + counters.dropped + path.held());
        assert!(delivered.is_sorted_by_key(|(item, _)| *item), "in order");
    }

    #[test]
    fn moderation_delays_a_lone_frame_and_not_a_burst() {
        let settings = ReceiveSettings { moderation_ns: 50_000, moderation_packets: 3, ..SETTINGS };
        assert_eq!(burst(settings, &[datagram(0)]).0, [51_000]);
        assert_eq!(burst(settings, &[datagram(0), datagram(1), datagram(2)]).0, [3_000; 3]);
    }

    #[test]
    fn gro_merges_full_segments_of_a_flow() {
        let settings = ReceiveSettings { gro: true, merged_ps: 10_000_000, ring: 100, ..SETTINGS };
        let many: Vec<_> = (0..50).map(|item| segment(item, 1448)).collect();
        // 45 segments fill a packet of 65,400 bytes.
        assert_eq!(burst(settings, &many).1.counters().merged, 2);
        let mixed = [segment(0, 1448), segment(1, 1448), segment(2, 100), segment(3, 1448)];
        let (times, path) = burst(settings, &mixed);
        assert_eq!(path.counters().merged, 2, "a short segment ends a packet");
        assert_eq!(times, [4_000 + 2 * 10_000; 4]);
        let acks: Vec<_> = (0..3).map(datagram).collect();
        assert_eq!(burst(settings, &acks).1.counters().merged, 3);
    }

    #[test]
    fn polls_end_at_the_budget() {
        let frames: Vec<_> = (0..4).map(datagram).collect();
        let (times, path) = burst(ReceiveSettings { budget: 3, ..SETTINGS }, &frames);
        assert_eq!(times, [3_000, 3_000, 3_000, 4_000]);
        assert_eq!((path.counters().polls, path.counters().interrupts), (2, 1));
    }

    #[test]
    fn busy_time_covers_work_in_progress() {
        let mut path = ReceivePath::new(SETTINGS, 1);
        let mut delivered = Vec::new();
        path.offer(500, datagram(0), &mut delivered);
        path.take(900, &mut delivered);
        assert_eq!((path.busy_ns(), path.held(), path.next_action()), (400, 1, Some(1_500)));
        path.take(5_000, &mut delivered);
        assert_eq!((path.busy_ns(), path.held(), path.next_action()), (1_000, 0, None));
    }

    #[test]
    fn noise_is_repeatable_and_depends_on_the_seed() {
        let settings = ReceiveSettings { noise_ns: 10_000, ..SETTINGS };
        let times = |seed: u64| {
            let mut path = ReceivePath::new(settings, seed);
            let mut delivered = Vec::new();
            (0..100).for_each(|number| {
                path.offer(number * 100_000, datagram(0), &mut delivered);
            });
            delivered.into_iter().map(|(_, at_ns)| at_ns % 100_000).collect::<Vec<u64>>()
        };
        assert_eq!(times(7), times(7));
        assert_ne!(times(7), times(8));
        assert!(times(7).iter().all(|late_ns| (1_000..=11_000).contains(late_ns)));
    }
}
