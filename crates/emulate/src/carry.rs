//! The thread of the userspace datapath: receives frames, passes them to the model, and sends each at its
//! departure time.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use landspeed_emulation::{DirectionPlan, LoadedPath, predict_store};
use landspeed_model::{EmulateDatapath, EmulateSecond, InvalidSecond};
use landspeed_netlink::{LinkId, Netlink};
use landspeed_stats::{LatencyHistogram, SplitMix64};
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until};
use landspeed_sys::frames::FrameRing;
use landspeed_sys::thread::{set_timer_slack_ns, use_fifo_policy};
use landspeed_sys::tun::wait_readable;

use crate::clock::Converter;
use crate::direction::{Direction, DirectionOutcome, Received};
use crate::error::EmulateError;
use crate::live::Live;
use crate::seconds::Seconds;
use crate::store::Store;

/// Size of each receive ring, bytes.
const RING_BYTES: usize = 32 << 20;
/// Maximum number of frames read from one interface before the other is read.
const READ_BATCH: usize = 256;
/// Maximum sleep between checks of the stop flag, nanoseconds.
pub(crate) const STOP_CHECK_NS: u64 = 20_000_000;
/// Minimum wait for which sleeping is worthwhile, nanoseconds; shorter waits spin.
const MIN_SLEEP_NS: u64 = 10_000;
/// EtherType of the loop probe: IEEE 802 local experimental EtherType 1.
const PROBE_TYPE: [u8; 2] = [0x88, 0xb5];
/// Index of `tx_dropped` among a link's counters.
pub(crate) const TX_DROPPED: usize = 7;

/// The two interfaces of a path, in the network namespace of the calling thread.
#[derive(Debug)]
pub struct Ends {
    /// Names of the first and the second interface.
    pub(crate) names: [String; 2],
    /// Whether the path ignores multicast listener reports, which hosts send unsolicited.
    pub(crate) ignore_reports: bool,
    /// Whether to send a probe out of both interfaces that detects a loop between them.
    pub(crate) probe: bool,
    /// Further interfaces whose drops invalidate a second: a netlink socket in the interface's namespace, and its
    /// index.
    pub(crate) watched: Vec<(Netlink, u32)>,
}

/// Outcome of an emulation.
#[derive(Debug)]
pub struct EmulationOutcome {
    pub(crate) datapath: EmulateDatapath,
    pub(crate) start_unix_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) directions: [DirectionOutcome; 2],
    /// Departure errors (sent minus scheduled), nanoseconds; `None` if unknown.
    pub(crate) errors: Option<LatencyHistogram>,
    pub(crate) invalid: Vec<InvalidSecond>,
    pub(crate) seconds: Vec<EmulateSecond>,
    pub(crate) work_share: f64,
    pub(crate) work_share_max: f64,
    /// Reason for an early end, if any.
    pub(crate) early_end: Option<EarlyEnd>,
}

/// Reason why an emulation ended before it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    /// An interface disappeared or went down.
    InterfaceLost,
    /// The interfaces are connected to each other.
    Loop,
}

impl EmulationOutcome {
    /// Whether the emulation ended before it was stopped.
    pub fn ended_early(&self) -> bool {
        self.early_end.is_some()
    }
}

/// Opens both interfaces, calls `ready`, and forwards frames until `stop` is set or an interface disappears.
/// `live` publishes each second.
pub fn carry(
    path: &LoadedPath,
    ends: Ends,
    stop: &AtomicBool,
    live: &Live,
    ready: impl FnOnce(),
) -> Result<EmulationOutcome, EmulateError> {
    let Ends { names, ignore_reports, probe, mut watched } = ends;
    let mut netlink = Netlink::open()?;
    let mut rings = Vec::new();
    for name in &names {
        let index = netlink.link(LinkId::Name(name))?.index;
        let ring_error = |cause| EmulateError::Ring { interface: name.clone(), cause };
        let frame_bytes = path.forward.frame_bytes() as usize + 8;
        rings.push(FrameRing::open(index, frame_bytes, RING_BYTES).map_err(ring_error)?);
        watched.push((Netlink::open()?, index));
    }
    let rings: [FrameRing; 2] = rings.try_into().unwrap_or_else(|_| unreachable!("one for each of two names"));
    let mut seeds = SplitMix64::new(path.path.seed);
    let mut direction = |plan: &DirectionPlan| -> Result<Direction, EmulateError> {
        let store = Store::new(predict_store(plan).total_bytes as usize);
        let store = store.map_err(EmulateError::system("reserve memory for frames"))?;
        Ok(Direction::new(plan, seeds.bits(), store, ignore_reports))
    };
    let directions = [direction(&path.forward)?, direction(&path.reverse)?];
    for (ring, name) in rings.iter().zip(&names) {
        ring.start().map_err(|cause| EmulateError::Ring { interface: name.clone(), cause })?;
    }
    set_timer_slack_ns(1);
    let probe = probe.then(self::probe);
    if let Some(probe) = &probe {
        send_probe(&rings, probe);
    }
    let before = dropped(&mut watched);
    let delay_ns = path.forward.delay_ns().max(path.reverse.delay_ns());
    let drops = AtomicU64::new(0);
    let mut forwarder = Forwarder {
        rings,
        directions,
        seconds: Seconds::new(delay_ns, 0),
        errors: LatencyHistogram::new(),
        converter: Converter::new(),
        wake_margin: WakeMargin(50_000),
        start_ns: monotonic_ns(),
        probe,
        drops: &drops,
        drops_seen: 0,
        live,
    };
    let start_unix_ns = realtime_ns();
    live.begin(start_unix_ns);
    ready();
    let is_over = AtomicBool::new(false);
    let early_end = std::thread::scope(|scope| {
        // In a separate thread, because a netlink request takes longer than a frame may be late.
        let watching = scope.spawn(|| {
            for look in 0_u64.. {
                let ends = is_over.load(Ordering::Relaxed);
                if ends || look.is_multiple_of(10) {
                    drops.store(dropped(&mut watched).saturating_sub(before), Ordering::Relaxed);
                }
                if ends {
                    break;
                }
                sleep_until(monotonic_ns() + STOP_CHECK_NS);
            }
        });
        // Real-time priority for departures, where permitted: as root, in the initial user namespace.
        let _ = use_fifo_policy();
        let early_end = forwarder.run(stop);
        is_over.store(true, Ordering::Relaxed);
        let _ = watching.join();
        early_end
    });
    Ok(forwarder.finish(start_unix_ns, early_end))
}

/// Sum of the interfaces' transmit drop counters.
pub(crate) fn dropped(watched: &mut [(Netlink, u32)]) -> u64 {
    let of = |(netlink, index): &mut (Netlink, u32)| {
        let link = netlink.link(LinkId::Index(*index)).ok();
        link.and_then(|link| link.stats.get(TX_DROPPED).copied()).unwrap_or(0)
    };
    watched.iter_mut().map(of).sum()
}

/// A loop probe without its addresses, unique to this process and time.
pub(crate) fn probe() -> Vec<u8> {
    let nonce = realtime_ns() ^ u64::from(std::process::id()).rotate_left(32);
    [&PROBE_TYPE[..], b"landspeed loop probe", &nonce.to_ne_bytes()].concat()
}

/// Whether a frame is this loop probe.
pub(crate) fn is_probe(frame: &[u8], probe: &[u8]) -> bool {
    frame.get(12..).is_some_and(|rest| rest.starts_with(probe))
}

/// Sends a frame between two locally administered addresses that no host uses: bridges flood it, hosts ignore
/// it.
pub(crate) fn send_probe(rings: &[FrameRing; 2], probe: &[u8]) {
    let mut frame = vec![0x02, 0, 0, 0x4c, 0x53, 0x02, 0x02, 0, 0, 0x4c, 0x53, 0x01];
    frame.extend(probe);
    frame.resize(60, 0);
    for ring in rings {
        // If an interface cannot send it, there is no loop.
        let _ = ring.send(&[&frame]);
    }
}

struct Forwarder<'a> {
    rings: [FrameRing; 2],
    directions: [Direction; 2],
    seconds: Seconds,
    errors: LatencyHistogram,
    converter: Converter,
    wake_margin: WakeMargin,
    start_ns: u64,
    probe: Option<Vec<u8>>,
    drops: &'a AtomicU64,
    drops_seen: u64,
    live: &'a Live,
}

impl Forwarder<'_> {
    /// Forwards frames until `stop` is set; returns the reason if it ends earlier.
    fn run(&mut self, stop: &AtomicBool) -> Option<EarlyEnd> {
        while !stop.load(Ordering::Relaxed) {
            let begin_ns = monotonic_ns();
            let elapsed_ns = begin_ns - self.start_ns;
            self.converter.refresh(begin_ns);
            match self.poll_once() {
                Ok(0) => {
                    if let Some(why) = self.wait() {
                        return Some(why);
                    }
                }
                Ok(_) => *self.seconds.now().work_ns.get_or_insert(0) += monotonic_ns() - begin_ns,
                Err(why) => return Some(why),
            }
            if self.seconds.is_over(elapsed_ns) {
                self.conclude(elapsed_ns);
            }
            if let Some(pending_request) = self.live.pending_request() {
                self.read_drop_counters();
                self.live.answer(pending_request, self.seconds.current_invalid(), elapsed_ns);
            }
        }
        None
    }

    fn finish(mut self, start_unix_ns: u64, early_end: Option<EarlyEnd>) -> EmulationOutcome {
        let duration_ns = monotonic_ns() - self.start_ns;
        self.conclude(duration_ns);
        EmulationOutcome {
            datapath: EmulateDatapath::Userspace,
            start_unix_ns,
            duration_ns,
            directions: self.directions.map(Direction::finish),
            errors: Some(self.errors),
            invalid: self.seconds.invalid,
            seconds: self.live.take_seconds(),
            work_share: self.seconds.work_ns as f64 / duration_ns.max(1) as f64,
            work_share_max: self.seconds.work_share_max,
            early_end,
        }
    }

    /// Receives frames and sends those that are due; returns the number of frames handled.
    fn poll_once(&mut self) -> Result<usize, EarlyEnd> {
        let mut moved = 0;
        for (side, direction) in self.directions.iter_mut().enumerate() {
            let ring = &mut self.rings[side];
            // The model advances only to this time: frames that arrive later have later timestamps.
            let now_ns = monotonic_ns();
            let mut horizon_ns = now_ns - self.start_ns;
            for n in 1..=READ_BATCH {
                let Some(frame) = ring.peek() else { break };
                let at_ns = self.converter.monotonic(frame.timestamp_ns, now_ns).saturating_sub(self.start_ns);
                if n == READ_BATCH {
                    // More frames from before `now_ns` may be waiting.
                    horizon_ns = horizon_ns.min(at_ns);
                }
                if direction.receive(&frame, at_ns, self.probe.as_deref(), &mut self.seconds) == Received::Probe {
                    return Err(EarlyEnd::Loop);
                }
                ring.release();
                moved += 1;
            }
            direction.collect(horizon_ns);
            let out = &self.rings[1 - side];
            let sent = direction.send(out, self.start_ns, &mut self.seconds, &mut self.errors);
            moved += sent.map_err(|_| EarlyEnd::InterfaceLost)?;
        }
        Ok(moved)
    }

    /// Waits for a frame or the next departure: sleeps while the margin allows, then spins.
    fn wait(&mut self) -> Option<EarlyEnd> {
        let next_ns = self.directions.iter().filter_map(Direction::next_departure).min();
        let now_ns = monotonic_ns();
        let due_ns = next_ns.map_or(u64::MAX, |next_ns| self.start_ns.saturating_add(next_ns));
        let sleep_ns = due_ns.saturating_sub(now_ns).saturating_sub(self.wake_margin.0).min(STOP_CHECK_NS);
        if sleep_ns > MIN_SLEEP_NS {
            wait_readable([self.rings[0].as_fd(), self.rings[1].as_fd()], sleep_ns);
            let woken_ns = monotonic_ns();
            let target_ns = now_ns + sleep_ns;
            if woken_ns >= target_ns {
                self.wake_margin.update(woken_ns - target_ns);
            } else if !self.rings.iter().any(FrameRing::has_frame) {
                // Woken early without a frame: the interface may have failed.
                let is_gone = self.rings.iter().any(|ring| ring.take_error().is_some());
                return is_gone.then_some(EarlyEnd::InterfaceLost);
            }
            return None;
        }
        while monotonic_ns() < due_ns && !self.rings.iter().any(FrameRing::has_frame) {
            std::hint::spin_loop();
        }
        None
    }

    /// Counts frames that the kernel dropped on receive or on transmit.
    fn read_drop_counters(&mut self) {
        for (ring, direction) in self.rings.iter().zip(&mut self.directions) {
            let missed = u64::from(ring.drops().unwrap_or(0));
            self.seconds.now().ring_full += missed;
            direction.missed(missed);
        }
        let drops = self.drops.load(Ordering::Relaxed);
        self.seconds.now().interface_drops += drops.saturating_sub(self.drops_seen);
        self.drops_seen = self.drops_seen.max(drops);
    }

    /// Ends the current second.
    fn conclude(&mut self, elapsed_ns: u64) {
        self.read_drop_counters();
        let length_ns = self.seconds.length_ns(elapsed_ns);
        let directions = self.directions.each_mut().map(|direction| direction.conclude_second(length_ns));
        self.seconds.now().work_ns.get_or_insert(0);
        self.seconds.publish(elapsed_ns, directions, self.live);
    }
}

/// Time before a departure at which a sleep ends, nanoseconds. Tracks the 99th percentile of the lateness of
/// sleeps: plus 99 steps when a sleep ends later, minus one step otherwise.
struct WakeMargin(u64);

impl WakeMargin {
    const STEP_NS: u64 = 100;

    fn update(&mut self, late_ns: u64) {
        let margin_ns =
            if late_ns > self.0 { self.0 + 99 * Self::STEP_NS } else { self.0.saturating_sub(Self::STEP_NS) };
        self.0 = margin_ns.clamp(3_000, 250_000);
    }
}
