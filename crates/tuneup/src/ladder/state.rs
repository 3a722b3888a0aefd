//! What a search has found so far.

use landspeed_model::{
    TuneupAgain, TuneupBaseline, TuneupEnd, TuneupMap, TuneupPlacement, TuneupPlan, TuneupRung, TuneupSanity,
};
use landspeed_stats::Interval;

use super::Ladder;
use crate::baseline::baseline;
use crate::finale::FinalTests;
use crate::map::Mapping;
use crate::outcome::Diagnosis;
use crate::placement::placed;
use crate::{Facts, Settings};

impl Ladder {
    /// Best settings so far.
    pub fn best(&self) -> &Settings {
        &self.best
    }

    /// Goodput of the best settings, bits/s; `None` before the baseline.
    pub fn best_bps(&self) -> Option<f64> {
        (!self.baseline.is_empty()).then_some(self.best_bps)
    }

    /// Changes tried so far.
    pub fn rungs(&self) -> &[TuneupRung] {
        &self.rungs
    }

    /// Latest verdict, with the properties of hosts and path.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.diagnosis.as_deref()
    }

    /// Reason of the end, once the search is over.
    pub fn ended(&self) -> Option<(TuneupEnd, &str)> {
        self.ended.as_ref().map(|(end, why)| (*end, why.as_str()))
    }

    /// Number of tests so far.
    pub fn tests(&self) -> u32 {
        self.tests
    }

    /// Duration of the comparison tests and of the omitted time, nanoseconds.
    pub fn lengths_ns(&self) -> (u64, u64) {
        (self.test_ns, self.omit_ns)
    }

    /// Goodput and noise of the first settings; `None` before two tests.
    pub fn baseline(&self) -> Option<TuneupBaseline> {
        baseline(&self.baseline, self.first_verdict.as_ref()?, &self.original.parameters)
    }

    /// Goodput with the threads on each core, if requested and each was measured once.
    pub fn map(&self) -> Option<TuneupMap> {
        self.mapping.as_ref().filter(|mapping| mapping.rounds() > 0).map(Mapping::map)
    }

    /// Results of the sanity checks: settings that must be slower.
    pub fn sanity(&self) -> Vec<TuneupSanity> {
        self.finale.as_ref().map(FinalTests::sanity).unwrap_or_default()
    }

    /// Comparison of the first settings at the end with the baseline.
    pub fn baseline_again(&self) -> Option<TuneupAgain> {
        self.finale.as_ref()?.again(&self.baseline)
    }

    /// Goodput ratio of the best to the first settings, from the final tests.
    pub fn total_gain(&self) -> Option<Interval> {
        self.finale.as_ref()?.gain()
    }

    /// CPUs on which the flows are processed with the best settings.
    pub fn placement(&self) -> Vec<TuneupPlacement> {
        self.facts().map(placed).unwrap_or_default()
    }

    /// Accepted changes of host settings.
    pub fn plan(&self) -> &TuneupPlan {
        &self.best.plan
    }

    pub(super) fn facts(&self) -> Option<&Facts> {
        Some(&self.diagnosis.as_ref()?.facts)
    }
}
