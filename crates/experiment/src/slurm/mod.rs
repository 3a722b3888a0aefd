//! The engine `slurm`: runs in tasks of job arrays. All nodes share the file system of the sweep's directory.

mod array;
mod script;
pub mod tools;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use landspeed_model::ErrorEntry;
use landspeed_quote::{shell_path, shell_word};
use landspeed_sys::{clock, file};

use self::array::{Array, Attempts, MAX_ATTEMPTS};
use self::script::Script;
use crate::bundle::Bundle;
use crate::error::Error;
use crate::lab::Lab;
use crate::session::{Assigned, Session, Work};
use crate::setup::Setup;
use crate::tasks::{WORKER_MEMORY_BYTES, batches, kernels};

/// Amount of work submitted in advance, seconds per core.
const SUBMIT_AHEAD_S: f64 = 900.0;
/// Amount of work submitted in advance if a budget ends the sweep, seconds per core.
const SUBMIT_AHEAD_BUDGET_S: f64 = 60.0;
/// Minimum number of runs submitted in advance, per core.
const SUBMIT_AHEAD_RUNS: usize = 4;
/// Polling interval for documents, nanoseconds.
const COLLECT_INTERVAL_NS: u64 = 200_000_000;
/// Minimum and maximum polling interval of the queue, nanoseconds; in between, 1/20 of the elapsed time.
const QUEUE_POLL_NS: (u64, u64) = (1_000_000_000, 15_000_000_000);
/// Maximum time without an answer from Slurm, nanoseconds: a controller restarts within minutes.
const SLURM_TIMEOUT_NS: u64 = 600_000_000_000;
/// Maximum length of quoted task output, characters.
const MAX_QUOTED_CHARS: usize = 300;
/// Worker name in errors of runs that no worker completed.
const NO_WORKER: &str = "slurm";

/// Options of the engine.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Partition; `None` is the cluster's default.
    pub partition: Option<String>,
    /// Further options of `sbatch`.
    pub sbatch: Vec<String>,
    /// Maximum number of concurrent tasks; `None` is the partition's number of cores.
    pub jobs: Option<u16>,
    /// Directory of the lab's kernels.
    pub cache: Option<PathBuf>,
}

impl Options {
    /// Returns the maximum number of concurrent tasks: as requested, or the partition's number of cores.
    pub fn cores(&self) -> usize {
        self.jobs.map(usize::from).or_else(|| tools::cores(self.partition.as_deref())).unwrap_or(2)
    }

    /// Returns the options of `sbatch` for single-core tasks.
    fn of_sbatch(&self, script: &Script, tasks: usize, memory_bytes: u64) -> Vec<String> {
        let max_tasks = self.jobs.map(|jobs| format!("%{jobs}")).unwrap_or_default();
        let mut options = vec![
            "--parsable".to_owned(),
            format!("--array=0-{}{max_tasks}", tasks.saturating_sub(1)),
            format!("--job-name=landspeed-{}", script.name),
            "--ntasks=1".to_owned(),
            "--cpus-per-task=1".to_owned(),
            format!("--mem={}M", (memory_bytes + WORKER_MEMORY_BYTES).div_ceil(1 << 20)),
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--output={}", script.logs()),
            format!("--chdir={}", script.directory.display()),
        ];
        if let Some(partition) = &self.partition {
            options.push(format!("--partition={partition}"));
        }
        options.extend(self.sbatch.iter().cloned());
        options
    }
}

/// Returns the commands and files that would be submitted.
pub fn dry_run(setup: &Setup, lab: &Lab, options: &Options) -> Result<String, Error> {
    let directory = setup.directory.absolute()?;
    let bundle = Bundle::in_directory(&directory, &lab.program);
    let runs: Vec<(usize, f64)> =
        setup.runs(setup.expected_blocks()).enumerate().map(|(at, run)| (at, setup.cells[run.cell].wall_s)).collect();
    let batches = batches(&runs, setup.jobs);
    let script = Script { directory, bundle, number: 1, name: setup.plan.name.clone() };
    let options = options.of_sbatch(&script, batches.len(), setup.memory_bytes());
    let words: Vec<String> = std::iter::once("sbatch".to_owned()).chain(options).map(shell_word).collect();
    Ok(format!(
        "# {} runs in {} tasks\n{} {}\n\n# {}\n{}",
        runs.len(),
        batches.len(),
        words.join(" \\\n    "),
        shell_path(script.path()),
        script.path().display(),
        script.text()
    ))
}

/// State of the runs, for a progress line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterProgress {
    /// Expected number of runs.
    pub runs: usize,
    /// Number of runs with a result.
    pub done: usize,
    /// Elapsed time, seconds.
    pub wall_s: f64,
    /// Ids of the jobs in the queue.
    pub jobs: Vec<String>,
    /// Most frequent reason why tasks are pending.
    pub reason: String,
}

/// Makes the missing runs of a lab's sweep. Calls `show` several times per second.
pub fn run(
    session: &Session,
    lab: &Lab,
    options: &Options,
    missing: usize,
    show: &mut dyn FnMut(&ClusterProgress),
) -> Result<(), Error> {
    let max_tasks = tools::max_array()?;
    let directory = session.setup.directory.absolute()?;
    let bundle = Bundle::in_directory(&directory, &lab.program);
    bundle.stage(&lab.program, &kernels(&session.setup, options.cache.as_deref())?)?;
    file::create_directory(&directory.join("slurm")).map_err(Error::SlurmOutput)?;
    let now_ns = clock::monotonic_ns();
    let mut engine = Engine {
        session,
        options,
        cores: session.setup.jobs,
        max_tasks,
        directory,
        bundle,
        number: 0,
        waiting: Vec::new(),
        assigned: BTreeMap::new(),
        arrays: Vec::new(),
        attempts: Attempts::default(),
        progress: ClusterProgress { runs: missing, ..ClusterProgress::default() },
        started_ns: now_ns,
        answered_ns: now_ns,
    };
    let outcome = engine.work(show);
    if outcome.is_err() || session.is_interrupted() {
        engine.cancel();
    }
    outcome
}

struct Engine<'a> {
    session: &'a Session,
    options: &'a Options,
    /// Maximum number of concurrent tasks.
    cores: usize,
    /// Maximum number of tasks per array.
    max_tasks: usize,
    directory: PathBuf,
    bundle: Bundle,
    /// Number of submitted arrays.
    number: usize,
    /// Runs to submit, as indices of `runs.json`.
    waiting: Vec<usize>,
    /// Assigned runs without a result.
    assigned: BTreeMap<usize, Assigned>,
    arrays: Vec<Array>,
    attempts: Attempts,
    progress: ClusterProgress,
    /// Monotonic nanoseconds.
    started_ns: u64,
    /// Time of Slurm's last answer, monotonic nanoseconds.
    answered_ns: u64,
}

impl Engine<'_> {
    /// Runs the sweep until nothing is left to do.
    fn work(&mut self, show: &mut dyn FnMut(&ClusterProgress)) -> Result<(), Error> {
        let mut queue_ns = 0;
        loop {
            if self.session.is_interrupted() {
                self.cancel();
            }
            let done = self.take();
            if done && self.assigned.is_empty() {
                return Ok(());
            }
            if !self.waiting.is_empty() {
                self.submit()?;
            }
            self.collect();
            if clock::monotonic_ns() >= queue_ns {
                self.refresh()?;
                let now_ns = clock::monotonic_ns();
                queue_ns = now_ns + ((now_ns - self.started_ns) / 20).clamp(QUEUE_POLL_NS.0, QUEUE_POLL_NS.1);
            }
            self.progress.wall_s = (clock::monotonic_ns() - self.started_ns) as f64 / 1e9;
            let queued = self.arrays.iter().filter(|array| !array.is_over());
            self.progress.jobs = queued.map(|array| array.job.clone()).collect();
            show(&self.progress);
            if !self.assigned.is_empty() && self.waiting.is_empty() {
                std::thread::park_timeout(Duration::from_nanos(COLLECT_INTERVAL_NS));
            }
        }
    }

    /// Requests runs in advance. Returns whether all runs are assigned.
    fn take(&mut self) -> bool {
        let setup = &self.session.setup;
        let seconds = |assigned: &Assigned| setup.cells[assigned.entry.number].wall_s;
        let ahead_s = if setup.rules.budget_ns.is_some() { SUBMIT_AHEAD_BUDGET_S } else { SUBMIT_AHEAD_S };
        let most_s = ahead_s * self.cores as f64;
        let mut ahead_s: f64 = self.assigned.values().map(seconds).sum();
        // Requests runs in few large portions: each becomes an array.
        if self.assigned.len() > SUBMIT_AHEAD_RUNS * self.cores && ahead_s > most_s / 2.0 {
            return false;
        }
        while self.assigned.len() < SUBMIT_AHEAD_RUNS * self.cores || ahead_s < most_s {
            match self.session.try_next() {
                Work::Run(assigned) => {
                    ahead_s += seconds(&assigned);
                    self.waiting.push(assigned.index);
                    self.assigned.insert(assigned.index, assigned);
                }
                Work::Wait => return false,
                Work::Done => return true,
            }
        }
        false
    }

    /// Submits the waiting runs.
    fn submit(&mut self) -> Result<(), Error> {
        self.session.publish()?;
        let waiting = std::mem::take(&mut self.waiting);
        let cells = &self.session.setup.cells;
        let runs: Vec<(usize, f64)> =
            waiting.iter().map(|index| (*index, cells[self.assigned[index].entry.number].wall_s)).collect();
        for index in &waiting {
            let id = &self.assigned[index].entry.id;
            let _ = fs::remove_file(self.session.setup.directory.file(&format!("runs/{id}.failed")));
        }
        for tasks in batches(&runs, self.cores).chunks(self.max_tasks.max(1)) {
            self.number += 1;
            let script = Script {
                directory: self.directory.clone(),
                bundle: self.bundle.clone(),
                number: self.number,
                name: self.session.setup.plan.name.clone(),
            };
            script.write(tasks)?;
            let options = self.options.of_sbatch(&script, tasks.len(), self.session.setup.memory_bytes());
            let job = tools::submit(&script.path(), &options)?;
            self.answered_ns = clock::monotonic_ns();
            tasks.iter().for_each(|task| self.attempts.count(task));
            self.arrays.push(Array::new(job, tasks.to_vec()));
        }
        Ok(())
    }

    /// Collects the documents that have appeared.
    fn collect(&mut self) {
        let ids: HashSet<String> = self.session.setup.directory.ids().into_iter().collect();
        let is_there = |run: &Assigned| ids.contains(&run.entry.id) && self.session.collect(run);
        let there: Vec<usize> =
            self.assigned.iter().filter(|(_, run)| is_there(run)).map(|(index, _)| *index).collect();
        for index in there {
            self.assigned.remove(&index);
            self.arrays.iter_mut().for_each(|array| array.record_done(index));
            self.progress.done += 1;
        }
    }

    /// Polls the queue; restarts runs whose task ended without a document.
    fn refresh(&mut self) -> Result<(), Error> {
        let mut reasons = BTreeMap::<String, usize>::new();
        let mut lost = Vec::new();
        for array in self.arrays.iter_mut().filter(|array| !array.is_over()) {
            let queue = match tools::queue(&array.job) {
                Ok(queue) => queue,
                Err(error) if clock::monotonic_ns() > self.answered_ns + SLURM_TIMEOUT_NS => return Err(error.into()),
                // The controller is restarting or busy.
                Err(error) => {
                    *reasons.entry(error.to_string().lines().next().unwrap_or_default().to_owned()).or_default() += 1;
                    continue;
                }
            };
            self.answered_ns = clock::monotonic_ns();
            for task in queue.iter().filter(|task| task.state == "PD" && task.reason != "None") {
                *reasons.entry(task.reason.clone()).or_default() += 1;
            }
            let seen = array.refresh(&queue);
            (0..seen.restarted).for_each(|_| self.session.requeued());
            let held: Vec<String> = seen.held.iter().map(|index| format!("{}_{index}", array.job)).collect();
            if let Err(error) = tools::cancel(&held) {
                self.session.note(entry(&error.to_string()));
            }
            lost.extend(seen.lost.into_iter().map(|(task, runs)| (array.job.clone(), task, runs)));
        }
        let reason = reasons.into_iter().max_by_key(|(_, tasks)| *tasks);
        self.progress.reason = reason.map(|(reason, _)| reason).unwrap_or_default();
        for (job, task, runs) in lost {
            self.resubmit(&job, task, &runs);
        }
        self.arrays.retain(|array| !array.is_over());
        Ok(())
    }

    /// Submits runs of an ended task again, or records their failure after the last attempt.
    fn resubmit(&mut self, job: &str, task: usize, runs: &[usize]) {
        let why = self.reason(job, task);
        for &index in runs {
            if self.attempts.left(index) {
                self.session.requeued();
                self.waiting.push(index);
                continue;
            }
            let Some(assigned) = self.assigned.remove(&index) else { continue };
            self.progress.done += 1;
            // The worker's error is more specific than Slurm's state of the task.
            let failure = self.session.setup.directory.failure(&assigned.entry.id);
            let failure = failure.and_then(|facts| facts.problems.into_iter().next());
            let why = failure.unwrap_or_else(|| why.clone());
            self.session.fail(&assigned, NO_WORKER, format!("started {MAX_ATTEMPTS} times: {why}"));
        }
    }

    /// Describes why a task ended: Slurm's state and the last line of its output.
    fn reason(&self, job: &str, task: usize) -> String {
        let final_state = tools::final_state(job, task).unwrap_or_else(|| "gone from the queue".to_owned());
        let log = self.directory.join("slurm").join(format!("{job}_{task}.log"));
        let said = file::read_text(&log, file::MAX_TEXT_BYTES).unwrap_or_default();
        let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let said = landspeed_flow::control::printable(said.trim(), MAX_QUOTED_CHARS);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        format!("Slurm task {job}_{task} ended ({final_state}){said}")
    }

    /// Cancels the jobs of this sweep and returns their runs to the schedule.
    fn cancel(&mut self) {
        let jobs: Vec<String> =
            self.arrays.drain(..).filter(|array| !array.is_over()).map(|array| array.job).collect();
        if let Err(error) = tools::cancel(&jobs) {
            self.session.note(entry(&format!("{error} ({})", jobs.join(" "))));
        }
        self.waiting.clear();
        for (_, assigned) in std::mem::take(&mut self.assigned) {
            if !self.session.collect(&assigned) {
                self.session.reschedule(&assigned);
            }
        }
    }
}

fn entry(message: &str) -> ErrorEntry {
    let mut lines = message.lines();
    let message = lines.next().unwrap_or_default().to_owned();
    ErrorEntry { code: "slurm".to_owned(), message, advice: lines.next().map(str::to_owned) }
}
