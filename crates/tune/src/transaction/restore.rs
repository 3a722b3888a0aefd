//! Rolling a transaction back: in reverse, and only where the value is still what was written. Every step of the plan is compared
//! with its value from before; what cannot be compared is never reported as done.

use super::{Engine, PutError, RestoreOutcome, TuneError, resets_link};
use crate::Value;
use crate::history::{State, StepState};
use crate::journal::{Entry, Journal, JournalError, JournalStep};

/// How a transaction is rolled back.
#[derive(Debug, Default)]
pub(super) struct RollBack {
    /// Also overwrite what the journal does not know.
    pub(super) force: bool,
    /// By the process that applied it, which knows its writes. Others have only the journal, which may be truncated.
    pub(super) own: bool,
    /// Problems that remain even if every value is restored.
    pub(super) caveat: Option<String>,
}

/// What a revert came to for a step.
enum Settled {
    /// There was nothing to do, and it is known already.
    Known,
    /// This.
    Now(RestoreOutcome),
}

impl Engine<'_> {
    /// Rolls a transaction back on request. `force` also overwrites what the journal does not know.
    pub fn revert(&self, id: Option<u32>, force: bool) -> Result<(u32, State), TuneError> {
        let _lock = self.lock()?;
        let id = match id {
            Some(id) => id,
            None => self.last_standing()?,
        };
        let mut journal = Journal::load(&self.context, id)?;
        self.same_place(&journal)?;
        if self.passed_with_boot(&mut journal)? {
            return Ok((id, journal.state()));
        }
        if journal.state() == State::Reverted {
            return Err(TuneError::NotPossible(format!("transaction {id} has been rolled back already")));
        }
        if let Some(later) = self.later_here(&journal)? {
            return Err(TuneError::NotPossible(format!(
                "transaction {later} changed some of the same settings after transaction {id}: revert {later} first"
            )));
        }
        if let Some((later, state)) = self.later_elsewhere(&journal) {
            return Err(TuneError::NotPossible(format!(
                "transaction {later} in {0} changed some of the same settings after transaction {id}: revert that first \
                 (`landspeed tune revert {later} --state {0}`)",
                state.display()
            )));
        }
        let state = self.roll_back(&mut journal, "requested", &RollBack { force, ..RollBack::default() })?;
        Ok((id, state))
    }

    /// A later transaction of this state directory that changed one of the same settings and still stands.
    pub(super) fn later_here(&self, journal: &Journal) -> Result<Option<u32>, TuneError> {
        for later in Journal::list(&self.context)?.into_iter().filter(|&later| later > journal.id) {
            let other = Journal::load(&self.context, later)?;
            let standing = !matches!(other.state(), State::Reverted);
            let same = |step: &JournalStep| journal.steps().iter().any(|mine| mine.target == step.target);
            if standing && self.of_this_boot(&other) && other.steps().iter().any(same) {
                return Ok(Some(later));
            }
        }
        Ok(None)
    }

    /// The last transaction that is not rolled back.
    fn last_standing(&self) -> Result<u32, TuneError> {
        for id in Journal::list(&self.context)?.into_iter().rev() {
            let journal = Journal::load(&self.context, id)?;
            if journal.state() != State::Reverted {
                return Ok(id);
            }
        }
        Err(TuneError::NotPossible("there is no transaction to roll back".into()))
    }

    pub(super) fn of_this_boot(&self, journal: &Journal) -> bool {
        journal.records().first().is_some_and(|record| record.boot == self.context.boot)
    }

    /// Whether the machine was restarted since: what was written at run time is gone by itself.
    pub(super) fn passed_with_boot(&self, journal: &mut Journal) -> Result<bool, TuneError> {
        // One without a plan does not say when it was made.
        if self.of_this_boot(journal) || !journal.is_planned() {
            return Ok(false);
        }
        if journal.state() != State::Reverted {
            let why = "the host was restarted, which undid everything that was set at run time".into();
            journal.append(&self.context, Entry::Reverted { why })?;
        }
        Ok(true)
    }

    /// Puts everything back and says how that went. Records that cannot be written do not stop it; a process that has taken the
    /// transaction over does.
    pub(super) fn roll_back(&self, journal: &mut Journal, why: &str, how: &RollBack) -> Result<State, TuneError> {
        self.same_place(journal)?;
        if !journal.is_planned() {
            return Ok(State::NeedsAttention);
        }
        journal.must_be_ours()?;
        self.note(journal, Entry::Reverting { why: why.to_owned() });
        let steps = journal.steps().to_vec();
        let mut left = Vec::new();
        for (number, step) in steps.iter().enumerate().rev() {
            let Settled::Now(outcome) = self.settle_step(journal, number, step, how)? else { continue };
            match &outcome {
                RestoreOutcome::Drift { found } => left.push(drift(journal, number, step, found)),
                RestoreOutcome::Failed { why } => left.push(why.clone()),
                RestoreOutcome::Unchecked { why } => left.push(format!("{} is not checked: {why}", step.target)),
                RestoreOutcome::Restored
                | RestoreOutcome::AlreadyThere
                | RestoreOutcome::Unwritten
                | RestoreOutcome::Gone => {}
            }
            self.note(journal, Entry::Restored { step: number, outcome });
        }
        left.extend(how.caveat.clone());
        if left.is_empty() {
            self.note(journal, Entry::Reverted { why: why.to_owned() });
            self.unregister(journal);
            Ok(State::Reverted)
        } else {
            self.note(journal, Entry::NeedsAttention { why: left.join("; ") });
            Ok(State::NeedsAttention)
        }
    }

    fn settle_step(
        &self,
        journal: &mut Journal,
        number: usize,
        step: &JournalStep,
        how: &RollBack,
    ) -> Result<Settled, TuneError> {
        let state = journal.step_state(number);
        let (before, known) = match &state {
            StepState::Untouched if how.own => return Ok(Settled::Known),
            StepState::Untouched => (step.before.clone(), false),
            StepState::InFlight { before } | StepState::Applied { before, .. } => (before.clone(), false),
            StepState::Settled { before, outcome, .. } => (before.clone(), outcome.is_clean()),
        };
        let now_is = |outcome| Ok(if known { Settled::Known } else { Settled::Now(outcome) });
        let Some(target) = self.present(step) else {
            step.device.iter().for_each(|device| self.knobs.forget(&step.target, device));
            return now_is(RestoreOutcome::Gone);
        };
        let now = match self.knobs.read(&target) {
            Ok(now) => now,
            Err(why) if why.is_absent() => return now_is(RestoreOutcome::Gone),
            Err(why) => return Ok(Settled::Now(RestoreOutcome::Unchecked { why: why.to_string() })),
        };
        if now.same(&before) {
            let untouched = matches!(state, StepState::Untouched);
            return now_is(if untouched { RestoreOutcome::Unwritten } else { RestoreOutcome::AlreadyThere });
        }
        if !how.force && !is_ours(journal, number, step, &now) {
            return Ok(Settled::Now(RestoreOutcome::Drift { found: now }));
        }
        self.note(journal, Entry::Restoring { step: number });
        let carrier = step.device.as_ref().map(|device| self.knobs.carrier(&device.name));
        match self.put(journal, &target, &before) {
            Ok(()) => {}
            Err(PutError::Journal(why @ JournalError::TakenOver { .. })) => return Err(why.into()),
            Err(why) => return Ok(Settled::Now(RestoreOutcome::Failed { why: why.to_string() })),
        }
        if resets_link(&target)
            && let (Some(name), Some(carrier)) = (target.interface(), carrier)
        {
            self.knobs.settle(name, carrier);
        }
        Ok(Settled::Now(match self.knobs.read(&target) {
            Ok(now) if now.same(&before) => RestoreOutcome::Restored,
            Ok(now) => {
                RestoreOutcome::Failed { why: format!("{} was put back to {before} and reads {now}", step.target) }
            }
            Err(why) => RestoreOutcome::Failed { why: why.to_string() },
        }))
    }
}

/// Whether a value other than the one from before is of this transaction's making.
fn is_ours(journal: &Journal, number: usize, step: &JournalStep, now: &Value) -> bool {
    let began = journal.entries().any(|entry| matches!(entry, Entry::Intent { step, .. } if *step == number));
    let desired = now.same(&Value::text(&*step.desired));
    match journal.step_state(number) {
        // By its records it was never written.
        _ if !began => false,
        // It was put back. The call that hung when the transaction was taken over may have set it once more; any other value, and
        // any other setting, belongs to another program.
        StepState::Settled { outcome, .. } if outcome.is_clean() => desired && journal.hung_step() == Some(number),
        StepState::Applied { observed, .. } | StepState::Settled { observed: Some(observed), .. } => {
            now.same(&observed)
        }
        // A write that was under way can have left a sysctl at the old value or at the new one; a third belongs to another program.
        // The intermediate state of a driver or a qdisc tree is not visible.
        StepState::Untouched | StepState::InFlight { .. } | StepState::Settled { .. } => {
            step.keep || desired || !matches!(step.target, landspeed_model::Target::Sysctl { .. })
        }
    }
}

fn drift(journal: &Journal, number: usize, step: &JournalStep, found: &Value) -> String {
    match journal.step_state(number) {
        StepState::Untouched => format!(
            "{} is {found} and was {}: another program set it, or the record of writing it is lost",
            step.target, step.before
        ),
        _ => format!("{} is {found}, set by another program", step.target),
    }
}
