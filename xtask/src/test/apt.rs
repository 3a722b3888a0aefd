//! Debian's packages without the machine's package manager: read, checked and downloaded as files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use landspeed_lab::kernel::prepare_apt;

use super::setup::quiet;

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The wanted part of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Source packages.
    Sources,
    /// Binary packages.
    Programs,
    /// Binary packages of a suite that moves daily: a mirror that is behind will do, it is signed all the same.
    ProgramsOfAnyAge,
}

/// An apt with separate state: of the machine's only the proxy settings are used.
pub struct Apt<'a> {
    directory: &'a Path,
}

impl<'a> Apt<'a> {
    /// One whose everything is in `directory`.
    pub fn new(directory: &'a Path) -> Result<Self> {
        ensure!(Path::new(KEYRING).exists(), "without Debian's keys their packages cannot be checked");
        std::fs::create_dir_all(directory.join("source")).context("cannot make a directory")?;
        let host = Command::new("apt-config").args(["dump", "Acquire"]).output().context("cannot run apt-config")?;
        let host = String::from_utf8_lossy(&host.stdout);
        prepare_apt(directory, &host, "Acquire::http::Timeout \"20\";\n").context("cannot set up apt")?;
        Ok(Self { directory })
    }

    /// Reads the index of a suite. Debian signs it, and through it every package.
    pub fn read(&self, suite: &str, index: Index) -> Result<()> {
        let (kind, when) = match index {
            Index::Sources => ("deb-src", ""),
            Index::Programs => ("deb", ""),
            Index::ProgramsOfAnyAge => ("deb", " check-valid-until=no"),
        };
        let line = format!("{kind} [signed-by={KEYRING}{when}] {MIRROR} {suite} main\n");
        std::fs::write(self.directory.join("sources.list"), line).context("cannot write apt's sources")?;
        // Without this apt takes an unreachable mirror for a warning.
        self.run(&["--allow-releaseinfo-change", "-oAPT::Update::Error-Mode=any", "update"])
    }

    /// Where downloads come to.
    pub fn downloads(&self) -> PathBuf {
        self.directory.join("source")
    }

    /// Runs `apt-get`; what it downloads is in [`Apt::downloads`].
    pub fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut apt = Command::new("apt-get");
        apt.env("APT_CONFIG", self.directory.join("apt.conf")).current_dir(self.downloads());
        quiet(apt.arg("-qq").args(arguments))
    }

    /// The tarball of a package as its authors made it.
    pub fn original(&self, name: &str) -> Result<PathBuf> {
        let files = std::fs::read_dir(self.downloads()).context("cannot read the download")?;
        let is = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let signature = path.extension().is_some_and(|extension| extension == "asc");
            file.starts_with(&format!("{name}_")) && file.contains(".orig.tar") && !signature
        };
        files.flatten().map(|entry| entry.path()).find(is).with_context(|| format!("no source of {name} came"))
    }
}
