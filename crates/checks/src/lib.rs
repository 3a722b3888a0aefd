//! Checks of a host for a job: one file each, pure functions of [`Facts`](landspeed_model::Facts).
//!
//! A check has one of four outcomes: it passes, it has a finding, it does not apply, or its facts are unknown;
//! each with its reason. [`audit`] runs all of them; [`compare`] compares two hosts. Nothing here does I/O:
//! `host` collects the facts and `tune` applies changes.
#![forbid(unsafe_code)]

#[macro_use]
mod check;
mod advice;
mod audit;
mod compare;
mod docs;
mod example;
mod gain;
mod hardware;
mod prelude;
mod registry;
mod source;
mod view;

mod buffers;
mod cpu;
mod environment;
mod folklore;
mod interface;
mod interrupts;
mod pci;
mod qdisc;
mod tcp;

#[cfg(test)]
mod cure;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod tests;

pub use audit::{Audit, AuditError, audit};
pub use check::{Check, Effect, Example, Group, Outcome, Problem, Scope};
pub use compare::compare;
pub use docs::{failing_example, index, page};
pub use gain::{Figure, Gain, NOTICEABLE_FACTOR, RUNS, Row, Run, Verdict, gains};
pub use registry::all;
pub use source::{Document, Passage};
pub use view::View;
