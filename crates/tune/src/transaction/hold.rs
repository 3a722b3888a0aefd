//! Held transactions: they end with the process that applied them, for measurements with and without a
//! change.

use landspeed_sys::process::Identity;

use super::lock::watch_name;
use super::restore::RollBack;
use super::{Applied, Engine, StartWatchdog};
use crate::error::TuneError;
use crate::history::State;
use crate::journal::{Entry, Journal};
use crate::plan::Plan;

impl Engine<'_> {
    /// Executes a plan for the lifetime of this process. The watchdog rolls it back when the process is gone,
    /// or after `limit_s` in any case. [`Engine::release`] ends it.
    pub fn hold(&self, plan: &Plan, limit_s: u64, start_watchdog: StartWatchdog<'_>) -> Result<Applied, TuneError> {
        let _lock = self.lock()?;
        self.remove_released_journals()?;
        self.execute(plan, limit_s, None, true, start_watchdog)
    }

    /// Rolls back a held transaction, unless it has ended already. Returns its state.
    pub fn release(&self, id: u32) -> Result<State, TuneError> {
        let _lock = self.lock()?;
        let mut journal = Journal::load(&self.context, id)?;
        if !journal.state().is_unfinished() {
            return Ok(journal.state());
        }
        self.roll_back(&mut journal, "the process that held it ended it", &RollBack::default())
    }

    /// Whether the changes of a held transaction are in effect.
    pub fn is_in_force(&self, id: u32) -> bool {
        Journal::load(&self.context, id).is_ok_and(|journal| matches!(journal.state(), State::AwaitingConfirm { .. }))
    }

    /// Removes the journals of held transactions that were rolled back completely: a series of measurements
    /// creates hundreds. The last one is kept, so that numbers are not reused.
    fn remove_released_journals(&self) -> Result<(), TuneError> {
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
    /// The process that holds the transaction; `None` for one that awaits a confirmation.
    pub fn holder(&self) -> Option<Identity> {
        match self.entries().next()? {
            Entry::Planned { held: true, applier: (pid, started), .. } => {
                Some(Identity { pid: *pid, started: *started })
            }
            _ => None,
        }
    }
}
