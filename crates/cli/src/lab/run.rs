//! `landspeed lab run`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, anyhow, bail, ensure};
use landspeed_experiment::cells::{self, Kernels};
use landspeed_experiment::directory::Directory;
use landspeed_experiment::edit;
use landspeed_experiment::inline::Inline;
use landspeed_experiment::origin::now;
use landspeed_experiment::traces;
use landspeed_lab::cell::{self, SharedSettings};
use landspeed_lab::scenario::{self, Cell, Loaded, estimate};
use landspeed_model::{CheckedCriterion, ComparedFigure, LabDocument, LabStatus};
use landspeed_quote::shell_path;
use landspeed_sys::file;
use landspeed_sys::process::available_memory;
use landspeed_units::Bytes;

use super::command::{self, CommandArgs};
use super::{kernels, text, vary};
use crate::board::{CONFIRM_S, Nouns, ProgressLine, duration};
use crate::output::{OutputArgs, Sink};
use crate::{CommandOutcome, keep, sweep};

const EXAMPLES: &str = "\
Examples:
  landspeed lab new > path.toml                    write a commented scenario
  landspeed lab run path.toml --report path.html   run it, with an HTML report
  landspeed lab run path.toml --set switch.west.queue.limit=64MB
  landspeed lab run path.toml --set switch.west.queue.limit=64KB,1MB,64MB --jobs 2
  landspeed lab run path.toml --set repeats=10 -o path.sweep   keep the runs, to resume
  landspeed lab run path.toml --kernels stock,iw20   compare two kernels over 10 seeds
  landspeed lab run path.toml --pcap sender:west   capture headers with virtual timestamps
  landspeed lab run path.toml -- iperf3 -c server  any program, between two hosts of the scenario

Several values or repeats make a sweep: see `landspeed sweep --help`.
Exit status: 0 complete, 1 a check failed, a criterion is not met or the run was cut short, 2 failure.";

/// Options of `lab run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file (- for standard input)
    scenario: PathBuf,
    #[command(flatten)]
    command: CommandArgs,
    #[command(flatten)]
    pub options: Options,
}

/// Options that `lab run` and `lab gallery run` share.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Set a key of the scenario; several values, separated by commas, run one cell each
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the first run
    #[arg(long)]
    pub seed: Option<u64>,
    /// Kernel to run, by id, release or name [default: the newest without patches]
    #[arg(long, value_name = "ID|RELEASE")]
    pub kernel: Option<String>,
    /// Kernels to compare, by id, release, name, or `stock` for the one without patches: runs the scenario with the same seeds
    /// on each, and prints the differences to the first with their intervals
    #[arg(long, value_name = "KERNEL,KERNEL", value_delimiter = ',', conflicts_with_all = ["kernel", "pcap"])]
    pub kernels: Vec<String>,
    /// Directory of the kernels
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Cells to run at once [default: as many as cores and memory allow]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Directory for the runs of several cells; the same command resumes [default: no run is kept]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Capture at NODE on its link to NEIGHBOUR
    #[arg(long, value_name = "NODE:NEIGHBOUR")]
    pub pcap: Vec<String>,
    /// Directory for captures
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub pcap_dir: PathBuf,
    /// Print the estimated time and memory, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Run even if the estimate is longer than 10 minutes
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs a scenario file.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let (name, text) = if args.scenario.as_os_str() == "-" {
        (
            "standard input".to_owned(),
            file::read_text_from(std::io::stdin(), file::MAX_TEXT_BYTES).context("cannot read standard input")?,
        )
    } else {
        let name = args.scenario.display().to_string();
        let text = file::read_text(&args.scenario, file::MAX_TEXT_BYTES).map_err(|why| {
            let command = format!("landspeed lab new {}", shell_path(&args.scenario));
            anyhow!("cannot read the scenario {name}: {why}\nWrite one with `{command}`.")
        })?;
        (name, text)
    };
    let directory = args.scenario.parent().unwrap_or(Path::new("."));
    let mut read =
        |trace: &str| file::read_text(&directory.join(trace), traces::MAX_BYTES).map_err(|why| why.to_string());
    let text = traces::inline(&text, &mut read).map_err(|why| {
        anyhow!("{why}\nSee the formats in docs/emulating.md; a trace file is searched for next to {name}.")
    })?;
    if !args.command.command.is_empty() {
        ensure!(
            args.options.output.json != Some(Sink::Stdout),
            "cannot write the document to standard output: the command's output goes there\nWrite it to a file: --json FILE."
        );
    }
    run(&name, &args.command.add_to(&text)?, &args.options, !args.command.command.is_empty())
}

/// Runs a scenario from its text. With `for_command`, standard output is that of the command in it.
pub fn run(name: &str, text: &str, options: &Options, for_command: bool) -> anyhow::Result<CommandOutcome> {
    options.output.check()?;
    ensure!(
        options.pcap.is_empty() || options.pcap_dir.is_dir(),
        "cannot capture to {0}: there is no such directory\nCreate it: mkdir -p {0}",
        options.pcap_dir.display()
    );
    let mut text = edit::set(text, &options.set);
    if !options.kernels.is_empty() {
        text = kernels::vary(name, &text, &options.kernels, options.cache.as_deref(), &options.set)?;
    }
    let name = if options.set.is_empty() { name } else { "scenario with --set" };
    let mut loaded = scenario::load(&text).map_err(|problems| anyhow!("{}", problems.named(name)))?;
    if let Some(seed) = options.seed {
        reseed(&mut loaded.cells, seed);
    }
    let quiet = !options.output.prints();
    if !quiet {
        for warning in &loaded.warnings {
            errln!("note: {}", warning.message);
        }
    }
    let need = CostEstimate::of(&loaded.cells, options)?;
    if !quiet || options.dry_run {
        errln!("{}", need.describe(&loaded));
    }
    if options.dry_run {
        return Ok(CommandOutcome::Clean);
    }
    ensure!(
        need.wall_s <= CONFIRM_S || options.yes,
        "not started: it would take about {}\nRun it with --yes, or shorten it (`time`, `repeats`, `vary`).",
        duration(need.wall_s)
    );
    if loaded.cells.len() > 1 {
        return vary(name, &text, &loaded, options);
    }
    ensure!(
        options.out.is_none(),
        "cannot keep runs in a directory: the scenario has one cell\nWrite its document with --json FILE."
    );
    write_result(measure(&loaded, &text, options, quiet)?, options, quiet, for_command)
}

/// Runs all cells of a scenario as a sweep whose factors are the varied keys.
fn vary(name: &str, text: &str, loaded: &Loaded, options: &Options) -> anyhow::Result<CommandOutcome> {
    // Captures of several cells would overwrite each other's files.
    ensure!(
        options.pcap.is_empty(),
        "cannot capture: --pcap takes one cell, and this scenario has {}\nSelect one with --set.",
        loaded.cells.len()
    );
    let quiet = !options.output.prints();
    let inline = Inline {
        file: name,
        text,
        loaded,
        kernel: options.kernel.as_deref(),
        cache: options.cache.as_deref(),
        directory: options.out.as_ref().map_or_else(Directory::in_memory, Directory::at),
        jobs: options.jobs,
        repeat: false,
    };
    let (lab, setup) = inline.prepare()?;
    let _lock = options.out.as_ref().map(|_| setup.directory.take()).transpose()?;
    setup.directory.write("scenario.toml", text.as_bytes())?;
    let session = vary::measure(&lab, setup, quiet);
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    sweep::finish_with(&session, options.out.as_ref().map(|_| command.as_str()), &options.output, |document| {
        if options.kernels.is_empty() { String::new() } else { kernels::differences(document) }
    })
}

/// Runs a scenario with one cell. Returns its document, with verdicts.
fn measure(loaded: &Loaded, text: &str, options: &Options, quiet: bool) -> anyhow::Result<LabDocument> {
    let program = file::read("/proc/self/exe".as_ref(), file::MAX_DOCUMENT_BYTES)
        .context("cannot read landspeed's own executable for the guest: /proc/self/exe")?;
    let command = landspeed_sys::process::command_line();
    let started = now();
    let setting = SharedSettings {
        program: &program,
        arguments: &["lab", "guest"],
        captures: &options.pcap,
        keep: &options.pcap_dir,
        text,
        warnings: &loaded.warnings,
        started: &started,
        command: &command,
    };
    let cell = &loaded.cells[0];
    let requested = options.kernel.as_deref().or(cell.scenario.kernel.as_deref());
    let kernel = Kernels::open(options.cache.as_deref())?.find(requested)?;
    let ready = cell::prepare(cell, &kernel, &setting).map_err(|message| anyhow!(message))?;
    let interrupted = landspeed_sys::process::catch_interrupts();
    let mut board = ProgressLine::new(Nouns { runs: "cells", time: " of virtual time" }, 1, quiet);
    board.expect(1, cells::span_ns(&ready));
    let board = Mutex::new(board);
    let document = cells::run_one(ready, &setting, interrupted, &board);
    cells::lock(&board).clear();
    Ok(document)
}

/// Renumbers the seeds of the cells, starting at `seed`.
fn reseed(cells: &mut [Cell], seed: u64) {
    let first = cells.iter().map(|cell| cell.seed).min().unwrap_or(0);
    for cell in cells {
        cell.seed = seed.wrapping_add(cell.seed.wrapping_sub(first));
        cell.scenario.seed = cell.seed;
    }
}

/// Estimated cost of running all cells.
struct CostEstimate {
    wall_s: f64,
    memory_bytes: u64,
    jobs: usize,
}

impl CostEstimate {
    fn of(cells: &[Cell], options: &Options) -> anyhow::Result<Self> {
        let needs: Vec<_> = cells.iter().map(|cell| estimate(&cell.scenario)).collect();
        let memory_bytes = needs.iter().map(|need| need.memory_bytes).max().unwrap_or(0);
        let available = available_memory().unwrap_or(u64::MAX);
        if memory_bytes > available && !options.dry_run {
            bail!(
                "cannot run: the scenario needs {} of memory, and {} are available\nShorten its paths or buffers, or set \
                 `memory` in the scenario to risk less.",
                Bytes::new(memory_bytes),
                Bytes::new(available)
            );
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let fit = usize::try_from(available / memory_bytes.max(1)).unwrap_or(usize::MAX).max(1);
        let jobs = options.jobs.map_or(cores, usize::from).min(fit).min(cells.len()).max(1);
        let wall_s = needs.iter().map(|need| need.wall_s).sum::<f64>() / jobs as f64;
        Ok(Self { wall_s, memory_bytes, jobs })
    }

    fn describe(&self, loaded: &Loaded) -> String {
        let first = estimate(&loaded.cells[0].scenario);
        let cells = match loaded.cells.len() {
            1 => format!("{:.1} s of virtual time", first.virtual_s),
            n => format!("{n} cells of {:.1} s of virtual time, {} at once", first.virtual_s, self.jobs),
        };
        format!(
            "{cells}; estimate: {} of real time, {} of memory{}",
            duration(self.wall_s),
            Bytes::new(self.memory_bytes),
            if self.jobs > 1 { " each" } else { "" }
        )
    }
}

/// Prints the summary, and writes the document and the report.
fn write_result(
    mut document: LabDocument,
    options: &Options,
    quiet: bool,
    for_command: bool,
) -> anyhow::Result<CommandOutcome> {
    for error in &document.errors {
        errln!("landspeed: {}", crate::text::error(error));
    }
    if document.status != LabStatus::Failed {
        keep::keep(&document);
    }
    document.reference_figures = figures_of(&document);
    document.criteria = criteria_of(&document);
    if for_command {
        command::print_output(&document);
    }
    if !quiet && document.status != LabStatus::Failed {
        let summary = text::run(&document);
        if for_command {
            err!("{summary}");
        } else {
            out!("{summary}");
        }
    }
    options.output.write(&document, || Ok(landspeed_report::render_lab(&document)?))?;
    let status = command::exit_status(&document).filter(|status| for_command && *status != 0);
    Ok(status.map_or_else(|| outcome(&document), CommandOutcome::Program))
}

/// Returns the reference figures that can be computed from this cell alone.
fn figures_of(document: &LabDocument) -> Vec<ComparedFigure> {
    let Some(reference) = &document.scenario.reference else { return Vec::new() };
    let mut figures = landspeed_results::compare_reference(reference, std::slice::from_ref(document));
    figures.retain(|figure| figure.measured.is_some());
    figures
}

/// Returns the criteria that this cell alone can meet.
fn criteria_of(document: &LabDocument) -> Vec<CheckedCriterion> {
    let Some(reference) = &document.scenario.reference else { return Vec::new() };
    let mut criteria = landspeed_results::check_criteria(reference, std::slice::from_ref(document));
    criteria.retain(|criterion| criterion.measured.is_some());
    criteria
}

fn outcome(document: &LabDocument) -> CommandOutcome {
    match document.status {
        LabStatus::Complete if document.criteria.iter().all(|criterion| criterion.met != Some(false)) => {
            CommandOutcome::Clean
        }
        LabStatus::Complete | LabStatus::Invalid | LabStatus::Partial => CommandOutcome::Findings,
        LabStatus::Failed => CommandOutcome::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_key_replaces_the_vary_of_an_exhibit() {
        let exhibit = landspeed_lab::gallery::find("buffer-size").expect("an exhibit");
        let options = Options {
            set: vec!["switch.west.queue.limit=2MB".to_owned(), "repeats=2".to_owned()],
            ..Options::default()
        };
        let text = edit::set(exhibit.text, &options.set);
        let cells = scenario::read(&text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(cells.len(), 2);
        assert!(cells.iter().all(|cell| cell.values["buffer"] == "2MB"));
    }

    #[test]
    fn set_keys_become_axes() {
        let options = Options {
            set: vec!["switch.west.queue.limit=64KB,1MB".to_owned(), "flow.0.streams=4".to_owned()],
            ..Options::default()
        };
        let text = edit::set(scenario::TEMPLATE, &options.set);
        let mut cells = scenario::read(&text).expect("the template with sets");
        assert_eq!(cells.len(), 2);
        reseed(&mut cells, 7);
        assert!(cells.iter().all(|cell| cell.seed == 7 && cell.scenario.flow[0].streams == Some(4)));
    }
}
