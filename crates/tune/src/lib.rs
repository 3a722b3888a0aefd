//! Changes to a host as a transaction: plan, journal, apply, confirm or revert, persist.
//!
//! [`plan`] orders what was asked for and refuses what could not be rolled back. [`Engine`] carries a plan out: each write has
//! its record on the disk before it ([`Journal`]), with the value that was there; a watchdog that outlives the session takes
//! everything back unless it is confirmed. [`Knobs`] is the one seam to the host, with a twin in memory.
#![forbid(unsafe_code)]

mod bounded;
mod discipline;
mod history;
mod journal;
mod knobs;
mod live;
mod persist;
mod plan;
mod request;
mod rules;
mod sysctl;
mod transaction;
mod twin;
mod value;

pub use bounded::BoundedKnobs;
pub use history::{State, StepState};
pub use journal::{Baseline, Context, Entry, Fault, Journal, JournalError, JournalStep, Record};
pub use knobs::{Device, KnobError, Knobs, Ties};
pub use live::LiveKnobs;
pub use persist::{ByHand, FileChange, PersistPlan};
pub use plan::{Allow, Plan, Step, plan};
pub use request::{changes_from_audit, parse_setting, setting};
pub use rules::objection;
pub use transaction::{
    Applied, Arm, CONFIRM_RANGE_S, Engine, Lock, Recovered, RestoreOutcome, StepCheck, TuneError, Watchdog, Written,
};
pub use twin::TwinKnobs;
pub use value::{QdiscNode, QdiscTree, Value};
