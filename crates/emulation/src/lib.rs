//! Model of the links and queues of a path, and of a host's receive path, without I/O.
//!
//! [`load`] reads a path file. A [`DirectionModel`] is one direction of the path: [`DirectionModel::offer`] adds a frame,
//! [`DirectionModel::next_departure`] is the next time to call [`DirectionModel::take`], which returns the frames that have left.
//! Times are nanoseconds and passed as arguments. Results depend only on the path, the seed, and the times and
//! lengths of the offered frames, not on how often or how late [`DirectionModel::take`] is called.
#![forbid(unsafe_code)]

mod event;
pub mod frame;
mod hop;
mod line;
mod path;
mod policer;
mod queue;
mod receive;
mod serialiser;
mod store;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_changes;
mod trace;
mod wire;

pub use event::{DropCause, Event, Frame};
pub use hop::HopCounters;
pub use line::{DirectionCounters, DirectionModel};
pub use path::{
    DEFAULT_MTU, DEFAULT_QUEUE_BYTES, DirectionPlan, Distribution, Emulator, Event as PathEvent, EventDirection,
    Feature, Framing, GilbertElliott, HopChange, HopPlan, Jitter, Link, LinkChange, LinkDirection, LoadedPath, Loss,
    LossPattern, MAX_EVENTS, MAX_TEXT, Outage, Path, PlannedChange, Policer, Queue, QueueKind, QueuePlan,
    QueueSettings, RateChange, RateSource, RateSteps, TEMPLATE, Unsupported, load, load_typed, schema,
};
pub use queue::{CodelSettings, RedSettings};
pub use receive::{ReceiveCounters, ReceivePath, ReceiveSettings, ReceivedPacket};
pub use serialiser::{RateStep, Schedule};
pub use store::{SLOT_HEADER_BYTES, StorePrediction, predict_store};
pub use trace::inline_trace;
