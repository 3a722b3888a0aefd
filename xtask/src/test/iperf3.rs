//! iperf3 as others have it: the releases of Debian's suites, old to new. They stay under `target/`, each with the
//! libraries it was built for, so that neither the machine's release nor its C library matters.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::{Apt, Index};
use super::setup::{pip, quiet};

/// Names the directory for the tests: one directory in it for each release, with `iperf3` inside.
pub const VARIABLE: &str = "LANDSPEED_IPERF3";

/// A suite and what its iperf3 is linked with.
struct Suite {
    name: &'static str,
    index: Index,
    libraries: &'static [&'static str],
}

/// 3.9, 3.12 and 3.18 as these suites released them, and whatever is current.
const SUITES: [Suite; 4] = [
    Suite { name: "bullseye", index: Index::Programs, libraries: &["libc6", "libssl1.1", "libsctp1"] },
    Suite { name: "bookworm", index: Index::Programs, libraries: &["libc6", "libssl3", "libsctp1"] },
    Suite { name: "trixie", index: Index::Programs, libraries: NEW },
    Suite { name: "sid", index: Index::ProgramsOfAnyAge, libraries: NEW },
];
const NEW: &[&str] = &["libc6", "libssl3t64", "libsctp1", "libzstd1", "zlib1g"];

/// Where they are; downloads those (20 MB each, once) that are not there yet. Unavailable ones are skipped.
pub fn fetch(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("iperf3");
    let mut failures = Vec::new();
    for suite in &SUITES {
        let there = place.join(suite.name);
        if there.is_dir() {
            continue;
        }
        if no_install {
            failures.push(format!("{}'s is not downloaded yet", suite.name));
        } else if let Err(why) = download(suite, &there) {
            failures.push(format!("{}'s: {why:#}", suite.name));
        }
    }
    ensure!(failures.len() < SUITES.len(), "{}", failures.join("; "));
    for why in failures {
        println!("iperf3 of {why}");
    }
    Ok(place)
}

/// Names the directory of the Python package `iperf3`, a reader of iperf3's JSON.
pub const CONSUMERS: &str = "LANDSPEED_IPERF3_CONSUMERS";
/// Version and digest of its source.
const READER: &str =
    "iperf3==0.1.11 --hash=sha256:d50eebbf2dcf445a173f98a82f9c433e0302d3dfb7987e1f21b86b35ef63ce26\n";

/// Where the reader is; downloads it if it is not there yet.
pub fn consumers(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("iperf3-consumers");
    if place.join("iperf3").is_dir() {
        return Ok(place);
    }
    ensure!(!no_install, "it is not downloaded yet");
    pip(READER, &place)?;
    Ok(place)
}

fn download(suite: &Suite, there: &Path) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let apt = Apt::new(scratch.path())?;
    apt.read(suite.name, suite.index)?;
    apt.run(&[&["download", "iperf3", "libiperf0"], suite.libraries].concat())?;
    // In place only when it is whole: a rename within one file system.
    let new = there.with_extension("new");
    let _ = std::fs::remove_dir_all(&new);
    let tree = new.join("tree");
    std::fs::create_dir_all(&tree).context("cannot make a directory")?;
    for package in std::fs::read_dir(apt.downloads()).context("cannot read the download")?.flatten() {
        quiet(Command::new("dpkg-deb").arg("--extract").arg(package.path()).arg(&tree))?;
    }
    // Documentation and locales are of no use here.
    let _ = std::fs::remove_dir_all(tree.join("usr/share"));
    let loader = loader(&tree)?;
    let call = script(&loader, &tree);
    let program = new.join("iperf3");
    std::fs::write(&program, call).context("cannot write the call")?;
    quiet(Command::new("chmod").arg("755").arg(&program))?;
    quiet(Command::new(&program).arg("--version")).context("it does not run")?;
    std::fs::rename(&new, there).context("cannot put it in place")
}

/// The loader that came with the C library, relative to the tree.
fn loader(tree: &Path) -> Result<PathBuf> {
    for directory in ["usr/lib64", "usr/lib", "lib64", "lib"] {
        let entries = std::fs::read_dir(tree.join(directory)).into_iter().flatten().flatten();
        let mut loaders = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux"));
        if let Some(loader) = loaders.next() {
            // Older ones are links from the root, which is another's here.
            return Ok(match std::fs::read_link(loader.path()) {
                Ok(to) if to.is_absolute() => to.strip_prefix("/").unwrap_or(&to).to_owned(),
                _ => Path::new(directory).join(loader.file_name()),
            });
        }
    }
    anyhow::bail!("libc6 has no loader below {}", tree.display())
}

/// Calls the program with its own loader and libraries, wherever the directory is.
fn script(loader: &Path, tree: &Path) -> String {
    let mut libraries = Vec::new();
    for directory in ["lib", "usr/lib"] {
        let entries = std::fs::read_dir(tree.join(directory)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().ends_with("-linux-gnu")) {
            libraries.push(format!("$tree/{directory}/{}", entry.file_name().to_string_lossy()));
        }
    }
    format!(
        "#!/bin/sh\ntree=$(dirname \"$0\")/tree\nexec \"$tree/{}\" --library-path \"{}\" \"$tree/usr/bin/iperf3\" \"$@\"\n",
        loader.display(),
        libraries.join(":")
    )
}
