//! Order in which changes are tried.

use super::{Ladder, TriedChange};
use crate::Settings;
use crate::candidates::{Candidate, candidates};
use crate::outcome::Diagnosis;

/// Minimum goodput ratio of a rejected change that is retried after a restriction is lifted.
const MIN_RETRY_RATIO: f64 = 0.9;
/// Maximum number of attempts of a change.
const MAX_ATTEMPTS: u32 = 2;

impl Ladder {
    /// Returns the candidates that are left to try, in order. A rejected change is retried once, only if another
    /// change was accepted since and the verdict suggests it: first those that nearly helped, after changes never tried;
    /// then, after the last combinations, others. Changes back to former settings are excluded.
    pub fn available(&self) -> Vec<Candidate> {
        let Some(diagnosis) = &self.diagnosis else { return Vec::new() };
        let Diagnosis { verdict, facts } = &**diagnosis;
        let mut found = candidates(&self.best, verdict, facts, self.options.host_changes, &self.refused);
        found.retain(|candidate| match self.tried.get(&candidate.key) {
            None => true,
            Some(tried) => tried.attempts < MAX_ATTEMPTS && self.kept > tried.kept && candidate.cause.is_some(),
        });
        // Sort by class, then by how far the change was from a gain.
        found.sort_by(|a, b| {
            let order = |candidate: &Candidate| match self.tried.get(&candidate.key) {
                None if !candidate.is_last => (0, 0.0),
                None => (2, 0.0),
                // Changes of host settings depend less on other restrictions.
                Some(tried) if tried.ratio >= MIN_RETRY_RATIO && candidate.settings.plan == self.best.plan => {
                    (1, -tried.ratio)
                }
                Some(tried) => (3, -tried.ratio),
            };
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        found
    }

    /// Marks changes that lead back to former settings as tried, also in combination with later changes.
    pub(super) fn exclude_previous(&mut self) {
        let Some(diagnosis) = &self.diagnosis else { return };
        let Diagnosis { verdict, facts } = &**diagnosis;
        let all = candidates(&self.best, verdict, facts, self.options.host_changes, &self.refused);
        let back = all.iter().filter(|candidate| self.former.contains(&self.explicit(&candidate.settings)));
        let worse = TriedChange { attempts: MAX_ATTEMPTS, kept: self.kept, ratio: 0.0 };
        self.tried.extend(back.map(|candidate| (candidate.key.clone(), worse)).collect::<Vec<_>>());
    }

    /// Returns `settings` with an explicit congestion control: that of the last verdict's test, if they leave it to
    /// the kernel.
    pub(super) fn explicit(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let default = self.diagnosis.as_ref().and_then(|diagnosis| diagnosis.facts.congestion.clone());
        settings.parameters.congestion = settings.parameters.congestion.or(default);
        settings
    }
}
