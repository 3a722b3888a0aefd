//! Benchmarks and studies of landspeed: against other tools, of the lab, and of the statistics. A separate workspace:
//! nothing of the product depends on it. `cargo xtask NAME` runs a task.
#![forbid(unsafe_code)]

mod agreement;
mod bench;
mod comparisons;
mod gains;
mod gallery;
mod machine;
mod pictures;
mod validate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Benchmarks and studies of landspeed")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Benchmark against iperf3, nuttcp, xfr and sockperf, interleaved, on loopback
    Bench(bench::Options),
    /// Compare the lab with calculated values, including the long cases, and print expected and measured values
    /// (about ten minutes)
    LabValidate,
    /// Compare simulated runs with and without a difference, and print false alarms, coverage and power (a few
    /// minutes)
    CompareValidate(comparisons::Options),
    /// Run the same paths in the lab and with `landspeed emulate`, and print the figures of both (about twenty
    /// minutes)
    EmulateAgreement(agreement::Options),
    /// Measure the effect of the checks' recommendations in the lab, for the pages in docs/checks (about fifteen
    /// minutes)
    Gains(gains::Options),
    /// Run the lab gallery and write reported and measured figures to docs/lab-gallery-figures.md (about an hour)
    Gallery(gallery::Options),
    /// Make the pictures of docs/trace-gallery.md from lab captures (a built lab kernel, Chromium, npm --prefix web ci)
    Pictures(pictures::Options),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Bench(options) => bench::run(options),
        Task::LabValidate => validate::run(),
        Task::CompareValidate(options) => {
            comparisons::run(options);
            Ok(())
        }
        Task::EmulateAgreement(options) => agreement::run(options),
        Task::Gains(options) => gains::run(options),
        Task::Gallery(options) => gallery::run(options),
        Task::Pictures(options) => pictures::run(options),
    }
}

/// The repository's directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}
