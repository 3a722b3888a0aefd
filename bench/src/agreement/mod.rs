//! `cargo xtask emulate-agreement`: runs the same paths in the lab (virtual time) and with real sockets under
//! `landspeed emulate`.
//!
//! Scenarios and path files are in `bench/agreement`. The figures of each run are kept in
//! `target/emulate-agreement`, one file per side, so that the runs can be split over several invocations; the
//! table covers all of them.

mod cases;
mod figures;
mod sides;
mod spacing;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use cases::{CASES, Case};

/// Directory of the figures, below the target directory.
const RESULTS: &str = "emulate-agreement";

/// Options of `cargo xtask emulate-agreement`.
#[derive(clap::Args)]
pub struct Options {
    /// Only cases whose name contains this
    filter: Option<String>,
    /// Make runs on one side only; the table covers both
    #[arg(long)]
    only: Option<Side>,
    /// Number of valid runs per case and side
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Maximum emulated runs per case, including those with invalid seconds
    #[arg(long, default_value_t = 14)]
    attempts: usize,
    /// Start no emulated run after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    budget: u64,
    /// Path of a landspeed binary; by default a release build is made
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print the table of the existing runs without making any
    #[arg(long)]
    table: bool,
    /// Discard the existing runs
    #[arg(long, conflicts_with = "table")]
    fresh: bool,
}

/// Side on which a run was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Side {
    /// The lab: virtual time.
    Lab,
    /// `landspeed emulate`: real time.
    Emulate,
}

/// Result of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    case: String,
    side: Side,
    /// Release of the kernel whose TCP stack was used.
    kernel: String,
    /// Whether the certificate has no invalid second during the run; always true in the lab.
    valid: bool,
    /// Figures by name.
    figures: Figures,
}

/// Figures by name, in the units of [`figures::shown`].
type Figures = BTreeMap<String, f64>;

/// Makes the missing runs and prints the table.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    let work = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join(RESULTS);
    std::fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let mut records = Vec::new();
    let chosen: Vec<&Case> =
        CASES.iter().filter(|case| options.filter.as_ref().is_none_or(|text| case.name.contains(text))).collect();
    let bench = if options.table {
        None
    } else {
        let program = match &options.program {
            Some(program) => program.canonicalize().with_context(|| format!("no {}", program.display()))?,
            None => crate::validate::program(&root)?,
        };
        Some(sides::Bench { program, scenarios: root.join("bench/agreement"), work: work.clone() })
    };
    for (side, file) in [(Side::Lab, "lab-runs.json"), (Side::Emulate, "emulated-runs.json")] {
        let path = work.join(file);
        let is_chosen = options.only.is_none_or(|only| only == side);
        let mut runs = if options.fresh && is_chosen { Vec::new() } else { read(&path)? };
        if let Some(bench) = bench.as_ref().filter(|_| is_chosen) {
            make(side, &chosen, bench, options, &mut runs, &path)?;
        }
        records.extend(runs);
    }
    print!("{}", table::table(&chosen, &records));
    Ok(())
}

/// Makes the missing runs of one side, cycling through the cases, and saves each.
fn make(
    side: Side,
    cases: &[&Case],
    bench: &sides::Bench,
    options: &Options,
    records: &mut Vec<Record>,
    path: &Path,
) -> Result<()> {
    let begin = crate::machine::now();
    loop {
        let mut made = 0;
        for case in cases {
            let mine = records.iter().filter(|record| record.case == case.name && record.side == side);
            let (made_before, valid) = (mine.clone().count(), mine.filter(|record| record.valid).count());
            if valid >= options.runs || made_before >= options.attempts {
                continue;
            }
            if side == Side::Emulate && begin.elapsed() >= Duration::from_secs(options.budget) {
                println!("the budget of {} s is spent: run the command again for the rest", options.budget);
                return Ok(());
            }
            let record = match side {
                Side::Lab => bench.lab(case, made_before as u64 + 1),
                Side::Emulate => bench.emulate(case, made_before as u64 + 1),
            };
            let record = record.with_context(|| format!("{} {side:?}", case.name))?;
            println!(
                "{} {side:?} {}: {}",
                case.name,
                made_before + 1,
                if record.valid { "valid" } else { "invalid" }
            );
            records.push(record);
            write(path, records)?;
            made += 1;
        }
        if made == 0 {
            return Ok(());
        }
    }
}

fn read(path: &Path) -> Result<Vec<Record>> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn write(path: &Path, records: &[Record]) -> Result<()> {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, serde_json::to_string(records)?)
        .with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, path).with_context(|| format!("cannot write {}", path.display()))
}
