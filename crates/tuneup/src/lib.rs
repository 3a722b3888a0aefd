//! Search for better settings: the next change to try, and whether to keep it.
//!
//! [`Ladder`] selects the next test and evaluates its result; it uses neither sockets nor clocks, so a search
//! of five minutes can be tested in virtual time. [`candidates`] derives the changes to try from the last
//! verdict and the properties of the hosts. A change is accepted only by the rules of `comparison`.
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

/// Everything that a search may change: parameters of the test, and host settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Parameters of the test.
    pub parameters: Parameters,
    /// Changes of host settings.
    pub plan: TuneupPlan,
}
