//! Registry of this host's transactions from all state directories: one file per transaction below `/run`,
//! which is empty after a restart.
//!
//! A state directory contains only its own transactions. Without the registry two of them could change one
//! setting in turn, and the first rollback would restore a value that belongs to the other.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use landspeed_model::Target;
use landspeed_sys::clock;
use landspeed_sys::process::Identity;
use landspeed_sys::trust::{Access, Directory, TrustError};
use serde::{Deserialize, Serialize};

use super::Engine;
use crate::Device;
use crate::error::TuneError;
use crate::history::State;
use crate::journal::{Context, Entry, Journal, JournalError, sum};

/// Timeout of waiting for the registry, nanoseconds: it is locked for a few file operations.
const WAIT_NS: u64 = 10_000_000_000;
const POLL_NS: u64 = 5_000_000;
/// Name of the directory in errors.
const DIRECTORY_KIND: &str = "transaction registry";
/// Maximum length of an entry that is read, bytes.
const MAX_ENTRY_BYTES: u64 = 1 << 20;

/// A transaction in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Registered {
    /// State directory of the transaction.
    state: PathBuf,
    /// Device and inode of that directory: it may have several paths.
    directory: (u64, u64),
    id: u32,
    boot: String,
    namespace: String,
    /// Time of the plan (`CLOCK_MONOTONIC`, nanoseconds).
    planned_ns: u64,
    applier: (u32, u64),
    /// Process id and start time of the watchdog, once it runs.
    watchdog: Option<(u32, u64)>,
    settings: Vec<(Target, Option<Device>)>,
}

/// State of a transaction of another state directory.
enum EntryState {
    /// Its changes may be in effect.
    In(State),
    /// Its journal cannot be read, but its process or watchdog is alive.
    Unreadable,
    /// It has ended.
    Ended,
}

impl Engine<'_> {
    /// Registers a transaction before its first write, unless an unfinished one of another state directory has
    /// one of its settings.
    pub(super) fn register(&self, journal: &Journal) -> Result<(), TuneError> {
        let registry = Registry::open(self)?;
        let Some(mine) = self.entry(journal) else { return Ok(()) };
        for (name, other) in registry.others(self, &mine)? {
            let open = match self.entry_state(&other) {
                EntryState::Ended => {
                    let _ = registry.directory.remove(&name);
                    false
                }
                EntryState::In(state) => state.is_unfinished(),
                EntryState::Unreadable => true,
            };
            if let Some(setting) = shared(&mine, &other)
                && open
            {
                return Err(TuneError::OpenElsewhere { id: other.id, state: other.state, setting });
            }
        }
        registry.write(&mine)
    }

    /// Records the watchdog of a registered transaction.
    pub(super) fn register_watchdog(&self, journal: &Journal, watchdog: u32) -> Result<(), TuneError> {
        let registry = Registry::open(self)?;
        let Some(mut mine) = self.entry(journal) else { return Ok(()) };
        let started = landspeed_sys::process::start_ticks(watchdog).unwrap_or(0);
        mine.watchdog = Some((watchdog, started));
        registry.write(&mine)
    }

    /// Removes a transaction that was rolled back. A stale entry is removed when another transaction registers.
    pub(super) fn unregister(&self, journal: &Journal) {
        if let Some(mine) = self.entry(journal)
            && let Ok(registry) = Registry::open(self)
        {
            let _ = registry.directory.remove(&mine.name());
        }
    }

    /// Returns a transaction of another state directory that changed one of the same settings later and was not
    /// rolled back. If the registry cannot be used, the revert continues: values of other transactions are kept
    /// in any case.
    pub(super) fn later_elsewhere(&self, journal: &Journal) -> Option<(u32, PathBuf)> {
        let mine = self.entry(journal)?;
        let others = Registry::open(self).and_then(|registry| registry.others(self, &mine)).ok()?;
        let later = others.into_iter().find(|(_, other)| {
            other.planned_ns > mine.planned_ns
                && shared(&mine, other).is_some()
                && !matches!(self.entry_state(other), EntryState::Ended)
        });
        later.map(|(_, other)| (other.id, other.state))
    }

    /// Returns the registry entry of a transaction; `None` without a plan.
    fn entry(&self, journal: &Journal) -> Option<Registered> {
        let Entry::Planned { steps, applier, monotonic_ns, .. } = journal.entries().next()? else { return None };
        let first = journal.records().first()?;
        let directory = self.context.directory().ok().flatten().and_then(|directory| directory.identity(".").ok());
        Some(Registered {
            state: self.context.state.clone(),
            directory: directory.unwrap_or_default(),
            id: journal.id,
            boot: first.boot.clone(),
            namespace: first.namespace.clone(),
            planned_ns: *monotonic_ns,
            applier: *applier,
            watchdog: None,
            settings: steps.iter().map(|step| (step.target.clone(), step.device.clone())).collect(),
        })
    }

    /// Whether another entry is of the same state directory, which has its own checks. A new directory may
    /// reuse the inode of a removed one, so the journal is compared too.
    fn is_same_directory(&self, mine: &Registered, other: &Registered) -> bool {
        let same =
            || Journal::load(&self.context, other.id).is_ok_and(|found| planned_ns(&found) == Some(other.planned_ns));
        mine.directory == other.directory && same()
    }

    fn entry_state(&self, other: &Registered) -> EntryState {
        if other.boot != self.context.boot {
            return EntryState::Ended;
        }
        let context = Context { state: other.state.clone(), ..self.context.clone() };
        match Journal::load(&context, other.id) {
            // A new directory may have reused the number.
            Ok(journal) if planned_ns(&journal) == Some(other.planned_ns) => match journal.state() {
                State::Reverted => EntryState::Ended,
                state => EntryState::In(state),
            },
            Err(JournalError::Untrusted(_) | JournalError::Damaged { .. }) => EntryState::Unreadable,
            _ => {
                let alive = |(pid, started)| Identity { pid, started }.is_alive();
                let at_work = alive(other.applier) || other.watchdog.is_some_and(alive);
                if at_work { EntryState::Unreadable } else { EntryState::Ended }
            }
        }
    }
}

fn planned_ns(journal: &Journal) -> Option<u64> {
    match journal.entries().next()? {
        Entry::Planned { monotonic_ns, .. } => Some(*monotonic_ns),
        _ => None,
    }
}

impl Registered {
    /// File name of the entry.
    fn name(&self) -> String {
        let key = format!("{} {} {}", self.state.display(), self.id, self.planned_ns);
        format!("{}.json", sum(key.as_bytes()))
    }
}

/// Name of a setting that both transactions change.
fn shared(mine: &Registered, other: &Registered) -> Option<String> {
    let same_namespace = mine.namespace == other.namespace;
    let same = |a: &(Target, Option<Device>), b: &(Target, Option<Device>)| {
        if !same_namespace && !is_host_wide(&a.0) {
            return false;
        }
        match (&a.1, &b.1) {
            // The device may have been renamed in between.
            (Some(mine), Some(theirs)) if mine.is(theirs) => {
                a.0 == b.0 || a.0 == crate::sysctl::on_interface(&b.0, &mine.name)
            }
            (Some(_), Some(_)) => false,
            _ => a.0 == b.0,
        }
    };
    let found = mine.settings.iter().find(|mine| other.settings.iter().any(|theirs| same(mine, theirs)));
    found.map(|(target, _)| target.to_string())
}

/// Whether a setting is the same in every network namespace.
fn is_host_wide(target: &Target) -> bool {
    match target {
        Target::Sysctl { name } => !name.starts_with("net."),
        other => other.interface().is_none(),
    }
}

/// The open registry, locked until dropped.
struct Registry {
    directory: Directory,
    _lock: File,
}

impl Registry {
    fn open(engine: &Engine<'_>) -> Result<Self, TuneError> {
        let context = &engine.context;
        let fail = |why: TrustError| match why {
            TrustError::Untrusted(why) => TuneError::Journal(JournalError::Untrusted(why)),
            TrustError::Io { cause, .. } => TuneError::Registry { path: context.registry.clone(), cause },
        };
        let directory = Directory::open(&context.registry, DIRECTORY_KIND, true, context.policy).map_err(fail)?;
        let lock = directory.file("lock", "lock", Access::Create).map_err(fail)?;
        let deadline = clock::monotonic_ns() + WAIT_NS;
        while lock.try_lock().is_err() {
            if clock::monotonic_ns() > deadline {
                return Err(TuneError::Busy { process: None });
            }
            clock::sleep_until(clock::monotonic_ns() + POLL_NS);
        }
        Ok(Self { directory, _lock: lock })
    }

    /// Reads all entries except those of the same state directory, with their file names.
    fn others(&self, engine: &Engine<'_>, mine: &Registered) -> Result<Vec<(String, Registered)>, TuneError> {
        let fail = |cause| TuneError::Registry { path: mine.state.clone(), cause };
        let mut found = Vec::new();
        for name in self.directory.names().map_err(fail)?.into_iter().filter_map(|name| name.into_string().ok()) {
            if Path::new(&name).extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let mut text = String::new();
            let file = self.directory.file(&name, DIRECTORY_KIND, Access::Read).map_err(JournalError::from)?;
            file.take(MAX_ENTRY_BYTES).read_to_string(&mut text).map_err(fail)?;
            // An incomplete entry belongs to a transaction that crashed before its first write.
            let Ok(entry) = serde_json::from_str::<Registered>(&text) else { continue };
            if entry.name() != mine.name() && !engine.is_same_directory(mine, &entry) {
                found.push((name, entry));
            }
        }
        Ok(found)
    }

    fn write(&self, entry: &Registered) -> Result<(), TuneError> {
        let fail = |cause| TuneError::Registry { path: entry.state.clone(), cause };
        let text = serde_json::to_string(entry).unwrap_or_else(|why| unreachable!("an entry is plain data: {why}"));
        let name = entry.name();
        let new = format!("{name}.new");
        let _ = self.directory.remove(&new);
        let mut file = self.directory.file(&new, DIRECTORY_KIND, Access::CreateNew).map_err(JournalError::from)?;
        file.write_all(text.as_bytes()).map_err(fail)?;
        self.directory.rename(&new, &name).map_err(fail)
    }
}
