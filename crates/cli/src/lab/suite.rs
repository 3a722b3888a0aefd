//! `landspeed lab suite`: scenarios with criteria, such as the test cases of a standard.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{anyhow, ensure};
use landspeed_experiment::directory::Directory;
use landspeed_experiment::inline::Inline;
use landspeed_experiment::origin::now;
use landspeed_experiment::suite::scenario;
use landspeed_lab::cell::ONE_DRAW;
use landspeed_lab::scenario::{self as scenarios, estimate};
use landspeed_lab::suite::{self, Case, Suite};
use landspeed_model::{BuildInfo, SUITE_SCHEMA, SuiteCase, SuiteDocument, SweepDocument};
use landspeed_quote::shell_path;
use landspeed_report::Source;
use landspeed_results::Document;
use landspeed_sys::clock;
use landspeed_sys::file::create_directory;

use super::{figures, text, vary};
use crate::board::{CONFIRM_S, duration};
use crate::output::{OutputArgs, Sink};
use crate::text::Page;
use crate::{CommandOutcome, keep};

const EXAMPLES: &str = "\
Examples:
  landspeed lab suite                                       list the suites
  landspeed lab suite show rfc9743                          list the cases of one
  landspeed lab suite run rfc9743 --congestion bbr --yes    CUBIC, and bbr beside it
  landspeed lab suite run rfc9743 --case aqm-pie --report pie.html
  landspeed lab suite write ccwg-bbr cases                  a scenario file for each case

A case is a scenario. To run it on a cluster, name its file in [lab] of a plan of sweep.
Exit status: 0 all criteria are met, 1 some are not, 2 failure.";

/// Options of `lab suite`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the suites
    List,
    /// List the cases of a suite with their criteria
    Show {
        /// The suite
        #[arg(value_name = "SUITE")]
        name: String,
    },
    /// Run a suite
    Run(Box<RunArgs>),
    /// Write a scenario file for each case
    Write {
        /// The suite
        #[arg(value_name = "SUITE")]
        name: String,
        /// Directory of the files
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Options of `lab suite run`.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The suite
    #[arg(value_name = "SUITE")]
    name: String,
    /// Congestion controls to test, separated by commas [default: those of the suite]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    congestion: Vec<String>,
    /// Run only these cases, separated by commas
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    case: Vec<String>,
    /// Runs of each case and congestion control, with different seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Kernel to run, by id, release or name [default: the newest without patches]
    #[arg(long, value_name = "ID|RELEASE")]
    kernel: Option<String>,
    /// Directory of the kernels
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Runs at once [default: as many as cores and memory allow]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Directory for the runs of each case; the same command resumes [default: no run is kept]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the estimated time, and exit
    #[arg(long)]
    dry_run: bool,
    /// Run even if the estimate is longer than 10 minutes
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the subcommand; lists the suites if none is given.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let find = |name: &str| suite::find(name).map_err(|message| anyhow!(message));
    match &args.command {
        None | Some(Command::List) => Sink::Stdout.write(list()?.as_bytes())?,
        Some(Command::Show { name }) => Sink::Stdout.write(show(&find(name)?).as_bytes())?,
        Some(Command::Run(args)) => return run(&find(&args.name)?, args),
        Some(Command::Write { name, directory }) => write(&find(name)?, directory)?,
    }
    Ok(CommandOutcome::Clean)
}

fn list() -> anyhow::Result<String> {
    let mut rows = vec![["SUITE", "CASES", "CRITERIA", "CONGESTION"].map(str::to_owned)];
    let mut titles = Page::default();
    for name in suite::names() {
        let suite = suite::find(name).map_err(|message| anyhow!(message))?;
        let criteria: usize = suite.cases.iter().map(|case| case.criteria.len()).sum();
        rows.push([name.to_owned(), suite.cases.len().to_string(), criteria.to_string(), suite.congestion.join(" ")]);
        titles.line(name, &format!("{} ({})", suite.title, suite.source));
    }
    Ok(format!("{}\n{}", text::table(&rows), titles.text))
}

fn show(suite: &Suite) -> String {
    let mut page = Page::default();
    page.line("suite", &format!("{} ({})", suite.title, suite.source));
    page.line("limits", &suite.about);
    for case in &suite.cases {
        page.text.push('\n');
        page.line("case", &format!("{}: {} ({})", case.name, case.title, case.section));
        for criterion in &case.criteria {
            let limits = landspeed_lab::gallery::limits(criterion.at_least, criterion.at_most, criterion.unit);
            page.line("", &format!("{}: {limits}: {}", criterion.name, criterion.source));
        }
        if let Some(hidden) = &case.hidden {
            page.line("", &format!("not visible from outside: {hidden}"));
        }
    }
    page.text
}

/// Writes the scenario of each case that can run.
fn write(suite: &Suite, directory: &Path) -> anyhow::Result<()> {
    create_directory(directory)
        .map_err(|why| anyhow!("cannot create {}: {why}\nName another directory.", directory.display()))?;
    for case in runnable(suite, &[])? {
        let path = directory.join(format!("{}.toml", case.name));
        ensure!(
            !path.exists(),
            "cannot write {}: it exists\nName another directory, or remove this one.",
            path.display()
        );
        let text = scenario(suite, case, &suite.congestion, 3).map_err(|message| anyhow!(message))?;
        Sink::File(path.clone()).write(text.as_bytes())?;
        errln!("wrote {}; run it: landspeed lab run {}", path.display(), shell_path(&path));
    }
    Ok(())
}

/// Returns the named cases, or all; only those with criteria.
fn runnable<'a>(suite: &'a Suite, names: &[String]) -> anyhow::Result<Vec<&'a Case>> {
    let named = names.iter().map(|name| suite.case(name)).collect::<Result<Vec<_>, _>>();
    let named = named.map_err(|message| anyhow!(message))?;
    if let Some(case) = named.iter().find(|case| case.criteria.is_empty()) {
        let hidden = case.hidden.as_deref().unwrap_or_default();
        return Err(anyhow!("cannot run {}: nothing of it is visible from outside: {hidden}", case.name));
    }
    let all = suite.cases.iter().filter(|case| !case.criteria.is_empty());
    Ok(if named.is_empty() { all.collect() } else { named })
}

/// Returns the congestion controls to run: those asked for, after the one that criteria compare with.
fn congestion(suite: &Suite, asked: &[String]) -> Vec<String> {
    let mut all: Vec<String> = suite.baseline.iter().cloned().collect();
    for name in if asked.is_empty() { &suite.congestion } else { asked } {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

fn run(suite: &Suite, args: &RunArgs) -> anyhow::Result<CommandOutcome> {
    args.output.check()?;
    let cases = runnable(suite, &args.case)?;
    let congestion = congestion(suite, &args.congestion);
    let quiet = !args.output.prints();
    let mut texts = Vec::new();
    let mut wall_s = 0.0;
    for case in &cases {
        let text = scenario(suite, case, &congestion, args.runs).map_err(|message| anyhow!(message))?;
        let loaded = scenarios::load(&text).map_err(|problems| anyhow!("{}", problems.named(&case.name)))?;
        wall_s += loaded.cells.iter().map(|cell| estimate(&cell.scenario).wall_s).sum::<f64>();
        texts.push((text, loaded));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    wall_s /= args.jobs.map_or(cores, usize::from) as f64;
    let runs: usize = texts.iter().map(|(_, loaded)| loaded.cells.len()).sum();
    if !quiet || args.dry_run {
        errln!("{} cases, {runs} runs; estimate: {} of real time", cases.len(), duration(wall_s));
    }
    if args.dry_run {
        return Ok(CommandOutcome::Clean);
    }
    ensure!(
        wall_s <= CONFIRM_S || args.yes,
        "not started: it would take about {}\nRun it with --yes, or some of it with --case.",
        duration(wall_s)
    );
    let (started, begin_ns) = (now(), clock::monotonic_ns());
    let mut sweeps = Vec::new();
    for (case, (text, loaded)) in cases.iter().zip(&texts) {
        if landspeed_sys::process::catch_interrupts().load(Ordering::Relaxed) {
            break;
        }
        let inline = Inline {
            file: &case.name,
            text,
            loaded,
            kernel: args.kernel.as_deref(),
            cache: args.cache.as_deref(),
            directory: args.out.as_ref().map_or_else(Directory::in_memory, |out| Directory::at(out.join(&case.name))),
            jobs: args.jobs,
            repeat: false,
        };
        if !quiet {
            errln!("{}: {}", case.name, case.title);
        }
        let (lab, setup) = inline.prepare()?;
        let _lock = args.out.as_ref().map(|_| setup.directory.take()).transpose()?;
        setup.directory.write("scenario.toml", text.as_bytes())?;
        let session = vary::measure(&lab, setup, quiet);
        sweeps.push((case.name.clone(), session.end()?));
    }
    let mut document = document(suite, &sweeps);
    document.started = started;
    document.congestion = congestion;
    document.runs = args.runs;
    document.wall_s = clock::monotonic_ns().saturating_sub(begin_ns) as f64 / 1e9;
    if !args.case.is_empty() {
        document.cases.retain(|case| args.case.contains(&case.name));
    }
    if !quiet {
        out!("{}", summary(&document));
    }
    args.output.write(&document, || {
        let source = Source { name: suite.name.to_owned(), document: Document::Suite(Box::new(document.clone())) };
        Ok(landspeed_report::render_document(&source, &[])?)
    })?;
    keep::keep(&document);
    Ok(outcome(&document, cases.len() == sweeps.len()))
}

/// Returns the document of a suite from the sweeps of its cases.
fn document(suite: &Suite, sweeps: &[(String, SweepDocument)]) -> SuiteDocument {
    let mut kernels: Vec<String> = Vec::new();
    for environment in sweeps.iter().flat_map(|(_, sweep)| &sweep.environments) {
        let kernel = landspeed_lab::gallery::kernel_text(environment);
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    let case = |case: &Case| {
        let sweep = sweeps.iter().find(|(name, _)| *name == case.name).map(|(_, sweep)| sweep);
        let runs = sweep.into_iter().flat_map(|sweep| &sweep.cells).flat_map(|cell| &cell.runs);
        // The number of runs is an option here.
        let warnings = sweep.into_iter().flat_map(|sweep| &sweep.warnings).filter(|warning| warning.code != ONE_DRAW);
        let warnings = warnings.map(|warning| warning.message.clone());
        let errors = sweep.into_iter().flat_map(|sweep| &sweep.errors).map(|error| error.message.clone());
        let unusable = runs.filter(|run| !run.usable).count();
        SuiteCase {
            name: case.name.clone(),
            title: case.title.clone(),
            section: case.section.clone(),
            hidden: case.hidden.clone(),
            criteria: sweep.map(|sweep| sweep.criteria.clone()).unwrap_or_default(),
            unusable: u32::try_from(unusable).unwrap_or(u32::MAX),
            problems: errors.chain(warnings).collect(),
        }
    };
    SuiteDocument {
        schema: SUITE_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
        started: String::new(),
        command: landspeed_sys::process::command_line(),
        suite: suite.name.to_owned(),
        title: suite.title.clone(),
        source: suite.source.clone(),
        about: suite.about.clone(),
        congestion: Vec::new(),
        runs: 0,
        kernels,
        wall_s: 0.0,
        cases: suite.cases.iter().map(case).collect(),
    }
}

/// Returns the summary: a table of criteria for each case, and how many each congestion control meets.
pub fn summary(document: &SuiteDocument) -> String {
    let mut page = Page::default();
    page.line("suite", &format!("{} ({})", document.title, document.source));
    for case in document.cases.iter().filter(|case| !case.criteria.is_empty()) {
        page.text.push('\n');
        page.line("case", &format!("{}: {} ({})", case.name, case.title, case.section));
        page.text.push_str(&figures::criteria_table(&case.criteria));
        if case.unusable > 0 {
            page.line("missing", &format!("{} runs are not complete", case.unusable));
        }
        for problem in &case.problems {
            page.line("note", problem);
        }
    }
    page.text.push('\n');
    for congestion in &document.congestion {
        let of = |met: bool| criteria(document, congestion).filter(|found| *found == Some(met)).count();
        page.line(congestion, &format!("{} of {} criteria met", of(true), of(true) + of(false)));
    }
    let unseen: Vec<&str> =
        document.cases.iter().filter(|case| case.criteria.is_empty()).map(|case| case.name.as_str()).collect();
    if !unseen.is_empty() {
        page.line("not run", &unseen.join(", "));
    }
    page.line("kernel", &document.kernels.join(", "));
    let runs = if document.runs == 1 { "1 run".to_owned() } else { format!("{} runs", document.runs) };
    page.line("took", &format!("{} of real time, {runs} of each case", duration(document.wall_s)));
    page.line("limits", &document.about);
    page.text
}

/// Results of a congestion control's criteria.
fn criteria<'a>(document: &'a SuiteDocument, congestion: &'a str) -> impl Iterator<Item = Option<bool>> + 'a {
    let all = document.cases.iter().flat_map(|case| &case.criteria);
    let is_of = move |cell: Option<&serde_json::Value>| cell.is_none_or(|name| name.as_str() == Some(congestion));
    all.filter(move |criterion| is_of(criterion.cell.get(suite::CONGESTION_LABEL))).map(|criterion| criterion.met)
}

fn outcome(document: &SuiteDocument, complete: bool) -> CommandOutcome {
    let mut all = document.cases.iter().flat_map(|case| &case.criteria);
    if complete && all.all(|criterion| criterion.met == Some(true)) {
        CommandOutcome::Clean
    } else {
        CommandOutcome::Findings
    }
}
