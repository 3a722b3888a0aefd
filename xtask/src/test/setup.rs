//! What the tests need and a machine may lack. Nothing here is fatal: a test that misses a program skips, loudly.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::machine;

/// Programs the tests call, and the Debian package each comes in.
const PROGRAMS: &[(&str, &str)] = &[
    ("iperf3", "iperf3"),
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    // Oracles of the trace.
    ("tcpdump", "tcpdump"),
    ("tcptrace", "tcptrace"),
    ("tshark", "tshark"),
    ("capinfos", "wireshark-common"),
    ("chromium", "chromium"),
    // What reads manual pages and completions.
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("man", "man-db"),
    ("mandoc", "mandoc"),
    ("groff", "groff-base"),
    ("script", "bsdutils"),
    // For the lab's kernel.
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
];

/// The version `deny.toml` was written for.
const CARGO_DENY: &str = "0.20.2";

/// Installs the packages of missing programs when this is Debian and we are root.
pub fn programs() {
    let missing: Vec<&(&str, &str)> =
        PROGRAMS.iter().filter(|(program, _)| machine::find(program).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    if !nix::unistd::geteuid().is_root() || machine::find("apt-get").is_none() {
        println!("not installed, and not installable by this user: {}; their tests will skip", names.join(", "));
        return;
    }
    println!("installing {}", names.join(", "));
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    let installed = apt(&["update"])
        .and_then(|()| apt(&[&["install", "--yes", "--no-install-recommends"][..], packages.as_slice()].concat()));
    if let Err(error) = installed {
        println!("{error:#}; tests that need {} will skip", names.join(", "));
    }
}

fn apt(arguments: &[&str]) -> Result<()> {
    quiet(Command::new("apt-get").arg("-qq").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// `cargo deny`: the installed one, else one built into `target/tools` (three minutes on two cores, once).
pub fn cargo_deny(root: &Path, no_install: bool) -> Result<PathBuf> {
    if let Some(found) = machine::find("cargo-deny") {
        return Ok(found);
    }
    let tools = root.join("target").join("tools");
    let built = tools.join("bin").join("cargo-deny");
    if built.exists() {
        return Ok(built);
    }
    if no_install {
        bail!("cargo-deny is not installed");
    }
    println!("\nbuilding cargo-deny {CARGO_DENY}");
    quiet(
        Command::new("cargo")
            .args(["install", "--quiet", "--locked", "--version", CARGO_DENY, "--root"])
            .arg(&tools)
            .arg("cargo-deny"),
    )?;
    Ok(built)
}

/// `npm ci`, unless the installed modules are as new as the lock file.
pub fn web(web: &Path, no_install: bool) -> Result<()> {
    ensure!(machine::find("npm").is_some(), "npm is not installed");
    let modified = |path: PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let lock = modified(web.join("package-lock.json")).context("there is no web/package-lock.json")?;
    if modified(web.join("node_modules").join(".package-lock.json")).is_some_and(|installed| installed >= lock) {
        return Ok(());
    }
    if no_install {
        bail!("web/node_modules is missing or older than the lock file");
    }
    quiet(Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--prefix"]).arg(web))
}

/// Runs with no input; its output is shown only when it fails.
pub fn quiet(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}", command.get_program().display(), said.trim());
    }
    Ok(())
}
