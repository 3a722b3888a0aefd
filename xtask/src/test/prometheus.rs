//! Prometheus and promtool as Debian has them. The package would start a daemon, so it is unpacked and not installed; the
//! programs need nothing but a C library.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::{Apt, Index};
use super::setup::quiet;

/// Names the directory of the two programs for the tests.
pub const VARIABLE: &str = "LANDSPEED_PROMETHEUS";
const SUITE: &str = "bookworm";
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];

/// Returns the directory of the two programs; downloads them (19 MB) if it does not exist.
pub fn fetch(root: &Path, no_install: bool) -> Result<PathBuf> {
    let directory = root.join("target").join("prometheus");
    if directory.is_dir() {
        return Ok(directory);
    }
    ensure!(!no_install, "it is not downloaded yet");
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let apt = Apt::new(scratch.path())?;
    apt.read(SUITE, Index::Programs)?;
    apt.run(&["download", "prometheus"])?;
    let tree = scratch.path().join("tree");
    for package in std::fs::read_dir(apt.downloads()).context("cannot read the download")?.flatten() {
        quiet(Command::new("dpkg-deb").arg("--extract").arg(package.path()).arg(&tree))?;
    }
    // A rename within one file system: the directory is complete or does not exist.
    let new = directory.with_extension("new");
    let _ = std::fs::remove_dir_all(&new);
    std::fs::create_dir_all(&new).context("cannot make a directory")?;
    for program in PROGRAMS {
        std::fs::copy(tree.join("usr/bin").join(program), new.join(program)).context("cannot copy a program")?;
        quiet(Command::new(new.join(program)).arg("--version")).context("it does not run")?;
    }
    std::fs::rename(&new, &directory).context("cannot put it in place")?;
    Ok(directory)
}
