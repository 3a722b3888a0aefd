//! Experiments: plan, design, order, and when there is enough. Files, clocks and hosts are the caller's.
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
pub use rules::{Rules, Until};
pub use schedule::{Ended, Next, RunResult, Schedule};
