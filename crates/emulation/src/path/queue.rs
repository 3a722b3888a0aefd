//! Queueing disciplines: their kinds, and the settings of each.

use landspeed_problems::{Notations, Rate, Share, Size, Time, read_by_notations};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Serialize};

/// A queueing discipline: its kind alone (`"fq_codel"`), or a table with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Queue {
    /// A kind with default settings.
    Kind(QueueKind),
    /// A kind with settings.
    Settings(QueueSettings),
}

/// Kinds of queueing disciplines, by their names in `tc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First in, first out; the limit is in bytes, exactly.
    Bfifo,
    /// First in, first out; the limit is in packets.
    Pfifo,
    /// Lab: three bands by priority, 1000 packets each.
    PfifoFast,
    /// Random early detection.
    Red,
    /// CoDel, controlled delay.
    Codel,
    /// FQ-CoDel: fair queueing with CoDel per flow.
    FqCodel,
    /// Lab: CAKE, common applications kept enhanced.
    Cake,
    /// PIE, proportional integral controller enhanced.
    Pie,
    /// Lab: fair queueing with pacing.
    Fq,
    /// Lab: stochastic fairness queueing.
    Sfq,
    /// Hosts of the lab: netem on the sender itself, as in many recipes, to show its effect on a measurement. For a
    /// path, set delay and loss on a link.
    Netem,
}

/// Settings of a queue. The kind determines which ones apply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueSettings {
    /// Kind of queue.
    pub kind: QueueKind,
    /// bfifo, red: limit in bytes, of frames from the Ethernet header on; default 1 MB, bfifo on a host 16 MB.
    pub limit: Option<Size>,
    /// Others: limit in packets; default 1000, fq_codel 10240, fq 100000. netem: the packets in its delay count too.
    pub packets: Option<u32>,
    /// red: average queue length from which frames are dropped; default 1/12 of the limit.
    pub min: Option<Size>,
    /// red: average queue length above which every frame is dropped; default 1/4 of the limit.
    pub max: Option<Size>,
    /// red: drop probability at `max`; default 2 %.
    pub probability: Option<Share>,
    /// codel, fq_codel: target delay, default 5 ms; pie: default 15 ms.
    pub target: Option<Time>,
    /// codel, fq_codel: the interval, default 100 ms; cake: the RTT it is tuned for.
    pub interval: Option<Time>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: Option<bool>,
    /// fq: limit of one flow, packets.
    pub flow_packets: Option<u32>,
    /// fq: maximum rate of a flow.
    pub max_rate: Option<Rate>,
    /// fq: whether it paces; default true.
    pub pacing: Option<bool>,
    /// netem: delay of every packet.
    pub delay: Option<Time>,
    /// netem: loss, per packet; with `tso` a packet is a super-packet of many frames.
    pub loss: Option<Share>,
}

impl Queue {
    /// Returns the kind.
    pub fn kind(&self) -> QueueKind {
        match self {
            Self::Kind(kind) => *kind,
            Self::Settings(settings) => settings.kind,
        }
    }

    /// Returns the settings; a kind alone has none set.
    pub(super) fn settings(&self) -> QueueSettings {
        let kind = match self {
            Self::Settings(settings) => return settings.clone(),
            Self::Kind(kind) => *kind,
        };
        QueueSettings {
            kind,
            limit: None,
            packets: None,
            min: None,
            max: None,
            probability: None,
            target: None,
            interval: None,
            ecn: None,
            flow_packets: None,
            max_rate: None,
            pacing: None,
            delay: None,
            loss: None,
        }
    }
}

impl QueueKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Bfifo,
        Self::Pfifo,
        Self::Red,
        Self::Codel,
        Self::FqCodel,
        Self::Pie,
        Self::PfifoFast,
        Self::Cake,
        Self::Fq,
        Self::Sfq,
        Self::Netem,
    ];

    /// Name of the queueing discipline in `tc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfifo => "bfifo",
            Self::Pfifo => "pfifo",
            Self::PfifoFast => "pfifo_fast",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::FqCodel => "fq_codel",
            Self::Cake => "cake",
            Self::Pie => "pie",
            Self::Fq => "fq",
            Self::Sfq => "sfq",
            Self::Netem => "netem",
        }
    }

    /// Names of the settings that apply.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Bfifo => &["limit"],
            Self::Pfifo | Self::Sfq => &["packets"],
            Self::PfifoFast => &[],
            Self::Red => &["limit", "min", "max", "probability", "ecn"],
            Self::Codel | Self::FqCodel => &["packets", "target", "interval", "ecn"],
            Self::Cake => &["interval"],
            Self::Pie => &["packets", "target", "ecn"],
            Self::Fq => &["packets", "flow-packets", "max-rate", "pacing"],
            Self::Netem => &["packets", "delay", "loss"],
        }
    }
}

impl QueueSettings {
    /// Returns the names of the settings that are set, but do not apply to the kind.
    pub fn inapplicable(&self) -> impl Iterator<Item = &'static str> {
        let Self { kind, limit, packets, min, max, probability, target, interval, ecn, .. } = self;
        let Self { flow_packets, max_rate, pacing, delay, loss, .. } = self;
        let known = kind.settings();
        [
            ("limit", limit.is_some()),
            ("packets", packets.is_some()),
            ("min", min.is_some()),
            ("max", max.is_some()),
            ("probability", probability.is_some()),
            ("target", target.is_some()),
            ("interval", interval.is_some()),
            ("ecn", ecn.is_some()),
            ("flow-packets", flow_packets.is_some()),
            ("max-rate", max_rate.is_some()),
            ("pacing", pacing.is_some()),
            ("delay", delay.is_some()),
            ("loss", loss.is_some()),
        ]
        .into_iter()
        .filter_map(move |(name, is_set)| (is_set && !known.contains(&name)).then_some(name))
    }
}

read_by_notations!(Queue);

impl Notations for Queue {
    const EXPECTED: &'static str =
        "a queue: its kind, such as \"fq_codel\", or a table such as { kind = \"bfifo\", limit = \"1MB\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        QueueKind::deserialize(StrDeserializer::new(text)).map(Self::Kind)
    }

    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        QueueSettings::deserialize(MapAccessDeserializer::new(map)).map(Self::Settings)
    }
}
