//! Recovers transactions whose process and watchdog are gone.

use landspeed_sys::clock;
use landspeed_sys::process::Identity;

use super::lock::{LOCK_FILE, overdue, watch_name};
use super::{Engine, RollBack};
use crate::error::TuneError;
use crate::history::State;
use crate::journal::{Entry, Journal};

/// Polling interval of the watchdog, nanoseconds.
const WATCH_POLL_NS: u64 = 100_000_000;
/// Time a process has to end after SIGKILL before the watchdog continues without its lock, nanoseconds.
const KILL_WAIT_NS: u64 = 5_000_000_000;
/// Polling interval for the end of a hung process, nanoseconds.
const GONE_POLL_NS: u64 = 500_000_000;
/// Number of rollback attempts of the watchdog.
const ATTEMPTS: u32 = 5;

/// An unfinished transaction that was recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Number of the transaction.
    pub id: u32,
    /// State after the recovery.
    pub state: State,
    /// Reason of that state.
    pub why: String,
}

impl Engine<'_> {
    /// Rolls back orphaned transactions, except those listed. The caller holds the lock, so no apply is
    /// running; a transaction with a running watchdog is left to it. Also restores files of an unfinished
    /// persist.
    pub(crate) fn recover(&self, except: &[u32]) -> Result<Vec<Recovered>, TuneError> {
        let mut found = Vec::new();
        for id in Journal::list(&self.context)?.into_iter().rev().filter(|id| !except.contains(id)) {
            let mut journal = Journal::load(&self.context, id)?;
            if let Some((files, false)) = journal.persisted() {
                let files = files.to_vec();
                self.restore_files(&mut journal, &files)?;
            }
            if !journal.state().is_unfinished() {
                continue;
            }
            if !self.ended_by_reboot(&mut journal)? {
                let Some(_asleep) = self.try_lock(&watch_name(id))? else { continue };
                // Settings of another namespace are not visible here: a command in that namespace recovers it.
                if self.check_namespace(&journal).is_err() {
                    continue;
                }
                let why = "it was left unfinished, and its watchdog is gone";
                self.roll_back(&mut journal, why, &RollBack::default())?;
            }
            let why = journal.reason().unwrap_or_default().to_owned();
            found.push(Recovered { id, state: journal.state(), why });
        }
        Ok(found)
    }

    /// Recovers orphans for a command that does not write itself.
    pub fn recover_orphans(&self) -> Result<Vec<Recovered>, TuneError> {
        let _lock = self.lock()?;
        self.recover(&[])
    }

    /// Watches one transaction until it has ended, and rolls it back when necessary. `awake` is called once the
    /// watchdog is ready.
    pub fn watch(&self, id: u32, awake: impl FnOnce()) -> Result<(), TuneError> {
        let Some(own) = self.try_lock(&watch_name(id))? else { return Ok(()) };
        // Both files stay open: the rollback must work even if the directory is removed.
        let mut everybody = self.lock_file(LOCK_FILE)?;
        let mut journal = Journal::open(&self.context, id)?;
        own.mark_running();
        awake();
        let mut attempts = 0;
        // The process that was killed because it held the lock for too long, and the time.
        let mut ended: Option<(Identity, u64)> = None;
        loop {
            if let Some(successor) = self.successor(&everybody) {
                everybody = successor;
            }
            if everybody.try_lock().is_ok() {
                // If it cannot be read again, the known records are used.
                let _ = journal.reload();
                let why = match journal.state() {
                    State::Committed | State::Reverted | State::NeedsAttention => {
                        own.remove(&self.context, &watch_name(id));
                        return Ok(());
                    }
                    State::AwaitingConfirm { .. } if journal.holder().is_some_and(|holder| !holder.is_alive()) => {
                        Some("the process that held it ended".into())
                    }
                    State::AwaitingConfirm { deadline_ns } if clock::monotonic_ns() < deadline_ns => None,
                    State::AwaitingConfirm { .. } => Some("it was not confirmed in time".to_owned()),
                    _ if ended.is_some() => {
                        let pid = ended.map_or(0, |(process, _)| process.pid);
                        Some(format!("process {pid} stopped or hung past the time to confirm in and was killed"))
                    }
                    State::Planned | State::Armed | State::Applying => {
                        Some("the process that applied it died".into())
                    }
                    State::Reverting => Some("the process that rolled it back died".into()),
                };
                if let Some(why) = why {
                    self.roll_back(&mut journal, &why, &RollBack::default())?;
                    attempts += 1;
                    if attempts >= ATTEMPTS {
                        return Ok(());
                    }
                }
                let _ = everybody.unlock();
            } else {
                let _ = journal.reload();
                match (overdue(&everybody, &journal), ended) {
                    (Some(process), Some((same, at_ns))) if process == same => {
                        if clock::monotonic_ns() > at_ns + KILL_WAIT_NS {
                            self.take_over(&mut journal, process)?;
                            own.remove(&self.context, &watch_name(id));
                            return Ok(());
                        }
                    }
                    (Some(process), _) => {
                        process.kill();
                        ended = Some((process, clock::monotonic_ns()));
                    }
                    (None, _) => {}
                }
            }
            clock::sleep_until(clock::monotonic_ns() + WATCH_POLL_NS);
        }
    }

    /// Continues without the lock of a process that does not end, such as one that hangs in a driver. After the
    /// first record of the takeover that process writes nothing more; other commands wait for a new lock. Its
    /// last call may still return and change a setting: this is reported, and everything is compared again when
    /// the process is gone.
    fn take_over(&self, journal: &mut Journal, process: Identity) -> Result<(), TuneError> {
        let lock = self.replace_lock().ok();
        self.note(journal, Entry::TakenOver { from: (process.pid, process.started) });
        let pid = process.pid;
        let why = format!("process {pid} hangs in the kernel and could not be killed");
        let caveat = format!("{why}: its last call may still change a setting. Revert again when it is gone");
        self.roll_back(journal, &why, &RollBack { caveat: Some(caveat), ..RollBack::default() })?;
        drop(lock);
        while process.is_alive() {
            clock::sleep_until(clock::monotonic_ns() + GONE_POLL_NS);
        }
        let _lock = self.lock().ok();
        let _ = journal.reload();
        // A later transaction may have changed one of the settings meanwhile.
        let later = self.later_in_directory(journal)?.is_some() || self.later_elsewhere(journal).is_some();
        if journal.state() == State::NeedsAttention && !later {
            let why = format!("process {pid}, which hung, is gone, and everything was compared once more");
            self.roll_back(journal, &why, &RollBack::default())?;
        }
        Ok(())
    }
}
