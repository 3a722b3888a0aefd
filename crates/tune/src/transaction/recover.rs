//! Ends transactions whose process and watchdog are gone.

use landspeed_sys::clock;
use landspeed_sys::process::Identity;

use super::lock::{EVERYBODY, overdue, watch_name};
use super::{Engine, RollBack, TuneError};
use crate::history::State;
use crate::journal::{Entry, Journal};

/// How often the watchdog looks, nanoseconds.
const WATCH_POLL_NS: u64 = 100_000_000;
/// How long a process may take to end after SIGKILL before the watchdog goes on without its lock, nanoseconds.
const KILL_WAIT_NS: u64 = 5_000_000_000;
/// How often the watchdog looks whether a process that hangs is gone, nanoseconds.
const GONE_POLL_NS: u64 = 500_000_000;
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
    /// Brings orphans to an end, except those named. The caller holds the lock, so no process applies; a watchdog that runs
    /// does its own work. Also puts back files of a persist that was not finished.
    pub(crate) fn recover(&self, except: &[u32]) -> Result<Vec<Recovered>, TuneError> {
        let mut found = Vec::new();
        for id in Journal::list(&self.context)?.into_iter().rev().filter(|id| !except.contains(id)) {
            let mut journal = Journal::load(&self.context, id)?;
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
                self.roll_back(&mut journal, why, &RollBack::default())?;
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

    /// Watches over one transaction until it has ended, and ends it if nothing else does. `awake` is
    /// called once it is certain to.
    pub fn watch(&self, id: u32, awake: impl FnOnce()) -> Result<(), TuneError> {
        let Some(own) = self.try_lock(&watch_name(id))? else { return Ok(()) };
        // Both stay open: what happens to the directory meanwhile must not keep the host from being put back.
        let mut everybody = self.lock_file(EVERYBODY)?;
        let mut journal = Journal::open(&self.context, id)?;
        own.announce();
        awake();
        let mut attempts = 0;
        // The process that was ended because it held the lock too long, and when.
        let mut ended: Option<(Identity, u64)> = None;
        loop {
            if let Some(successor) = self.successor(&everybody) {
                everybody = successor;
            }
            if everybody.try_lock().is_ok() {
                // If it cannot be read again, what is known of it has to do.
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

    /// Goes on without the lock of a process that does not end, such as one that hangs in a driver. From the first record of
    /// this on, that process writes nothing any more; commands wait for a lock that replaces its own. Its last call may
    /// still come to its end and change a setting: that is said, and everything is compared once more when it is gone.
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
        // A later transaction may have one of the settings by now.
        let later = self.later_here(journal)?.is_some() || self.later_elsewhere(journal).is_some();
        if journal.state() == State::NeedsAttention && !later {
            let why = format!("process {pid}, which hung, is gone, and everything was compared once more");
            self.roll_back(journal, &why, &RollBack::default())?;
        }
        Ok(())
    }
}
