//! Format of a path file, and the one definition of a link's properties and of queueing disciplines, which the lab's
//! scenarios share. The doc comments of these types become the JSON Schemas of both.

mod capability;
mod event;
mod judge;
mod link;
mod loss;
mod plan;
mod queue;
mod read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use capability::{Emulator, Feature, Unsupported};
pub use event::{Event, EventDirection, LinkChange, MAX_EVENTS};
pub use link::{
    DEFAULT_MTU, DEFAULT_QUEUE_BYTES, Distribution, Framing, Jitter, LinkDirection, Outage, Policer, RateChange,
    RateSource, RateSteps,
};
pub use loss::{GilbertElliott, Loss, LossPattern};
pub use plan::{DirectionPlan, HopChange, HopPlan, PlannedChange, QueuePlan, WirePlan};
pub use queue::{Queue, QueueKind, QueueSettings};
pub use read::{LoadedPath, MAX_TEXT, load, load_typed, schema};

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
    /// Changes of the path at given times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<Event>,
}

fn one() -> u64 {
    1
}

crate::declare_link! {
    /// A link with the queue before it. Settings apply to both directions; `forward` (from the first host to the
    /// second) and `reverse` override them.
    pub struct Link {}
}
