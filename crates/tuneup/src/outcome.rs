//! Outcome of a test.

use landspeed_model::Verdict;

use crate::{Facts, Measurement};

/// Outcome of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum TestOutcome {
    /// The test completed.
    Measured(Measurement),
    /// The test completed, with a verdict.
    Diagnosed(Measurement, Box<Diagnosis>),
    /// The settings are not possible: a host refused them, or no data arrived.
    Refused(String),
}

/// Verdict of a test, with the properties of hosts and path.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Cause that limits the test.
    pub verdict: Verdict,
    /// Properties of hosts and path.
    pub facts: Facts,
}
