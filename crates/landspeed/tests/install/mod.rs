//! `make install`: the program, manual pages that every formatter accepts, and working shell completions.
//!
//! Everything is installed below a temporary directory. Completions are typed into real shells, each on its
//! own pseudo terminal.
#![forbid(unsafe_code)]

mod pages;
mod shells;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::PROGRAM;

/// The program under test, installed with `make install DESTDIR=…`; removed on drop.
pub struct Installed(tempfile::TempDir);

impl Installed {
    /// Installs the program; `None`, with the reason recorded, if make is missing.
    pub fn new() -> Option<Self> {
        if find("make").is_none() {
            landspeed_testkit::skip::record("there is no make");
            return None;
        }
        let installed = Self(tempfile::tempdir().expect("a temporary directory"));
        installed.make("install");
        Some(installed)
    }

    /// Runs `make TARGET` with the same DESTDIR.
    pub fn make(&self, target: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut make = Command::new("make");
        make.arg("-C").arg(root).args([target, "PREFIX=/usr"]);
        make.arg(format!("DESTDIR={}", self.0.path().display()));
        make.arg(format!("BINARY={PROGRAM}"));
        // Settings of an outer make do not apply.
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env("SOURCE_DATE_EPOCH", "1700000000");
        let out = make.output().expect("make runs");
        assert!(out.status.success(), "{target}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// Returns a path below DESTDIR.
    pub fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Lists all installed files, relative to DESTDIR and sorted.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.0.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else {
                    let path = entry.path();
                    let relative = path.strip_prefix(self.0.path()).expect("below it");
                    found.push(relative.to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        found
    }
}

/// Searches `program` in PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

#[test]
fn uninstall_removes_everything_except_the_configuration() {
    let Some(installed) = Installed::new() else { return };
    let files = installed.files();
    for expected in [
        "etc/landspeed/serve.toml",
        "usr/bin/landspeed",
        "usr/lib/systemd/system/landspeed.service",
        "usr/share/bash-completion/completions/landspeed",
        "usr/share/fish/vendor_completions.d/landspeed.fish",
        "usr/share/man/man1/landspeed-run.1",
        "usr/share/man/man1/landspeed.1",
        "usr/share/zsh/site-functions/_landspeed",
    ] {
        assert!(files.iter().any(|file| file == expected), "{expected} is not in {files:?}");
    }
    let unit = std::fs::read_to_string(installed.path("usr/lib/systemd/system/landspeed.service")).expect("a unit");
    assert!(unit.contains("ExecStart=/usr/bin/landspeed serve"), "{unit}");
    let config = installed.path("etc/landspeed/serve.toml");
    std::fs::write(&config, "max_tests = 7\n").expect("writable");
    installed.make("install");
    assert_eq!(std::fs::read_to_string(&config).expect("still there"), "max_tests = 7\n");
    installed.make("uninstall");
    assert_eq!(installed.files(), ["etc/landspeed/serve.toml"]);
}
