//! Bringing to an end what nobody else will: transactions whose process and watchdog are gone.

use landspeed_sys::{clock, process};

use super::{Engine, TuneError};
use crate::history::State;
use crate::journal::{Entry, Journal};

/// How often the watchdog looks, nanoseconds.
const WATCH_POLL_NS: u64 = 100_000_000;
/// How long applying may take beyond the time to confirm in before the watchdog ends a process that hangs, nanoseconds.
const HANG_NS: u64 = 120_000_000_000;
/// How often the watchdog tries again when something cannot be put back yet.
const ATTEMPTS: u32 = 5;

/// A transaction that was found unfinished and brought to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Which.
    pub id: u32,
    /// Where it stands now.
    pub state: State,
    /// Why it is there.
    pub why: String,
}

impl Engine<'_> {
    /// Brings orphans to an end, except those named. The caller holds the lock, so nobody is applying; a watchdog that is awake
    /// does its own work. Also puts back files of a persist that was not finished.
    pub(crate) fn recover(&self, except: &[u32]) -> Result<Vec<Recovered>, TuneError> {
        let mut found = Vec::new();
        for id in Journal::list(&self.context.state)?.into_iter().rev().filter(|id| !except.contains(id)) {
            let mut journal = Journal::load(&self.context.state, id)?;
            if let Some((files, false)) = journal.persisted() {
                let files = files.to_vec();
                self.put_files_back(&mut journal, &files)?;
            }
            if !journal.state().is_unfinished() {
                continue;
            }
            if !self.passed_with_boot(&mut journal)? {
                let Some(_asleep) = self.try_lock(&watch_name(id))? else { continue };
                // Another namespace's settings cannot be seen from here: its own commands find it.
                if self.same_place(&journal).is_err() {
                    continue;
                }
                let why = "it was left unfinished, and its watchdog is gone";
                self.take_back(&mut journal, why, false)?;
            }
            let why = journal.reason().unwrap_or_default().to_owned();
            found.push(Recovered { id, state: journal.state(), why });
        }
        Ok(found)
    }

    /// Looks for orphans on behalf of a command that does not write itself.
    pub fn recover_orphans(&self) -> Result<Vec<Recovered>, TuneError> {
        let _lock = self.lock()?;
        self.recover(&[])
    }

    /// Watches over one transaction until somebody has brought it to an end, and does so if nobody else does. `awake` is
    /// called once it is certain to.
    pub fn watch(&self, id: u32, awake: impl FnOnce()) -> Result<(), TuneError> {
        let Some(awake_lock) = self.try_lock(&watch_name(id))? else { return Ok(()) };
        // Both stay open: what happens to the directory meanwhile must not keep the host from being put back.
        let everybody = self.lock_file("lock")?;
        let mut journal = Journal::open(&self.context.state, id)?;
        awake();
        let mut attempts = 0;
        loop {
            if everybody.try_lock().is_ok() {
                // If it cannot be read again, what is known of it has to do.
                let _ = journal.reload();
                let why = match journal.state() {
                    State::Committed | State::Reverted | State::NeedsAttention => {
                        awake_lock.remove(&self.context.state.join(watch_name(id)));
                        return Ok(());
                    }
                    State::AwaitingConfirm { deadline_ns } if clock::monotonic_ns() < deadline_ns => None,
                    State::AwaitingConfirm { .. } => Some("it was not confirmed in time"),
                    State::Planned | State::Armed | State::Applying => Some("the process that applied it died"),
                    State::Reverting => Some("the process that took it back died"),
                };
                if let Some(why) = why {
                    self.take_back(&mut journal, why, false)?;
                    attempts += 1;
                    if attempts >= ATTEMPTS {
                        return Ok(());
                    }
                }
                let _ = everybody.unlock();
            } else {
                let _ = journal.reload();
                Self::end_hanging_applier(&journal);
            }
            clock::sleep_until(clock::monotonic_ns() + WATCH_POLL_NS);
        }
    }

    /// A process that holds the lock for longer than any transaction takes is stopped or stuck: it must not keep the host
    /// from being put back.
    fn end_hanging_applier(journal: &Journal) {
        let planned = journal.entries().find_map(|entry| match entry {
            Entry::Planned { applier, monotonic_ns, confirm_s, .. } => Some((*applier, *monotonic_ns, *confirm_s)),
            _ => None,
        });
        if let Some(((pid, started), began, confirm_s)) = planned
            && matches!(journal.state(), State::Planned | State::Armed | State::Applying)
            && clock::monotonic_ns() > began + confirm_s * 1_000_000_000 + HANG_NS
        {
            process::kill_stuck(pid, started);
        }
    }
}

/// The lock a watchdog holds while it is awake.
fn watch_name(id: u32) -> String {
    format!("{id:04}.watchdog")
}
