//! Changes of this host, held by this process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use landspeed_flow::control::changes::{AppliedChange, PlannedChange};
use landspeed_flow::server::HeldChanges;
use landspeed_model::{Change, ErrorEntry};
use landspeed_sys::process::{Capability, has_capability};
use landspeed_sys::{clock, process};
use landspeed_tune::{
    Allow, Applied, CONFIRM_RANGE_S, Context, Engine, Journal, LiveKnobs, Plan, State, TuneError, objection,
};

use super::NOT_RESTORED;
use crate::trust::TrustArgs;
use crate::tune::{self, StateArgs, watchdog};

/// Longest time that anything stays changed, seconds.
const LONGEST_S: u64 = 3600;
/// State directories of network namespaces other than the host's own: they do not outlive a restart either.
const OF_NAMESPACES: &str = "/run/landspeed/held";

/// Why a change is not carried out for whom this is, whatever the host.
pub type Objection = fn(&Change) -> Option<String>;

/// Changes of this host. Dropping it rolls them back.
pub struct Holder {
    state: StateArgs,
    context: Context,
    ends_ns: u64,
    objection: Objection,
    held: Vec<Change>,
    /// What `held` has written; without a transaction where everything had its value before.
    transaction: Option<Applied>,
    warned: bool,
}

impl Holder {
    /// Begins for this process.
    pub fn begin(limit: Duration, trust: TrustArgs) -> Result<Self, ErrorEntry> {
        Self::with(limit, trust, objection)
    }

    /// Begins for whom `objection` judges. Brings transactions to an end that a crash left.
    pub fn with(limit: Duration, trust: TrustArgs, objection: Objection) -> Result<Self, ErrorEntry> {
        need_privilege()?;
        let state = StateArgs { state: state_directory(), trust };
        let context = tune::context(&state).map_err(|why| entry("unavailable", format!("{why:#}")))?;
        let limit_ns = limit.as_secs().clamp(*CONFIRM_RANGE_S.start(), LONGEST_S).saturating_mul(1_000_000_000);
        let ends_ns = clock::monotonic_ns().saturating_add(limit_ns);
        let holder = Self { state, context, ends_ns, objection, held: Vec::new(), transaction: None, warned: false };
        holder.engine().recover_orphans().map_err(|why| entry("unavailable", why.to_string()))?;
        Ok(holder)
    }

    /// What is held.
    pub fn held(&self) -> &[Change] {
        &self.held
    }

    fn engine(&self) -> Engine<'static> {
        Engine::new(&LiveKnobs, self.context.clone())
    }

    /// The plan of what may be asked for, and the reasons for the rest.
    fn judge(&self, changes: &[Change]) -> (Plan, Vec<(Change, String)>) {
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        for change in changes {
            match (self.objection)(change) {
                None => allowed.push(change.clone()),
                Some(why) => refused.push((change.clone(), why)),
            }
        }
        (landspeed_tune::plan(&allowed, &LiveKnobs, Allow::default()), refused)
    }

    /// Whether what is held is still in force: its time may be over, or an administrator may have rolled it back.
    fn is_in_force(&self) -> bool {
        self.transaction.as_ref().is_none_or(|applied| self.engine().is_in_force(applied.id))
    }

    fn failed(&self, why: &TuneError) -> ErrorEntry {
        match why {
            TuneError::Failed { clean: false, .. } => self.not_restored(why.to_string()),
            _ => entry("refused", why.to_string()),
        }
    }

    fn not_restored(&self, message: String) -> ErrorEntry {
        let advice = format!("look at that host: `landspeed tune status --state {}`", self.state.state.display());
        ErrorEntry { advice: Some(advice), ..entry(NOT_RESTORED, message) }
    }
}

impl HeldChanges for Holder {
    fn place(&self) -> String {
        format!("{} {}", self.context.boot, self.context.namespace)
    }

    fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, ErrorEntry> {
        let (plan, refused) = self.judge(changes);
        let planned = plan.steps.into_iter().filter(|step| !step.keep).map(|step| PlannedChange {
            change: Change::new(step.target, step.desired),
            before: step.observed.map(|value| value.to_string()),
            refused: step.refused,
            no_op: step.no_op,
            notes: step.notes,
        });
        let refused = refused.into_iter().map(|(change, why)| PlannedChange {
            change,
            before: None,
            refused: Some(why),
            no_op: false,
            notes: Vec::new(),
        });
        Ok(planned.chain(refused).collect())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<Vec<AppliedChange>, ErrorEntry> {
        if self.held == changes && self.is_in_force() {
            return Ok(self.transaction.as_ref().map(written).unwrap_or_default());
        }
        // What can never be applied costs nothing that is held.
        let never = changes.iter().find_map(|change| Some((change, (self.objection)(change)?)));
        if let Some((change, why)) = never {
            self.roll_back()?;
            return Err(refused(change, &why));
        }
        self.roll_back()?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let left_s = self.ends_ns.saturating_sub(clock::monotonic_ns()) / 1_000_000_000;
        if left_s == 0 {
            return Err(entry("refused", "the time that changes were asked for is over".to_owned()));
        }
        let (plan, _) = self.judge(changes);
        if let Some(step) = plan.refused().next() {
            let change = Change::new(step.target.clone(), step.desired.clone());
            return Err(refused(&change, step.refused.as_deref().unwrap_or_default()));
        }
        let engine = self.engine();
        if plan.writes() == 0 {
            // What is so now may be another transaction's, and gone when that is rolled back.
            if let Some(id) = engine.open_transaction().map_err(|why| self.failed(&why))? {
                return Err(self.failed(&TuneError::Open { id }));
            }
        } else {
            let arm = &mut |id| watchdog::start(&engine, &self.state, id);
            let applied = engine.hold(&plan, left_s, arm).map_err(|why| self.failed(&why))?;
            if let Some(warning) = applied.watchdog.warning.as_ref().filter(|_| !self.warned) {
                eprintln!("landspeed: warning: {warning}");
                self.warned = true;
            }
            self.transaction = Some(applied);
        }
        self.held = changes.to_vec();
        Ok(self.transaction.as_ref().map(written).unwrap_or_default())
    }

    fn roll_back(&mut self) -> Result<bool, ErrorEntry> {
        self.held.clear();
        let Some(Applied { id, .. }) = self.transaction else { return Ok(false) };
        // If it cannot be done now, it is tried again at the end.
        let released = self.engine().release(id);
        let state =
            released.map_err(|why| self.not_restored(format!("transaction {id} is not rolled back: {why}")))?;
        self.transaction = None;
        match state {
            State::Reverted => Ok(true),
            State::NeedsAttention => {
                let journal = Journal::load(&self.context, id).ok();
                let why = journal.as_ref().and_then(Journal::reason).unwrap_or("no reason recorded");
                Err(self.not_restored(format!("transaction {id} is not rolled back in full: {why}")))
            }
            _ => Err(self.not_restored(format!("transaction {id} was confirmed meanwhile"))),
        }
    }

    fn keep(&mut self) -> Result<(), ErrorEntry> {
        if let Some(Applied { id, .. }) = self.transaction {
            self.engine().keep(id).map_err(|why| self.failed(&why))?;
        }
        self.transaction = None;
        self.held.clear();
        Ok(())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The watchdog tries once more when this process is gone.
        let _ = self.roll_back();
    }
}

fn written(applied: &Applied) -> Vec<AppliedChange> {
    let written = applied.written.iter().map(|step| AppliedChange {
        change: Change::new(step.target.clone(), step.requested.clone()),
        before: step.before.to_string(),
        after: step.observed.to_string(),
        rounded: step.rounded,
    });
    written.collect()
}

fn refused(change: &Change, why: &str) -> ErrorEntry {
    entry("refused", format!("nothing was changed: {} is refused: {why}", change.target))
}

fn entry(code: &str, message: String) -> ErrorEntry {
    ErrorEntry { code: code.to_owned(), message, advice: None }
}

/// Refuses a process that could not change settings of this host.
pub fn need_privilege() -> Result<(), ErrorEntry> {
    let message = if !process::is_root() {
        "changing settings of this host needs root"
    } else if !has_capability(Capability::NetAdmin) {
        "changing settings of this host needs CAP_NET_ADMIN, which this process does not have"
    } else {
        return Ok(());
    };
    Err(ErrorEntry { advice: Some("run it with sudo".to_owned()), ..entry("unavailable", message.to_owned()) })
}

/// Where the journals are: those of the host's own network namespace beside those of `landspeed tune`, which lists, reverts and
/// persists them. One directory has one open transaction, and two namespaces of a host do not wait for each other. Where the host's
/// own namespace is not visible, each namespace has its directory.
fn state_directory() -> PathBuf {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let (own, first) = (namespace("self"), namespace("1"));
    match own.as_deref().and_then(Path::to_str) {
        Some(own) if first.as_deref().is_none_or(|first| first != Path::new(own)) => {
            let inode: String = own.chars().filter(char::is_ascii_digit).collect();
            Path::new(OF_NAMESPACES).join(inode)
        }
        _ => tune::STATE.into(),
    }
}
