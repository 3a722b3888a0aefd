//! A running sweep: engines request runs from it and report results to it.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landspeed_model::{BuildInfo, ErrorEntry, SweepDocument, SweepEngine};
use landspeed_sweep::document::{FinishedRun, RunFacts, SweepMetadata, document};
use landspeed_sweep::{Ended, Next, RunResult, Schedule};
use landspeed_sys::clock;

use crate::directory::{Entry, ExtraFile, StoredRun};
use crate::error::Error;
use crate::evaluation;
use crate::origin::{RunOrigin, now};
use crate::setup::Setup;

/// Polling interval for interrupts while a worker waits.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A run assigned to an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Index in `runs.json`.
    pub index: usize,
    /// Its entry in `runs.json`.
    pub entry: Entry,
}

/// Next action of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Make this run.
    Run(Assigned),
    /// Wait until a run in progress has ended.
    Wait,
    /// Nothing is left to do.
    Done,
}

/// A running sweep, shared between the threads of an engine.
pub struct Session {
    /// Constant parameters.
    pub setup: Setup,
    interrupted: &'static AtomicBool,
    started: String,
    start_ns: u64,
    existing: HashSet<String>,
    state: Mutex<State>,
    wakeup: Condvar,
}

struct State {
    schedule: Schedule,
    made: Vec<FinishedRun>,
    entries: Vec<Entry>,
    /// Unfinished runs of each block.
    remaining: BTreeMap<u32, usize>,
    /// Total real time of the runs made here, seconds.
    busy_s: f64,
    requeued: u32,
    errors: Vec<ErrorEntry>,
    ended: Option<Ended>,
    failure: Option<Error>,
    /// Ids of the runs made in this session.
    new_runs: Vec<String>,
}

impl Session {
    /// Starts a sweep. Runs with a document in the directory are not repeated.
    pub fn begin(setup: Setup, interrupted: &'static AtomicBool) -> Self {
        let existing = setup.directory.ids().into_iter().collect();
        let schedule = Schedule::new(setup.order.clone(), setup.rules);
        Self {
            setup,
            interrupted,
            started: now(),
            start_ns: clock::monotonic_ns(),
            existing,
            state: Mutex::new(State {
                schedule,
                made: Vec::new(),
                entries: Vec::new(),
                remaining: BTreeMap::new(),
                busy_s: 0.0,
                requeued: 0,
                errors: Vec::new(),
                ended: None,
                failure: None,
                new_runs: Vec::new(),
            }),
            wakeup: Condvar::new(),
        }
    }

    /// Whether the user interrupted the sweep.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns the flag that interrupts runs.
    pub fn interrupted(&self) -> &'static AtomicBool {
        self.interrupted
    }

    /// Returns the next run without waiting. Runs that already exist are recorded and skipped.
    pub fn try_next(&self) -> Work {
        let mut state = self.lock();
        loop {
            if self.is_interrupted() {
                state.schedule.stop();
            }
            let run = match state.schedule.next(clock::monotonic_ns()) {
                Next::Run(run) => run,
                Next::Wait => return Work::Wait,
                Next::Done(ended) => {
                    state.ended = Some(ended);
                    return Work::Done;
                }
            };
            state.remaining.entry(run.block).or_insert_with(|| self.setup.order.runs(run.block));
            let entry = self.setup.entry(&run);
            let kept = self.existing.contains(&entry.id).then(|| self.setup.directory.run(&entry.id)).flatten();
            if let Some(kept) = kept {
                self.record(&mut state, &entry, kept, 0);
                continue;
            }
            let index = state.entries.len();
            state.entries.push(entry.clone());
            return Work::Run(Assigned { index, entry });
        }
    }

    /// Returns the next run; waits if it depends on a run in progress. `None` ends the worker.
    pub fn next(&self) -> Option<Assigned> {
        loop {
            match self.try_next() {
                Work::Run(assigned) => return Some(assigned),
                Work::Done => return None,
                Work::Wait => {
                    let state = self.lock();
                    drop(self.wakeup.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    /// Writes `runs.json`, so that workers find the assigned runs.
    pub fn publish(&self) -> Result<(), Error> {
        let text = serde_json::to_vec(&self.lock().entries).map_err(Error::encode("the list of runs"))?;
        self.setup.directory.write("runs.json", &text)
    }

    /// Stores the document of a run made in this process.
    pub fn keep(&self, assigned: &Assigned, document: &[u8], facts: RunFacts, made_by: RunOrigin) {
        self.keep_with(assigned, document, None, facts, made_by);
    }

    /// Like [`Self::keep`], with an additional file.
    pub fn keep_with(
        &self,
        assigned: &Assigned,
        document: &[u8],
        side: Option<ExtraFile<'_>>,
        facts: RunFacts,
        made_by: RunOrigin,
    ) {
        let wall_s = made_by.wall_s;
        match self.setup.directory.keep(&assigned.entry.id, document, side, facts, made_by) {
            Ok(kept) => self.ended(&assigned.entry, kept, wall_s),
            Err(error) => self.abort(assigned, error),
        }
    }

    /// Reads the document of a run made by a worker. Returns whether it exists.
    pub fn collect(&self, assigned: &Assigned) -> bool {
        let kept = self.setup.directory.run(&assigned.entry.id);
        let found = kept.is_some();
        if let Some(kept) = kept {
            let wall_s = kept.made_by.wall_s;
            self.ended(&assigned.entry, kept, wall_s);
        }
        found
    }

    /// Records that a run failed and will not be repeated.
    pub fn fail(&self, assigned: &Assigned, worker: &str, why: String) {
        let facts = RunFacts::failed(now(), why);
        let made_by = RunOrigin { worker: worker.to_owned(), wall_s: 0.0 };
        self.ended(&assigned.entry, StoredRun { document: String::new(), facts, made_by }, 0.0);
    }

    /// Returns a run that was not made to the schedule.
    pub fn reschedule(&self, assigned: &Assigned) {
        let mut state = self.lock();
        state.schedule.reschedule(assigned.entry.planned());
        self.wakeup.notify_all();
    }

    /// Counts a run that was started again because its worker failed.
    pub fn requeued(&self) {
        self.lock().requeued += 1;
    }

    /// Records an error that concerns more than one run.
    pub fn note(&self, error: ErrorEntry) {
        let mut state = self.lock();
        if !state.errors.contains(&error) {
            state.errors.push(error);
        }
    }

    /// Stops the sweep because results cannot be stored, for example on a full disk.
    pub fn abort(&self, assigned: &Assigned, error: Error) {
        let mut state = self.lock();
        state.schedule.reschedule(assigned.entry.planned());
        state.schedule.stop();
        state.failure.get_or_insert(error);
        self.wakeup.notify_all();
    }

    /// Returns the ids of the runs made in this session.
    pub fn new_runs(&self) -> Vec<String> {
        self.lock().new_runs.clone()
    }

    /// Ends the sweep: writes `sweep.json` and returns the document.
    pub fn end(&self) -> Result<SweepDocument, Error> {
        let mut state = self.lock();
        let mut document = self.document(&state);
        let failure = state.failure.take();
        drop(state);
        evaluation::complete(&mut document, &self.setup);
        let written = self.write(&document);
        match failure {
            Some(error) => Err(error),
            None => written.map(|()| document),
        }
    }

    fn ended(&self, entry: &Entry, kept: StoredRun, wall_s: f64) {
        let mut state = self.lock();
        state.busy_s += wall_s;
        if kept.facts.usable {
            state.new_runs.push(entry.id.clone());
        }
        let block = self.record(&mut state, entry, kept, (wall_s * 1e9) as u64);
        // Written after each block, so that a killed sweep leaves its results.
        if block && let Err(error) = self.write(&self.document(&state)) {
            state.schedule.stop();
            state.failure.get_or_insert(error);
        }
        self.wakeup.notify_all();
    }

    /// Records a run. Returns whether it was the last of its block.
    fn record(&self, state: &mut State, entry: &Entry, kept: StoredRun, took_ns: u64) -> bool {
        let planned = entry.planned();
        let result = if kept.facts.usable {
            RunResult::Measured(kept.facts.figure(self.setup.flow.as_deref(), self.setup.plan.metric))
        } else {
            RunResult::Failed
        };
        state.schedule.finish(&planned, result, took_ns);
        state.made.push(FinishedRun {
            id: entry.id.clone(),
            planned,
            worker: kept.made_by.worker,
            wall_s: kept.made_by.wall_s,
            document: kept.document,
            facts: kept.facts,
        });
        let remaining = state.remaining.entry(planned.block).or_default();
        *remaining = remaining.saturating_sub(1);
        *remaining == 0
    }

    fn document(&self, state: &State) -> SweepDocument {
        let setup = &self.setup;
        let wall_s = (clock::monotonic_ns() - self.start_ns) as f64 / 1e9;
        let first =
            state.made.iter().map(|run| run.facts.started.as_str()).filter(|started| !started.is_empty()).min();
        let frame = SweepMetadata {
            landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
            started: first.unwrap_or(&self.started).to_owned(),
            command: landspeed_sys::process::command_line(),
            flow: setup.flow.clone(),
            cells: setup.cells.iter().map(|cell| cell.id.clone()).collect(),
            rules: setup.rules,
            blocks: state.schedule.blocks(),
            engine: SweepEngine {
                name: setup.engine.to_owned(),
                jobs: setup.jobs as u32,
                workers: Vec::new(),
                requeued: state.requeued,
            },
            ended: state.ended,
            errors: state.errors.clone(),
            warnings: setup.warnings.clone(),
            wall_s,
            overhead_s: (wall_s - state.busy_s / setup.jobs as f64).max(0.0),
        };
        document(&setup.plan, &setup.design, frame, &state.made)
    }

    fn write(&self, document: &SweepDocument) -> Result<(), Error> {
        let mut text = serde_json::to_vec(document).map_err(Error::encode("the sweep's document"))?;
        text.push(b'\n');
        self.setup.directory.write("sweep.json", &text)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
