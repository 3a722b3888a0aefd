//! `cargo xtask bench qualify`: compares the verdicts of `qualify` on short sections with TCP over the long paths that contain them.
//!
//! Random sections run in the lab: the suite for each congestion control over the section, then TCP flows over the whole
//! path. Results are kept; the same command makes only those that are missing. Sections with an odd number are held out: only
//! their tables are printed, so that no constant is tuned to them.

mod results;
mod score;
mod sections;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use landspeed_model::QualifyCongestion;

use results::{Results, Scenario};
use score::{Case, Half};
use sections::{CONGESTION, Section, Truth};

/// Options of `cargo xtask bench qualify`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Sections to run, by prefix of the family (all by default)
    families: Vec<String>,
    /// Directory for scenarios and results; existing results are reused
    #[arg(long, value_name = "DIR", default_value = "target/qualify")]
    keep: PathBuf,
    /// Number of sections
    #[arg(long, default_value_t = 208)]
    count: usize,
    /// Number of the first section
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Seed of the sections
    #[arg(long, default_value_t = 35)]
    seed: u64,
    /// TCP flows with each congestion control
    #[arg(long, default_value_t = 1)]
    repeats: u32,
    /// Start of each TCP flow that does not count, seconds
    #[arg(long, default_value_t = 4)]
    omit: u32,
    /// Steady phase of each TCP flow, seconds
    #[arg(long, default_value_t = 12)]
    steady: u32,
    /// Scenarios to run in parallel
    #[arg(short, long, default_value_t = 2)]
    jobs: usize,
    /// Judge the existing results, run nothing
    #[arg(long)]
    offline: bool,
    /// Path of a landspeed binary for the lab, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs what is missing, and prints the tables.
pub fn run(options: &Options) -> Result<()> {
    ensure!(options.repeats > 0 && options.steady > 0, "--repeats and --steady start at 1");
    let truth = Truth { repeats: options.repeats, omit_s: options.omit, steady_s: options.steady };
    let is_chosen = |section: &Section| {
        options.families.is_empty() || options.families.iter().any(|start| section.family.starts_with(start.as_str()))
    };
    let numbers = options.first..options.first + options.count;
    let sections: Vec<Section> =
        numbers.map(|number| Section::draw(options.seed, number)).filter(is_chosen).collect();
    ensure!(!sections.is_empty(), "no such family: {}", sections::FAMILIES.join(", "));
    let results = Results::open(&options.keep)?;
    let all: Vec<Scenario> = sections.iter().flat_map(|section| scenarios(section, truth)).collect();
    if !options.offline {
        let binary = options.binary.clone().map_or_else(|| crate::validate::program(&crate::root()), Ok)?;
        for failure in results.complete(&all, &binary, options.jobs) {
            println!("FAILED {failure}");
        }
    }
    let mut cases = Vec::new();
    for section in &sections {
        let suites = CONGESTION.map(|(name, congestion)| results.read(&suite(section, name, congestion)?));
        cases.push(Case::new(section, suites, results.read(&tcp(section, truth))));
    }
    println!("{}", score::tables(&cases));
    for half in [Half::Training, Half::HeldOut] {
        println!("{}", score::by_congestion(&cases, half));
    }
    println!("Mistakes in the training half:\n\n{}", score::mistakes(&cases));
    Ok(())
}

/// Scenarios of a section: the suite for each congestion control, then TCP.
fn scenarios(section: &Section, truth: Truth) -> Vec<Scenario> {
    let suites = CONGESTION.into_iter().filter_map(|(name, congestion)| suite(section, name, congestion));
    suites.chain([tcp(section, truth)]).collect()
}

/// The tests of a section for a congestion control; `None` if it does not run over the long path.
fn suite(section: &Section, name: &str, congestion: QualifyCongestion) -> Option<Scenario> {
    section.runs(congestion).then(|| Scenario {
        name: format!("{}-for-{name}", section.name),
        toml: section.qualify_toml(congestion, name),
    })
}

/// The TCP flows over the long path.
fn tcp(section: &Section, truth: Truth) -> Scenario {
    Scenario { name: format!("{}-tcp", section.name), toml: section.tcp_toml(truth) }
}
