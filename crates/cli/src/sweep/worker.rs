//! `landspeed sweep worker`: makes runs of a sweep. It reads the plan and the list of runs, and writes a
//! document for each.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail, ensure};
use landspeed_lab::boot::Core;
use landspeed_lab::cell;
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sweep::{Design, Plan, Subject, plan};
use landspeed_sys::clock;

use super::args::WorkerArgs;
use super::directory::{Directory, Entry, RunOrigin};
use super::lab::Lab;
use super::local::worker_name;
use crate::CommandOutcome;

/// Environment variables with a task's index: Slurm's job arrays and Kubernetes' Indexed Jobs.
const TASK_VARIABLES: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];
/// Environment variables with the node's name in the cluster, which may differ from the host name.
const NODE_VARIABLES: [&str; 2] = ["SLURMD_NODENAME", "NODE_NAME"];

/// Makes the selected runs; skips those that already have a document.
pub fn main(args: &WorkerArgs) -> anyhow::Result<CommandOutcome> {
    let directory = Directory::at(&args.bundle);
    let entries: Vec<Entry> = serde_json::from_str(&directory.text("runs.json")?)
        .with_context(|| format!("damaged: {}", directory.file("runs.json").display()))?;
    let indices = match &args.tasks {
        Some(path) => of_task(path)?,
        None => args.index.clone(),
    };
    let mut missing = Vec::new();
    for index in indices {
        let entry = entries
            .get(index)
            .with_context(|| format!("runs.json has {} runs, there is no run {index}", entries.len()))?;
        if directory.run(&entry.id).is_none() {
            missing.push(entry);
        }
    }
    if missing.is_empty() {
        return Ok(CommandOutcome::Clean);
    }
    let mut plan = plan::read(&directory.text("plan.toml")?, "plan.toml").map_err(anyhow::Error::new)?;
    ensure!(
        matches!(plan.subject, Subject::Lab(_)),
        "a worker makes runs of the lab; hosts are driven from one place"
    );
    let lab = Lab::open(&mut plan, directory.text("scenario.toml")?, args.cache.as_deref(), 0)?;
    let design = Design::of(&plan);
    let interrupted = landspeed_sys::process::catch_interrupts();
    let named = NODE_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let worker = args.name.clone().or(named).unwrap_or_else(worker_name);
    // Claimed until the last run. If no core is free, the scheduler places the guest.
    let core = Core::claim();
    core.iter().for_each(Core::pin_thread);
    let mut outcome = CommandOutcome::Clean;
    for entry in missing {
        ensure!(
            design.cells.get(entry.number) == Some(&entry.levels),
            "runs.json does not belong to plan.toml: cell {} has other levels",
            entry.number
        );
        let made = make(&directory, (&lab, &plan), entry, &worker, interrupted)?;
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if !made {
            outcome = CommandOutcome::Findings;
        }
    }
    Ok(outcome)
}

/// Returns the runs of this task from its line in the task file.
fn of_task(path: &Path) -> anyhow::Result<Vec<usize>> {
    let task = TASK_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let task = task.with_context(|| format!("--tasks needs one of {}", TASK_VARIABLES.join(", ")))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = task.parse::<usize>().ok().and_then(|task| text.lines().nth(task));
    let line = line
        .with_context(|| format!("{} has {} tasks, there is no task {task}", path.display(), text.lines().count()))?;
    let runs = line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    runs.with_context(|| format!("damaged: {}", path.display()))
}

/// Makes one run. Returns whether its result is usable; an interrupted run is not stored.
fn make(
    directory: &Directory,
    (lab, plan): (&Lab, &Plan),
    entry: &Entry,
    worker: &str,
    interrupted: &AtomicBool,
) -> anyhow::Result<bool> {
    let id = lab.id(plan, &entry.levels, entry.kernel.as_deref())?;
    if id != entry.cell {
        bail!("this worker has another build of landspeed or another kernel than the sweep\nUse the bundle's own.");
    }
    let began_ns = clock::monotonic_ns();
    let ready = lab.prepare(plan, &entry.levels, entry.seed, entry.kernel.as_deref())?;
    let mut document = cell::run(ready, &lab.setting(), interrupted, &mut |_, _| {});
    crate::lab::verdicts::add(&mut document);
    let bytes = serde_json::to_vec(&document).context("cannot encode the document")?;
    let facts = RunFacts::of(&Document::Lab(Box::new(document)));
    let usable = facts.usable;
    if !usable && interrupted.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let problems = facts.problems.join("; ");
    let made_by = RunOrigin { worker: worker.to_owned(), wall_s: (clock::monotonic_ns() - began_ns) as f64 / 1e9 };
    directory.keep(&entry.id, &bytes, None, facts, made_by)?;
    if !usable {
        eprintln!("landspeed: run {} failed: {problems}", entry.id);
    }
    Ok(usable)
}
