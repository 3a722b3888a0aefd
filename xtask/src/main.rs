//! `cargo xtask …`: development tasks of the workspace.
#![forbid(unsafe_code)]

mod dist;
mod docs;
mod fuzz;
mod law;
mod machine;
mod package;
mod release;
mod test;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of landspeed")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the workspace's rules: crate dependencies, purity, unsafe, file lengths
    Law,
    /// Run the fast part of `test`: format, lints, rules and unit tests; no root, no network
    Check(test::Seed),
    /// Run all checks and tests; the last line has the counts
    Test(test::Options),
    /// Download the iperf3 releases that the tests use (Debian's, signed; kept under target/)
    Iperf3,
    /// Download the Prometheus that the tests use (Debian's, signed; kept under target/)
    Prometheus,
    /// Download the kernels and the root that virtual machines of the tests boot (Debian's, signed; kept under target/)
    Machines,
    /// Build the static release binary and verify that it is static
    Dist,
    /// Package the program: deb, rpm, oci, tarball, sbom (docs/installing.md)
    Package(package::Options),
    /// Tag the release that CHANGELOG.md and Cargo.toml describe (docs/releasing.md)
    Release(release::Options),
    /// Build the documentation site in target/docs and check its links; compiles mdBook once
    Docs,
    /// Run every fuzz target for a limited time (nightly compiler, cargo-fuzz)
    Fuzz(fuzz::Options),
    /// A benchmark or study of the workspace in bench/: bench, gains, gallery, lab-validate and others; `cargo xtask studies`
    /// lists them
    #[command(external_subcommand)]
    Study(Vec<OsString>),
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
        Task::Prometheus => test::fetch_prometheus()?,
        Task::Machines => test::fetch_machines()?,
        Task::Dist => dist::run()?,
        Task::Package(options) => package::run(options)?,
        Task::Release(options) => release::run(options)?,
        Task::Docs => docs::run()?,
        Task::Fuzz(options) => fuzz::run(options)?,
        Task::Study(arguments) => return study(arguments),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a task of the workspace in `bench/`, and returns its exit code.
fn study(arguments: &[OsString]) -> Result<ExitCode> {
    let root = law::root();
    let arguments =
        if arguments.first().is_some_and(|first| first == "studies") { &["--help".into()] } else { arguments };
    let mut run = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    run.args(["run", "--quiet", "--manifest-path"]).arg(root.join("bench").join("Cargo.toml"));
    run.arg("--target-dir").arg(root.join("target").join("bench")).arg("--").args(arguments);
    let status = run.status().context("cannot run cargo")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
