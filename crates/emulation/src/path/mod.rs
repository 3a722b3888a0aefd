//! Format of a path file. The doc comments of these types become its JSON Schema.

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

/// A commented path file: 1 Gb/s, RTT 50 ms, a buffer of 1 MB, and a little loss.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A path: a sequence of links, in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Path {
    /// Name, shown with results.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Seed of the random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// MTU (largest IP packet), bytes; default 1500.
    pub mtu: Option<u32>,
    /// The links, from the first host (the command, or the first interface) to the second.
    #[serde(default)]
    pub link: Vec<Link>,
}

fn one() -> u64 {
    1
}

/// A link with the queue before it. Settings apply to both directions; `forward` (from the first host to the
/// second) and `reverse` override them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// Rate, fixed or over time.
    pub rate: RateSource,
    /// One-way delay of each direction; default 0.
    pub delay: Option<Time>,
    /// Variation of the delay. Frames are not reordered by it.
    pub jitter: Option<Jitter>,
    /// Framing per frame on the link: `ethernet` (the default: 24 bytes of preamble, FCS and gap) or `none`.
    pub framing: Option<Framing>,
    /// Loss of frames on the link.
    pub loss: Option<Loss>,
    /// Share of frames that skip the delay and so overtake others.
    pub reorder: Option<Share>,
    /// Share of frames that are duplicated.
    pub duplicate: Option<Share>,
    /// The queue before the link; default `{ kind = "bfifo", limit = "1MB" }`.
    pub queue: Option<Queue>,
    /// Policer that drops frames above a rate before they reach the queue. Default none.
    pub policer: Option<Policer>,
    /// Outages: frames sent in these times are lost. Times count from the start of the emulation.
    pub down: Option<Vec<Outage>>,
    /// Settings that apply only from the first host to the second.
    #[serde(default)]
    pub forward: LinkDirection,
    /// Settings that apply only from the second host to the first.
    #[serde(default)]
    pub reverse: LinkDirection,
}

/// Settings of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkDirection {
    /// Rate, fixed or over time.
    pub rate: Option<RateSource>,
    /// One-way delay.
    pub delay: Option<Time>,
    /// Variation of the delay. Frames are not reordered by it.
    pub jitter: Option<Jitter>,
    /// Loss of frames on the link.
    pub loss: Option<Loss>,
    /// Share of frames that skip the delay and so overtake others.
    pub reorder: Option<Share>,
    /// Share of frames that are duplicated.
    pub duplicate: Option<Share>,
    /// The queue before the link.
    pub queue: Option<Queue>,
    /// Policer that drops frames above a rate before they reach the queue.
    pub policer: Option<Policer>,
    /// Outages: frames sent in these times are lost.
    pub down: Option<Vec<Outage>>,
}

/// Rate of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// A file in mahimahi's format, next to the path file: each line is a time in milliseconds at which one packet
    /// of 1500 bytes may leave. The trace repeats after its last line.
    Mahimahi(String),
    /// A file with a bandwidth trace in rattan's format (JSON of netem-trace), next to the path file.
    Rattan(String),
    /// A sequence of rates; the last one stays.
    Steps(Vec<RateChange>),
    /// A constant rate.
    #[serde(untagged)]
    Fixed(Rate),
}

/// A rate and its duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateChange {
    /// Duration of the rate.
    #[serde(rename = "for")]
    pub duration: Time,
    /// Rate; 0 sends nothing.
    pub rate: Rate,
}

/// A policer: a token bucket that drops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policer {
    /// Rate of frames, counted from the Ethernet header on.
    pub rate: Rate,
    /// Burst that may pass at once (bucket size).
    pub burst: Size,
}

/// An outage of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Start, after the start of the emulation.
    pub at: Time,
    /// Duration of the outage.
    #[serde(rename = "for")]
    pub duration: Time,
}

/// A queueing discipline: only its kind (`"codel"`), or a table with settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Queue {
    /// A kind with default settings.
    Kind(QueueKind),
    /// A kind with settings.
    Settings(QueueSettings),
}

/// Kinds of queueing disciplines, with their names in `tc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First in, first out; limit in bytes.
    Bfifo,
    /// First in, first out; limit in packets.
    Pfifo,
    /// Random early detection.
    Red,
    /// CoDel, controlled delay.
    Codel,
    /// FQ-CoDel: fair queueing with CoDel per flow.
    FqCodel,
    /// PIE, proportional integral controller enhanced.
    Pie,
}

/// Settings of a queue. Which ones apply depends on the kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueSettings {
    /// Kind of queue.
    pub kind: QueueKind,
    /// bfifo, red: limit in bytes, of frames from the Ethernet header on; default 1 MB.
    pub limit: Option<Size>,
    /// Others: limit in packets; default 1000, fq_codel 10240.
    pub packets: Option<u32>,
    /// red: average queue length from which frames are dropped; default 1/12 of the limit.
    pub min: Option<Size>,
    /// red: average queue length above which every frame is dropped; default 1/4 of the limit.
    pub max: Option<Size>,
    /// red: drop probability at `max`; default 2 %.
    pub probability: Option<Share>,
    /// codel, fq_codel: target delay, default 5 ms; pie: default 15 ms.
    pub target: Option<Time>,
    /// codel, fq_codel: interval; default 100 ms.
    pub interval: Option<Time>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: Option<bool>,
}
