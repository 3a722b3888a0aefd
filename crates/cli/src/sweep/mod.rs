//! `landspeed sweep`: runs an experiment from a plan.

mod args;
mod cluster;
pub mod hosts;
pub mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, anyhow, ensure};
use landspeed_experiment::directory::Directory;
use landspeed_experiment::hosts::Hosts;
use landspeed_experiment::lab::Lab;
use landspeed_experiment::session::Session;
use landspeed_experiment::setup::{CostEstimate, Request, Setup};
use landspeed_experiment::worker::{Assignment, Runs};
use landspeed_experiment::{cells, kubernetes, local, slurm, worker};
use landspeed_model::{SweepDocument, SweepStatus};
use landspeed_quote::shell_path;
use landspeed_report::Source;
use landspeed_results::Document;
use landspeed_sweep::plan::{HostsSubject, LabSubject};
use landspeed_sweep::{Plan, Rules, Subject, plan};
use landspeed_sys::file;

pub use args::Args;

use self::args::{Engine, WorkerArgs};
use self::cluster::ClusterLine;
use crate::CommandOutcome;
use crate::board::{CONFIRM_S, Nouns, ProgressLine, duration};
use crate::keep;
use crate::output::{OutputArgs, Sink};

/// Number of documents loaded at once while they are archived.
const ARCHIVE_BATCH: usize = 32;

/// Runs the subcommand or the plan.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(args::Command::Worker(args)) = &args.command {
        return worker(args);
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
        outln!("Wrote {shown}. Run it: landspeed sweep {}", shell_path(path));
    }
    Ok(CommandOutcome::Clean)
}

fn sweep(path: &Path, args: &Args) -> anyhow::Result<CommandOutcome> {
    args.output.check()?;
    let mut plan = read(path)?;
    if let Some(seed) = args.seed {
        plan.seed = seed;
    }
    let request = Request {
        directory: Directory::at(args.out.clone().unwrap_or_else(|| beside(path, ".sweep"))),
        rules: rules(&plan, args),
        jobs: args.jobs,
        dry_run: args.dry_run,
    };
    match plan.subject.clone() {
        Subject::Lab(subject) => sweep_lab(path, args, plan, subject, request),
        Subject::Hosts(subject) => sweep_hosts(path, args, plan, subject, request),
    }
}

fn sweep_lab(
    path: &Path,
    args: &Args,
    mut plan: Plan,
    subject: LabSubject,
    request: Request,
) -> anyhow::Result<CommandOutcome> {
    let quiet = !args.output.prints();
    let text = Lab::scenario(&subject, &plan, path.parent().unwrap_or(Path::new(".")))?;
    let lab = Lab::open(&mut plan, subject, text, args.cache.as_deref(), repeats(&request.rules))?;
    let checked = lab.check(&plan)?;
    if !quiet {
        for warning in &checked.1 {
            errln!("note: {}", warning.message);
        }
    }
    let mut setup = lab.setup(plan, checked, request)?;
    let on_slurm = (args.engine == Engine::Slurm).then(|| slurm::Options {
        partition: args.slurm.partition.clone(),
        sbatch: args.slurm.slurm_option.clone(),
        jobs: args.jobs,
        cache: args.cache.clone(),
    });
    if let Some(options) = &on_slurm {
        (setup.engine, setup.jobs) = ("slurm", options.cores());
    }
    let need = CostEstimate::of(&setup);
    if !may_start(&need, &setup, args, quiet)? {
        if let Some(options) = &on_slurm {
            out!("{}", slurm::dry_run(&setup, &lab, options)?);
        }
        return Ok(CommandOutcome::Clean);
    }
    let _lock = setup.directory.take()?;
    setup.directory.write("plan.toml", setup.plan.text.as_bytes())?;
    setup.directory.write("scenario.toml", lab.text.as_bytes())?;
    let session = Session::begin(setup, landspeed_sys::process::catch_interrupts());
    if args.kubernetes.export.is_some() {
        return export(&session, &lab, args);
    }
    if let Some(options) = &on_slurm {
        let mut line = ClusterLine::new(quiet);
        let made = slurm::run(&session, &lab, options, need.missing, &mut |progress| line.show(progress));
        line.clear();
        // If Slurm fails, the runs made so far are kept.
        if let Err(error) = made {
            session.end()?;
            return Err(error.into());
        }
    } else {
        let nouns = Nouns { runs: "runs", time: " of virtual time" };
        let board = Mutex::new(board(nouns, &session, &need, quiet));
        local::run(&session, &lab, &board);
        cells::lock(&board).clear();
    }
    finish(&session, Some(&format!("landspeed sweep {}", path.display())), &args.output)
}

fn sweep_hosts(
    path: &Path,
    args: &Args,
    mut plan: Plan,
    subject: HostsSubject,
    request: Request,
) -> anyhow::Result<CommandOutcome> {
    ensure!(
        args.engine == Engine::Local && args.kubernetes.export.is_none(),
        "cannot make the runs of this plan on a cluster: they are between hosts, which are driven from here\nUse --engine \
         slurm and --export with plans that have [lab]."
    );
    let quiet = !args.output.prints();
    let interrupted = landspeed_sys::process::catch_interrupts();
    let hosts = Hosts::open(&mut plan, subject, &hosts::Run)?;
    let setup = hosts.setup(plan, request, interrupted)?;
    let need = CostEstimate::of(&setup);
    if args.dry_run {
        out!("{}", text::changes(&Hosts::changes(&setup.plan)));
    }
    if !may_start(&need, &setup, args, quiet)? {
        return Ok(CommandOutcome::Clean);
    }
    let _lock = setup.directory.take()?;
    setup.directory.write("plan.toml", setup.plan.text.as_bytes())?;
    let session = Session::begin(setup, interrupted);
    let mut board = board(Nouns { runs: "runs", time: "" }, &session, &need, quiet);
    landspeed_experiment::hosts::run(&session, &hosts, &mut board);
    board.clear();
    finish(&session, Some(&format!("landspeed sweep {}", path.display())), &args.output)
}

/// Returns a progress line that expects the missing runs.
fn board(nouns: Nouns, session: &Session, need: &CostEstimate, quiet: bool) -> ProgressLine {
    let mut board = ProgressLine::new(nouns, session.setup.jobs, quiet);
    board.expect(need.missing, need.span_ns);
    board
}

/// Makes runs where an engine started this process.
fn worker(args: &WorkerArgs) -> anyhow::Result<CommandOutcome> {
    let assignment = Assignment {
        directory: args.bundle.clone(),
        runs: args.tasks.clone().map_or_else(|| Runs::Indices(args.index.clone()), Runs::Tasks),
        cache: args.cache.clone(),
        name: args.name.clone(),
    };
    let usable = worker::run(&assignment, &mut |id, problems| errln!("landspeed: run {id} failed: {problems}"))?;
    Ok(if usable { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

/// Prints the manifest of a Kubernetes job.
fn export(session: &Session, lab: &Lab, args: &Args) -> anyhow::Result<CommandOutcome> {
    let options = kubernetes::Options {
        image: args.kubernetes.image.clone(),
        claim: args.kubernetes.claim.clone(),
        jobs: args.jobs,
        cache: args.cache.clone(),
    };
    let exported = kubernetes::export(session, lab, &options)?;
    Sink::Stdout.write(exported.manifest.as_bytes())?;
    if !args.output.quiet {
        let shown = session.setup.directory.root().display();
        errln!(
            "{} runs in {} pods. Copy {shown} to the volume of the claim {}, apply the manifest, and copy {shown}/runs back when the job is \
             complete; then run the same command without --export: it makes only what is missing.",
            exported.runs,
            exported.pods,
            options.claim
        );
    }
    Ok(CommandOutcome::Clean)
}

fn read(path: &Path) -> anyhow::Result<Plan> {
    let name = path.display().to_string();
    let text = file::read_text(path, file::MAX_TEXT_BYTES).map_err(|why| {
        anyhow!("cannot read the plan {name}: {why}\nWrite one with `landspeed sweep --new {}`.", shell_path(path))
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

/// Prints the estimate. Returns whether to start.
fn may_start(need: &CostEstimate, setup: &Setup, args: &Args, quiet: bool) -> anyhow::Result<bool> {
    if !quiet || args.dry_run {
        err!("{}", text::need(need, setup));
    }
    if args.dry_run {
        out!("{}", text::cells(setup));
        return Ok(false);
    }
    let wall_s = setup.rules.budget_ns.map_or(need.wall_s, |budget_ns| need.wall_s.min(budget_ns as f64 / 1e9));
    ensure!(
        wall_s <= CONFIRM_S || args.yes,
        "not started: it would take about {}\nRun it with --yes, or give it a --budget.",
        duration(wall_s)
    );
    Ok(true)
}

/// Prints the summary, and writes the document and the report. `resume` is the command that makes missing runs; `None`
/// if the runs are not kept.
pub fn finish(session: &Session, resume: Option<&str>, output: &OutputArgs) -> anyhow::Result<CommandOutcome> {
    finish_with(session, resume, output, |_| String::new())
}

/// Like [`finish`], with further text after the summary.
pub fn finish_with(
    session: &Session,
    resume: Option<&str>,
    output: &OutputArgs,
    more: impl FnOnce(&SweepDocument) -> String,
) -> anyhow::Result<CommandOutcome> {
    let quiet = !output.prints();
    let document = session.end();
    // However the sweep ended, the measured runs are archived.
    archive(session, document.as_ref().ok());
    let document = document?;
    if !quiet {
        out!("{}{}", text::summary(&document, resume.map(|_| session.setup.directory.root())), more(&document));
    }
    for error in &document.errors {
        errln!("landspeed: {}", crate::text::error(error));
    }
    if let Some(resume) = resume.filter(|_| document.status == SweepStatus::Partial && !quiet) {
        errln!("Run the same command to make the runs that are missing: {resume}");
    }
    output.write(&document, || {
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
        SweepStatus::Complete if document.criteria.iter().all(|criterion| criterion.met != Some(false)) => {
            CommandOutcome::Clean
        }
        SweepStatus::Complete | SweepStatus::Partial => CommandOutcome::Findings,
        SweepStatus::Failed => CommandOutcome::Failure,
    }
}
