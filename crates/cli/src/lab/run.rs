//! `landspeed lab run`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use landspeed_diagnose::diagnose_lab;
use landspeed_lab::cell::{self, Ready, Setting};
use landspeed_lab::kernel::{Cache, Kernel};
use landspeed_lab::scenario::{self, Cell, Loaded, estimate};
use landspeed_model::{LabDocument, LabFlow, LabStatus, Status, Verdict, Warning};
use landspeed_sys::clock;
use landspeed_units::Bytes;

use super::{cells, edit, set, text};
use crate::Outcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab new > path.toml                          a commented scenario
  landspeed lab run path.toml --report path.html         run it, look at it
  landspeed lab run path.toml --set switch.west.queue.limit=64MB
  landspeed lab run path.toml --set switch.west.queue.limit=64KB,1MB,64MB --jobs 2
  landspeed lab run path.toml --pcap sender:west         every packet's header, with exact virtual time

Nothing here needs root, and nothing leaves this machine. Exit status: 0 complete, 1 a check failed, 2 failure.";

/// A run that is expected to take longer than this is begun only with `--yes`, seconds.
const LONG_S: f64 = 600.0;

/// Options of `lab run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scenario's file (`-`: standard input)
    scenario: PathBuf,
    #[command(flatten)]
    pub options: Options,
}

/// Options that `lab run` and `lab gallery run` share.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Set a key of the scenario, in place of what it varies itself; several values, with commas between, make a cell each
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed to start from
    #[arg(long)]
    pub seed: Option<u64>,
    /// The kernel, by version or identifier
    #[arg(long, value_name = "ID|RELEASE")]
    pub kernel: Option<String>,
    /// Where kernels are kept
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Cells to run at once [default: as many as processors and memory allow]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Capture at a node's interface, which is named after its neighbour
    #[arg(long, value_name = "NODE:IFACE")]
    pub pcap: Vec<String>,
    /// Directory for captures
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub pcap_dir: PathBuf,
    /// Write the document as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<Sink>,
    /// Write a report as HTML
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Say what it would take, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Run it even if it takes long
    #[arg(short, long)]
    pub yes: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// Runs a scenario's file.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let (name, text) = if args.scenario.as_os_str() == "-" {
        (
            "standard input".to_owned(),
            std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?,
        )
    } else {
        let name = args.scenario.display().to_string();
        let text = std::fs::read_to_string(&args.scenario)
            .with_context(|| format!("cannot read the scenario {name}; `landspeed lab new` writes one"))?;
        (name, text)
    };
    run(&name, &text, &args.options)
}

/// Runs a scenario, however it came here.
pub fn run(name: &str, text: &str, options: &Options) -> anyhow::Result<Outcome> {
    let report = options.report.clone().map(Sink::File);
    for sink in [&options.json, &report].into_iter().flatten() {
        sink.check()?;
    }
    ensure!(
        options.pcap.is_empty() || options.pcap_dir.is_dir(),
        "cannot capture: there is no directory {}",
        options.pcap_dir.display()
    );
    let (text, edits) = with_sets(text, options);
    let mut loaded =
        scenario::load(&text).map_err(|problems| anyhow!("{}", problems.named(edits.unwrap_or(name.to_owned()))))?;
    if let Some(seed) = options.seed {
        reseed(&mut loaded.cells, seed);
    }
    let prints = options.json == Some(Sink::Stdout);
    let quiet = options.quiet || prints;
    if !quiet {
        for warning in &loaded.warnings {
            eprintln!("note: {}", warning.message);
        }
    }
    let need = Need::of(&loaded.cells, options)?;
    if !quiet || options.dry_run {
        eprintln!("{}", need.words(&loaded));
    }
    if options.dry_run {
        return Ok(Outcome::Clean);
    }
    ensure!(
        need.wall_s <= LONG_S || options.yes,
        "this takes about {}: say --yes to run it, or shorten it (`time`, `repeats`, `vary`)",
        duration(need.wall_s)
    );
    // A capture of several cells would write one file over the other.
    ensure!(
        options.pcap.is_empty() || loaded.cells.len() == 1,
        "--pcap is for one cell, and this scenario has {}: pick one with --set",
        loaded.cells.len()
    );
    let (documents, wall_s) = execute(&loaded, &text, options, need.jobs, quiet)?;
    deliver(&loaded.cells, documents, options, quiet, wall_s)
}

/// Runs the cells of a scenario, `jobs` at a time. Returns their documents in order, with verdicts, and the real time all
/// of them took, seconds.
pub(super) fn execute(
    loaded: &Loaded,
    text: &str,
    options: &Options,
    jobs: usize,
    quiet: bool,
) -> anyhow::Result<(Vec<LabDocument>, f64)> {
    let program =
        std::fs::read("/proc/self/exe").context("cannot read this very program, which runs in the guest")?;
    let command: Vec<String> = std::env::args().collect();
    let started =
        humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns()))
            .to_string();
    let setting = Setting {
        program: &program,
        arguments: &["lab", "guest"],
        captures: &options.pcap,
        keep: &options.pcap_dir,
        text,
        warnings: &loaded.warnings,
        started: &started,
        command: &command,
    };
    let ready = prepare(&loaded.cells, options, &setting)?;
    let interrupted = landspeed_sys::process::catch_interrupts();
    let (mut documents, wall_s) = cells::run(ready, jobs, &setting, interrupted, quiet);
    documents.iter_mut().for_each(judge);
    Ok((documents, wall_s))
}

/// The scenario with what `--set` says: further axes to vary, most of them with one value.
fn with_sets(text: &str, options: &Options) -> (String, Option<String>) {
    let mut sets: Vec<(String, Vec<String>)> = Vec::new();
    for set in &options.set {
        let (key, values) = set.split_once('=').unwrap_or((set, ""));
        sets.push((key.trim().to_owned(), values.split(',').map(|value| value.trim().to_owned()).collect()));
    }
    if sets.is_empty() {
        return (text.to_owned(), None);
    }
    let mut text = text.trim_end().to_owned();
    for (key, values) in sets {
        let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
        if key == "repeats" && values.len() == 1 {
            edit::set_top(&mut text, &key, &values[0]);
            continue;
        }
        let key = edit::key_labelled(&text, &key).unwrap_or(key);
        let label = edit::take_axis(&mut text, &key).map(|label| format!("label = {}\n", quoted(&label)));
        let (key, label) = (quoted(&key), label.unwrap_or_default());
        let _ = write!(text, "\n\n[[vary]]\nkey = {key}\n{label}values = [{}]\n", values.join(", "));
    }
    (text, Some("the scenario with --set".to_owned()))
}

/// Lets the seeds of the cells count from another one on.
fn reseed(cells: &mut [Cell], seed: u64) {
    let first = cells.iter().map(|cell| cell.seed).min().unwrap_or(0);
    for cell in cells {
        cell.seed = seed.wrapping_add(cell.seed.wrapping_sub(first));
        cell.scenario.seed = cell.seed;
    }
}

/// A value as TOML: what it is if it is one, a string otherwise.
fn literal(value: &str) -> String {
    let is_toml = toml::from_str::<toml::Table>(&format!("v = {value}")).is_ok();
    if is_toml && !value.contains('\n') { value.to_owned() } else { quoted(value) }
}

fn quoted(text: &str) -> String {
    // What JSON writes for a string is a basic string of TOML, too.
    serde_json::Value::String(text.to_owned()).to_string()
}

/// What running all cells takes.
pub(super) struct Need {
    wall_s: f64,
    memory_bytes: u64,
    pub(super) jobs: usize,
}

impl Need {
    pub(super) fn of(cells: &[Cell], options: &Options) -> anyhow::Result<Self> {
        let needs: Vec<_> = cells.iter().map(|cell| estimate(&cell.scenario)).collect();
        let memory_bytes = needs.iter().map(|need| need.memory_bytes).max().unwrap_or(0);
        let available = available_memory().unwrap_or(u64::MAX);
        if memory_bytes > available && !options.dry_run {
            bail!(
                "this scenario needs {} of memory and {} are free: shorten its paths or buffers, or give it less with \
                 `memory` at your own risk",
                Bytes::new(memory_bytes),
                Bytes::new(available)
            );
        }
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let fit = usize::try_from(available / memory_bytes.max(1)).unwrap_or(usize::MAX).max(1);
        let jobs = options.jobs.map_or(processors, usize::from).min(fit).min(cells.len()).max(1);
        let wall_s = needs.iter().map(|need| need.wall_s).sum::<f64>() / jobs as f64;
        Ok(Self { wall_s, memory_bytes, jobs })
    }

    fn words(&self, loaded: &Loaded) -> String {
        let first = estimate(&loaded.cells[0].scenario);
        let cells = match loaded.cells.len() {
            1 => format!("{:.1} virtual seconds", first.virtual_s),
            n => format!("{n} cells of about {:.1} virtual seconds, {} at once", first.virtual_s, self.jobs),
        };
        format!(
            "{cells}; expected to take about {} and up to {} of memory{}",
            duration(self.wall_s),
            Bytes::new(self.memory_bytes),
            if self.jobs > 1 { " each" } else { "" }
        )
    }
}

/// A time for people, from seconds.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// `MemAvailable`, bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Finds each cell's kernel and works the cell out; nothing is booted before all of them can be.
fn prepare(cells: &[Cell], options: &Options, setting: &Setting<'_>) -> anyhow::Result<Vec<Ready>> {
    let cache = Cache::open(options.cache.as_deref())?;
    let mut found: Vec<(Option<String>, Kernel)> = Vec::new();
    cells
        .iter()
        .map(|cell| {
            let wanted = options.kernel.clone().or_else(|| cell.scenario.kernel.clone());
            let known = found.iter().find(|(name, _)| *name == wanted).map(|(_, kernel)| kernel.clone());
            let kernel = known.map_or_else(|| cache.find(wanted.as_deref()), Ok)?;
            found.push((wanted, kernel.clone()));
            cell::prepare(cell, &kernel, setting).map_err(|message| anyhow!(message))
        })
        .collect()
}

/// Verdicts of the flows, as `run` gives them, with what the lab knows of their paths.
fn judge(document: &mut LabDocument) {
    let verdicts: Vec<_> = document.flows.iter().map(|flow| verdicts(document, flow)).collect();
    for (flow, (verdict, reverse)) in document.flows.iter_mut().zip(verdicts) {
        let Some(run) = &mut flow.run else { continue };
        run.warnings.extend(landspeed_diagnose::warnings(run));
        run.verdict = verdict.unwrap_or_else(|| run.verdict.clone());
        run.reverse_verdict = reverse;
        run.warnings.push(Warning {
            code: "virtual".to_owned(),
            message: "a network-limited prediction: the lab's hosts have infinite CPU and no NIC".to_owned(),
        });
    }
}

/// The verdict of a flow's first direction, and of its second if it has one.
fn verdicts(document: &LabDocument, flow: &LabFlow) -> (Option<Verdict>, Option<Verdict>) {
    let Some(run) = flow.run.as_ref().filter(|run| run.status != Status::Failed) else { return (None, None) };
    let mut each = run.requested.direction.parts().iter().map(|&direction| diagnose_lab(document, flow, direction));
    (each.next().flatten(), each.next().flatten())
}

fn deliver(
    cells: &[Cell],
    mut documents: Vec<LabDocument>,
    options: &Options,
    quiet: bool,
    wall_s: f64,
) -> anyhow::Result<Outcome> {
    let outcome = documents.iter().map(outcome).max_by_key(|outcome| *outcome as u8).unwrap_or(Outcome::Failure);
    for document in &documents {
        for error in &document.errors {
            eprintln!("landspeed: {}", crate::text::error(error));
        }
    }
    let (json, html) = if cells.len() == 1 {
        let document = documents.remove(0);
        if !quiet && document.status != LabStatus::Failed {
            print!("{}", text::run(&document));
        }
        let html = options.report.as_ref().map(|_| landspeed_report::render_lab(&document)).transpose();
        (serde_json::to_vec(&document), html)
    } else {
        let document = set::document(cells, &documents, wall_s);
        if !quiet {
            print!("{}", text::set(&document));
        }
        let html = options.report.as_ref().map(|_| landspeed_report::render_lab_set(&document)).transpose();
        (serde_json::to_vec(&document), html)
    };
    let mut failures = Vec::new();
    if let Some(sink) = &options.json {
        let written = json.context("cannot encode the document").and_then(|mut text| {
            text.push(b'\n');
            sink.write(&text)
        });
        failures.extend(written.err());
    }
    if let Some(path) = &options.report {
        let html = html.context("cannot draw the report").map(Option::unwrap_or_default);
        match html.and_then(|html| Sink::File(path.clone()).write(html.as_bytes())) {
            Ok(()) if !quiet => println!("  report   {}", path.display()),
            Ok(()) => {}
            Err(error) => failures.push(error),
        }
    }
    match failures.into_iter().reduce(|a, b| anyhow!("{a:#}; {b:#}")) {
        Some(error) => Err(error),
        None => Ok(outcome),
    }
}

fn outcome(document: &LabDocument) -> Outcome {
    match document.status {
        LabStatus::Complete => Outcome::Clean,
        LabStatus::Invalid | LabStatus::Partial => Outcome::Findings,
        LabStatus::Failed => Outcome::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_value_is_toml_where_it_is_and_a_string_where_it_is_not() {
        assert_eq!(literal("4"), "4");
        assert_eq!(literal("true"), "true");
        assert_eq!(literal("\"64MB\""), "\"64MB\"");
        assert_eq!(literal("64MB"), "\"64MB\"");
        assert_eq!(literal("a\nb = 1"), quoted("a\nb = 1"));
        assert_eq!(literal("fq_codel"), "\"fq_codel\"");
    }

    #[test]
    fn a_set_key_replaces_what_an_exhibit_varies_and_keeps_its_label() {
        let exhibit = landspeed_lab::gallery::find("buffer-size").expect("an exhibit");
        let options = Options {
            set: vec!["switch.west.queue.limit=2MB".to_owned(), "repeats=2".to_owned()],
            ..Options::default()
        };
        let (text, _) = with_sets(exhibit.text, &options);
        let cells = scenario::read(&text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(cells.len(), 2);
        assert!(cells.iter().all(|cell| cell.values["buffer"] == "2MB"));
    }

    #[test]
    fn set_keys_become_axes_of_the_template() {
        let options = Options {
            set: vec!["switch.west.queue.limit=64KB,1MB".to_owned(), "flow.0.streams=4".to_owned()],
            ..Options::default()
        };
        let (text, _) = with_sets(scenario::TEMPLATE, &options);
        let mut cells = scenario::read(&text).expect("the template with sets");
        assert_eq!(cells.len(), 2);
        reseed(&mut cells, 7);
        assert!(cells.iter().all(|cell| cell.seed == 7 && cell.scenario.flow[0].streams == Some(4)));
    }
}
