//! What a path file says. These types are the file's format: their docstrings become its JSON Schema.

mod judge;
mod link;
mod notation;
mod plan;
mod read;

use landspeed_problems::{Rate, Share, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use link::{Distribution, Framing, GilbertElliott, Jitter, Loss, LossPattern};
pub use plan::{DirectionPlan, HopPlan, QueuePlan};
pub use read::{LoadedPath, MAX_TEXT, load, schema};

/// A commented path file: 1 Gb/s and an RTT of 50 ms, a buffer of 1 MB, and a little loss.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A path: links one behind the other, in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Path {
    /// Name, shown with results.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Seed of every random draw.
    #[serde(default = "one")]
    pub seed: u64,
    /// Largest IP packet; default 1500.
    pub mtu: Option<u32>,
    /// The links, from the first end (the command, or the first interface) to the second.
    #[serde(default)]
    pub link: Vec<Link>,
}

fn one() -> u64 {
    1
}

/// A link with the queue before it. Settings apply to both directions; `forward` (from the first end to the second) and `reverse`
/// override them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// Its rate; or its rate over time.
    pub rate: RateSource,
    /// One-way delay of each direction; default 0.
    pub delay: Option<Time>,
    /// Spread of the delay. Frames keep their order.
    pub jitter: Option<Jitter>,
    /// Framing per frame on the link: `ethernet` (the default: 24 bytes of preamble, FCS and gap) or `none`.
    pub framing: Option<Framing>,
    /// Loss.
    pub loss: Option<Loss>,
    /// Share of the frames that skip the delay, and so overtake others.
    pub reorder: Option<Share>,
    /// Share of the frames that are duplicated.
    pub duplicate: Option<Share>,
    /// The queue before the link; default `{ kind = "bfifo", limit = "1MB" }`.
    pub queue: Option<Queue>,
    /// What drops frames above a rate before they reach the queue. Default nothing.
    pub policer: Option<Policer>,
    /// When the link is down: frames sent in this time are lost. Times count from the start of the emulation.
    pub down: Option<Vec<Outage>>,
    /// From the first end to the second only.
    #[serde(default)]
    pub forward: LinkDirection,
    /// From the second end to the first only.
    #[serde(default)]
    pub reverse: LinkDirection,
}

/// Settings of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkDirection {
    /// Its rate; or its rate over time.
    pub rate: Option<RateSource>,
    /// One-way delay.
    pub delay: Option<Time>,
    /// Spread of the delay. Frames keep their order.
    pub jitter: Option<Jitter>,
    /// Loss.
    pub loss: Option<Loss>,
    /// Share of the frames that skip the delay, and so overtake others.
    pub reorder: Option<Share>,
    /// Share of the frames that are duplicated.
    pub duplicate: Option<Share>,
    /// The queue before the link.
    pub queue: Option<Queue>,
    /// What drops frames above a rate before they reach the queue.
    pub policer: Option<Policer>,
    /// When the link is down: frames sent in this time are lost.
    pub down: Option<Vec<Outage>>,
}

/// The rate of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// A file in mahimahi's format, beside the path file: a line for each time, in milliseconds, at which one packet of 1500 bytes
    /// may leave. It begins again after its last line.
    Mahimahi(String),
    /// A file with a bandwidth trace as rattan reads them (JSON of netem-trace), beside the path file.
    Rattan(String),
    /// Rates one after the other; the last one stays.
    Steps(Vec<RateChange>),
    /// The same always.
    #[serde(untagged)]
    Fixed(Rate),
}

/// A rate for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateChange {
    /// How long.
    #[serde(rename = "for")]
    pub duration: Time,
    /// The rate; 0 carries nothing.
    pub rate: Rate,
}

/// A token bucket that drops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policer {
    /// Rate of frames from the Ethernet header on.
    pub rate: Rate,
    /// Burst that passes at once.
    pub burst: Size,
}

/// A time in which a link is down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// When it begins, after the start of the emulation.
    pub at: Time,
    /// How long it lasts.
    #[serde(rename = "for")]
    pub duration: Time,
}

/// A queueing discipline: its kind alone (`"codel"`), or a table with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Queue {
    /// With defaults.
    Kind(QueueKind),
    /// With settings.
    Settings(QueueSettings),
}

/// Kinds of queueing discipline, by their names in `tc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First in, first out; the limit is in bytes, exactly.
    Bfifo,
    /// First in, first out; the limit is in packets.
    Pfifo,
    /// Random early detection.
    Red,
    /// Controlled delay.
    Codel,
    /// Fair queues with controlled delay.
    FqCodel,
    /// Proportional integral controller.
    Pie,
}

/// A queue with settings. Which apply depends on the kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueSettings {
    /// Kind of queue.
    pub kind: QueueKind,
    /// bfifo, red: limit in bytes, of frames from the Ethernet header on; default 1 MB.
    pub limit: Option<Size>,
    /// Others: limit in packets; default 1000, fq_codel 10240.
    pub packets: Option<u32>,
    /// red: average queue at which drops begin; default 1/12 of the limit.
    pub min: Option<Size>,
    /// red: average queue from which on everything is dropped; default 1/4 of the limit.
    pub max: Option<Size>,
    /// red: drop probability at `max`; default 2 %.
    pub probability: Option<Share>,
    /// codel, fq_codel: target delay, default 5 ms; pie: default 15 ms.
    pub target: Option<Time>,
    /// codel, fq_codel: the interval; default 100 ms.
    pub interval: Option<Time>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: Option<bool>,
}
