//! Taps at both interfaces of the path. Frames are matched by their contents and followed through the model, to
//! measure delays and departure errors.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use landspeed_emulation::{DirectionModel, DirectionPlan, Event, Frame, LoadedPath, frame, predict_store};
use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::frames::{FrameRing, ReceivedFrame};

use super::tree::is_deterministic;
use crate::clock::Converter;
use crate::error::EmulateError;
use crate::seconds::Seconds;

/// Captured bytes of each frame: headers, and enough payload to tell datagrams apart.
const SNAP_BYTES: usize = 96;
/// Size of each receive ring, bytes.
const RING_BYTES: usize = 8 << 20;
/// Time after delay and queues in which any frame has left a path that keeps up, nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;
/// Maximum time from a frame's timestamp until a tap can read it, nanoseconds.
const MAX_READ_DELAY_NS: u64 = 2_000_000;

/// The taps at both interfaces, and the state of both directions.
pub(crate) struct Taps {
    rings: [FrameRing; 2],
    converter: Converter,
    directions: [TrackedDirection; 2],
    /// Frames that left by the first interface and were read before those that entered by the second.
    early: Vec<TapFrame>,
    start_ns: u64,
}

/// A frame captured at a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TapFrame {
    at_ns: u64,
    key: u64,
    bytes: u32,
    info: frame::FrameInfo,
    outgoing: bool,
}

impl Taps {
    /// Opens taps at the interfaces with these names and indices.
    pub(crate) fn open(path: &LoadedPath, names: &[String; 2], ends: [u32; 2]) -> Result<Self, EmulateError> {
        let open = |side: usize| {
            let ring = FrameRing::tap(ends[side], SNAP_BYTES, RING_BYTES);
            ring.and_then(|ring| ring.start().map(|()| ring))
                .map_err(|cause| EmulateError::Ring { interface: names[side].clone(), cause })
        };
        Ok(Self {
            rings: [open(0)?, open(1)?],
            converter: Converter::new(),
            directions: [TrackedDirection::new(&path.forward), TrackedDirection::new(&path.reverse)],
            early: Vec::new(),
            start_ns: monotonic_ns(),
        })
    }

    /// Whether the model predicts the departures of at least one direction.
    pub(crate) fn predicts(&self) -> bool {
        self.directions.iter().any(|direction| direction.line.is_some())
    }

    /// Handles the frames captured since the last call.
    pub(crate) fn read(&mut self, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        self.converter.refresh(monotonic_ns());
        // The order of reading ensures that the entry of a frame is read before its departure.
        let mut first = std::mem::take(&mut self.early);
        first.extend(self.drain(0, seconds));
        let horizon_ns = monotonic_ns().saturating_sub(self.start_ns + MAX_READ_DELAY_NS);
        let second = self.drain(1, seconds);
        self.early = self.drain(0, seconds);
        let [forward, reverse] = &mut self.directions;
        // Frames that entered by the first interface precede those that left by the second.
        let is_entering = |seen: &&TapFrame| !seen.outgoing;
        for seen in first.iter().chain(&self.early).filter(is_entering) {
            forward.enter(seen, seconds, errors);
        }
        self.early.retain(|seen| seen.outgoing);
        for seen in second.iter().filter(is_entering) {
            reverse.enter(seen, seconds, errors);
        }
        for direction in [&mut *forward, &mut *reverse] {
            direction.advance(horizon_ns, seconds, errors);
        }
        for seen in second.iter().filter(|seen| seen.outgoing) {
            forward.leave(seen, seconds, errors);
        }
        for seen in first.iter().filter(|seen| seen.outgoing) {
            reverse.leave(seen, seconds, errors);
        }
        for direction in [forward, reverse] {
            direction.remove_finished(horizon_ns);
            seconds.now().late_unknown |= direction.is_incomplete(horizon_ns);
        }
    }

    fn drain(&mut self, side: usize, seconds: &mut Seconds) -> Vec<TapFrame> {
        let ring = &mut self.rings[side];
        let now_ns = monotonic_ns();
        let mut seen = Vec::new();
        while let Some(frame) = ring.peek() {
            let at_ns = self.converter.monotonic(frame.timestamp_ns, now_ns).saturating_sub(self.start_ns);
            seen.push(parse_frame(&frame, at_ns));
            ring.release();
        }
        if ring.drops().unwrap_or(1) > 0 {
            for direction in &mut self.directions {
                direction.incomplete_until_ns = now_ns.saturating_sub(self.start_ns) + direction.longest_ns;
            }
            seconds.now().late_unknown = true;
        }
        seen
    }

    /// Delays of the frames of both directions.
    pub(crate) fn finish(self) -> [LatencyHistogram; 2] {
        self.directions.map(|direction| direction.delays)
    }
}

/// Extracts the matching key and the header fields of a frame.
fn parse_frame(frame: &ReceivedFrame<'_>, at_ns: u64) -> TapFrame {
    let mut hasher = DefaultHasher::new();
    let mut head = [0; SNAP_BYTES];
    let length = frame.data.len().min(SNAP_BYTES);
    head[..length].copy_from_slice(&frame.data[..length]);
    // A CE mark set in the path changes the traffic class, and the checksum of an IPv4 header: leave both out of
    // the key.
    if head[12..14] == [0x08, 0x00] {
        head[15] = 0;
        head[24..26].fill(0);
    } else if head[12..14] == [0x86, 0xdd] {
        head[14..16].fill(0);
    }
    (head, frame.original_bytes, frame.vlan).hash(&mut hasher);
    TapFrame {
        at_ns,
        key: hasher.finish(),
        bytes: frame.original_bytes + if frame.vlan.is_some() { 4 } else { 0 },
        info: frame::inspect(&frame.data[..length]),
        outgoing: frame.outgoing,
    }
}

/// A frame in the path.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    key: u64,
    entered_ns: u64,
    left_ns: Option<u64>,
    due_ns: Option<u64>,
}

/// State of one direction.
struct TrackedDirection {
    /// The model, if it predicts each departure.
    line: Option<DirectionModel<u64>>,
    events: Vec<Event<u64>>,
    /// Number of the first pending frame.
    first: u64,
    pending: VecDeque<Pending>,
    /// Numbers of pending frames that have not left, by the key of their contents.
    by_key: HashMap<u64, VecDeque<u64>>,
    delays: LatencyHistogram,
    /// Maximum time a frame can spend in the path, nanoseconds.
    longest_ns: u64,
    /// Until this time the model lacks frames that the taps missed.
    incomplete_until_ns: u64,
    frame_bytes: u32,
}

impl TrackedDirection {
    fn new(plan: &DirectionPlan) -> Self {
        let jitter_ns: u64 =
            plan.hops().iter().filter_map(|hop| hop.wire.jitter).map(|(spread_ns, _)| spread_ns * 4).sum();
        let queued_ns =
            u128::from(predict_store(plan).queue_bytes) * 8_000_000_000 / u128::from(plan.rate_bps().max(1));
        let queued_ns = u64::try_from(queued_ns).unwrap_or(u64::MAX);
        Self {
            line: is_deterministic(plan).then(|| DirectionModel::new(plan, 0)),
            events: Vec::new(),
            first: 0,
            pending: VecDeque::new(),
            by_key: HashMap::new(),
            delays: LatencyHistogram::new(),
            longest_ns: plan.delay_ns().saturating_add(jitter_ns).saturating_add(queued_ns).saturating_add(GRACE_NS),
            incomplete_until_ns: 0,
            frame_bytes: plan.frame_bytes(),
        }
    }

    fn is_incomplete(&self, now_ns: u64) -> bool {
        self.line.is_none() || now_ns < self.incomplete_until_ns
    }

    fn enter(&mut self, seen: &TapFrame, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        // A VLAN tag may add 4 bytes to a frame of the full MTU.
        seconds.now().super_packets += u64::from(seen.bytes > self.frame_bytes + 4);
        let number = self.first + self.pending.len() as u64;
        self.pending.push_back(Pending { key: seen.key, entered_ns: seen.at_ns, ..Pending::default() });
        self.by_key.entry(seen.key).or_default().push_back(number);
        if let Some(line) = &mut self.line {
            let frame = Frame {
                ip_bytes: seen.info.ip_bytes,
                flow: seen.info.flow,
                ecn_capable: seen.info.ecn_capable,
                ..Frame::new(number, seen.bytes)
            };
            line.offer(seen.at_ns, frame, &mut self.events);
            self.process_events(seconds, errors);
        }
    }

    /// Advances the model to `now_ns`.
    fn advance(&mut self, now_ns: u64, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        if let Some(line) = &mut self.line {
            line.take(now_ns, &mut self.events);
            self.process_events(seconds, errors);
        }
    }

    fn process_events(&mut self, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        let events = std::mem::take(&mut self.events);
        for event in &events {
            if let Event::Deliver { frame, due_ns } = event
                && let Some(pending) = self.at(frame.item)
            {
                pending.due_ns = Some(*due_ns);
                self.compare(frame.item, seconds, errors);
            }
        }
        self.events = events;
        self.events.clear();
    }

    fn at(&mut self, number: u64) -> Option<&mut Pending> {
        self.pending.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn leave(&mut self, seen: &TapFrame, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        let Some(numbers) = self.by_key.get_mut(&seen.key) else { return };
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.by_key.remove(&seen.key);
        }
        let Some(number) = number else { return };
        let Some(pending) = self.at(number) else { return };
        // No frame leaves before it enters: the clock stepped, or this is another frame with the same contents.
        let Some(delay_ns) = seen.at_ns.checked_sub(pending.entered_ns) else {
            seconds.now().late_unknown = true;
            return;
        };
        pending.left_ns = Some(seen.at_ns);
        self.delays.record(delay_ns);
        self.compare(number, seconds, errors);
    }

    /// Compares a frame's departure with the model's as soon as both are known.
    fn compare(&mut self, number: u64, seconds: &mut Seconds, errors: &mut LatencyHistogram) {
        let incomplete_until_ns = self.incomplete_until_ns;
        if let Some(Pending { left_ns: Some(left_ns), due_ns: Some(due_ns), entered_ns, .. }) = self.at(number)
            && *entered_ns >= incomplete_until_ns
        {
            let error_ns = left_ns.abs_diff(*due_ns);
            errors.record(error_ns);
            seconds.sent(error_ns);
        }
    }

    /// Removes frames that have left or that the path has dropped.
    fn remove_finished(&mut self, now_ns: u64) {
        while let Some(pending) = self.pending.front() {
            let is_complete = pending.left_ns.is_some() && (pending.due_ns.is_some() || self.line.is_none());
            if !is_complete && pending.entered_ns.saturating_add(self.longest_ns) > now_ns {
                break;
            }
            if pending.left_ns.is_none()
                && let Some(numbers) = self.by_key.get_mut(&pending.key)
            {
                numbers.retain(|number| *number != self.first);
                if numbers.is_empty() {
                    self.by_key.remove(&pending.key);
                }
            }
            self.pending.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(link: &str) -> TrackedDirection {
        let text = format!("name = \"a path\"\n[[link]]\n{link}\n");
        let path = landspeed_emulation::load(&text, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
        TrackedDirection::new(&path.forward)
    }

    fn seen(at_ns: u64, key: u64) -> TapFrame {
        TapFrame { at_ns, key, bytes: 1000, info: frame::FrameInfo::default(), outgoing: false }
    }

    #[test]
    fn departure_errors_are_relative_to_the_model() {
        // A 1000-byte frame takes 8.192 µs, framing included.
        let mut followed = followed("rate = \"1G\"\ndelay = \"1ms\"");
        let (mut seconds, mut errors) = (Seconds::new(0, 0), LatencyHistogram::new());
        for number in 0..3 {
            followed.enter(&seen(0, number), &mut seconds, &mut errors);
        }
        // The first frame leaves before the model has its departure time, the second is dropped, the third is 100 µs
        // late.
        followed.leave(&seen(1_008_192, 0), &mut seconds, &mut errors);
        followed.advance(1_200_000, &mut seconds, &mut errors);
        followed.leave(&seen(1_124_576, 2), &mut seconds, &mut errors);
        assert_eq!(errors.count(), 2);
        assert_eq!(errors.max_ns().map(|ns| ns / 1000), Some(100));
        assert_eq!((followed.delays.count(), followed.delays.min_ns()), (2, Some(1_008_192)));
        followed.remove_finished(1_300_000);
        assert_eq!((followed.first, followed.pending.len()), (1, 2), "the dropped one may still come");
        followed.remove_finished(10_000_000_000);
        assert!(followed.pending.is_empty() && followed.by_key.is_empty());
    }

    #[test]
    fn identical_frames_are_matched_in_order() {
        let mut followed = followed("rate = \"1G\"\ndelay = \"1ms\"");
        let (mut seconds, mut errors) = (Seconds::new(0, 0), LatencyHistogram::new());
        followed.enter(&seen(0, 7), &mut seconds, &mut errors);
        followed.enter(&seen(500_000, 7), &mut seconds, &mut errors);
        followed.leave(&seen(1_008_192, 7), &mut seconds, &mut errors);
        followed.leave(&seen(1_508_192, 7), &mut seconds, &mut errors);
        followed.leave(&seen(1_508_192, 7), &mut seconds, &mut errors);
        followed.advance(2_000_000, &mut seconds, &mut errors);
        assert_eq!((followed.delays.count(), followed.delays.max_ns()), (2, Some(1_008_192)));
        assert_eq!(errors.count(), 2);
    }

    #[test]
    fn frames_that_leave_before_they_enter_have_no_delay() {
        let mut followed = followed("rate = \"1G\"\ndelay = \"1ms\"");
        let (mut seconds, mut errors) = (Seconds::new(0, 0), LatencyHistogram::new());
        followed.enter(&seen(2_000_000, 1), &mut seconds, &mut errors);
        followed.leave(&seen(1_000_000, 1), &mut seconds, &mut errors);
        assert_eq!((followed.delays.count(), errors.count()), (0, 0));
        assert!(seconds.now().late_unknown);
    }

    #[test]
    fn departure_errors_are_unknown_while_taps_drop_frames() {
        let mut followed = followed("rate = \"1G\"\ndelay = \"1ms\"");
        let (mut seconds, mut errors) = (Seconds::new(0, 0), LatencyHistogram::new());
        followed.incomplete_until_ns = 1000;
        followed.enter(&seen(999, 1), &mut seconds, &mut errors);
        followed.leave(&seen(1_000_000, 1), &mut seconds, &mut errors);
        followed.advance(2_000_000, &mut seconds, &mut errors);
        assert_eq!((errors.count(), followed.delays.count()), (0, 1));
        assert!(followed.is_incomplete(999) && !followed.is_incomplete(1000));
        assert!(followed_without_model().is_incomplete(1000));
    }

    fn followed_without_model() -> TrackedDirection {
        followed("rate = \"1G\"\nloss = \"1%\"")
    }
}
