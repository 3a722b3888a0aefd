//! What became of a test.

use landspeed_model::Verdict;

use crate::{Facts, Measurement};

/// What became of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum TestOutcome {
    /// It ran to its end.
    Measured(Measurement),
    /// A test with a verdict.
    Diagnosed(Measurement, Box<Diagnosis>),
    /// These settings are not possible here: an end refused them, or nothing arrived.
    Refused(String),
}

/// What limits the settings of a test, and what is known of hosts and path.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// What limits it.
    pub verdict: Verdict,
    /// Hosts and path.
    pub facts: Facts,
}
