//! `cargo xtask bench verdicts`: compares verdicts with known causes.
//!
//! Scenarios with one known cause run in the lab. Their documents are kept, so that changed code can be judged
//! without running them again. The scenarios of [`PUBLISHED_SEED`] are the test set: only their tables are
//! printed, so that no threshold is tuned to them. Any other seed gives training scenarios, whose mistakes are
//! printed one by one.

mod causes;
mod documents;
mod draw;
mod host;
mod judge;
mod label;
mod score;
mod setup;
mod truth;
mod view;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use landspeed_model::LabDocument;
use serde::Serialize;

use documents::Documents;
pub use draw::Draw;
use judge::{Judge, chronograph_class, chronographs};
use label::{Facts, Label, label};
use score::{Row, Score, Scores, by_cause, mistakes, percent, tables};
use truth::{Case, View, cases};

/// Options of `cargo xtask bench verdicts`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Causes to run, by prefix of the scenario names (all by default)
    causes: Vec<String>,
    /// Directory for scenarios and their documents; existing documents are reused
    #[arg(long, value_name = "DIR", default_value = "target/verdicts")]
    keep: PathBuf,
    /// Run all scenarios, even those with documents
    #[arg(long)]
    fresh: bool,
    /// Judge the existing documents, run nothing
    #[arg(long, conflicts_with = "fresh")]
    offline: bool,
    /// Scenarios per cause, or cases per family with --host [default: 16, 4 with --host]
    #[arg(long)]
    count: Option<usize>,
    /// Seed of the scenarios; 303 is the test set, any other seed is for training
    #[arg(long, default_value_t = PUBLISHED_SEED)]
    seed: u64,
    /// Scenarios to run in parallel
    #[arg(short, long, default_value_t = 2)]
    jobs: usize,
    /// Path of a landspeed binary for the lab, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Source of the verdicts
    #[arg(long, value_enum, default_value_t = Judge::Tree)]
    judge: Judge,
    /// Measure between network namespaces of this machine instead of in the lab (needs root)
    #[arg(long)]
    host: bool,
    /// With --host: numbers of busy loops beside the runs [default: 0,1,2,4]
    #[arg(long, value_name = "LOOPS", value_delimiter = ',', requires = "host")]
    load: Vec<usize>,
}

/// Seed of the published tables in docs/verdicts-accuracy.md.
const PUBLISHED_SEED: u64 = 303;

/// Scenarios per cause in the lab.
const LAB_COUNT: usize = 16;
/// Cases per family on this machine.
const HOST_COUNT: usize = 4;

/// A document with its true cause.
struct Labelled {
    case: Case,
    truth: &'static str,
    accept: Vec<truth::Accept>,
    document: LabDocument,
}

/// Entry of a scenario in `truth.json`.
#[derive(Serialize)]
struct Entry<'a> {
    drawn_for: &'a str,
    what: &'a str,
    /// `None` if the document is excluded.
    truth: Option<&'a str>,
    /// Acceptable causes by view.
    accept: BTreeMap<&'static str, Vec<&'static str>>,
    left_out: Option<String>,
    buffer_bdp: f64,
    facts: Option<Facts>,
}

/// Runs missing scenarios, judges, and prints the tables.
pub fn run(options: &Options) -> Result<()> {
    let count = options.count.unwrap_or(LAB_COUNT);
    ensure!(count > 0, "--count starts at 1");
    if options.host {
        return run_host_cases(options);
    }
    let is_chosen = |case: &Case| {
        options.causes.is_empty() || options.causes.iter().any(|start| case.name.starts_with(start.as_str()))
    };
    let all: Vec<Case> = cases(options.seed, count).into_iter().filter(is_chosen).collect();
    ensure!(!all.is_empty(), "no scenario has this name; causes are those of docs/verdicts.md");
    let documents = Documents::open(&options.keep)?;
    if !options.offline {
        let binary = binary(options)?;
        let (ran, failed) = documents.complete(&all, &binary, options.jobs, options.fresh);
        println!("{ran} of {} scenarios ran, {} failed", all.len(), failed.len());
        for failure in failed {
            println!("FAILED {failure}");
        }
    }
    let (labelled, left_out, absent) = labelled(&documents, all, options)?;
    let chosen: Vec<&Labelled> = labelled.iter().collect();
    let scores: Vec<Scores> = View::ALL.into_iter().map(|view| scores(&chosen, options.judge, view)).collect();
    let scores: Vec<Scores> = scores.into_iter().filter(|scores| !scores.rows.is_empty()).collect();
    println!(
        "\n{} scenarios with a known cause ({left_out} left out by what the lab counted, {absent} without a document)\n",
        labelled.len(),
    );
    println!("{}\n{}", tables(&scores), compare_with_chronographs(&chosen, scores.first()));
    if options.seed != PUBLISHED_SEED {
        for scores in &scores {
            println!("\n{}\n\n{}\n{}", scores.view.name(), by_cause(scores), mistakes(scores));
        }
    }
    Ok(())
}

fn binary(options: &Options) -> Result<PathBuf> {
    options.binary.clone().map_or_else(|| crate::validate::program(&crate::root()), Ok)
}

/// Runs the cases of [`host`].
fn run_host_cases(options: &Options) -> Result<()> {
    let binary = if options.offline { None } else { Some(binary(options)?) };
    let loads = if options.load.is_empty() { host::LOADS.to_vec() } else { options.load.clone() };
    let selection = host::Selection {
        seed: options.seed,
        count: options.count.unwrap_or(HOST_COUNT),
        loads: &loads,
        families: &options.causes,
    };
    let by_load = host::run_cases(&options.keep.join("host"), binary.as_deref(), &selection)?;
    let busy: Vec<String> = loads.iter().filter(|&&loops| loops > 0).map(ToString::to_string).collect();
    let titles = ["A quiet machine".to_owned(), format!("Beside busy loops ({} of them)", busy.join(", "))];
    for (load, scores) in titles.into_iter().zip(&by_load) {
        if scores.iter().all(|scores| scores.rows.is_empty()) {
            continue;
        }
        println!("\n{load}:\n\n{}", tables(scores));
        for scores in scores.iter().filter(|_| options.seed != PUBLISHED_SEED) {
            println!("\n{}\n\n{}\n{}", scores.view.name(), by_cause(scores), mistakes(scores));
        }
    }
    Ok(())
}

/// Reads and labels the documents, and writes `truth.json` next to them. Also returns how many were excluded and
/// how many have no document.
fn labelled(documents: &Documents, all: Vec<Case>, options: &Options) -> Result<(Vec<Labelled>, usize, usize)> {
    let mut found = Vec::with_capacity(all.len());
    let (mut left_out, mut absent) = (0, 0);
    let mut entries: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    for case in all {
        let Some(document) = documents.read(&case)? else {
            absent += 1;
            continue;
        };
        let label = label(&case, &document);
        let (truth, accept, why) = match &label {
            Label::TrueCause(truth, accept) => (Some(*truth), accept.clone(), None),
            Label::Excluded(why) => (None, Vec::new(), Some(why.clone())),
        };
        let entry = Entry {
            drawn_for: case.cause,
            what: &case.what,
            truth,
            accept: View::ALL
                .into_iter()
                .map(|view| {
                    (
                        view.name(),
                        accept.iter().filter(|accept| view >= accept.from).map(|accept| accept.cause).collect(),
                    )
                })
                .collect(),
            left_out: why,
            buffer_bdp: case.buffer_bdp,
            facts: Facts::new(&document),
        };
        entries.insert(case.name.clone(), serde_json::to_value(&entry)?);
        match truth {
            Some(truth) => found.push(Labelled { case, truth, accept, document }),
            None => left_out += 1,
        }
    }
    super::write(&options.keep.join("truth.json"), &serde_json::to_string_pretty(&entries)?)?;
    Ok((found, left_out, absent))
}

fn scores(labelled: &[&Labelled], judge: Judge, view: View) -> Scores {
    let rows = labelled.iter().filter_map(|labelled| {
        let predicted = judge.verdict(&labelled.document, view)?;
        let score = Score::new(labelled.truth, &labelled.accept, view, &predicted);
        Some(Row { name: labelled.case.name.clone(), truth: labelled.truth, predicted, score })
    });
    Scores { view, is_loaded: false, rows: rows.collect() }
}

/// Formats a table of how often the class of the cause (receiver, send buffer, application, network) is right,
/// for the chronographs and for the verdicts of a view.
fn compare_with_chronographs(labelled: &[&Labelled], scores: Option<&Scores>) -> String {
    let mut classes: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for labelled in labelled {
        let Some(run) = labelled.document.flows.first().and_then(|flow| flow.run.as_ref()) else { continue };
        let class = chronograph_class(labelled.truth);
        let verdict = scores.and_then(|scores| scores.rows.iter().find(|row| row.name == labelled.case.name));
        let (count, alone, ours) = classes.entry(class).or_default();
        *count += 1;
        *alone += usize::from(chronographs(run) == Some(class));
        *ours += usize::from(verdict.is_some_and(|row| {
            row.predicted.cause != "undetermined"
                && (chronograph_class(&row.predicted.cause) == class || row.score <= Score::Acceptable)
        }));
    }
    let mut text =
        "| class of the cause | n | `ss -ti` chronographs alone | verdicts |\n|---|--:|--:|--:|\n".to_owned();
    let mut sum = (0, 0, 0);
    for (class, (count, alone, ours)) in classes {
        sum = (sum.0 + count, sum.1 + alone, sum.2 + ours);
        let _ = writeln!(
            text,
            "| {class} | {count} | {alone} ({}) | {ours} ({}) |",
            percent(alone, count),
            percent(ours, count)
        );
    }
    let (count, alone, ours) = sum;
    let _ =
        writeln!(text, "| all | {count} | {alone} ({}) | {ours} ({}) |", percent(alone, count), percent(ours, count));
    text
}
