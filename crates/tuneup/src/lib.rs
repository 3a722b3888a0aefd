//! Which setting to try next, and whether to keep it.
//!
//! [`Ladder`] says which test comes next and takes what it measured; it knows neither sockets nor clocks, so that a search of five
//! minutes is tested in virtual time. [`candidates`] derives what to try from the last verdict and from what the hosts are. A
//! change is kept by `comparison`'s rules only.
#![forbid(unsafe_code)]

mod baseline;
mod candidates;
mod command;
mod comparison;
mod facts;
mod finale;
mod ladder;
mod map;
mod measurement;
mod outcome;
mod placement;

use landspeed_model::{Parameters, TuneupPlan};

pub use candidates::{Candidate, candidates};
pub use command::run_options;
pub use comparison::{RULES, compare};
pub use facts::{EndFacts, Facts, FlowFacts};
pub use ladder::{Ladder, LadderOptions, Test, TestKind, TooShort};
pub use measurement::Measurement;
pub use outcome::{Diagnosis, TestOutcome};

/// All that a search may change: what the test does, and what is changed on the hosts for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Parameters of the test.
    pub parameters: Parameters,
    /// Changes to the hosts.
    pub plan: TuneupPlan,
}
