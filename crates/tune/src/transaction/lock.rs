//! Locks of the state directory, and the handling of processes that hold a lock and hang.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use landspeed_sys::clock;
use landspeed_sys::process::Identity;
use landspeed_sys::trust::{Access, Directory};

use super::Engine;
use crate::error::TuneError;
use crate::journal::{Context, Entry, Journal, JournalError};

/// Timeout of waiting for another command's lock, nanoseconds.
const LOCK_WAIT_NS: u64 = 10_000_000_000;
/// Polling interval of the lock, nanoseconds.
const LOCK_POLL_NS: u64 = 20_000_000;
/// Interval of checking the open transaction while waiting, nanoseconds.
const OVERDUE_POLL_NS: u64 = 500_000_000;
/// Time an apply has after its deadline to give up by itself, nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;
/// Time another command may hold the lock after the deadline, nanoseconds: restoring one link can take 20
/// s.
const HOLD_NS: u64 = 60_000_000_000;
/// File name of the lock that every writing command takes.
pub(super) const LOCK_FILE: &str = "lock";
/// File name of a lock that is about to replace [`LOCK_FILE`].
const NEW_LOCK_FILE: &str = "lock.new";
/// Last word in a watchdog's lock file while it runs.
const RUNNING_WORD: &str = "awake";

/// An exclusive lock, released on drop or when the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Holder of a lock according to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) process: Identity,
    /// Time the lock was taken (`CLOCK_MONOTONIC`, nanoseconds).
    since_ns: u64,
    awake: bool,
}

impl Lock {
    fn new(file: File) -> Self {
        let lock = Self { file };
        lock.write_holder("");
        lock
    }

    /// Writes the holder into the file. Errors are ignored: a full disk must not prevent a revert.
    fn write_holder(&self, word: &str) {
        let own = Identity::own();
        let text = format!("{} {} {} {word}", own.pid, own.started, clock::monotonic_ns());
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(text.trim_end().as_bytes(), 0));
    }

    /// Records in the file that the watchdog holding the lock is running.
    pub(super) fn mark_running(&self) {
        self.write_holder(RUNNING_WORD);
    }

    /// Removes the file if it still belongs to this lock: the directory may have been replaced.
    pub(super) fn remove(&self, context: &Context, name: &str) {
        if let Ok(Some(directory)) = context.directory()
            && is_current(&self.file, &directory, name)
        {
            let _ = directory.remove(name);
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

/// Reads the holder from a lock's file, if it is known.
pub(super) fn holder(file: &File) -> Option<Holder> {
    let mut bytes = [0_u8; 128];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let mut words = text.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let process = Identity { pid: u32::try_from(number()?).ok()?, started: number()? };
    let since_ns = number()?;
    Some(Holder { process, since_ns, awake: words.next() == Some(RUNNING_WORD) })
}

/// Whether the directory entry with this name is still this file.
fn is_current(file: &File, directory: &Directory, name: &str) -> bool {
    let mine = file.metadata().map(|facts| (facts.dev(), facts.ino()));
    mine.is_ok_and(|mine| directory.identity(name).is_ok_and(|there| there == mine))
}

/// Returns the process that holds the lock past the deadline of the transaction: the apply itself, or
/// another command that has held it for too long.
pub(super) fn overdue(file: &File, journal: &Journal) -> Option<Identity> {
    let now = clock::monotonic_ns();
    let deadline_ns = journal.deadline_ns()?.saturating_add(GRACE_NS);
    let applier = journal.applier();
    let held = holder(file).or_else(|| applier.map(|process| Holder { process, since_ns: 0, awake: false }))?;
    let due_ns = if Some(held.process) == applier {
        deadline_ns
    } else {
        deadline_ns.max(held.since_ns.saturating_add(HOLD_NS))
    };
    (now >= due_ns && held.process != Identity::own()).then_some(held.process)
}

impl Engine<'_> {
    /// Takes the lock, waiting for other commands for a limited time.
    pub fn lock(&self) -> Result<Lock, TuneError> {
        let deadline = clock::monotonic_ns() + LOCK_WAIT_NS;
        let mut look_at = 0;
        loop {
            if let Some(lock) = self.try_lock(LOCK_FILE)? {
                return Ok(lock);
            }
            let now = clock::monotonic_ns();
            if now > deadline {
                let process = self.lock_file(LOCK_FILE).ok().as_ref().and_then(holder).map(|held| held.process.pid);
                return Err(TuneError::Busy { process });
            }
            if now >= look_at {
                look_at = now + OVERDUE_POLL_NS;
                self.end_overdue();
            }
            clock::sleep_until(now + LOCK_POLL_NS);
        }
    }

    /// Kills a process that holds the lock past the deadline of its transaction, if the watchdog is dead.
    fn end_overdue(&self) {
        let Ok(Some(id)) = self.open_transaction() else { return };
        let (Ok(file), Ok(journal)) = (self.lock_file(LOCK_FILE), Journal::load(&self.context, id)) else { return };
        let Some(process) = overdue(&file, &journal) else { return };
        if let Ok(Some(_asleep)) = self.try_lock(&watch_name(id))
            && self.check_namespace(&journal).is_ok()
        {
            process.kill();
        }
    }

    /// Takes a lock of the state directory if it is free.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<Lock>, TuneError> {
        loop {
            let file = self.lock_file(name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => return Err(self.state_error(cause)),
            }
            // If the file was replaced meanwhile, another process holds the valid lock.
            if is_current(&file, &self.directory()?, name) {
                return Ok(Some(Lock::new(file)));
            }
        }
    }

    /// Opens the file of a lock, and creates it if necessary.
    pub(super) fn lock_file(&self, name: &str) -> Result<File, TuneError> {
        Ok(self.directory()?.file(name, "lock", Access::Create).map_err(JournalError::from)?)
    }

    /// Opens the current lock file if it replaced `file`; otherwise `None`.
    pub(super) fn successor(&self, file: &File) -> Option<File> {
        let directory = self.context.directory().ok()??;
        let replaced = directory.identity(LOCK_FILE).is_ok() && !is_current(file, &directory, LOCK_FILE);
        if replaced { directory.file(LOCK_FILE, "lock", Access::Create).ok() } else { None }
    }

    /// Replaces the lock of a process that does not end by a new one, which is valid from then on.
    pub(super) fn replace_lock(&self) -> Result<Lock, TuneError> {
        let directory = self.directory()?;
        let _ = directory.remove(NEW_LOCK_FILE);
        let file = directory.file(NEW_LOCK_FILE, "lock", Access::CreateNew).map_err(JournalError::from)?;
        file.lock().map_err(|cause| self.state_error(cause))?;
        directory.rename(NEW_LOCK_FILE, LOCK_FILE).map_err(|cause| self.state_error(cause))?;
        Ok(Lock::new(file))
    }

    fn directory(&self) -> Result<Directory, TuneError> {
        self.context.make_directory().map_err(|why| match why {
            JournalError::File { cause, .. } => self.state_error(cause),
            other => other.into(),
        })
    }

    fn state_error(&self, cause: std::io::Error) -> TuneError {
        TuneError::State { path: self.context.state.clone(), cause }
    }

    /// Removes the lock file of an earlier watchdog with this number.
    pub fn prepare_watch(&self, id: u32) {
        if let Ok(Some(lock)) = self.try_lock(&watch_name(id)) {
            lock.remove(&self.context, &watch_name(id));
        }
    }

    /// Process id of a transaction's watchdog, if its lock file shows that it is running.
    pub fn awake(&self, id: u32) -> Option<u32> {
        let directory = self.context.directory().ok()??;
        let file = directory.file(&watch_name(id), "lock", Access::Read).ok()?;
        holder(&file).filter(|held| held.awake).map(|held| held.process.pid)
    }
}

/// Name of the lock that a watchdog holds while it runs.
pub(super) fn watch_name(id: u32) -> String {
    format!("{id:04}.watchdog")
}

impl Journal {
    /// Deadline for the confirmation (`CLOCK_MONOTONIC`, nanoseconds); `None` for a finished transaction.
    pub fn deadline_ns(&self) -> Option<u64> {
        if !self.state().is_unfinished() {
            return None;
        }
        let mut found = None;
        for entry in self.entries() {
            match entry {
                Entry::Planned { monotonic_ns, confirm_s, .. } => {
                    found = Some(monotonic_ns.saturating_add(confirm_s.saturating_mul(1_000_000_000)));
                }
                Entry::Armed { deadline_ns: Some(deadline_ns), .. } | Entry::AwaitingConfirm { deadline_ns } => {
                    found = Some(*deadline_ns);
                }
                _ => {}
            }
        }
        found
    }

    /// The process that applied the transaction.
    pub fn applier(&self) -> Option<Identity> {
        self.entries().find_map(|entry| match entry {
            Entry::Planned { applier: (pid, started), .. } => Some(Identity { pid: *pid, started: *started }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use landspeed_sys::trust::Policy;

    use super::*;
    use crate::journal::Baseline;

    const SECOND_NS: u64 = 1_000_000_000;

    fn empty() -> File {
        tempfile::tempfile().expect("a file")
    }

    fn held_by(pid: u32, since_ns: u64) -> File {
        let file = empty();
        file.write_all_at(format!("{pid} 5 {since_ns}").as_bytes(), 0).expect("written");
        file
    }

    #[test]
    fn lock_file_records_holder_and_watchdog_state() {
        let file = empty();
        let lock = Lock::new(file.try_clone().expect("another handle"));
        assert_eq!(holder(&file).map(|held| (held.process, held.awake)), Some((Identity::own(), false)));
        lock.mark_running();
        assert_eq!(holder(&file).map(|held| held.awake), Some(true));
        drop(lock);
        assert_eq!(holder(&file), None);
    }

    #[test]
    fn only_old_lock_holders_are_overdue() {
        let directory = tempfile::tempdir().expect("a directory");
        let context = Context {
            state: directory.path().join("state"),
            boot: "b".into(),
            namespace: "n".into(),
            policy: Policy::Refuse,
            registry: directory.path().join("registry"),
            fault: None,
        };
        // All times are relative to this one.
        let now = clock::monotonic_ns();
        let planned = |confirm_s| Entry::Planned {
            steps: Vec::new(),
            confirm_s,
            baseline: Baseline::default(),
            applier: (77, 5),
            monotonic_ns: now,
            held: false,
        };
        let applier = Identity { pid: 77, started: 5 };
        let early = Journal::create(&context, planned(3600)).expect("room");
        assert_eq!(overdue(&held_by(77, now), &early), None, "its time is not up");
        let mut late = Journal::create(&context, planned(0)).expect("room");
        late.append(&context, Entry::Armed { watchdog: 1, deadline_ns: Some(now.saturating_sub(2 * SECOND_NS)) })
            .expect("room");
        assert_eq!(overdue(&held_by(77, now), &late), Some(applier));
        assert_eq!(overdue(&empty(), &late), Some(applier), "who applied, if nothing else is known");
        let other = Identity { pid: 78, started: 5 };
        assert_eq!(overdue(&held_by(78, now), &late), None, "it has just begun");
        assert_eq!(overdue(&held_by(78, now.saturating_sub(HOLD_NS)), &late), Some(other));
        late.append(&context, Entry::Committed).expect("room");
        assert_eq!(overdue(&held_by(78, 0), &late), None, "the transaction has come to its end");
    }
}
