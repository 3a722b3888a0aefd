//! Changes of this host, held until this process rolls them back.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use landspeed_flow::control::changes::{AppliedChange, PlannedChange};
use landspeed_flow::server::HeldChanges;
use landspeed_model::{Change, ErrorEntry};
use landspeed_quote::shell_path;
use landspeed_sys::process::{Capability, has_capability};
use landspeed_sys::{clock, process};
use landspeed_tune::{
    Allow, Applied, CONFIRM_RANGE_S, Context, Engine, Journal, LiveKnobs, NOT_RESTORED, Plan, State, TuneError,
    objection,
};

use crate::trust::TrustArgs;
use crate::tune::state::{self, StateArgs};
use crate::tune::watchdog;

/// Maximum time that changes are held, seconds.
const MAX_HOLD_S: u64 = 3600;
/// State directories of network namespaces other than the host's own. Like the namespaces, they do not survive
/// a reboot.
const NAMESPACE_STATE: &str = "/run/landspeed/held";

/// Returns why a change is refused for this requester; `None` if it is permitted.
pub type Objection = fn(&Change) -> Option<String>;

/// Changes of this host. Dropping the holder rolls them back.
pub struct Holder {
    state: StateArgs,
    context: Context,
    ends_ns: u64,
    objection: Objection,
    held: Vec<Change>,
    /// The transaction that applied `held`; `None` if all values were already set.
    transaction: Option<Applied>,
}

impl Holder {
    /// Opens a holder for this process, with the default objections.
    pub fn begin(limit: Duration, trust: TrustArgs) -> Result<Self, ErrorEntry> {
        Self::with(limit, trust, objection)
    }

    /// Opens a holder with an objection function. Rolls back transactions left by a crash.
    pub fn with(limit: Duration, trust: TrustArgs, objection: Objection) -> Result<Self, ErrorEntry> {
        need_privilege()?;
        let state = StateArgs { state: state_directory(), trust };
        let context = state::context(&state).map_err(|why| entry("unavailable", format!("{why:#}")))?;
        let limit_ns = limit.as_secs().clamp(*CONFIRM_RANGE_S.start(), MAX_HOLD_S).saturating_mul(1_000_000_000);
        let ends_ns = clock::monotonic_ns().saturating_add(limit_ns);
        let holder = Self { state, context, ends_ns, objection, held: Vec::new(), transaction: None };
        holder.engine().recover_orphans().map_err(|why| entry("unavailable", why.to_string()))?;
        Ok(holder)
    }

    /// Returns the changes that are currently held.
    pub fn held(&self) -> &[Change] {
        &self.held
    }

    fn engine(&self) -> Engine<'static> {
        Engine::new(&LiveKnobs, self.context.clone())
    }

    /// Returns the plan of the permitted changes, and the refused changes with reasons.
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

    /// Whether the held changes are still in effect: they may have expired or been rolled back by an administrator.
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
        let advice = format!("look at that host: `landspeed tune status --state {}`", shell_path(&self.state.state));
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
        self.roll_back()?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        // Changes that can never be applied are refused without making a plan.
        let never = changes.iter().find_map(|change| Some((change, (self.objection)(change)?)));
        if let Some((change, why)) = never {
            return Err(refused(change, &why));
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
            // The current values may belong to another open transaction and be lost when it is rolled back.
            if let Some(id) = engine.open_transaction().map_err(|why| self.failed(&why))? {
                return Err(self.failed(&TuneError::Open { id }));
            }
        } else {
            let arm = &mut |id| watchdog::start(&engine, &self.state, id);
            let applied = engine.hold(&plan, left_s, arm).map_err(|why| self.failed(&why))?;
            if let Some(warning) = &applied.watchdog.warning {
                warn_once(warning);
            }
            self.transaction = Some(applied);
        }
        self.held = changes.to_vec();
        Ok(self.transaction.as_ref().map(written).unwrap_or_default())
    }

    fn roll_back(&mut self) -> Result<bool, ErrorEntry> {
        self.held.clear();
        let Some(Applied { id, .. }) = self.transaction else { return Ok(false) };
        // If this fails, it is tried again when the holder is dropped.
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
}

impl Drop for Holder {
    fn drop(&mut self) {
        // If this fails, the watchdog tries again after this process has ended.
        let _ = self.roll_back();
    }
}

/// Prints the watchdog's warning once: clients of a server apply changes any number of times.
fn warn_once(warning: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| errln!("landspeed: warning: {warning}"));
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

/// Returns an error if this process lacks the privileges to change settings of this host.
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

/// Returns the state directory for journals. In the host's own network namespace it is that of `landspeed
/// tune`, which lists, reverts and persists these transactions. Other namespaces have their own directories,
/// because a directory has at most one open transaction; so does this one if the host's namespace is not
/// visible.
fn state_directory() -> PathBuf {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let (own, first) = (namespace("self"), namespace("1"));
    match own.as_deref().and_then(Path::to_str) {
        Some(own) if first.as_deref().is_none_or(|first| first != Path::new(own)) => {
            let inode: String = own.chars().filter(char::is_ascii_digit).collect();
            Path::new(NAMESPACE_STATE).join(inode)
        }
        _ => state::DEFAULT_STATE_DIR.into(),
    }
}
