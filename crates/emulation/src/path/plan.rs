//! A path as the model uses it: with all defaults, in plain numbers.

use landspeed_problems::Problem;

use super::{Framing, Link, LinkDirection, Outage, Path, Queue, QueueKind, QueueSettings, RateChange, RateSource};
use crate::frame::ETHERNET_HEADER;
use crate::queue::{CodelSettings, RedSettings};
use crate::serialiser::{RateStep, Schedule};
use crate::trace;
use crate::wire::WirePlan;

/// Default MTU, bytes.
pub const DEFAULT_MTU: u32 = 1500;
/// Default queue limit, bytes.
pub const DEFAULT_QUEUE_BYTES: u32 = 1_000_000;
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
    /// Maximum frame length, bytes.
    pub(crate) frame_bytes: u32,
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
    let mut direction = |name: &str, of: fn(&Link) -> &LinkDirection| {
        let mut hop = |(i, link): (usize, &Link)| {
            let own = of(link);
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
            let step =
                |change: &RateChange| RateStep { duration_ns: change.duration.0.get(), bps: change.rate.0.bps() };
            Ok(Schedule::Steps { steps: changes.iter().map(step).collect(), repeat: false })
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
