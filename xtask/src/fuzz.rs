//! `cargo xtask fuzz`: runs every fuzz target for a limited time. Needs a nightly compiler and cargo-fuzz; the
//! same properties are tested on stable in
//! `crates/{flow/tests/hostile_bytes,host/tests/hostile,trace/tests/hostile}.rs`.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{law, machine};

/// Targets and duration of the fuzzing.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Targets (all by default)
    targets: Vec<String>,
    /// Time per target, seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Runs the targets one after another; stops at the first one that finds a failure.
pub fn run(options: &Options) -> Result<()> {
    ensure!(machine::find("cargo-fuzz").is_some(), "cargo-fuzz is not installed; try `cargo install cargo-fuzz`");
    let root = law::root();
    let directory = root.join("fuzz").join("fuzz_targets");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
        targets.extend(entry?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    targets.sort();
    for wanted in &options.targets {
        ensure!(targets.contains(wanted), "no target {wanted}; there are {}", targets.join(", "));
    }
    // Use the dependency versions that the program is built with.
    std::fs::copy(root.join("Cargo.lock"), root.join("fuzz/Cargo.lock")).context("cannot copy Cargo.lock")?;
    for target in targets.iter().filter(|target| options.targets.is_empty() || options.targets.contains(target)) {
        println!("\n== {target}");
        // The alias `cargo xtask` pins the toolchain for its children; cargo-fuzz needs nightly.
        let status = Command::new("cargo")
            .current_dir(&root)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .args(["+nightly", "fuzz", "run", target, "--", &format!("-max_total_time={}", options.seconds)])
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "{target} found something, or could not be built");
    }
    Ok(())
}
