//! A worker: makes runs of a sweep where an engine started it. It reads the plan and the list of runs, and writes a
//! document for each.

use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_lab::boot::Core;
use landspeed_lab::cell;
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sweep::{Design, Plan, Subject, plan};
use landspeed_sys::clock;
use landspeed_sys::file;

use crate::directory::{Directory, Entry};
use crate::error::Error;
use crate::lab::Lab;
use crate::origin::{RunOrigin, worker_name};
use crate::verdicts;

/// Environment variables with a task's index: Slurm's job arrays and Kubernetes' Indexed Jobs.
const TASK_VARIABLES: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];
/// Environment variables with the node's name in the cluster, which may differ from the host name.
const NODE_VARIABLES: [&str; 2] = ["SLURMD_NODENAME", "NODE_NAME"];

/// Runs of a worker, and where it finds them.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Directory of the sweep.
    pub directory: PathBuf,
    /// Runs to make.
    pub runs: Runs,
    /// Directory of the lab's kernels.
    pub cache: Option<PathBuf>,
    /// Name of the worker in documents; `None` is the node's name.
    pub name: Option<String>,
}

/// Runs that a worker makes, as indices of `runs.json`.
#[derive(Debug, Clone)]
pub enum Runs {
    /// Explicit indices.
    Indices(Vec<usize>),
    /// The line of this file whose number is the task index in the environment.
    Tasks(PathBuf),
}

/// Failure of a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// An error of the sweep.
    #[error(transparent)]
    Sweep(#[from] Error),
    /// `runs.json` cannot be parsed.
    #[error("damaged: {}: {cause}", .path.display())]
    Runs {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        cause: serde_json::Error,
    },
    /// The file of tasks cannot be parsed.
    #[error("damaged: {}: {cause}", .path.display())]
    Tasks {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        cause: ParseIntError,
    },
    /// `runs.json` has no such run.
    #[error("runs.json has {runs} runs, there is no run {index}")]
    NoRun {
        /// Number of runs.
        runs: usize,
        /// Index of the run.
        index: usize,
    },
    /// The file of tasks has no such task.
    #[error("{} has {tasks} tasks, there is no task {task}", .path.display())]
    NoTask {
        /// Path of the file.
        path: PathBuf,
        /// Number of tasks.
        tasks: usize,
        /// Name of the task.
        task: String,
    },
    /// No environment variable names the task.
    #[error("--tasks needs one of {}", TASK_VARIABLES.join(", "))]
    NoTaskVariable,
    /// The plan has hosts instead of a scenario.
    #[error("a worker makes runs of the lab; hosts are driven from one place")]
    NotLab,
    /// `runs.json` and `plan.toml` differ.
    #[error("runs.json does not belong to plan.toml: cell {0} has other levels")]
    OtherLevels(usize),
    /// The worker's program or kernel is not the sweep's.
    #[error("this worker has another build of landspeed or another kernel than the sweep\nUse the bundle's own.")]
    OtherBuild,
}

/// Makes the selected runs; skips those that already have a document. Returns whether all results are usable; `failed`
/// gets the id of each run that is not, and its problems.
pub fn run(assignment: &Assignment, failed: &mut dyn FnMut(&str, &str)) -> Result<bool, WorkerError> {
    let directory = Directory::at(&assignment.directory);
    let entries: Vec<Entry> = serde_json::from_str(&directory.text("runs.json")?)
        .map_err(|cause| WorkerError::Runs { path: directory.file("runs.json"), cause })?;
    let indices = match &assignment.runs {
        Runs::Tasks(path) => of_task(path)?,
        Runs::Indices(indices) => indices.clone(),
    };
    let mut missing = Vec::new();
    for index in indices {
        let entry = entries.get(index).ok_or(WorkerError::NoRun { runs: entries.len(), index })?;
        if directory.run(&entry.id).is_none() {
            missing.push(entry);
        }
    }
    if missing.is_empty() {
        return Ok(true);
    }
    let mut plan = plan::read(&directory.text("plan.toml")?, "plan.toml").map_err(Error::from)?;
    let Subject::Lab(subject) = plan.subject.clone() else { return Err(WorkerError::NotLab) };
    let lab = Lab::open(&mut plan, subject, directory.text("scenario.toml")?, assignment.cache.as_deref(), 0)?;
    let design = Design::of(&plan);
    let interrupted = landspeed_sys::process::catch_interrupts();
    let named = NODE_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let worker = assignment.name.clone().or(named).unwrap_or_else(worker_name);
    // Claimed until the last run. If no core is free, the scheduler places the guest.
    let core = Core::claim();
    core.iter().for_each(Core::pin_thread);
    let mut usable = true;
    for entry in missing {
        if design.cells.get(entry.number) != Some(&entry.levels) {
            return Err(WorkerError::OtherLevels(entry.number));
        }
        let facts = make(&directory, (&lab, &plan), entry, &worker, interrupted)?;
        if let Some(facts) = facts.filter(|facts| !facts.usable) {
            failed(&entry.id, &facts.problems.join("; "));
            usable = false;
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
    }
    Ok(usable)
}

/// Returns the runs of this task from its line in the task file.
fn of_task(path: &Path) -> Result<Vec<usize>, WorkerError> {
    let task = TASK_VARIABLES.iter().find_map(|name| std::env::var(name).ok()).ok_or(WorkerError::NoTaskVariable)?;
    let text = file::read_text(path, file::MAX_TEXT_BYTES).map_err(Error::file("read", path))?;
    let line = task.parse::<usize>().ok().and_then(|task| text.lines().nth(task));
    let path = path.to_owned();
    match line {
        Some(line) => line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|cause| WorkerError::Tasks { path, cause }),
        None => Err(WorkerError::NoTask { path, tasks: text.lines().count(), task }),
    }
}

/// Makes one run and returns its facts; `None` if it was interrupted, which stores nothing.
fn make(
    directory: &Directory,
    (lab, plan): (&Lab, &Plan),
    entry: &Entry,
    worker: &str,
    interrupted: &AtomicBool,
) -> Result<Option<RunFacts>, WorkerError> {
    if lab.id(plan, &entry.levels, entry.kernel.as_deref())? != entry.cell {
        return Err(WorkerError::OtherBuild);
    }
    let began_ns = clock::monotonic_ns();
    let ready = lab.prepare(plan, &entry.levels, entry.seed, entry.kernel.as_deref())?;
    let mut document = cell::run(ready, &lab.setting(), interrupted, &mut |_, _| {});
    verdicts::add(&mut document);
    let bytes = serde_json::to_vec(&document).map_err(Error::encode("the document"))?;
    let facts = RunFacts::of(&Document::Lab(Box::new(document)));
    if !facts.usable && interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let made_by = RunOrigin { worker: worker.to_owned(), wall_s: (clock::monotonic_ns() - began_ns) as f64 / 1e9 };
    Ok(Some(directory.keep(&entry.id, &bytes, None, facts, made_by)?.facts))
}
