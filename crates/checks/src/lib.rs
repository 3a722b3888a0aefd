//! Checks of a host for a job: one file each, pure over [`Facts`](landspeed_model::Facts).
//!
//! A check answers one of four things: all is well, something should be looked at, it does not apply here and why, or it
//! is unknown and why. [`audit`] asks all of them; [`compare`] sets two hosts side by side. Nothing here reads or
//! writes anything: `host` gathers the facts and `tune` carries changes out.
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
pub use docs::{index, out_of_order, page};
pub use gain::{Figure, Gain, NOTICEABLE, RUNS, Row, Run, Verdict, gains};
pub use registry::all;
pub use source::{Document, Passage};
pub use view::View;
