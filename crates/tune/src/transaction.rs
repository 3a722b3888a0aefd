//! Applies, confirms and reverts transactions: before every write a record is on disk that allows to undo
//! it.

use landspeed_model::Target;
use landspeed_sys::clock;
use landspeed_sys::process::Identity;
use serde::Serialize;

use crate::Value;
use crate::error::TuneError;
use crate::history::{State, StepState};
use crate::journal::{Baseline, Entry, Journal, JournalStep};
use crate::plan::Plan;

mod accept;
mod engine;
mod hold;
mod inspect;
mod lock;
mod recover;
mod registry;
mod restore;

use accept::accept;
pub use engine::Engine;
use engine::resets_link;
pub use inspect::StepCheck;
pub use lock::Lock;
pub use recover::Recovered;
use restore::RollBack;

/// Minimum and maximum time to confirm, seconds.
pub const CONFIRM_RANGE_S: std::ops::RangeInclusive<u64> = 1..=86_400;

/// A setting that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The setting.
    pub target: Target,
    /// Value before the write.
    pub before: Value,
    /// As in the plan; the driver may round or clamp it.
    pub requested: String,
    /// Value read back after the write.
    pub observed: Value,
    /// Whether the driver rounded or clamped the requested value.
    pub rounded: bool,
}

/// A transaction that awaits its confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Number of the transaction.
    pub id: u32,
    /// Settings that were written.
    pub written: Vec<Written>,
    /// Time to confirm, seconds, from the first write.
    pub confirm_s: u64,
    /// Time of the rollback without a confirmation (`CLOCK_MONOTONIC`, nanoseconds).
    pub deadline_ns: u64,
    /// The watchdog of the transaction.
    pub watchdog: Watchdog,
}

/// The process that rolls a transaction back unless it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Watchdog {
    /// Process id.
    pub process: u32,
    /// Its systemd unit, outside the caller's session and cgroup; `None` without one.
    pub unit: Option<String>,
    /// Reason it has no systemd unit, in which case it is killed together with the caller's cgroup.
    pub warning: Option<String>,
}

/// Starts the watchdog of a transaction and returns when it is running.
pub type StartWatchdog<'a> = &'a mut dyn FnMut(u32) -> Result<Watchdog, String>;

impl Engine<'_> {
    /// Executes a plan. `start_watchdog` is called before the first write. On any failure everything is rolled back.
    pub fn apply(
        &self,
        plan: &Plan,
        confirm_s: u64,
        session: Option<&str>,
        start_watchdog: StartWatchdog<'_>,
    ) -> Result<Applied, TuneError> {
        let _lock = self.lock()?;
        self.execute(plan, confirm_s, session, false, start_watchdog)
    }

    /// Implementation of [`Engine::apply`] and [`Engine::hold`]; the caller holds the lock.
    fn execute(
        &self,
        plan: &Plan,
        confirm_s: u64,
        session: Option<&str>,
        held: bool,
        start_watchdog: StartWatchdog<'_>,
    ) -> Result<Applied, TuneError> {
        self.recover(&[])?;
        if let Some(id) = self.open_transaction()? {
            return Err(TuneError::Open { id });
        }
        if plan.writes() == 0 {
            return Err(TuneError::Empty);
        }
        let steps: Vec<JournalStep> = plan.live().filter_map(journal_step).collect();
        let own = Identity::own();
        let planned = Entry::Planned {
            baseline: self.baseline(&steps, session),
            steps,
            confirm_s,
            applier: (own.pid, own.started),
            monotonic_ns: clock::monotonic_ns(),
            held,
        };
        let mut journal = Journal::create(&self.context, planned)?;
        let (watchdog, deadline_ns) = match self.start_watchdog(&mut journal, confirm_s, start_watchdog) {
            Ok(armed) => armed,
            Err(why) => {
                self.note(&mut journal, Entry::Reverted { why: why.to_string() });
                self.unregister(&journal);
                return Err(why);
            }
        };
        match self.write_all(&mut journal, deadline_ns) {
            Ok(written) => match journal.append(&self.context, Entry::AwaitingConfirm { deadline_ns }) {
                Ok(()) => Ok(Applied { id: journal.id, written, confirm_s, deadline_ns, watchdog }),
                Err(why) => Err(self.fail_and_roll_back(&mut journal, why.to_string())),
            },
            Err(why) => Err(self.fail_and_roll_back(&mut journal, why)),
        }
    }

    /// Registers a transaction, starts its watchdog and the time to confirm.
    fn start_watchdog(
        &self,
        journal: &mut Journal,
        confirm_s: u64,
        start_watchdog: StartWatchdog<'_>,
    ) -> Result<(Watchdog, u64), TuneError> {
        self.register(journal)?;
        let watchdog = start_watchdog(journal.id).map_err(|why| TuneError::Watchdog { why })?;
        self.register_watchdog(journal, watchdog.process)?;
        let deadline_ns = clock::monotonic_ns().saturating_add(confirm_s.saturating_mul(1_000_000_000));
        journal.append(&self.context, Entry::Armed { watchdog: watchdog.process, deadline_ns: Some(deadline_ns) })?;
        Ok((watchdog, deadline_ns))
    }

    fn fail_and_roll_back(&self, journal: &mut Journal, why: String) -> TuneError {
        // This process knows all its writes, so other steps need no check.
        let clean = self
            .roll_back(journal, &why, &RollBack { own: true, ..RollBack::default() })
            .is_ok_and(|state| state == State::Reverted);
        TuneError::Failed { why, clean }
    }

    fn write_all(&self, journal: &mut Journal, deadline_ns: u64) -> Result<Vec<Written>, String> {
        let mut written = Vec::new();
        let steps = journal.steps().to_vec();
        // Devices whose queues a step has changed: their other settings may differ from the plan.
        let mut reset = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let target = self.present(step).ok_or_else(|| format!("{} is gone", step.target))?;
            let before = self.knobs.read(&target).map_err(|why| why.to_string())?;
            let expected = step.device.as_ref().is_some_and(|device| reset.contains(&device.ifindex));
            if !before.same(&step.before) && !expected {
                return Err(format!(
                    "{} was {} when the plan was made and is {before} now: another program is changing it",
                    step.target, step.before
                ));
            }
            let intent = Entry::Intent { step: number, before: before.clone() };
            journal.append(&self.context, intent).map_err(|why| why.to_string())?;
            if step.keep {
                continue;
            }
            if clock::monotonic_ns() >= deadline_ns {
                return Err(
                    "the time to confirm in was over before everything was written; give --confirm more".into()
                );
            }
            let carrier = step.device.as_ref().map(|device| self.knobs.carrier(&device.name));
            self.put(journal, &target, &Value::text(&*step.desired)).map_err(|why| why.to_string())?;
            if resets_link(&target)
                && let (Some(device), Some(carrier)) = (&step.device, carrier)
            {
                reset.push(device.ifindex);
                if !self.knobs.wait_for_carrier(&device.name, carrier) && carrier {
                    return Err(format!("{} has no carrier after {} was set", device.name, step.target));
                }
            }
            let observed = self.knobs.read(&target).map_err(|why| why.to_string())?;
            let accepted = accept(&target, &before, &step.desired, &observed);
            // The value read back must be rolled back, whether or not it is accepted.
            let rounded = accepted.as_ref().copied().unwrap_or(true);
            let applied = Entry::Applied { step: number, observed: observed.clone(), rounded };
            journal.append(&self.context, applied).map_err(|why| why.to_string())?;
            accepted?;
            let requested = step.desired.clone();
            written.push(Written { target: step.target.clone(), before, requested, observed, rounded });
        }
        Ok(written)
    }

    /// The setting under its device's current name; `None` if the device is gone.
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
        // A peer that was unreachable before cannot be used for the health check.
        let peer = peer.filter(|peer| self.knobs.unreachable(peer).is_none());
        let session = session.map(ToOwned::to_owned);
        Baseline { routes: self.knobs.default_routes(), carriers, peer, session }
    }

    /// Confirms the open transaction, if the host passes the health check.
    pub fn confirm(&self, session: Option<&str>) -> Result<u32, TuneError> {
        let _lock = self.lock()?;
        let Some(id) = self.open_transaction()? else {
            self.recover(&[])?;
            return Err(TuneError::NotPossible(
                "no transaction awaits a confirmation; see `landspeed tune status`".into(),
            ));
        };
        let mut journal = Journal::load(&self.context, id)?;
        if let Some(holder) = journal.holder() {
            return Err(TuneError::NotPossible(format!(
                "transaction {id} is held by process {} and is rolled back when that ends",
                holder.pid
            )));
        }
        self.check_namespace(&journal)?;
        let State::AwaitingConfirm { deadline_ns } = journal.state() else {
            self.recover(&[])?;
            return Err(TuneError::NotPossible(format!(
                "transaction {id} was not finished and has been rolled back"
            )));
        };
        if clock::monotonic_ns() >= deadline_ns {
            self.roll_back(&mut journal, "it was not confirmed in time", &RollBack::default())?;
            return Err(TuneError::NotPossible(format!("too late: transaction {id} was not confirmed in time")));
        }
        let problems = self.problems(&journal, session);
        if !problems.is_empty() {
            return Err(TuneError::Unhealthy(problems));
        }
        journal.append(&self.context, Entry::Committed)?;
        Ok(id)
    }

    /// Health check: lists what is worse than before, or not as it was written.
    fn problems(&self, journal: &Journal, session: Option<&str>) -> Vec<String> {
        let mut problems = Vec::new();
        let Some(baseline) = journal.baseline() else { return problems };
        for (device, carrier) in &baseline.carriers {
            match self.knobs.find(device) {
                None => problems.push(format!("{} is gone", device.name)),
                Some(name) if *carrier && !self.knobs.carrier(&name) => {
                    problems.push(format!("{name} lost its carrier"));
                }
                Some(_) => {}
            }
        }
        let routes = self.knobs.default_routes();
        problems.extend(
            baseline.routes.iter().filter(|r| !routes.contains(r)).map(|r| format!("the route `{r}` is gone")),
        );
        let now = session.and_then(|text| text.split_whitespace().next());
        let mut peers: Vec<&str> = baseline.peer.as_deref().into_iter().chain(now).collect();
        peers.dedup();
        problems.extend(peers.into_iter().filter_map(|peer| {
            self.knobs.unreachable(peer).map(|why| format!("the management peer {peer} is out of reach: {why}"))
        }));
        for (number, step) in journal.steps().iter().enumerate() {
            let StepState::Applied { observed, .. } = journal.step_state(number) else { continue };
            match self.present(step).map(|target| self.knobs.read(&target)) {
                Some(Ok(now)) if now.same(&observed) => {}
                Some(Ok(now)) => problems.push(format!("{} was set to {observed} and is {now} now", step.target)),
                Some(Err(why)) => problems.push(format!("{} cannot be checked: {why}", step.target)),
                // A missing device is already in the list.
                None => {}
            }
        }
        problems
    }

    /// Number of the open transaction.
    pub fn open_transaction(&self) -> Result<Option<u32>, TuneError> {
        for id in Journal::list(&self.context)?.into_iter().rev() {
            let journal = Journal::load(&self.context, id)?;
            if journal.state().is_unfinished() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Fails for a transaction of another network namespace in the same boot.
    fn check_namespace(&self, journal: &Journal) -> Result<(), TuneError> {
        let Some(first) = journal.records().first() else { return Ok(()) };
        if first.boot == self.context.boot && first.namespace != self.context.namespace {
            return Err(TuneError::NotPossible(format!(
                "transaction {} was made in another network namespace ({}); run this command in there",
                journal.id, first.namespace
            )));
        }
        Ok(())
    }

    /// Appends an optional record: errors, such as a full disk, are ignored.
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

#[cfg(test)]
mod tests;
