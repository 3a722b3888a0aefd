//! Map of cores: measurement of each placement, and choice of the best one.

use landspeed_model::TuneupEnd;

use super::{Ladder, Phase};
use crate::Measurement;
use crate::map::{MAX_ROUNDS, Mapping, short_of_map};

impl Ladder {
    pub(super) fn prepare_map(&mut self) -> Result<(), String> {
        let (Some(diagnosis), Some(cores)) = (&self.diagnosis, &self.options.map) else { return Ok(()) };
        let moves_interrupts = self.options.host_changes;
        self.mapping =
            Some(Mapping::new(&self.original, &diagnosis.facts, cores, moves_interrupts, &mut self.random)?);
        Ok(())
    }

    pub(super) fn begin_map(&mut self, now_ns: u64, tests: u64) {
        if self.has_time_for(now_ns, tests) {
            self.phase = Phase::Map;
        } else {
            self.stop(TuneupEnd::Failed, short_of_map(tests));
        }
    }

    pub(super) fn take_map(&mut self, now_ns: u64, measured: Result<Measurement, String>) {
        let Some(mut mapping) = self.mapping.take() else { return };
        let complete = mapping.take(measured, &mut self.random);
        if !complete || (mapping.rounds() < MAX_ROUNDS && self.has_time_for(now_ns, mapping.round_tests())) {
            self.phase = Phase::Map;
        } else {
            match mapping.extremes() {
                Err(why) => self.stop(TuneupEnd::Failed, why),
                Ok((fastest, slowest)) => {
                    self.best = fastest.settings.clone();
                    let bad = (slowest.settings.clone(), mapping.words(slowest));
                    let why = format!("each placement was measured {} times", mapping.rounds());
                    self.finish(TuneupEnd::Mapped, why, Some(bad));
                }
            }
        }
        self.mapping = Some(mapping);
    }

    /// Without final tests, the first settings stay the best.
    pub(super) fn keep_first_unless_proven(&mut self) {
        if self.mapping.is_some() && self.finale.is_none() {
            self.best = self.original.clone();
        }
    }
}
