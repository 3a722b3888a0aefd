//! What the lab and the datapaths of `landspeed emulate` can do: one table, from which they refuse the rest.

use std::fmt;

use landspeed_problems::Problem;

use super::{LinkDirection, Loss, LossPattern, QueueKind, RateSource};

/// A program part that emulates links and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulator {
    /// The lab: netem and qdiscs of its kernel, in virtual time.
    Lab,
    /// The userspace datapath of `landspeed emulate`: the model of this crate.
    Userspace,
    /// The kernel datapath of `landspeed emulate`: tbf, a qdisc and netem.
    Kernel,
}

/// A property of a link, or a kind of queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A constant rate.
    Rate,
    /// A rate that changes over time.
    RateOverTime,
    /// Framing per frame.
    Framing,
    /// One-way delay.
    Delay,
    /// Variation of the delay.
    Jitter,
    /// Frames leave together in slots.
    Slot,
    /// Frames leave at the ticks of a clock.
    FrameClock,
    /// Independent losses.
    RandomLoss,
    /// Loss of every n-th frame.
    PeriodicLoss,
    /// Loss of given frames.
    PacketsLoss,
    /// Loss of long packets.
    LengthLoss,
    /// Gilbert-Elliott losses.
    BurstLoss,
    /// Frames that skip the delay.
    Reorder,
    /// Frames that are duplicated.
    Duplicate,
    /// Policer before the queue.
    Policer,
    /// Outages.
    Down,
    /// Changes at given times.
    Event,
    /// The queue before the link, as a property of the link.
    LinkQueue,
    /// A kind of queue.
    Queue(QueueKind),
}

/// Why an emulator does not have a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    /// Reason, a clause.
    pub why: &'static str,
    /// Advice, beginning with a verb.
    pub advice: &'static str,
}

const YES: Option<Unsupported> = None;

#[expect(clippy::unnecessary_wraps, reason = "the counterpart of YES in the table")]
const fn no(why: &'static str, advice: &'static str) -> Option<Unsupported> {
    Some(Unsupported { why, advice })
}

const RANDOM_LOSS_ONLY: Option<Unsupported> =
    no("netem loses frames at random only", "write a share, such as loss = \"0.01%\"");
const QUEUES: &str = "the userspace datapath has bfifo, pfifo, red, codel, fq_codel, pie";
const KERNEL_QUEUES: &str = "the kernel datapath has bfifo, pfifo, red, codel, fq_codel, pie";

impl Emulator {
    const ALL: [Self; 3] = [Self::Lab, Self::Userspace, Self::Kernel];

    fn name(self) -> &'static str {
        match self {
            Self::Lab => "the lab",
            Self::Userspace => "the userspace datapath of `landspeed emulate`",
            Self::Kernel => "the kernel datapath of `landspeed emulate`",
        }
    }
}

impl Feature {
    /// The row of the table: lab, userspace, kernel.
    fn row(self) -> [Option<Unsupported>; 3] {
        match self {
            Self::Rate
            | Self::Framing
            | Self::Delay
            | Self::Jitter
            | Self::RandomLoss
            | Self::BurstLoss
            | Self::Reorder
            | Self::Duplicate => [YES; 3],
            Self::RateOverTime => {
                [YES, YES, no("tbf has one rate, which does not change over time", "write a fixed rate")]
            }
            Self::Slot | Self::FrameClock => [
                YES,
                no("the userspace datapath sends frames one by one", "remove it"),
                no("the kernel datapath sends frames one by one", "remove it"),
            ],
            Self::PeriodicLoss | Self::PacketsLoss | Self::LengthLoss => [YES, YES, RANDOM_LOSS_ONLY],
            Self::Policer => [YES, YES, no("tbf shapes and does not police", "remove the policer")],
            Self::Down => [YES, YES, no("netem has no outages", "remove the outages")],
            Self::Event => [
                YES,
                YES,
                no("its qdiscs do not change while it runs", "remove the events, or use the userspace datapath"),
            ],
            Self::LinkQueue => [
                no("in the lab a queue belongs to a switch port", "set `queue` of the switch before the link"),
                YES,
                YES,
            ],
            Self::Queue(kind) => match kind {
                QueueKind::Bfifo
                | QueueKind::Pfifo
                | QueueKind::Red
                | QueueKind::Codel
                | QueueKind::FqCodel
                | QueueKind::Pie => [YES; 3],
                QueueKind::PfifoFast | QueueKind::Cake | QueueKind::Fq | QueueKind::Sfq => {
                    [YES, no(QUEUES, "use one of them"), no(KERNEL_QUEUES, "use one of them")]
                }
                QueueKind::Netem => {
                    let own = no("it is a qdisc of the lab's hosts", "set `delay` and `loss` of the link");
                    [YES, own, own]
                }
            },
        }
    }

    /// Returns why `emulator` does not have this, or `None` if it does.
    pub fn unsupported_by(self, emulator: Emulator) -> Option<Unsupported> {
        let [lab, userspace, kernel] = self.row();
        match emulator {
            Emulator::Lab => lab,
            Emulator::Userspace => userspace,
            Emulator::Kernel => kernel,
        }
    }

    /// Key of a link that has this property.
    pub fn key(self) -> &'static str {
        match self {
            Self::Rate | Self::RateOverTime => "rate",
            Self::Framing => "framing",
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Slot => "slot",
            Self::FrameClock => "frame-clock",
            Self::RandomLoss => "loss",
            Self::PeriodicLoss => "loss.every",
            Self::PacketsLoss => "loss.packets",
            Self::LengthLoss => "loss.longer-than",
            Self::BurstLoss => "loss.gilbert-elliott",
            Self::Reorder => "reorder",
            Self::Duplicate => "duplicate",
            Self::Policer => "policer",
            Self::Down => "down",
            Self::Event => "event",
            Self::LinkQueue | Self::Queue(_) => "queue",
        }
    }

    /// Returns the problem of a file for `emulator` that needs this at `key`, or `None` if `emulator` has it.
    pub fn problem(self, key: impl Into<String>, emulator: Emulator) -> Option<Problem> {
        let Unsupported { why, advice } = self.unsupported_by(emulator)?;
        let other = Emulator::ALL.into_iter().find(|other| self.unsupported_by(*other).is_none())?;
        Some(Problem::new(key, format!("{self} needs {}: {why}", other.name())).hint(advice))
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateOverTime => f.write_str("`rate` over time"),
            Self::LinkQueue => f.write_str("`queue` of a link"),
            Self::Queue(kind) => write!(f, "queue kind `{}`", kind.name()),
            _ => write!(f, "`{}`", self.key()),
        }
    }
}

impl LinkDirection {
    /// Returns the features that these settings use.
    pub fn features(&self) -> Vec<Feature> {
        let rate = self.rate.as_ref().map(|rate| match rate {
            RateSource::Fixed(_) => Feature::Rate,
            RateSource::Mahimahi(_) | RateSource::Rattan(_) | RateSource::Opportunities(_) | RateSource::Steps(_) => {
                Feature::RateOverTime
            }
        });
        let loss = self.loss.as_ref().map(|loss| match loss {
            Loss::Random(_) | Loss::Pattern(LossPattern::Random(_)) => Feature::RandomLoss,
            Loss::Pattern(LossPattern::Every(_)) => Feature::PeriodicLoss,
            Loss::Pattern(LossPattern::Packets(_)) => Feature::PacketsLoss,
            Loss::Pattern(LossPattern::LongerThan(_)) => Feature::LengthLoss,
            Loss::Pattern(LossPattern::GilbertElliott(_)) => Feature::BurstLoss,
        });
        let queue = self.queue.as_ref();
        let used = |feature: Feature, is_used: bool| is_used.then_some(feature);
        [
            rate,
            used(Feature::Policer, self.policer.is_some()),
            loss,
            used(Feature::Down, self.down.as_ref().is_some_and(|outages| !outages.is_empty())),
            used(Feature::Delay, self.delay.is_some()),
            used(Feature::Jitter, self.jitter.is_some()),
            used(Feature::Slot, self.slot.is_some()),
            used(Feature::FrameClock, self.frame_clock.is_some()),
            used(Feature::Reorder, self.reorder.is_some()),
            used(Feature::Duplicate, self.duplicate.is_some()),
            used(Feature::LinkQueue, queue.is_some()),
            queue.map(|queue| Feature::Queue(queue.kind())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation with the table.
    const PAGE: &str = include_str!("../../../../docs/emulating.md");

    /// The rows of the table in the documentation.
    fn features() -> Vec<Feature> {
        use Feature::*;
        let properties = [
            Rate,
            RateOverTime,
            Framing,
            Delay,
            Jitter,
            Slot,
            FrameClock,
            RandomLoss,
            PeriodicLoss,
            PacketsLoss,
            LengthLoss,
            BurstLoss,
            Reorder,
            Duplicate,
            Policer,
            Down,
            Event,
            LinkQueue,
        ];
        properties.into_iter().chain(QueueKind::ALL.map(Queue)).collect()
    }

    #[test]
    fn documentation_has_the_table() {
        let mut table = "| | lab | userspace | kernel |\n|---|---|---|---|\n".to_owned();
        for feature in features() {
            let cells = feature.row().map(|unsupported| match unsupported {
                None => "yes".to_owned(),
                Some(Unsupported { why: QUEUES | KERNEL_QUEUES, .. }) => "no".to_owned(),
                Some(Unsupported { why, .. }) => format!("no: {why}"),
            });
            table += &format!("| {feature} | {} |\n", cells.join(" | "));
        }
        assert!(PAGE.contains(&table), "docs/emulating.md does not contain this table:\n{table}");
    }

    #[test]
    fn every_refused_feature_names_an_emulator_that_has_it() {
        for feature in features() {
            for emulator in Emulator::ALL {
                assert_eq!(feature.unsupported_by(emulator).is_some(), feature.problem("", emulator).is_some());
            }
        }
    }

    #[test]
    fn the_kernel_datapath_has_nothing_more_than_the_userspace_datapath() {
        // A path file is read before its datapath is known.
        let has = |feature: Feature, emulator| feature.unsupported_by(emulator).is_none();
        let more = |feature: &Feature| has(*feature, Emulator::Kernel) && !has(*feature, Emulator::Userspace);
        assert_eq!(features().into_iter().filter(more).collect::<Vec<_>>(), []);
    }

    #[test]
    fn refused_queue_kinds_come_with_the_list_of_the_others() {
        for (emulator, why) in [(Emulator::Userspace, QUEUES), (Emulator::Kernel, KERNEL_QUEUES)] {
            let kinds =
                QueueKind::ALL.into_iter().filter(|kind| Feature::Queue(*kind).unsupported_by(emulator).is_none());
            let names: Vec<&str> = kinds.map(QueueKind::name).collect();
            assert!(why.ends_with(&format!(" has {}", names.join(", "))), "{why}");
        }
    }
}
