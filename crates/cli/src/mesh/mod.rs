//! `landspeed mesh`: scheduled tests among many hosts.

mod args;
mod engine;
mod journal;
mod outcome;
mod plan;
mod state;
mod store;
pub mod text;

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use landspeed_archive::Location;
use landspeed_mesh::{Options, Scheduler, TEMPLATE};
use landspeed_model::{MeshDocument, Status};
use landspeed_quote::shell_path;
use landspeed_report::Source;
use landspeed_results::Document;
use landspeed_sys::trust::Directory;
use landspeed_sys::{clock, file, process};

pub use args::Args;
pub use journal::EndOutcome;

use self::engine::Engine;
use self::journal::Journal;
use self::plan::MeshPlan;
use self::state::{MeshState, moment};
use self::store::Store;
use crate::CommandOutcome;
use crate::metrics::{self, Latest};
use crate::output::Sink;
use crate::trust::TrustArgs;

/// Shortest time between two writings of the document while tests run, nanoseconds.
const WRITE_NS: u64 = 5_000_000_000;
/// Time after which the document is written although no test has ended, nanoseconds.
const REFRESH_NS: u64 = 60_000_000_000;

/// Runs the mesh, or prints its schedule or matrix.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(path) = &args.new {
        return new(path);
    }
    let path = args
        .inventory
        .as_deref()
        .context("no inventory is given\nWrite one with `landspeed mesh --new mesh.toml`.")?;
    args.output.check()?;
    let plan = MeshPlan::read(path, args.trust)?;
    if args.dry_run {
        out!("{}", text::dry_run(&plan));
        return Ok(CommandOutcome::Clean);
    }
    let directory = args.out.clone().unwrap_or_else(|| beside(path));
    let options = Options { once: args.once };
    let mut scheduler = Scheduler::new(&plan.inventory, |test, pair| plan.cost(test, pair), options, moment());
    let mut state = MeshState::new(&scheduler);
    if args.show {
        let _ = open_state(&directory, args.trust, false)?;
        let journal = directory.join("journal.jsonl");
        let entries = Journal::read(&journal).with_context(|| format!("cannot read {}", journal.display()))?;
        state.restore(&mut scheduler, &entries);
        return finish(args, &state.document(&mut scheduler, &plan.parameters));
    }
    let _lock = lock(&directory, args.trust)?;
    let endpoint = args.metrics.map(|addr| metrics::open(addr, "mesh")).transpose()?;
    let path = directory.join("journal.jsonl");
    let (mut journal, entries, damaged) =
        Journal::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    if damaged > 0 {
        errln!("landspeed: warning: {damaged} damaged lines of {} are ignored", path.display());
    }
    state.restore(&mut scheduler, &entries);
    let mut store = Store::new(Location::from_environment(), &directory);
    store.flush();
    let latest = endpoint.as_ref().map(|_| Latest::default());
    let mut writer = Writer { args, latest, changed: true, next_ns: 0, written_ns: 0 };
    writer.update(&mut scheduler, &state, &plan, true);
    let served = endpoint.zip(writer.latest.as_ref());
    let _endpoint = served.map(|(endpoint, latest)| latest.serve(endpoint)).transpose()?;
    let mut engine = Engine {
        plan: &plan,
        scheduler: &mut scheduler,
        state: &mut state,
        journal: &mut journal,
        store: &mut store,
        prints: args.output.prints(),
        interrupted: process::catch_interrupts(),
    };
    engine.run(&mut |scheduler, state, ended| writer.update(scheduler, state, &plan, ended))?;
    store.flush();
    if let Some(why) = store.failure() {
        let (code, message) = ("archive".to_owned(), why.lines().next().unwrap_or_default().to_owned());
        state.errors.push(landspeed_model::ErrorEntry { code, message, advice: None });
    }
    let lost = store.in_memory();
    let outcome = finish(args, &state.document(&mut scheduler, &plan.parameters))?;
    ensure!(
        lost == 0,
        "cannot store {lost} results: they are in the journal only\nFree some space, and run the tests again."
    );
    Ok(outcome)
}

/// Writes the template of an inventory.
fn new(path: &Path) -> anyhow::Result<CommandOutcome> {
    let shown = path.display();
    ensure!(!path.exists(), "cannot write {shown}: it exists\nGive another name, or remove it.");
    let sink = if path.as_os_str() == "-" { Sink::Stdout } else { Sink::File(path.to_owned()) };
    sink.write(TEMPLATE.as_bytes())?;
    if sink != Sink::Stdout {
        outln!("Wrote {shown}. Look at its schedule: landspeed mesh {} --dry-run", shell_path(path));
    }
    Ok(CommandOutcome::Clean)
}

/// Replaces the extension: `site.toml` becomes `site.mesh`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_stem().map(OsString::from).unwrap_or_default();
    name.push(".mesh");
    path.with_file_name(name)
}

/// Opens the state directory, and refuses one that another user could have written to; `None` if it does not exist.
fn open_state(directory: &Path, trust: TrustArgs, create: bool) -> anyhow::Result<Option<Directory>> {
    match Directory::open(directory, "state directory", create, trust.policy()) {
        Err(why) if !create && why.io().is_some_and(|why| why.kind() == io::ErrorKind::NotFound) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// Creates the directory if necessary, and locks it for this process.
fn lock(directory: &Path, trust: TrustArgs) -> anyhow::Result<File> {
    open_state(directory, trust, true)?;
    let path = directory.join("lock");
    let lock = file::open_lock(&path).with_context(|| format!("cannot open {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => bail!(
            "cannot use {}: another landspeed mesh runs with it\nStop it, or give --out another directory.",
            directory.display()
        ),
        Err(TryLockError::Error(why)) => Err(anyhow!("cannot lock {}: {why}", path.display())),
    }
}

/// Replaces the metrics while tests run, and writes the document after a test and from time to time.
struct Writer<'a> {
    args: &'a Args,
    /// Exported metrics; `None` without `--metrics`.
    latest: Option<Latest>,
    /// Whether a test has ended since it was written.
    changed: bool,
    /// Earliest time of the next writing, monotonic nanoseconds.
    next_ns: u64,
    written_ns: u64,
}

impl Writer<'_> {
    fn update(&mut self, scheduler: &mut Scheduler, state: &MeshState, plan: &MeshPlan, ended: bool) {
        let now_ns = clock::monotonic_ns();
        self.changed |= ended;
        let is_due = self.changed || now_ns >= self.written_ns + REFRESH_NS;
        let sink = self.args.output.json.as_ref().filter(|sink| matches!(sink, Sink::File(_)) && is_due);
        if now_ns < self.next_ns || (sink.is_none() && self.latest.is_none()) {
            return;
        }
        self.next_ns = now_ns + WRITE_NS;
        let document = state.document(scheduler, &plan.parameters);
        if let Some(latest) = &self.latest {
            state.export(latest, &document, scheduler);
        }
        let Some(sink) = sink else { return };
        (self.changed, self.written_ns) = (false, now_ns);
        if let Err(why) = write_document(sink, &document) {
            errln!("landspeed: {why:#}");
        }
    }
}

fn write_document(sink: &Sink, document: &MeshDocument) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(document).context("cannot encode the document")?;
    text.push(b'\n');
    sink.write(&text)
}

/// Prints the matrix, and writes the document.
fn finish(args: &Args, document: &MeshDocument) -> anyhow::Result<CommandOutcome> {
    if args.output.prints() {
        out!("{}", text::matrix(document));
    }
    args.output.write(document, || {
        let source = Source { name: document.name.clone(), document: Document::Mesh(Box::new(document.clone())) };
        Ok(landspeed_report::render_document(&source, &[])?)
    })?;
    Ok(match document.status {
        _ if document.errors.iter().any(|error| ["archive", "journal"].contains(&error.code.as_str())) => {
            CommandOutcome::Failure
        }
        Status::Complete => CommandOutcome::Clean,
        Status::Partial => CommandOutcome::Findings,
        Status::Failed => CommandOutcome::Failure,
    })
}
