//! The order in which changes are tried.

use super::{Ladder, Tried};
use crate::Settings;
use crate::candidates::{Candidate, candidates, restricted};
use crate::outcome::Diagnosis;

/// A change that cost less than this share is worth another try once a limit beside it is gone.
const NEARLY: f64 = 0.9;
/// How often one change is tried.
const MOST_ATTEMPTS: u32 = 2;

impl Ladder {
    /// What is left to try, in order. A change that did not help is tried once more only when another was kept since and the verdict
    /// now points to it: those that nearly helped before those that did not, and all after what was never tried alone. No change
    /// leads back to settings that were worse.
    pub fn available(&self) -> Vec<Candidate> {
        let Some(diagnosis) = &self.diagnosis else { return Vec::new() };
        let Diagnosis { verdict, facts } = &**diagnosis;
        let mut found = candidates(&self.best, verdict, facts, self.options.host_changes, &self.refused);
        found.retain(|candidate| match self.tried.get(&candidate.key) {
            None => true,
            Some(tried) => tried.attempts < MOST_ATTEMPTS && self.kept > tried.kept && candidate.cause.is_some(),
        });
        let restricted = restricted(&self.best.parameters);
        // The smallest first: class, and how far the change was from being a gain.
        found.sort_by(|a, b| {
            let order = |candidate: &Candidate| match self.tried.get(&candidate.key) {
                None if !candidate.is_together() => (0, 0.0),
                None if restricted => (1, 0.0),
                None => (3, 0.0),
                // A setting of a host has less to do with what else was restricted.
                Some(tried) if tried.ratio >= NEARLY && candidate.settings.plan == self.best.plan => {
                    (2, -tried.ratio)
                }
                Some(tried) => (4, -tried.ratio),
            };
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        found
    }

    /// Counts the changes that lead back to former settings as tried, also beside later changes.
    pub(super) fn exclude_former(&mut self) {
        let Some(diagnosis) = &self.diagnosis else { return };
        let Diagnosis { verdict, facts } = &**diagnosis;
        let all = candidates(&self.best, verdict, facts, self.options.host_changes, &self.refused);
        let back = all.iter().filter(|candidate| self.former.contains(&self.explicit(&candidate.settings)));
        let worse = Tried { attempts: MOST_ATTEMPTS, kept: self.kept, ratio: 0.0 };
        self.tried.extend(back.map(|candidate| (candidate.key.clone(), worse)).collect::<Vec<_>>());
    }

    /// `settings` with the congestion control that they leave to the kernel, as the last verdict's test had it.
    pub(super) fn explicit(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let default = self.diagnosis.as_ref().and_then(|diagnosis| diagnosis.facts.congestion.clone());
        settings.parameters.congestion = settings.parameters.congestion.or(default);
        settings
    }
}
