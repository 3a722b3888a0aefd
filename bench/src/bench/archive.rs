//! `cargo xtask bench archive`: benchmarks an archive of 100,000 runs.
//!
//! The runs are derived from real run documents with another id, time, target, host names and goodput, so that
//! every document differs and each query condition selects some. They are imported through a pipe with `landspeed
//! archive import -`; each query is timed as a whole process, from start to exit.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use landspeed_stats::{SplitMix64, quantile};
use serde_json::Value;

use crate::machine::{self, Machine};

/// Options of `cargo xtask bench archive`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Number of runs in the archive
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// Repetitions of each query
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Number of single results imported one after another, each by its own process
    #[arg(long, default_value_t = 200)]
    singles: u64,
    /// Path of a landspeed binary, instead of building it
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Use the archive in this directory, kept by an earlier --keep
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Do not remove the archive
    #[arg(long)]
    keep: bool,
}

/// Documents of real runs, from which the others are derived.
const RUNS: [&str; 4] = [
    "crates/diagnose/fixtures/real/bulk-loopback-bbr.json",
    "crates/diagnose/fixtures/real/receive-buffer-cubic.json",
    "crates/diagnose/fixtures/real/send-buffer-bbr.json",
    "crates/diagnose/fixtures/real/loss-cubic.json",
];

/// Queries: the arguments after `archive`.
const QUERIES: [&[&str]; 9] = [
    &["list"],
    &["find"],
    &["find", "--host", "dtn17"],
    &["find", "--target", "dtn42.example", "--last", "3650d"],
    &["find", "--metric", "goodput<200M"],
    &["find", "--verdict", "receiver-window", "--host", "dtn3"],
    &["find", "--setting", "congestion=cubic", "--kernel", "6.12"],
    &["find", "--setting", "net.ipv4.tcp_sack=1", "--since", "2026-01-01", "--until", "2026-02-01"],
    &["trend", "goodput", "--target", "dtn42.example"],
];

/// Maximum time of a query; from the issue that requested the archive.
const MAX_QUERY_MS: f64 = 100.0;
const MIN_INSERTS_PER_S: f64 = 500.0;

/// Fills an archive and times queries on it.
pub fn run(options: &Options, binary: &Path) -> Result<()> {
    let directory = match &options.archive {
        Some(directory) => directory.clone(),
        None => PathBuf::from("target/bench-archive"),
    };
    let machine = Machine::read();
    println!(
        "machine: {}, {} cores, {}, load {:.1}",
        machine.cpu, machine.cores, machine.kernel, machine.load_at_start
    );
    println!("\n| what | measured | threshold |\n|---|---:|---|");
    if options.archive.is_none() {
        let _ = std::fs::remove_dir_all(&directory);
        insert_runs(options, binary, &directory)?;
        single(options, binary, &directory)?;
    }
    for words in QUERIES {
        time_query(options, binary, &directory, words)?;
    }
    let bytes = size(&directory.join("index.sqlite"))?;
    println!("| index | {:.0} MB | |", bytes as f64 / 1e6);
    if options.archive.is_none() && !options.keep {
        std::fs::remove_dir_all(&directory).context("cannot remove the archive")?;
    }
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).with_context(|| path.display().to_string())?.len())
}

fn archive(binary: &Path, directory: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("archive").env("LANDSPEED_ARCHIVE", directory);
    command
}

/// Generates run documents that differ in every field that a query can filter on.
struct RunGenerator {
    templates: Vec<Value>,
    random: SplitMix64,
}

impl RunGenerator {
    fn new(seed: u64) -> Result<Self> {
        let read = |path: &&str| -> Result<Value> {
            Ok(serde_json::from_slice(&std::fs::read(path).with_context(|| (*path).to_owned())?)?)
        };
        Ok(Self { templates: RUNS.iter().map(read).collect::<Result<_>>()?, random: SplitMix64::new(seed) })
    }

    fn next(&mut self, number: u64) -> String {
        // 2024-01-01; one run every fifteen minutes.
        const START_S: u64 = 1_704_067_200;
        let seconds = START_S + number * 900;
        let document = &mut self.templates[(number % RUNS.len() as u64) as usize];
        document["id"] = format!("{:016x}{number:016x}", self.random.bits()).into();
        document["started"] = rfc3339(seconds).into();
        document["path"]["target"] = format!("dtn{}.example", self.random.below(100)).into();
        document["hosts"]["client"]["hostname"] = format!("dtn{}", self.random.below(100)).into();
        document["hosts"]["server"]["hostname"] = format!("dtn{}", self.random.below(100)).into();
        document["hosts"]["client"]["kernel_release"] =
            ["6.12.0", "6.12.9", "6.18.1"][self.random.below(3) as usize].into();
        document["summary"]["goodput_bps"] = (1e8 + 1e10 * self.random.unit()).into();
        document.to_string()
    }
}

/// Formats seconds since the Unix epoch as RFC 3339.
fn rfc3339(seconds: u64) -> String {
    // Date from days since the epoch: H. Hinnant, chrono-Compatible Low-Level Date Algorithms.
    let (days, rest) = ((seconds / 86_400) as i64 + 719_468, seconds % 86_400);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

fn insert_runs(options: &Options, binary: &Path, directory: &Path) -> Result<()> {
    let mut generator = RunGenerator::new(17)?;
    let began = machine::now();
    let mut child = archive(binary, directory)
        .args(["import", "--quiet", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start landspeed")?;
    let mut input = std::io::BufWriter::new(child.stdin.take().context("a pipe")?);
    let mut bytes = 0;
    for number in 0..options.runs {
        let line = generator.next(number);
        bytes += line.len();
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).context("landspeed ended early")?;
    }
    input.into_inner().context("landspeed ended early")?;
    let status = child.wait()?;
    ensure!(status.success(), "archive import: {status}");
    let seconds = began.elapsed().as_secs_f64();
    let rate = options.runs as f64 / seconds;
    let met = if rate >= MIN_INSERTS_PER_S { "met" } else { "**missed**" };
    println!(
        "| insert {} runs of {:.0} KB, with their series, through a pipe | {rate:.0}/s | ≥ {MIN_INSERTS_PER_S:.0}/s: {met} |",
        options.runs,
        bytes as f64 / options.runs as f64 / 1e3
    );
    Ok(())
}

/// Imports single results one after another, each by its own process.
fn single(options: &Options, binary: &Path, directory: &Path) -> Result<()> {
    let mut generator = RunGenerator::new(18)?;
    let file = directory.join("one.json");
    let mut times_ms = Vec::new();
    for number in 0..options.singles {
        std::fs::write(&file, generator.next(options.runs + number))?;
        let began = machine::now();
        let status = archive(binary, directory).args(["import", "--quiet"]).arg(&file).status()?;
        times_ms.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(status.success(), "archive import: {status}");
    }
    std::fs::remove_file(&file)?;
    let at = |p| quantile(&times_ms, p).unwrap_or_default();
    println!("| insert one run, a process each | {:.1} ms (p90 {:.1}) | |", at(0.5), at(0.9));
    Ok(())
}

fn time_query(options: &Options, binary: &Path, directory: &Path, words: &[&str]) -> Result<()> {
    let mut times_ms = Vec::new();
    let mut lines = 0;
    for _ in 0..options.rounds {
        let began = machine::now();
        let output = archive(binary, directory).args(words).output()?;
        times_ms.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(output.status.success(), "archive {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        lines = String::from_utf8_lossy(&output.stdout).lines().count();
    }
    let at = |p| quantile(&times_ms, p).unwrap_or_default();
    let threshold = match words[0] {
        "find" => format!("≤ {MAX_QUERY_MS:.0} ms: {}", if at(0.5) <= MAX_QUERY_MS { "met" } else { "**missed**" }),
        _ => String::new(),
    };
    println!("| `{}` ({lines} lines) | {:.0} ms (p90 {:.0}) | {threshold} |", words.join(" "), at(0.5), at(0.9));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_704_067_200), "2024-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_709_164_800 + 3661), "2024-02-29T01:01:01Z");
    }
}
