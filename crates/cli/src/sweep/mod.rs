//! `landspeed sweep`: runs an experiment from a plan.

mod args;
mod directory;
mod hosts;
mod kubernetes;
mod lab;
mod local;
mod session;
mod slurm;
pub mod text;
mod worker;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, ensure};
use landspeed_model::{SweepDocument, SweepStatus};
use landspeed_report::Source;
use landspeed_results::Document;
use landspeed_sweep::order::Order;
use landspeed_sweep::{Design, Plan, PlannedRun, Rules, Subject, id, plan};
use landspeed_sys::process::available_memory;
use landspeed_units::Bytes;

pub use args::Args;

use self::args::Engine;
use self::directory::Directory;
use self::hosts::{Hosts, Survey};
use self::lab::Lab;
use self::session::{Session, Setup};
use crate::CommandOutcome;
use crate::board::duration;
use crate::keep;
use crate::lab::run::CONFIRM_S;
use crate::output::Sink;

/// Number of documents loaded at once while they are archived.
const ARCHIVE_BATCH: usize = 32;

/// Runs the subcommand or the plan.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(args::Command::Worker(args)) = &args.command {
        return worker::main(args);
    }
    if let Some(path) = &args.new {
        return new(path);
    }
    let path = args.plan.as_deref().context("no plan is given\nWrite one with `landspeed sweep --new PLAN.toml`.")?;
    sweep(path, args)
}

/// Writes a template for a plan.
fn new(path: &Path) -> anyhow::Result<CommandOutcome> {
    let shown = path.display();
    ensure!(!path.exists(), "cannot write {shown}: it exists\nGive another name, or remove it.");
    let sink = if path.as_os_str() == "-" { Sink::Stdout } else { Sink::File(path.to_owned()) };
    sink.write(plan::TEMPLATE.as_bytes())?;
    if sink != Sink::Stdout {
        println!("Wrote {shown}. Run it: landspeed sweep {shown}");
    }
    Ok(CommandOutcome::Clean)
}

fn sweep(path: &Path, args: &Args) -> anyhow::Result<CommandOutcome> {
    args.output.check()?;
    let mut plan = read(path)?;
    if let Some(seed) = args.seed {
        plan.seed = seed;
    }
    let directory = Directory::at(args.out.clone().unwrap_or_else(|| beside(path, ".sweep")));
    let quiet = !args.output.prints();
    if !quiet {
        for name in plan.overridden() {
            eprintln!("note: `{name}` is varied: the value that it has beside the factors is not used");
        }
    }
    match plan.subject.clone() {
        Subject::Lab(subject) => {
            let text = Lab::scenario(&subject, &plan, path.parent().unwrap_or(Path::new(".")))?;
            let rules = rules(&plan, args);
            let lab = Lab::open(&mut plan, text, args.cache.as_deref(), repeats(&rules))?;
            let mut setup = prepare_lab(plan, &lab, directory, rules, args, quiet)?;
            if args.engine == Engine::Slurm {
                (setup.engine, setup.jobs) = ("slurm", slurm::cores(&args.slurm, args.jobs));
            }
            let need = CostEstimate::of(&setup);
            if !need.may_start(&setup, args, quiet)? {
                if args.engine == Engine::Slurm {
                    print!("{}", slurm::dry_run(&setup, &lab, &args.slurm, args.jobs)?);
                }
                return Ok(CommandOutcome::Clean);
            }
            let _lock = setup.directory.take()?;
            setup.directory.write("plan.toml", setup.plan.text.as_bytes())?;
            setup.directory.write("scenario.toml", lab.text.as_bytes())?;
            let session = Session::begin(setup, landspeed_sys::process::catch_interrupts());
            if args.kubernetes.export.is_some() {
                return kubernetes::export(&session, &lab, args);
            }
            match args.engine {
                Engine::Local => local::lab(&session, &lab, (need.missing, need.span_ns), quiet),
                Engine::Slurm => {
                    let options = (&args.slurm, args.jobs, quiet);
                    // If Slurm fails, the runs made so far are kept.
                    if let Err(error) = slurm::lab(&session, &lab, args.cache.as_deref(), options, need.missing) {
                        session.end()?;
                        return Err(error);
                    }
                }
            }
            finish(&session, path, args, quiet)
        }
        Subject::Hosts(_) => {
            ensure!(
                args.engine == Engine::Local && args.kubernetes.export.is_none(),
                "cannot make the runs of this plan on a cluster: they are between hosts, which are driven from here\nUse --engine \
                 slurm and --export with plans that have [lab]."
            );
            let interrupted = landspeed_sys::process::catch_interrupts();
            let rules = rules(&plan, args);
            let hosts = Hosts::open(&mut plan)?;
            let setup = prepare_hosts(plan, &hosts, directory, rules, args, interrupted)?;
            let need = CostEstimate::of(&setup);
            if args.dry_run {
                print!("{}", text::changes(&Hosts::changes(&setup.plan)));
            }
            if !need.may_start(&setup, args, quiet)? {
                return Ok(CommandOutcome::Clean);
            }
            let _lock = setup.directory.take()?;
            setup.directory.write("plan.toml", setup.plan.text.as_bytes())?;
            let session = Session::begin(setup, interrupted);
            hosts::run(&session, &hosts, (need.missing, need.span_ns), quiet);
            finish(&session, path, args, quiet)
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Plan> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|why| {
        anyhow!("cannot read the plan {name}: {why}\nWrite one with `landspeed sweep --new {name}`.")
    })?;
    plan::read(&text, &name).map_err(|problems| anyhow!("{problems}"))
}

/// Replaces the extension: `buffer.toml` becomes `buffer.sweep`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_stem().map(OsString::from).unwrap_or_default();
    name.push(extension);
    path.with_file_name(name)
}

/// Returns the stopping rules; options override the plan.
fn rules(plan: &Plan, args: &Args) -> Rules {
    let asked =
        Rules { blocks: args.blocks, until: args.until, budget_ns: args.budget.map(landspeed_units::Nanos::get) };
    Rules {
        blocks: asked.blocks.or(plan.rules.blocks),
        until: asked.until.or(plan.rules.until),
        budget_ns: asked.budget_ns.or(plan.rules.budget_ns),
    }
}

/// Returns the expected number of runs per cell, for the scenario's warnings.
fn repeats(rules: &Rules) -> u32 {
    rules.blocks.unwrap_or(landspeed_sweep::schedule::MIN_BLOCKS)
}

fn prepare_lab(
    plan: Plan,
    lab: &Lab,
    directory: Directory,
    rules: Rules,
    args: &Args,
    quiet: bool,
) -> anyhow::Result<Setup> {
    let (flow, warnings) = lab.check(&plan)?;
    if !quiet {
        for warning in &warnings {
            eprintln!("note: {}", warning.message);
        }
    }
    let design = Design::of(&plan);
    let cells = lab.cells(&plan, &design)?;
    let memory = cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0);
    let available = available_memory().unwrap_or(u64::MAX);
    ensure!(
        memory <= available || args.dry_run,
        "cannot run: a cell needs {} of memory, and {} are available\nShorten its paths or buffers.",
        Bytes::new(memory),
        Bytes::new(available)
    );
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let fit = usize::try_from(available / memory.max(1)).unwrap_or(usize::MAX).max(1);
    let jobs = args.jobs.map_or(cores, usize::from).min(fit).max(1);
    let order = Order::new(cells.iter().map(|cell| cell.group).collect(), plan.seed, plan.seed, true);
    Ok(Setup { plan, design, cells, rules, order, flow, directory, engine: "local", jobs, warnings })
}

fn prepare_hosts(
    plan: Plan,
    hosts: &Hosts,
    directory: Directory,
    rules: Rules,
    args: &Args,
    interrupted: &'static AtomicBool,
) -> anyhow::Result<Setup> {
    ensure!(
        args.jobs.is_none_or(|jobs| jobs == 1),
        "cannot make several runs at once: they would share hosts and path and disturb each other\nLeave --jobs out."
    );
    hosts.check(&plan)?;
    let design = Design::of(&plan);
    // A dry run does not contact hosts, so existing runs cannot be recognized.
    let survey = if args.dry_run {
        Survey::default()
    } else {
        let of = |levels: &Vec<usize>| hosts.cell(&plan, levels);
        let all: Result<Vec<_>, _> = design.cells.iter().map(of).collect();
        let all = all.map_err(|problem| anyhow!("{}", plan.problems(vec![problem])))?;
        let survey = Survey::take(&hosts.pairs(&plan, &design)?, interrupted)?;
        hosts::check_changes(&all, interrupted)?;
        survey
    };
    let cells = hosts.cells(&plan, &design, &survey)?;
    let order = Order::new(cells.iter().map(|cell| cell.group).collect(), plan.seed, plan.seed, false);
    Ok(Setup {
        plan,
        design,
        cells,
        rules,
        order,
        flow: None,
        directory,
        engine: "local",
        jobs: 1,
        warnings: Vec::new(),
    })
}

/// Estimate of the work that remains.
pub struct CostEstimate {
    /// Expected runs, including existing ones.
    runs: usize,
    /// Expected runs without a document.
    missing: usize,
    /// Sum of the durations of the missing runs, nanoseconds.
    span_ns: u64,
    /// Estimated real time, seconds.
    wall_s: f64,
    /// Largest estimated memory of a run, bytes.
    memory_bytes: u64,
    /// Runs in the directory that do not belong to this plan, build or host state.
    others: usize,
}

impl CostEstimate {
    fn of(setup: &Setup) -> Self {
        let present: HashSet<String> = setup.directory.ids().into_iter().collect();
        let planned: Vec<(PlannedRun, String)> =
            setup.runs(setup.expected_blocks()).map(|run| (run, id::run(&setup.cells[run.cell].id, &run))).collect();
        let missing: Vec<PlannedRun> =
            planned.iter().filter(|(_, id)| !present.contains(id)).map(|(run, _)| *run).collect();
        let known = planned.len() - missing.len();
        let cell = |run: &PlannedRun| &setup.cells[run.cell];
        Self {
            runs: planned.len(),
            missing: missing.len(),
            span_ns: missing.iter().map(|run| cell(run).span_ns).sum(),
            wall_s: missing.iter().map(|run| cell(run).wall_s).sum::<f64>() / setup.jobs as f64,
            memory_bytes: setup.cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0),
            others: present.len() - known.min(present.len()),
        }
    }

    /// Prints the estimate. Returns whether to start.
    fn may_start(&self, setup: &Setup, args: &Args, quiet: bool) -> anyhow::Result<bool> {
        if !quiet || args.dry_run {
            eprint!("{}", text::need(self, setup));
        }
        if args.dry_run {
            print!("{}", text::cells(setup));
            return Ok(false);
        }
        let wall_s = setup.rules.budget_ns.map_or(self.wall_s, |budget_ns| self.wall_s.min(budget_ns as f64 / 1e9));
        ensure!(
            wall_s <= CONFIRM_S || args.yes,
            "not started: it would take about {}\nRun it with --yes, or give it a --budget.",
            duration(wall_s)
        );
        Ok(true)
    }
}

/// Prints the summary, and writes the document and the report.
fn finish(session: &Session, path: &Path, args: &Args, quiet: bool) -> anyhow::Result<CommandOutcome> {
    let document = session.end();
    // However the sweep ended, the measured runs are archived.
    archive(session, document.as_ref().ok());
    let document = document?;
    if !quiet {
        print!("{}", text::summary(&document, Some(session.setup.directory.root())));
    }
    for error in &document.errors {
        eprintln!("landspeed: {}", crate::text::error(error));
    }
    if document.status == SweepStatus::Partial && !quiet {
        eprintln!("Run the same command to make the runs that are missing: landspeed sweep {}", path.display());
    }
    args.output.write(&document, || {
        let name = session.setup.directory.file("sweep.json").display().to_string();
        let source = Source { name, document: Document::Sweep(Box::new(document.clone())) };
        Ok(landspeed_report::render_document(&source, &[])?)
    })?;
    Ok(outcome(&document))
}

/// Stores the documents of the runs made in this session, and the sweep document, in the archive.
fn archive(session: &Session, document: Option<&SweepDocument>) {
    let new_runs = session.new_runs();
    for ids in new_runs.chunks(ARCHIVE_BATCH) {
        let documents: Vec<Vec<u8>> = ids.iter().filter_map(|id| session.setup.directory.bytes(id)).collect();
        if keep::store_all(&documents).len() < documents.len() {
            return;
        }
    }
    if let Some(document) = document.filter(|_| !new_runs.is_empty()) {
        keep::keep(document);
    }
}

fn outcome(document: &SweepDocument) -> CommandOutcome {
    // Runs that should be identical differ, or a host setting was not restored.
    let is_grave = |code: &str| ["digest", "not-restored"].contains(&code);
    match document.status {
        _ if document.errors.iter().any(|error| is_grave(&error.code)) => CommandOutcome::Failure,
        SweepStatus::Complete => CommandOutcome::Clean,
        SweepStatus::Partial => CommandOutcome::Findings,
        SweepStatus::Failed => CommandOutcome::Failure,
    }
}
