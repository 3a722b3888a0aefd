//! A path as the model uses it: with all defaults, in plain numbers.

use landspeed_problems::Problem;

use super::link::{DEFAULT_MTU, DEFAULT_QUEUE_BYTES};
use super::{
    Distribution, EventDirection, Framing, Link, LinkChange, Loss, Outage, Path, Queue, QueueKind, QueueSettings,
    RateChange, RateSource, RateSteps,
};
use crate::frame::ETHERNET_HEADER;
use crate::queue::{CodelSettings, RedSettings};
use crate::serialiser::{RateStep, Schedule};
use crate::trace;

/// Default queue limit, packets (Linux: codel and pie 1000, fq_codel 10240).
const DEFAULT_PACKETS: u32 = 1000;
const FQ_CODEL_PACKETS: u32 = 10_240;
/// Frame length with which red's average decays while idle, bytes (avpkt in tc-red).
const RED_FRAME: u64 = 1000;

/// Plan of one direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionPlan {
    /// Hops in order; not empty.
    pub(crate) hops: Vec<HopPlan>,
    /// Changes in the order of time.
    pub(crate) changes: Vec<PlannedChange>,
    /// Maximum frame length, bytes.
    pub(crate) frame_bytes: u32,
}

/// A change of a hop at a given time.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedChange {
    /// Time, nanoseconds after the start.
    pub at_ns: u64,
    /// Index of the hop.
    pub hop: usize,
    /// Position of the event in the file.
    pub event: usize,
    /// Properties of the hop from then on.
    pub change: HopChange,
}

/// Behaviour of a link after the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct WirePlan {
    /// One-way delay, nanoseconds.
    pub delay_ns: u64,
    /// Spread of the delay (nanoseconds) and its distribution; does not reorder frames.
    pub jitter: Option<(u64, Distribution)>,
    /// Loss process, if any.
    pub loss: Option<Loss>,
    /// Share of frames that skip the delay, 0–1.
    pub reorder: f64,
    /// Share of frames that are duplicated, 0–1.
    pub duplicate: f64,
    /// Outages as (start, end), nanoseconds; ascending, without overlap.
    pub down: Vec<(u64, u64)>,
    /// Start after a delay ([`DirectionPlan::delayed`]), nanoseconds: loss patterns that name frames count them from then on,
    /// none is lost before.
    pub patterns_from_ns: u64,
}

/// Properties of a hop that change; those that are `None` stay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HopChange {
    /// New rate, bits/s; not 0.
    pub rate_bps: Option<u64>,
    /// New one-way delay, nanoseconds.
    pub delay_ns: Option<u64>,
    /// New spread of the delay (nanoseconds) and its distribution.
    pub jitter: Option<(u64, Distribution)>,
    /// New loss process; the inner `None` ends it.
    pub loss: Option<Option<Loss>>,
    /// New share of frames that skip the delay, 0–1.
    pub reorder: Option<f64>,
    /// New share of frames that are duplicated, 0–1.
    pub duplicate: Option<f64>,
    /// Whether the link is down from now on.
    pub down: Option<bool>,
    /// Queue from then on; waiting frames move to it.
    pub queue: Option<QueuePlan>,
}

/// Plan of one hop in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct HopPlan {
    /// Rate (bits/s) and burst (bytes) of the policer.
    pub policer: Option<(u64, u64)>,
    /// Queue before the link.
    pub queue: QueuePlan,
    pub(crate) kind: QueueKind,
    /// Rate of the link over time.
    pub schedule: Schedule,
    /// Framing per frame.
    pub framing: Framing,
    /// Behaviour of the link after the queue.
    pub wire: WirePlan,
}

/// Queueing discipline with all settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueuePlan {
    /// First in, first out, with a limit in bytes.
    Bytes(u64),
    /// First in, first out, with a limit in frames.
    Packets(usize),
    /// Random early detection.
    Red(RedSettings),
    /// CoDel, controlled delay (RFC 8289).
    Codel {
        /// Settings of the controller.
        settings: CodelSettings,
        /// Queue limit, frames.
        packets: usize,
    },
    /// FQ-CoDel: fair queueing with CoDel per flow (RFC 8290).
    FqCodel {
        /// Settings of each flow's controller.
        settings: CodelSettings,
        /// Queue limit, frames.
        packets: usize,
        /// Bytes that a flow may send per round.
        quantum: u64,
    },
    /// PIE, proportional integral controller enhanced (RFC 8033).
    Pie {
        /// Queue limit, frames.
        packets: usize,
        /// Target delay, nanoseconds.
        target_ns: u64,
        /// Whether ECN-capable frames are marked instead of dropped.
        ecn: bool,
        /// Maximum frame length, bytes.
        frame_bytes: u64,
    },
}

impl QueuePlan {
    /// Returns the limit in bytes and the limit in packets, whichever it has.
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Bytes(limit) => (Some(*limit), None),
            Self::Red(settings) => (Some(settings.limit_bytes), None),
            Self::Packets(packets)
            | Self::Codel { packets, .. }
            | Self::FqCodel { packets, .. }
            | Self::Pie { packets, .. } => (None, Some(*packets as u64)),
        }
    }
}

impl DirectionPlan {
    /// Plans of the links in order; not empty.
    pub fn hops(&self) -> &[HopPlan] {
        &self.hops
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.hops.len()
    }

    /// Mean rate of the slowest link, bits/s including framing.
    pub fn rate_bps(&self) -> u64 {
        self.hops.iter().map(|hop| hop.schedule.mean_bps()).min().unwrap_or(0)
    }

    /// Whether a link's rate changes over time.
    pub fn rate_varies(&self) -> bool {
        self.hops.iter().any(|hop| !matches!(hop.schedule, Schedule::Fixed(_)))
    }

    /// Changes of the links, in the order of time.
    pub fn changes(&self) -> &[PlannedChange] {
        &self.changes
    }

    /// Returns the plan of a direction with one link whose start is at least `least_ns` later, and by how much later
    /// it is: a rate that repeats is moved by whole periods, and before the start the link is as at the start. A trace of
    /// opportunities has none at the start that belongs to the period before it.
    #[must_use]
    pub fn delayed(mut self, least_ns: u64) -> (Self, u64) {
        let hop = &mut self.hops[0];
        let shift_ns = match &mut hop.schedule {
            Schedule::Fixed(_) => least_ns,
            Schedule::Steps { steps, repeat: false } => {
                // A link that begins with an outage carries what opens connections before the start.
                let bps = steps.iter().map(|step| step.bps).find(|bps| *bps > 0).unwrap_or(1);
                let first = RateStep { duration_ns: least_ns.max(1), bps };
                steps.insert(0, first);
                least_ns.max(1)
            }
            repeating => least_ns.next_multiple_of(repeating.period_ns().max(1)),
        };
        hop.wire.patterns_from_ns = shift_ns;
        for (from_ns, to_ns) in &mut hop.wire.down {
            (*from_ns, *to_ns) = (from_ns.saturating_add(shift_ns), to_ns.saturating_add(shift_ns));
        }
        for change in &mut self.changes {
            change.at_ns = change.at_ns.saturating_add(shift_ns);
        }
        (self, shift_ns)
    }

    /// Returns the most bits, with framing, that a link carries between two times after the start.
    pub fn capacity_bits(&self, hop: usize, from_ns: u64, to_ns: u64) -> u128 {
        let frame = u64::from(self.frame_bytes);
        let plan = &self.hops[hop];
        let bits = |schedule: &Schedule, from_ns: u64, to_ns: u64| {
            schedule.bits(from_ns, to_ns, frame.saturating_sub(ETHERNET_HEADER.into()), frame + plan.framing.bytes())
        };
        // Times from which a rate holds; `None` is the rate of the plan.
        let changes = self.changes.iter().filter(|change| change.hop == hop);
        let changes = changes.filter_map(|change| Some((change.at_ns, Some(change.change.rate_bps?))));
        let mut spans: Vec<(u64, Option<u64>)> = vec![(0, None)];
        spans.extend(changes);
        let ends = spans.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([u64::MAX]);
        spans
            .iter()
            .zip(ends)
            .map(|(&(start_ns, rate_bps), end_ns)| (start_ns.max(from_ns), end_ns.min(to_ns), rate_bps))
            .filter(|(start_ns, end_ns, _)| end_ns > start_ns)
            .map(|(start_ns, end_ns, rate_bps)| match rate_bps {
                Some(bps) => bits(&Schedule::Fixed(bps), start_ns, end_ns),
                None => bits(&plan.schedule, start_ns, end_ns),
            })
            .sum()
    }

    /// Returns the rate (bits/s; the mean of a rate over time) and the delay (nanoseconds) of a link at a time.
    pub fn at(&self, hop: usize, at_ns: u64) -> (u64, u64) {
        let plan = &self.hops[hop];
        let past = self.changes.iter().filter(|change| change.hop == hop && change.at_ns <= at_ns);
        let (mut rate_bps, mut delay_ns) = (plan.schedule.mean_bps(), plan.wire.delay_ns);
        for PlannedChange { change, .. } in past {
            rate_bps = change.rate_bps.unwrap_or(rate_bps);
            delay_ns = change.delay_ns.unwrap_or(delay_ns);
        }
        (rate_bps, delay_ns)
    }

    /// Returns the highest rate (bits/s, over windows of a link's delay or 1 ms) and the longest delay (nanoseconds) of
    /// a link at any time.
    pub fn extremes(&self, hop: usize) -> (u64, u64) {
        let plan = &self.hops[hop];
        let changes = || self.changes.iter().filter(|change| change.hop == hop).map(|planned| &planned.change);
        let delay_ns = changes().filter_map(|change| change.delay_ns).fold(plan.wire.delay_ns, u64::max);
        let peak_bps = plan.schedule.peak_bps(delay_ns.max(1_000_000));
        (changes().filter_map(|change| change.rate_bps).fold(peak_bps, u64::max), delay_ns)
    }

    /// Sum of the links' propagation delays, nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.hops.iter().map(|hop| hop.wire.delay_ns).sum()
    }

    /// Framing overhead of the slowest link, bytes per frame.
    pub fn framing_bytes(&self) -> u64 {
        self.hops.iter().min_by_key(|hop| hop.schedule.mean_bps()).map_or(0, |hop| hop.framing.bytes())
    }

    /// Maximum frame length from the Ethernet header on, bytes.
    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// Names in `tc` of the links' queueing disciplines.
    pub fn queues(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.hops.iter().map(|hop| hop.kind.name())
    }
}

/// Callback that returns the text of a trace file, by its name in the path file.
pub(super) type Files<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// Returns the plans of both directions of a validated path; adds errors of its traces to `problems`.
pub(super) fn plan(path: &Path, files: &mut Files<'_>, problems: &mut Vec<Problem>) -> [DirectionPlan; 2] {
    let frame_bytes = path.mtu.unwrap_or(DEFAULT_MTU) + ETHERNET_HEADER;
    let mut direction = |way: EventDirection| {
        let name = way.name();
        let mut hop = |(i, link): (usize, &Link)| {
            let own = way.own(link);
            let key = if own.rate.is_some() { format!("link.{i}.{name}.rate") } else { format!("link.{i}.rate") };
            let settings = link.effective(own);
            let schedule = schedule(settings.rate.as_ref().unwrap_or(&link.rate), files).unwrap_or_else(|why| {
                problems.push(Problem::new(key, why));
                Schedule::Fixed(1)
            });
            let queue = settings.queue.unwrap_or(Queue::Kind(QueueKind::Bfifo));
            HopPlan {
                policer: settings.policer.map(|policer| (policer.rate.0.bps(), policer.burst.0.get())),
                queue: plan_queue(&queue.settings(), frame_bytes, schedule.mean_bps()),
                kind: queue.kind(),
                schedule,
                framing: link.framing.unwrap_or_default(),
                wire: WirePlan {
                    delay_ns: settings.delay.map_or(0, |time| time.0.get()),
                    jitter: settings.jitter.map(|jitter| (jitter.spread.0.get(), jitter.distribution)),
                    loss: settings.loss,
                    reorder: settings.reorder.map_or(0.0, |share| share.0.get()),
                    duplicate: settings.duplicate.map_or(0.0, |share| share.0.get()),
                    down: outages(settings.down.as_ref()),
                    patterns_from_ns: 0,
                },
            }
        };
        let hops: Vec<HopPlan> = path.link.iter().enumerate().map(&mut hop).collect();
        let mut changes: Vec<PlannedChange> = Vec::new();
        for (index, hop) in hops.iter().enumerate() {
            let mut bps = hop.schedule.mean_bps();
            for (event, written) in path.events_of(index, way) {
                let change = hop_change(&written.link_change(), frame_bytes, &mut bps);
                changes.push(PlannedChange { at_ns: written.at.0.get(), hop: index, event, change });
            }
        }
        changes.sort_by_key(|change| change.at_ns);
        DirectionPlan { hops, changes, frame_bytes }
    };
    EventDirection::BOTH.map(&mut direction)
}

/// Returns a change in plain numbers; `bps` is the rate of the link, before and after it.
fn hop_change(change: &LinkChange, frame_bytes: u32, bps: &mut u64) -> HopChange {
    let share = |share: Option<landspeed_problems::Share>| share.map(|share| share.0.get());
    let rate_bps = change.rate.map(|rate| rate.0.bps().max(1));
    *bps = rate_bps.unwrap_or(*bps);
    HopChange {
        rate_bps,
        delay_ns: change.delay.map(|time| time.0.get()),
        jitter: change.jitter.as_ref().map(|jitter| (jitter.spread.0.get(), jitter.distribution)),
        loss: change.loss.as_ref().map(|loss| Some(loss.clone()).filter(|loss| !loss.loses_nothing())),
        reorder: share(change.reorder),
        duplicate: share(change.duplicate),
        down: change.down,
        queue: change.queue.as_ref().map(|queue| plan_queue(&queue.settings(), frame_bytes, *bps)),
    }
}

fn outages(down: Option<&Vec<Outage>>) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = down
        .into_iter()
        .flatten()
        .map(|outage| (outage.at.0.get(), outage.at.0.get().saturating_add(outage.duration.0.get())))
        .collect();
    times.sort_unstable();
    times
}

fn schedule(rate: &RateSource, files: &mut Files<'_>) -> Result<Schedule, String> {
    match rate {
        RateSource::Fixed(rate) => Ok(Schedule::Fixed(rate.0.bps())),
        RateSource::Opportunities(times) => trace::opportunities(times),
        RateSource::Steps(RateSteps { steps, repeat }) => {
            let step =
                |change: &RateChange| RateStep { duration_ns: change.duration.0.get(), bps: change.rate.0.bps() };
            // Empty lists, and durations of 0, are refused.
            let steps: Vec<RateStep> = steps.iter().map(step).filter(|step| step.duration_ns > 0).collect();
            Ok(if steps.is_empty() { Schedule::Fixed(1) } else { Schedule::Steps { steps, repeat: *repeat } })
        }
        RateSource::Mahimahi(name) => trace::mahimahi(&files(name)?).map_err(|why| format!("{name}: {why}")),
        RateSource::Rattan(name) => trace::rattan(&files(name)?).map_err(|why| format!("{name}: {why}")),
    }
}

fn plan_queue(settings: &QueueSettings, frame_bytes: u32, bps: u64) -> QueuePlan {
    let limit = settings.limit.map_or(u64::from(DEFAULT_QUEUE_BYTES), |size| size.0.get());
    let packets = |default| settings.packets.unwrap_or(default) as usize;
    let ecn = settings.ecn.unwrap_or(false);
    let time = |time: Option<landspeed_problems::Time>, default| time.map_or(default, |time| time.0.get());
    let codel = CodelSettings {
        target_ns: time(settings.target, 5_000_000),
        interval_ns: time(settings.interval, 100_000_000),
        ecn,
        frame_bytes: u64::from(frame_bytes),
    };
    match settings.kind {
        QueueKind::Bfifo => QueuePlan::Bytes(limit),
        QueueKind::Pfifo => QueuePlan::Packets(packets(DEFAULT_PACKETS)),
        QueueKind::Red => QueuePlan::Red(RedSettings {
            limit_bytes: limit,
            min_bytes: settings.min.map_or(limit / 12, |size| size.0.get()),
            max_bytes: settings.max.map_or(limit / 4, |size| size.0.get()),
            probability: settings.probability.map_or(0.02, |share| share.0.get()),
            ecn,
            frame_ns: RED_FRAME * 8 * 1_000_000_000 / bps.max(1),
        }),
        QueueKind::Codel => QueuePlan::Codel { settings: codel, packets: packets(DEFAULT_PACKETS) },
        QueueKind::FqCodel => QueuePlan::FqCodel {
            settings: codel,
            packets: packets(FQ_CODEL_PACKETS),
            quantum: u64::from(frame_bytes),
        },
        QueueKind::Pie => QueuePlan::Pie {
            packets: packets(DEFAULT_PACKETS),
            target_ns: time(settings.target, 15_000_000),
            ecn,
            frame_bytes: u64::from(frame_bytes),
        },
        // The path is refused for them; a placeholder, as for a rate that cannot be read.
        QueueKind::PfifoFast | QueueKind::Cake | QueueKind::Fq | QueueKind::Sfq | QueueKind::Netem => {
            QueuePlan::Bytes(limit)
        }
    }
}
