//! `cargo xtask …`: development tasks of the workspace.
#![forbid(unsafe_code)]

mod agreement;
mod bench;
mod comparisons;
mod dist;
mod fuzz;
mod gains;
mod gallery;
mod law;
mod machine;
mod pictures;
mod test;
mod validate;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of landspeed")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Hold the workspace against its law: crate edges, purity, unsafe, file lengths
    Law,
    /// The fast part of `test`: format, lints, law and unit tests; no root, no network
    Check(test::Seed),
    /// Run every check and test; the last line counts them
    Test(test::Options),
    /// Download the releases of iperf3 that the tests speak with (Debian's, signed; kept under target/)
    Iperf3,
    /// Build the static binary that ships, and prove that it is static
    Dist,
    /// Run every fuzz target for a while (nightly compiler, cargo-fuzz)
    Fuzz(fuzz::Options),
    /// Measure beside iperf3, nuttcp, xfr and sockperf, interleaved, on loopback
    Bench(bench::Options),
    /// Hold the lab to arithmetic, the long cases too, and print expected beside measured (some ten minutes)
    LabValidate,
    /// Compare simulated runs with and without a difference, and print false alarms, coverage and power (some minutes)
    CompareValidate(comparisons::Options),
    /// Run the same paths in the lab and by `landspeed emulate`, and print both sides' figures (some twenty minutes)
    EmulateAgreement(agreement::Options),
    /// Try in the lab what the checks recommend, for the pages in docs/checks (some fifteen minutes)
    Gains(gains::Options),
    /// Run the lab's exhibits, and write the reported figures beside ours in docs/lab-gallery-figures.md (about an hour)
    Gallery(gallery::Options),
    /// Make the pictures of docs/trace-gallery.md from lab captures (a built lab kernel, Chromium, npm --prefix web ci)
    Pictures(pictures::Options),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<ExitCode> {
    match task {
        Task::Law => law::run()?,
        Task::Check(seed) => return test::check(seed),
        Task::Test(options) => return test::run(options),
        Task::Iperf3 => test::fetch_iperf3()?,
        Task::Dist => dist::run()?,
        Task::Fuzz(options) => fuzz::run(options)?,
        Task::Bench(options) => bench::run(options)?,
        Task::LabValidate => validate::run()?,
        Task::CompareValidate(options) => comparisons::run(options),
        Task::EmulateAgreement(options) => agreement::run(options)?,
        Task::Gains(options) => gains::run(options)?,
        Task::Gallery(options) => gallery::run(options)?,
        Task::Pictures(options) => pictures::run(options)?,
    }
    Ok(ExitCode::SUCCESS)
}
