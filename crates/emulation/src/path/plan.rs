//! A path as the model runs it: every default filled in, in plain numbers.

use landspeed_problems::Problem;

use super::{Framing, Link, LinkDirection, Outage, Path, Queue, QueueKind, QueueSettings, RateSource};
use crate::frame::ETHERNET_HEADER;
use crate::queue::{CodelSettings, RedSettings};
use crate::serialiser::{RateStep, Schedule};
use crate::trace;
use crate::wire::WirePlan;

/// MTU where the path does not say, bytes.
pub(crate) const DEFAULT_MTU: u32 = 1500;
/// Limit of a queue in bytes where the path does not say.
pub(crate) const DEFAULT_LIMIT: u64 = 1_000_000;
/// Limit of a queue in packets where the path does not say (Linux: codel and pie 1000, fq_codel 10240).
const DEFAULT_PACKETS: u32 = 1000;
const FQ_CODEL_PACKETS: u32 = 10_240;
/// Length of a frame that red's average decays by while idle, bytes (tc-red: avpkt).
const RED_FRAME: u64 = 1000;

impl Framing {
    /// Bytes on the link besides the frame.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Ethernet => 24,
            Self::None => 0,
        }
    }
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionPlan {
    /// Its hops in order; not empty.
    pub(crate) hops: Vec<HopPlan>,
    /// Longest frame, bytes.
    pub(crate) frame_bytes: u32,
}

/// One hop in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct HopPlan {
    /// Rate and burst of the policer, bits/s and bytes.
    pub policer: Option<(u64, u64)>,
    /// The queue.
    pub queue: QueuePlan,
    pub(crate) kind: QueueKind,
    /// The rate over time.
    pub schedule: Schedule,
    /// Framing per frame.
    pub framing: Framing,
    /// What the link does after the queue.
    pub wire: WirePlan,
}

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueuePlan {
    /// First in, first out, with a limit in bytes.
    Bytes(u64),
    /// First in, first out, with a limit in frames.
    Packets(usize),
    /// Random early detection.
    Red(RedSettings),
    /// Controlled delay.
    Codel {
        /// Its controller.
        settings: CodelSettings,
        /// Limit, frames.
        packets: usize,
    },
    /// Fair queueing with controlled delay.
    FqCodel {
        /// The controller of each flow.
        settings: CodelSettings,
        /// Limit, frames.
        packets: usize,
        /// Bytes a flow sends at a turn.
        quantum: u64,
    },
    /// Proportional integral controller enhanced.
    Pie {
        /// Limit, frames.
        packets: usize,
        /// Target delay, nanoseconds.
        target_ns: u64,
        /// Whether it marks.
        ecn: bool,
        /// Longest frame, bytes.
        frame_bytes: u64,
    },
}

impl DirectionPlan {
    /// The links with their queues, in order; not empty.
    pub fn hops(&self) -> &[HopPlan] {
        &self.hops
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.hops.len()
    }

    /// Mean rate of the slowest link, bits/s with framing.
    pub fn rate_bps(&self) -> u64 {
        self.hops.iter().map(|hop| hop.schedule.mean_bps()).min().unwrap_or(0)
    }

    /// Whether a link's rate changes over time.
    pub fn rate_varies(&self) -> bool {
        self.hops.iter().any(|hop| !matches!(hop.schedule, Schedule::Fixed(_)))
    }

    /// Propagation delay, nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.hops.iter().map(|hop| hop.wire.delay_ns).sum()
    }

    /// Framing of the slowest link, bytes per frame.
    pub fn framing_bytes(&self) -> u64 {
        self.hops.iter().min_by_key(|hop| hop.schedule.mean_bps()).map_or(0, |hop| hop.framing.bytes())
    }

    /// Longest frame, bytes from the Ethernet header on.
    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// Each link's queue by its name in `tc`.
    pub fn queues(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.hops.iter().map(|hop| hop.kind.name())
    }
}

/// Reads a trace file by its name in the path file.
pub(super) type Files<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// The two directions of a path that was judged; what is wrong with its traces is added to `problems`.
pub(super) fn plan(path: &Path, files: &mut Files<'_>, problems: &mut Vec<Problem>) -> [DirectionPlan; 2] {
    let frame_bytes = path.mtu.unwrap_or(DEFAULT_MTU) + ETHERNET_HEADER;
    let mut direction = |name: &str, of: fn(&Link) -> &LinkDirection| {
        let mut hop = |(i, link): (usize, &Link)| {
            let own = of(link);
            let key = if own.rate.is_some() { format!("link.{i}.{name}.rate") } else { format!("link.{i}.rate") };
            let rate = own.rate.as_ref().unwrap_or(&link.rate);
            let schedule = schedule(rate, files).unwrap_or_else(|why| {
                problems.push(Problem::new(key, why));
                Schedule::Fixed(1)
            });
            let default = Queue::Kind(QueueKind::Bfifo);
            let settings = own.queue.as_ref().or(link.queue.as_ref()).unwrap_or(&default).settings();
            let jitter = own.jitter.as_ref().or(link.jitter.as_ref());
            HopPlan {
                policer: own
                    .policer
                    .as_ref()
                    .or(link.policer.as_ref())
                    .map(|policer| (policer.rate.0.bps(), policer.burst.0.get())),
                queue: queue(&settings, frame_bytes, schedule.mean_bps()),
                kind: settings.kind,
                schedule,
                framing: link.framing.unwrap_or(Framing::Ethernet),
                wire: WirePlan {
                    delay_ns: own.delay.or(link.delay).map_or(0, |time| time.0.get()),
                    jitter: jitter.map(|jitter| (jitter.spread.0.get(), jitter.distribution)),
                    loss: own.loss.clone().or_else(|| link.loss.clone()),
                    reorder: own.reorder.or(link.reorder).map_or(0.0, |share| share.0.get()),
                    duplicate: own.duplicate.or(link.duplicate).map_or(0.0, |share| share.0.get()),
                    down: outages(own.down.as_ref().or(link.down.as_ref())),
                },
            }
        };
        DirectionPlan { hops: path.link.iter().enumerate().map(&mut hop).collect(), frame_bytes }
    };
    [direction("forward", |link| &link.forward), direction("reverse", |link| &link.reverse)]
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
        RateSource::Steps(changes) => {
            let step = |change: &super::RateChange| RateStep {
                duration_ns: change.duration.0.get(),
                bps: change.rate.0.bps(),
            };
            Ok(Schedule::Steps { steps: changes.iter().map(step).collect(), repeat: false })
        }
        RateSource::Mahimahi(name) => trace::mahimahi(&files(name)?).map_err(|why| format!("{name}: {why}")),
        RateSource::Rattan(name) => trace::rattan(&files(name)?).map_err(|why| format!("{name}: {why}")),
    }
}

impl Queue {
    /// The settings; without any, those of the kind alone.
    pub(super) fn settings(&self) -> QueueSettings {
        match self {
            Self::Settings(settings) => settings.clone(),
            Self::Kind(kind) => QueueSettings {
                kind: *kind,
                limit: None,
                packets: None,
                min: None,
                max: None,
                probability: None,
                target: None,
                interval: None,
                ecn: None,
            },
        }
    }
}

fn queue(settings: &QueueSettings, frame_bytes: u32, bps: u64) -> QueuePlan {
    let limit = settings.limit.map_or(DEFAULT_LIMIT, |size| size.0.get());
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
    }
}
