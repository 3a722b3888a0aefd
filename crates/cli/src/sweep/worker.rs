//! `landspeed sweep worker`: makes one run of a bundle. It reads the bundle's plan and list, and writes one document.

use anyhow::{Context as _, bail, ensure};
use landspeed_lab::cell;
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sweep::{Design, Subject, plan};
use landspeed_sys::clock;

use super::args::WorkerArgs;
use super::directory::{Directory, Entry, MadeBy};
use super::lab::Lab;
use super::local::worker_name;
use crate::CommandOutcome;

/// Makes the run. A run that is there already is not made again.
pub fn main(args: &WorkerArgs) -> anyhow::Result<CommandOutcome> {
    let directory = Directory::at(&args.bundle);
    let entries: Vec<Entry> = serde_json::from_str(&directory.text("runs.json")?)
        .with_context(|| format!("damaged: {}", directory.file("runs.json").display()))?;
    let entry = entries
        .get(args.index)
        .with_context(|| format!("runs.json has {} runs, there is no run {}", entries.len(), args.index))?;
    if directory.run(&entry.id).is_some() {
        return Ok(CommandOutcome::Clean);
    }
    let mut plan = plan::read(&directory.text("plan.toml")?, "plan.toml").map_err(anyhow::Error::new)?;
    ensure!(
        matches!(plan.subject, Subject::Lab(_)),
        "a worker makes runs of the lab; hosts are driven from one place"
    );
    let lab = Lab::open(&mut plan, directory.text("scenario.toml")?, args.cache.as_deref(), 0)?;
    let design = Design::of(&plan);
    ensure!(
        design.cells.get(entry.number) == Some(&entry.levels),
        "runs.json does not belong to plan.toml: cell {} has other levels",
        entry.number
    );
    let id = lab.id(&plan, &entry.levels, entry.kernel.as_deref())?;
    if id != entry.cell {
        bail!("this worker has another build of landspeed or another kernel than the sweep\nUse the bundle's own.");
    }
    let began_ns = clock::monotonic_ns();
    let ready = lab.prepare(&plan, &entry.levels, entry.seed, entry.kernel.as_deref())?;
    let interrupted = landspeed_sys::process::catch_interrupts();
    let mut document = cell::run(ready, &lab.setting(), interrupted, &mut |_, _| {});
    crate::lab::verdicts::add(&mut document);
    let bytes = serde_json::to_vec(&document).context("cannot encode the document")?;
    let facts = RunFacts::of(&Document::Lab(Box::new(document)));
    let usable = facts.usable;
    let problems = facts.problems.join("; ");
    let made_by = MadeBy {
        worker: args.name.clone().unwrap_or_else(worker_name),
        wall_s: (clock::monotonic_ns() - began_ns) as f64 / 1e9,
    };
    directory.keep(&entry.id, &bytes, None, facts, made_by)?;
    if !usable {
        eprintln!("landspeed: run {} failed: {problems}", entry.id);
        return Ok(CommandOutcome::Findings);
    }
    Ok(CommandOutcome::Clean)
}
