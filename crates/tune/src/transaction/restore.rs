//! Rolls back a transaction: in reverse order, and only where the value is still the written one. Every
//! step of the plan is compared with its previous value; steps that cannot be compared are never reported
//! as restored.

use landspeed_model::Target;

use super::engine::{Engine, PutError, resets_link};
use crate::Value;
use crate::error::TuneError;
use crate::history::{State, StepState};
use crate::journal::{Entry, Journal, JournalError, JournalStep, RestoreOutcome};

/// Options of a rollback.
#[derive(Debug, Default)]
pub(super) struct RollBack {
    /// Also overwrite values that are not in the journal.
    pub(super) force: bool,
    /// Whether the caller is the process that applied, which knows all its writes. Others have only the
    /// journal, which may be truncated.
    pub(super) own: bool,
    /// A problem that remains even if every value is restored.
    pub(super) caveat: Option<String>,
}

/// Result of a rollback for one step.
enum Settled {
    /// Nothing to do, and nothing to record.
    Known,
    /// A result to record.
    Outcome(RestoreOutcome),
}

impl Engine<'_> {
    /// Rolls back a transaction on request. `force` also overwrites values that are not in the journal.
    pub fn revert(&self, id: Option<u32>, force: bool) -> Result<(u32, State), TuneError> {
        let _lock = self.lock()?;
        let id = match id {
            Some(id) => id,
            None => self.last_not_reverted()?,
        };
        let mut journal = Journal::load(&self.context, id)?;
        self.check_namespace(&journal)?;
        if self.ended_by_reboot(&mut journal)? {
            return Ok((id, journal.state()));
        }
        if journal.state() == State::Reverted {
            return Err(TuneError::NotPossible(format!("transaction {id} has been rolled back already")));
        }
        if let Some(later) = self.later_in_directory(&journal)? {
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

    /// Returns a later transaction of this state directory that changed one of the same settings and was not
    /// rolled back.
    pub(super) fn later_in_directory(&self, journal: &Journal) -> Result<Option<u32>, TuneError> {
        for later in Journal::list(&self.context)?.into_iter().filter(|&later| later > journal.id) {
            let other = Journal::load(&self.context, later)?;
            let standing = !matches!(other.state(), State::Reverted);
            let same = |step: &JournalStep| journal.steps().iter().any(|mine| mine.target == step.target);
            if standing && self.is_from_this_boot(&other) && other.steps().iter().any(same) {
                return Ok(Some(later));
            }
        }
        Ok(None)
    }

    /// Number of the last transaction that was not rolled back.
    fn last_not_reverted(&self) -> Result<u32, TuneError> {
        for id in Journal::list(&self.context)?.into_iter().rev() {
            let journal = Journal::load(&self.context, id)?;
            if journal.state() != State::Reverted {
                return Ok(id);
            }
        }
        Err(TuneError::NotPossible("there is no transaction to roll back".into()))
    }

    pub(super) fn is_from_this_boot(&self, journal: &Journal) -> bool {
        journal.records().first().is_some_and(|record| record.boot == self.context.boot)
    }

    /// Whether the machine was restarted since: then runtime settings are gone. Records it.
    pub(super) fn ended_by_reboot(&self, journal: &mut Journal) -> Result<bool, TuneError> {
        // Without a plan the time of the transaction is unknown.
        if self.is_from_this_boot(journal) || !journal.is_planned() {
            return Ok(false);
        }
        if journal.state() != State::Reverted {
            let why = "the host was restarted, which undid everything that was set at run time".into();
            journal.append(&self.context, Entry::Reverted { why })?;
        }
        Ok(true)
    }

    /// Restores everything and returns the resulting state. Failed records do not stop it; a takeover by
    /// another process does.
    pub(super) fn roll_back(&self, journal: &mut Journal, why: &str, how: &RollBack) -> Result<State, TuneError> {
        self.check_namespace(journal)?;
        if !journal.is_planned() {
            return Ok(State::NeedsAttention);
        }
        journal.ensure_not_taken_over()?;
        self.note(journal, Entry::Reverting { why: why.to_owned() });
        let steps = journal.steps().to_vec();
        let mut left = Vec::new();
        let targets: Vec<&Target> = steps.iter().map(|step| &step.target).collect();
        for number in restore_order(&targets) {
            let step = &steps[number];
            let Settled::Outcome(outcome) = self.settle_step(journal, number, step, how)? else { continue };
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
            StepState::NotStarted if how.own => return Ok(Settled::Known),
            StepState::NotStarted => (step.before.clone(), false),
            StepState::InFlight { before } | StepState::Applied { before, .. } => (before.clone(), false),
            StepState::Settled { before, outcome, .. } => (before.clone(), outcome.is_clean()),
        };
        let now_is = |outcome| Ok(if known { Settled::Known } else { Settled::Outcome(outcome) });
        let Some(target) = self.present(step) else {
            step.device.iter().for_each(|device| self.knobs.forget(&step.target, device));
            return now_is(RestoreOutcome::Gone);
        };
        let now = match self.knobs.read(&target) {
            Ok(now) => now,
            Err(why) if why.is_absent() => return now_is(RestoreOutcome::Gone),
            Err(why) => return Ok(Settled::Outcome(RestoreOutcome::Unchecked { why: why.to_string() })),
        };
        if now.same(&before) {
            let untouched = matches!(state, StepState::NotStarted);
            return now_is(if untouched { RestoreOutcome::Unwritten } else { RestoreOutcome::AlreadyThere });
        }
        if !how.force && !is_ours(journal, number, step, &now) {
            return Ok(Settled::Outcome(RestoreOutcome::Drift { found: now }));
        }
        self.note(journal, Entry::Restoring { step: number });
        let carrier = step.device.as_ref().map(|device| self.knobs.carrier(&device.name));
        match self.put(journal, &target, &before) {
            Ok(()) => {}
            Err(PutError::Journal(why @ JournalError::TakenOver { .. })) => return Err(why.into()),
            Err(why) => return Ok(Settled::Outcome(RestoreOutcome::Failed { why: why.to_string() })),
        }
        if resets_link(&target)
            && let (Some(name), Some(carrier)) = (target.interface(), carrier)
        {
            self.knobs.wait_for_carrier(name, carrier);
        }
        Ok(Settled::Outcome(match self.knobs.read(&target) {
            Ok(now) if now.same(&before) => RestoreOutcome::Restored,
            Ok(now) => {
                RestoreOutcome::Failed { why: format!("{} was put back to {before} and reads {now}", step.target) }
            }
            Err(why) => RestoreOutcome::Failed { why: why.to_string() },
        }))
    }
}

/// Returns the order in which steps are undone: the reverse of that in which they were applied, but qdiscs after the MTU and
/// the queue length of their interface, from which the kernel derives quantum and limit of a new qdisc.
fn restore_order(targets: &[&Target]) -> Vec<usize> {
    let waits = |number: &usize| {
        let shapes_qdiscs = |other: &&Target| {
            matches!(other, Target::Mtu { .. } | Target::TxQueueLen { .. })
                && other.interface() == targets[*number].interface()
        };
        matches!(targets[*number], Target::Qdisc { .. }) && targets.iter().any(shapes_qdiscs)
    };
    let (last, mut order): (Vec<usize>, Vec<usize>) = (0..targets.len()).rev().partition(waits);
    order.extend(last);
    order
}

/// Whether a value other than the previous one was written by this transaction.
fn is_ours(journal: &Journal, number: usize, step: &JournalStep, now: &Value) -> bool {
    let began = journal.entries().any(|entry| matches!(entry, Entry::Intent { step, .. } if *step == number));
    let desired = now.same(&Value::text(&*step.desired));
    match journal.step_state(number) {
        // No record of a write.
        _ if !began => false,
        // The step was restored. After a takeover the hung call may have written the requested value again; any
        // other value, and any other setting, belongs to another program.
        StepState::Settled { outcome, .. } if outcome.is_clean() => desired && journal.hung_step() == Some(number),
        StepState::Applied { observed, .. } | StepState::Settled { observed: Some(observed), .. } => {
            now.same(&observed)
        }
        // An interrupted write leaves a sysctl at the old or the new value; any other value belongs to another
        // program. For drivers and qdisc trees intermediate states are unknown.
        StepState::NotStarted | StepState::InFlight { .. } | StepState::Settled { .. } => {
            step.keep || desired || !matches!(step.target, Target::Sysctl { .. })
        }
    }
}

fn drift(journal: &Journal, number: usize, step: &JournalStep, found: &Value) -> String {
    match journal.step_state(number) {
        StepState::NotStarted => format!(
            "{} is {found} and was {}: another program set it, or the record of writing it is lost",
            step.target, step.before
        ),
        _ => format!("{} is {found}, set by another program", step.target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qdiscs_are_restored_after_the_mtu_they_take_their_quantum_from() {
        let mtu = |name: &str| Target::Mtu { interface: name.into() };
        let qdisc = |name: &str| Target::Qdisc { interface: name.into() };
        let sysctl = Target::Sysctl { name: "net.core.default_qdisc".into() };
        let targets = [mtu("eth0"), qdisc("eth0"), qdisc("eth1"), sysctl];
        let order = restore_order(&targets.iter().collect::<Vec<_>>());
        assert_eq!(order, [3, 2, 0, 1]);
    }
}
