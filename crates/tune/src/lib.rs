//! Changes to a host as transactions: plan, journal, apply, confirm or revert, persist.
//!
//! [`plan`] orders the requested changes and refuses those that could not be rolled back. [`Engine`]
//! executes a plan: before each write a record with the previous value is on disk ([`Journal`]); a watchdog
//! that outlives the session rolls everything back unless it is confirmed. [`Knobs`] is the interface to
//! the host, with an in-memory implementation for tests.
#![forbid(unsafe_code)]

mod bounded;
mod change_error;
mod client_settings;
mod discipline;
mod error;
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
pub use change_error::{ChangeError, ChangeErrorKind, NOT_RESTORED};
pub use client_settings::{client_objection, client_settings};
pub use error::TuneError;
pub use history::{State, StepState};
pub use journal::{
    Baseline, Context, Entry, Fault, FileChange, Journal, JournalError, JournalStep, Record, RestoreOutcome,
};
pub use knobs::{Device, DeviceDependents, KnobError, Knobs};
pub use live::LiveKnobs;
pub use persist::{ByHand, PersistPlan};
pub use plan::{Allow, Plan, Step, plan};
pub use request::{changes_from_audit, parse_setting, setting};
pub use rules::objection;
pub use transaction::{
    Applied, CONFIRM_RANGE_S, Engine, Lock, Recovered, StartWatchdog, StepCheck, Watchdog, Written,
};
pub use twin::SimulatedKnobs;
pub use value::{QdiscNode, QdiscTree, Value};
