//! `cargo xtask lab-validate`: the lab's tests, including the cases that take minutes, and the table of expected
//! and measured values.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Builds the release binary, unless `LANDSPEED_BINARY` names one. Returns its path.
pub fn program(root: &Path) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("LANDSPEED_BINARY") {
        return std::path::absolute(&named).with_context(|| format!("LANDSPEED_BINARY={}", named.display()));
    }
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--release", "-p", "landspeed", "--message-format", "json"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "the release build failed");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo named no program")
}

/// Runs `crates/landspeed/tests/lab` with the release binary, including the long cases, and prints the table.
pub fn run() -> Result<()> {
    let root = crate::root();
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&root);
        command
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let program = program(&root)?;
    let table = target.join("lab-validation.md");
    if let Err(error) = std::fs::remove_file(&table)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot clear {}", table.display()));
    }
    let status = cargo()
        .args([
            "test",
            "-p",
            "landspeed",
            "--test",
            "testsuite",
            "lab::",
            "--",
            "--include-ignored",
            "--test-threads=2",
        ])
        .env("LANDSPEED_BINARY", program)
        .env("LANDSPEED_LAB_LONG", "1")
        .env("LANDSPEED_LAB_TABLE", &table)
        .status()
        .context("cannot run cargo")?;
    let rows = std::fs::read_to_string(&table).context("nothing was measured: is a kernel built for the lab?")?;
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_unstable();
    println!("\n| what | expected | measured | unit | relative error | tolerance | kernel |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        println!("{row}");
    }
    ensure!(status.success(), "a claim does not hold");
    Ok(())
}
