//! Transactions that last as long as the process that applied them: for a measurement with and without a change.

use landspeed_sys::process::Identity;

use super::lock::watch_name;
use super::restore::RollBack;
use super::{Applied, Arm, Engine, TuneError};
use crate::history::State;
use crate::journal::{Entry, Journal};
use crate::plan::Plan;

impl Engine<'_> {
    /// Carries a plan out for as long as this process runs. The watchdog rolls it back when this process is gone, and after
    /// `limit_s` in any case. [`Engine::release`] and [`Engine::keep`] end it.
    pub fn hold(&self, plan: &Plan, limit_s: u64, arm: Arm<'_>) -> Result<Applied, TuneError> {
        let _lock = self.lock()?;
        self.forget_released()?;
        self.carry_out(plan, limit_s, None, true, arm)
    }

    /// Rolls a held transaction back, unless it has come to its end by now. Returns where it stands.
    pub fn release(&self, id: u32) -> Result<State, TuneError> {
        let _lock = self.lock()?;
        let mut journal = Journal::load(&self.context, id)?;
        if !journal.state().is_unfinished() {
            return Ok(journal.state());
        }
        self.roll_back(&mut journal, "the process that held it ended it", &RollBack::default())
    }

    /// Lets a held transaction stay, if the host is well.
    pub fn keep(&self, id: u32) -> Result<(), TuneError> {
        let _lock = self.lock()?;
        let journal = Journal::load(&self.context, id)?;
        if !journal.state().is_unfinished() {
            let why = journal.reason().unwrap_or("no reason recorded");
            return Err(TuneError::NotPossible(format!("transaction {id} has come to its end: {why}")));
        }
        self.commit(journal, None).map(drop)
    }

    /// Whether a held transaction is in force.
    pub fn is_in_force(&self, id: u32) -> bool {
        Journal::load(&self.context, id).is_ok_and(|journal| matches!(journal.state(), State::AwaitingConfirm { .. }))
    }

    /// Removes the journals of held transactions that were rolled back in full: a series of measurements leaves hundreds of
    /// them, and the host is as it was. The last one stays, for no number is given twice.
    fn forget_released(&self) -> Result<(), TuneError> {
        let ids = Journal::list(&self.context)?;
        let Some((_, earlier)) = ids.split_last() else { return Ok(()) };
        for &id in earlier {
            let journal = Journal::load(&self.context, id)?;
            if journal.holder().is_some()
                && journal.state() == State::Reverted
                && let Some(asleep) = self.try_lock(&watch_name(id))?
            {
                asleep.remove(&self.context, &watch_name(id));
                Journal::remove(&self.context, id)?;
            }
        }
        Ok(())
    }
}

impl Journal {
    /// The process that it lasts as long as; `None` for one that awaits a confirmation.
    pub fn holder(&self) -> Option<Identity> {
        match self.entries().next()? {
            Entry::Planned { held: true, applier: (pid, started), .. } => {
                Some(Identity { pid: *pid, started: *started })
            }
            _ => None,
        }
    }
}
