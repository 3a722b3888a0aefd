//! Applying, confirming, reverting: every write has its record on the disk before it, every record says what is needed to take
//! the write back.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use landspeed_model::Target;
use landspeed_sys::{clock, process};
use serde::{Deserialize, Serialize};

use crate::history::{State, StepState};
use crate::journal::{Baseline, Context, Entry, Fault, Journal, JournalError, JournalStep};
use crate::plan::Plan;
use crate::{Knobs, Value};

mod recover;
mod restore;

pub use recover::Recovered;

/// How long another command of this program is waited for, nanoseconds.
const LOCK_WAIT_NS: u64 = 10_000_000_000;
/// How often it is looked at, nanoseconds.
const LOCK_POLL_NS: u64 = 20_000_000;
/// Shortest and longest time to confirm in, seconds.
pub const CONFIRM_RANGE_S: std::ops::RangeInclusive<u64> = 1..=86_400;

/// Why a transaction did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The journal could not be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The state directory cannot be used.
    #[error("cannot use the state directory {path}: {cause}; run as root, or name another with --state")]
    State {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Another command holds the lock.
    #[error("another tune command is at work; wait for it, or look with `landspeed tune status`")]
    Busy,
    /// A transaction is open.
    #[error("transaction {id} awaits its confirmation: `landspeed tune confirm` or `landspeed tune revert` it first")]
    Open {
        /// Which.
        id: u32,
    },
    /// Nothing would be written.
    #[error("the plan holds nothing to write")]
    Empty,
    /// The watchdog did not wake up.
    #[error("the watchdog did not start, so nothing was changed: {why}")]
    Watchdog {
        /// Why.
        why: String,
    },
    /// Applying failed and was taken back.
    #[error("{why}; {}", if *clean { "everything was put back" } else { "not everything could be put back: see `landspeed tune status`" })]
    Failed {
        /// What failed.
        why: String,
        /// Whether all is as it was.
        clean: bool,
    },
    /// There is no such transaction, or none in a fitting state.
    #[error("{0}")]
    NotPossible(String),
    /// The host is not as it should be.
    #[error("not confirmed: {}. Unless it is confirmed, the change is taken back", .0.join("; "))]
    Unhealthy(Vec<String>),
}

/// What became of a step on revert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was put back, and read back as it was.
    Restored,
    /// It was as before already.
    AlreadyThere,
    /// The device or setting is gone, and the change with it.
    Gone,
    /// Somebody else changed it meanwhile; it was left alone.
    Drift {
        /// What is there.
        found: Value,
    },
    /// It could not be put back.
    Failed {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// Whether nothing is left to do.
    pub fn is_clean(&self) -> bool {
        matches!(self, Self::Restored | Self::AlreadyThere | Self::Gone)
    }
}

/// A step as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// What.
    pub target: Target,
    /// What was there.
    pub before: Value,
    /// What was asked for.
    pub requested: String,
    /// What was read back.
    pub observed: Value,
    /// Whether the driver took another value than asked for.
    pub rounded: bool,
}

/// A transaction that awaits its confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Its number.
    pub id: u32,
    /// What was written.
    pub written: Vec<Written>,
    /// Time to confirm in, seconds.
    pub confirm_s: u64,
}

/// Holds everybody else off. Gone with the value or the process.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes away the file at a path if it is this lock's: another directory may have come into the place of its own.
    pub(crate) fn remove(&self, path: &Path) {
        let same = |mine: &Metadata, theirs: &Metadata| (mine.dev(), mine.ino()) == (theirs.dev(), theirs.ino());
        if let (Ok(mine), Ok(theirs)) = (self.file.metadata(), std::fs::metadata(path))
            && same(&mine, &theirs)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Carries transactions out on a host.
pub struct Engine<'a> {
    knobs: &'a dyn Knobs,
    context: Context,
    writes: std::cell::Cell<u64>,
}

/// Wakes up the watchdog of a transaction and returns its process when it is awake.
pub type Arm<'a> = &'a mut dyn FnMut(u32) -> Result<u32, String>;

impl<'a> Engine<'a> {
    /// An engine for this host.
    pub fn new(knobs: &'a dyn Knobs, context: Context) -> Self {
        Self { knobs, context, writes: std::cell::Cell::new(0) }
    }

    /// Where and who this is.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The host.
    pub fn knobs(&self) -> &dyn Knobs {
        self.knobs
    }

    /// Waits a moment for other commands and then holds them off.
    pub fn lock(&self) -> Result<Lock, TuneError> {
        let deadline = clock::monotonic_ns() + LOCK_WAIT_NS;
        loop {
            if let Some(lock) = self.try_lock("lock")? {
                return Ok(lock);
            }
            if clock::monotonic_ns() > deadline {
                return Err(TuneError::Busy);
            }
            clock::sleep_until(clock::monotonic_ns() + LOCK_POLL_NS);
        }
    }

    /// A lock of the state directory by name, if nobody has it.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Lock>, TuneError> {
        let file = self.lock_file(name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(cause)) => Err(TuneError::State { path: self.context.state.clone(), cause }),
        }
    }

    /// The file of a lock.
    fn lock_file(&self, name: &str) -> Result<File, TuneError> {
        let fail = |cause| TuneError::State { path: self.context.state.clone(), cause };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.context.state).map_err(fail)?;
        let path = self.context.state.join(name);
        OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(fail)
    }

    /// Carries a plan out. `arm` is called before the first write. On any failure everything is taken back.
    pub fn apply(
        &self,
        plan: &Plan,
        confirm_s: u64,
        session: Option<&str>,
        arm: Arm<'_>,
    ) -> Result<Applied, TuneError> {
        let _lock = self.lock()?;
        self.recover(&[])?;
        if let Some(id) = self.open_transaction()? {
            return Err(TuneError::Open { id });
        }
        if plan.writes() == 0 {
            return Err(TuneError::Empty);
        }
        let steps: Vec<JournalStep> = plan.live().filter_map(journal_step).collect();
        let mut journal = Journal::create(&self.context)?;
        let pid = std::process::id();
        let planned = Entry::Planned {
            baseline: self.baseline(&steps, session),
            steps,
            confirm_s,
            applier: (pid, process::start_ticks(pid).unwrap_or(0)),
            monotonic_ns: clock::monotonic_ns(),
        };
        if let Err(why) = journal.append(&self.context, planned) {
            journal.discard();
            return Err(why.into());
        }
        let armed = arm(journal.id)
            .map_err(|why| TuneError::Watchdog { why })
            .and_then(|watchdog| journal.append(&self.context, Entry::Armed { watchdog }).map_err(TuneError::from));
        if let Err(why) = armed {
            self.note(&mut journal, Entry::Reverted { why: why.to_string() });
            return Err(why);
        }
        match self.write_all(&mut journal) {
            Ok(written) => {
                let deadline_ns = clock::monotonic_ns() + confirm_s * 1_000_000_000;
                match journal.append(&self.context, Entry::AwaitingConfirm { deadline_ns }) {
                    Ok(()) => Ok(Applied { id: journal.id, written, confirm_s }),
                    Err(why) => Err(self.give_up(&mut journal, why.to_string())),
                }
            }
            Err(why) => Err(self.give_up(&mut journal, why)),
        }
    }

    fn give_up(&self, journal: &mut Journal, why: String) -> TuneError {
        let clean = self.take_back(journal, &why, false).is_ok_and(|state| state == State::Reverted);
        TuneError::Failed { why, clean }
    }

    fn write_all(&self, journal: &mut Journal) -> Result<Vec<Written>, String> {
        let mut written = Vec::new();
        let steps = journal.steps().to_vec();
        // Devices whose queues a step has changed: what hangs on them may differ from the plan.
        let mut reset = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let target = self.present(step).ok_or_else(|| format!("{} is gone", step.target))?;
            let before = self.knobs.read(&target).map_err(|why| why.to_string())?;
            let expected = step.device.as_ref().is_some_and(|device| reset.contains(&device.ifindex));
            if !before.same(&step.before) && !expected {
                return Err(format!(
                    "{} was {} when the plan was made and is {before} now: somebody else is changing it",
                    step.target, step.before
                ));
            }
            let intent = Entry::Intent { step: number, before: before.clone() };
            journal.append(&self.context, intent).map_err(|why| why.to_string())?;
            if step.keep {
                continue;
            }
            let carrier = step.device.as_ref().map(|device| self.knobs.carrier(&device.name));
            self.put(&target, &Value::text(&*step.desired)).map_err(|why| why.to_string())?;
            if resets_link(&target)
                && let (Some(device), Some(carrier)) = (&step.device, carrier)
            {
                reset.push(device.ifindex);
                if !self.knobs.settle(&device.name, carrier) && carrier {
                    return Err(format!("{} has no carrier after {} was set", device.name, step.target));
                }
            }
            let observed = self.knobs.read(&target).map_err(|why| why.to_string())?;
            let accepted = accept(&target, &before, &step.desired, &observed);
            // What the kernel made of it is ours to take back, whether it will do or not.
            let rounded = accepted.as_ref().copied().unwrap_or(true);
            let applied = Entry::Applied { step: number, observed: observed.clone(), rounded };
            journal.append(&self.context, applied).map_err(|why| why.to_string())?;
            accepted?;
            let requested = step.desired.clone();
            written.push(Written { target: step.target.clone(), before, requested, observed, rounded });
        }
        Ok(written)
    }

    /// The one place where the host is written to.
    fn put(&self, target: &Target, value: &Value) -> Result<(), crate::KnobError> {
        let outcome = self.knobs.write(target, value);
        self.wrote();
        outcome
    }

    /// Something outside of the journal was written: a place to end, for tests.
    pub(crate) fn wrote(&self) {
        self.writes.set(self.writes.get() + 1);
        if self.context.fault == Some(Fault::AfterWrite(self.writes.get())) {
            process::kill_self();
        }
    }

    /// The target under its device's present name; `None` if the device is gone.
    fn present(&self, step: &JournalStep) -> Option<Target> {
        match &step.device {
            None => Some(step.target.clone()),
            Some(device) => self.knobs.find(device).map(|name| step.target_on(&name)),
        }
    }

    fn baseline(&self, steps: &[JournalStep], session: Option<&str>) -> Baseline {
        let mut carriers: Vec<(crate::Device, bool)> = Vec::new();
        for device in steps.iter().filter_map(|step| step.device.as_ref()) {
            if !carriers.iter().any(|(seen, _)| seen.is(device)) {
                carriers.push((device.clone(), self.knobs.carrier(&device.name)));
            }
        }
        let peer = session.and_then(|text| text.split_whitespace().next()).map(ToOwned::to_owned);
        // A peer that could not be reached before cannot tell anything after.
        let peer = peer.filter(|peer| self.knobs.unreachable(peer).is_none());
        let session = session.map(ToOwned::to_owned);
        Baseline { routes: self.knobs.default_routes(), carriers, peer, session }
    }

    /// Lets a transaction stay, if the host is well.
    pub fn confirm(&self, session: Option<&str>) -> Result<u32, TuneError> {
        let _lock = self.lock()?;
        let Some(id) = self.open_transaction()? else {
            self.recover(&[])?;
            return Err(TuneError::NotPossible(
                "no transaction awaits a confirmation; see `landspeed tune status`".into(),
            ));
        };
        let mut journal = Journal::load(&self.context.state, id)?;
        self.same_place(&journal)?;
        let State::AwaitingConfirm { deadline_ns } = journal.state() else {
            self.recover(&[])?;
            return Err(TuneError::NotPossible(format!("transaction {id} was not finished and has been taken back")));
        };
        if clock::monotonic_ns() >= deadline_ns {
            self.take_back(&mut journal, "it was not confirmed in time", false)?;
            return Err(TuneError::NotPossible(format!("too late: transaction {id} was not confirmed in time")));
        }
        let ills = self.ills(&journal, session);
        if !ills.is_empty() {
            return Err(TuneError::Unhealthy(ills));
        }
        journal.append(&self.context, Entry::Committed)?;
        Ok(id)
    }

    /// What is worse than before, or not as it was written.
    fn ills(&self, journal: &Journal, session: Option<&str>) -> Vec<String> {
        let mut ills = Vec::new();
        let Some(baseline) = journal.baseline() else { return ills };
        for (device, carrier) in &baseline.carriers {
            match self.knobs.find(device) {
                None => ills.push(format!("{} is gone", device.name)),
                Some(name) if *carrier && !self.knobs.carrier(&name) => ills.push(format!("{name} lost its carrier")),
                Some(_) => {}
            }
        }
        let routes = self.knobs.default_routes();
        ills.extend(
            baseline.routes.iter().filter(|r| !routes.contains(r)).map(|r| format!("the route `{r}` is gone")),
        );
        let now = session.and_then(|text| text.split_whitespace().next());
        let mut peers: Vec<&str> = baseline.peer.as_deref().into_iter().chain(now).collect();
        peers.dedup();
        ills.extend(peers.into_iter().filter_map(|peer| {
            self.knobs.unreachable(peer).map(|why| format!("the management peer {peer} is out of reach: {why}"))
        }));
        for (number, step) in journal.steps().iter().enumerate() {
            let StepState::Applied { observed, .. } = journal.step_state(number) else { continue };
            let now = self.present(step).map(|target| self.knobs.read(&target));
            if let Some(Ok(now)) = now
                && !now.same(&observed)
            {
                ills.push(format!("{} was set to {observed} and is {now} now", step.target));
            }
        }
        ills
    }

    /// The transaction somebody still has to bring to an end.
    pub fn open_transaction(&self) -> Result<Option<u32>, TuneError> {
        for id in Journal::list(&self.context.state)?.into_iter().rev() {
            let journal = Journal::load(&self.context.state, id)?;
            if journal.state().is_unfinished() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Refuses a transaction of another boot or network namespace.
    fn same_place(&self, journal: &Journal) -> Result<(), TuneError> {
        let Some(first) = journal.records().first() else { return Ok(()) };
        if first.boot == self.context.boot && first.namespace != self.context.namespace {
            return Err(TuneError::NotPossible(format!(
                "transaction {} was made in another network namespace ({}); run this command in there",
                journal.id, first.namespace
            )));
        }
        Ok(())
    }

    /// A record that would be good to have. What is done does not depend on it, and a full disk must not stop it.
    fn note(&self, journal: &mut Journal, entry: Entry) -> bool {
        journal.append(&self.context, entry).is_ok()
    }
}

fn journal_step(step: &crate::plan::Step) -> Option<JournalStep> {
    Some(JournalStep {
        target: step.target.clone(),
        device: step.device.clone(),
        before: step.observed.clone()?,
        desired: step.desired.clone(),
        keep: step.keep,
    })
}

fn resets_link(target: &Target) -> bool {
    matches!(target, Target::Ring { .. } | Target::Channels { .. } | Target::Mtu { .. } | Target::Pause { .. })
}

/// Whether what was read back will do: exactly, or (true) rounded or clamped by the driver. The error says how it differs.
fn accept(target: &Target, before: &Value, desired: &str, observed: &Value) -> Result<bool, String> {
    let wanted = Value::text(desired);
    if let (Value::Qdiscs(tree), Target::Qdisc { .. }) = (observed, target) {
        let kind = crate::discipline::Wanted::parse(desired)?.kind();
        let fits = match kind {
            None => tree.is_default(),
            Some(kind) => tree.senders().iter().all(|node| node.kind == kind) && !tree.senders().is_empty(),
        };
        return if fits { Ok(false) } else { Err(format!("{target} was set to {desired} and is {observed}")) };
    }
    if observed.same(&wanted) || same_mask(target, desired, observed) {
        return Ok(false);
    }
    let drivers = matches!(
        target,
        Target::Ring { .. } | Target::Channels { .. } | Target::Coalescing { .. } | Target::SegmentLimit { .. }
    );
    match (before.number(), wanted.number(), observed.number()) {
        // Moved the right way, or a step past the goal: a rounding. Not moved, or moved away: not accepted.
        (Some(before), Some(wanted), Some(observed))
            if drivers && observed.abs_diff(wanted) < before.abs_diff(wanted) =>
        {
            Ok(true)
        }
        _ => Err(format!("{target} was set to {desired} and reads {observed}")),
    }
}

/// Masks and lists of processors are printed by the kernel in its own form.
fn same_mask(target: &Target, desired: &str, observed: &Value) -> bool {
    let Value::Text(observed) = observed else { return false };
    match target {
        Target::Queue { .. } => {
            let plain = |text: &str| {
                let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
                digits.trim_start_matches('0').to_ascii_lowercase()
            };
            plain(desired) == plain(observed)
        }
        Target::InterruptAffinity { .. } => processors(desired).is_some_and(|set| Some(set) == processors(observed)),
        _ => false,
    }
}

/// The processors of a list in the kernel's format, ascending. `None` if it is no list.
fn processors(text: &str) -> Option<Vec<u32>> {
    let mut set = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? > 65_536 {
            return None;
        }
        set.extend(first..=last);
    }
    set.sort_unstable();
    set.dedup();
    Some(set)
}

#[cfg(test)]
mod tests;
