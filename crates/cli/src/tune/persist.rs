//! `landspeed tune persist`.

use std::path::PathBuf;

use anyhow::bail;
use landspeed_sys::process;
use landspeed_tune::{Engine, LiveKnobs, PersistPlan};
use serde_json::json;

use super::state::{StateArgs, context, need_root, write_json};
use crate::CommandOutcome;
use crate::output::Sink;

/// Options of `persist`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of the transaction [default: the last confirmed one]
    id: Option<u32>,
    #[command(flatten)]
    state: StateArgs,
    /// Show the files and write none
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Write below this directory instead of /, as for an image
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Write what was done as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

/// Writes each setting to the configuration file that owns it.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if !args.dry_run || !process::is_root() {
        need_root("keeping settings over reboots")?;
    }
    if !args.root.is_dir() {
        bail!("there is no directory {}", args.root.display());
    }
    let engine = Engine::new(&LiveKnobs, context(&args.state)?);
    let (id, plan) = engine.plan_persist(args.id, &std::path::absolute(&args.root)?)?;
    if !args.dry_run {
        engine.persist(id, &plan)?;
    }
    let document = json!({"schema": "landspeed.tune-persist/1", "id": id, "dry_run": args.dry_run, "plan": plan});
    if write_json(args.json.as_ref(), &document)? {
        print_plan(id, &plan, args.dry_run);
    }
    Ok(if plan.by_hand.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn print_plan(id: u32, plan: &PersistPlan, dry_run: bool) {
    let verb = if dry_run { "would write" } else { "wrote" };
    if plan.files.is_empty() {
        outln!("Transaction {id}: no file had to be written.");
    }
    for file in &plan.files {
        outln!("Transaction {id}: {verb} {}", file.path.display());
        for line in file.after.lines() {
            outln!("    {line}");
        }
    }
    for note in &plan.notes {
        outln!("  note: {note}");
    }
    for item in &plan.by_hand {
        outln!("  by hand: {}: {}", item.name, item.instruction);
    }
    if !dry_run && !plan.files.is_empty() {
        outln!("`landspeed tune revert --persisted` undoes it.");
    }
}
