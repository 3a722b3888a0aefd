//! Taking a transaction back: in reverse, and only where the value is still what was written.

use super::{Engine, Outcome, TuneError, resets_link};
use crate::history::{State, StepState};
use crate::journal::{Entry, Journal, JournalStep};

impl Engine<'_> {
    /// Takes a transaction back on somebody's request. `force` also overwrites what others changed since.
    pub fn revert(&self, id: Option<u32>, force: bool) -> Result<(u32, State), TuneError> {
        let _lock = self.lock()?;
        let id = match id {
            Some(id) => id,
            None => self.last_standing()?,
        };
        let mut journal = Journal::load(&self.context.state, id)?;
        self.same_place(&journal)?;
        if self.passed_with_boot(&mut journal)? {
            return Ok((id, journal.state()));
        }
        if journal.state() == State::Reverted {
            return Err(TuneError::NotPossible(format!("transaction {id} has been taken back already")));
        }
        let later = Journal::list(&self.context.state)?.into_iter().filter(|&later| later > id);
        for later in later {
            let other = Journal::load(&self.context.state, later)?;
            let standing = !matches!(other.state(), State::Reverted);
            let same = |step: &JournalStep| journal.steps().iter().any(|mine| mine.target == step.target);
            if standing && self.of_this_boot(&other) && other.steps().iter().any(same) {
                return Err(TuneError::NotPossible(format!(
                    "transaction {later} changed some of the same settings after transaction {id}: revert {later} first"
                )));
            }
        }
        let state = self.take_back(&mut journal, "asked for", force)?;
        Ok((id, state))
    }

    /// The last transaction that is not taken back.
    fn last_standing(&self) -> Result<u32, TuneError> {
        for id in Journal::list(&self.context.state)?.into_iter().rev() {
            let journal = Journal::load(&self.context.state, id)?;
            if journal.state() != State::Reverted {
                return Ok(id);
            }
        }
        Err(TuneError::NotPossible("there is no transaction to take back".into()))
    }

    pub(super) fn of_this_boot(&self, journal: &Journal) -> bool {
        journal.records().first().is_some_and(|record| record.boot == self.context.boot)
    }

    /// Whether the machine was restarted since: what was written at run time is gone by itself.
    pub(super) fn passed_with_boot(&self, journal: &mut Journal) -> Result<bool, TuneError> {
        if self.of_this_boot(journal) {
            return Ok(false);
        }
        if journal.records().is_empty() {
            // It was torn before its first record was whole, hence before anything was written.
            journal.append(&self.context, Entry::Reverted { why: "nothing had been written".into() })?;
        } else if journal.state() != State::Reverted {
            let why = "the host was restarted, which undid everything that was set at run time".into();
            journal.append(&self.context, Entry::Reverted { why })?;
        }
        Ok(true)
    }

    /// Puts everything back and says how that went. Records that cannot be written do not stop it.
    pub(crate) fn take_back(&self, journal: &mut Journal, why: &str, force: bool) -> Result<State, TuneError> {
        self.same_place(journal)?;
        self.note(journal, Entry::Reverting { why: why.to_owned() });
        let steps = journal.steps().to_vec();
        let mut left = Vec::new();
        for (number, step) in steps.iter().enumerate().rev() {
            let Some(outcome) = self.settle_step(journal, number, step, force) else { continue };
            match &outcome {
                Outcome::Drift { found } => left.push(format!("{} is {found}, set by somebody else", step.target)),
                Outcome::Failed { why } => left.push(why.clone()),
                Outcome::Restored | Outcome::AlreadyThere | Outcome::Gone => {}
            }
            self.note(journal, Entry::Restored { step: number, outcome });
        }
        if left.is_empty() {
            self.note(journal, Entry::Reverted { why: why.to_owned() });
            Ok(State::Reverted)
        } else {
            self.note(journal, Entry::NeedsAttention { why: left.join("; ") });
            Ok(State::NeedsAttention)
        }
    }

    /// `None` for a step that was never begun.
    fn settle_step(&self, journal: &mut Journal, number: usize, step: &JournalStep, force: bool) -> Option<Outcome> {
        let (before, observed) = match journal.step_state(number) {
            StepState::Untouched => return None,
            StepState::InFlight { before } => (before, None),
            StepState::Applied { before, observed, .. } => (before, Some(observed)),
            StepState::Settled { outcome, .. } if outcome.is_clean() => return None,
            StepState::Settled { before, observed, .. } => (before, observed),
        };
        let Some(target) = self.present(step) else {
            step.device.iter().for_each(|device| self.knobs.forget(&step.target, device));
            return Some(Outcome::Gone);
        };
        let now = match self.knobs.read(&target) {
            Ok(now) => now,
            Err(why) if why.is_absent() => return Some(Outcome::Gone),
            Err(why) => return Some(Outcome::Failed { why: why.to_string() }),
        };
        if now.same(&before) {
            return Some(Outcome::AlreadyThere);
        }
        let ours = observed.as_ref().is_none_or(|observed| now.same(observed));
        // A write that was under way can have left a sysctl at the old value or at the new one; a third is somebody else's.
        // What a driver or a tree of disciplines is in the middle of cannot be told from outside.
        let in_flight = observed.is_none() && matches!(step.target, landspeed_model::Target::Sysctl { .. });
        let foreign = in_flight && !step.keep && !now.same(&crate::Value::text(&*step.desired));
        if !force && (!ours || foreign) {
            return Some(Outcome::Drift { found: now });
        }
        self.note(journal, Entry::Restoring { step: number });
        let carrier = step.device.as_ref().map(|device| self.knobs.carrier(&device.name));
        if let Err(why) = self.put(&target, &before) {
            return Some(Outcome::Failed { why: why.to_string() });
        }
        if resets_link(&target)
            && let (Some(name), Some(carrier)) = (target.interface(), carrier)
        {
            self.knobs.settle(name, carrier);
        }
        Some(match self.knobs.read(&target) {
            Ok(now) if now.same(&before) => Outcome::Restored,
            Ok(now) => Outcome::Failed { why: format!("{} was put back to {before} and reads {now}", step.target) },
            Err(why) => Outcome::Failed { why: why.to_string() },
        })
    }
}
