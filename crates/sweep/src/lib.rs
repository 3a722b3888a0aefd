//! Experiments: plan, design, order of runs and stopping rules. Files, clocks and hosts are left to the caller.
#![forbid(unsafe_code)]

pub mod design;
pub mod document;
pub mod id;
pub mod order;
pub mod plan;
pub mod rules;
pub mod schedule;

pub use design::Design;
pub use order::{PlannedRun, RunKind};
pub use plan::{Factor, Level, Plan, Subject};
pub use rules::{PrecisionTarget, Rules};
pub use schedule::{Ended, Next, RunResult, Schedule};
