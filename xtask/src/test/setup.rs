//! Requirements of the tests that a machine may lack. Nothing here is fatal: a test that misses a program skips, loudly.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::machine;

/// A cargo command that is published built, as a Python wheel: compiling it would take minutes (decision 13).
struct Tool {
    program: &'static str,
    version: &'static str,
    /// Digests of the wheels for x86-64 and for aarch64.
    sha256: [&'static str; 2],
}

/// The version `.config/nextest.toml` was written for.
const NEXTEST: Tool = Tool {
    program: "cargo-nextest",
    version: "0.9.148",
    sha256: [
        "76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968",
        "ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11",
    ],
};

/// The version `deny.toml` was written for.
const DENY: Tool = Tool {
    program: "cargo-deny",
    version: "0.20.2",
    sha256: [
        "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
        "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
    ],
};

impl Tool {
    /// The one under `target/tools`, else the machine's own, else one that is downloaded.
    fn find(&self, root: &Path, no_install: bool) -> Result<PathBuf> {
        let place = root.join("target").join("tools").join(format!("{}-{}", self.program, self.version));
        let program = place.join("bin").join(self.program);
        if program.exists() {
            return Ok(program);
        }
        if let Some(found) = machine::find(self.program) {
            return Ok(found);
        }
        ensure!(!no_install, "{} is not installed", self.program);
        let mut wanted = format!("astral-dev-toolchain-{}=={}", self.program, self.version);
        for digest in self.sha256 {
            wanted.push_str(" --hash=sha256:");
            wanted.push_str(digest);
        }
        pip(&wanted, &place)?;
        ensure!(program.exists(), "the package has no {}", self.program);
        Ok(program)
    }
}

/// cargo-nextest, or `None` with the reason printed: `cargo test` then runs the tests.
pub fn nextest(root: &Path, no_install: bool) -> Option<PathBuf> {
    match NEXTEST.find(root, no_install) {
        Ok(program) => Some(program),
        Err(why) => {
            println!("without cargo-nextest, by `cargo test`: no groups, no time of each test: {why:#}");
            None
        }
    }
}

/// Installs missing programs where that is possible; says what it does.
pub fn programs(root: &Path) {
    if let Err(error) = Command::new("sh").arg(root.join(".ci").join("programs")).stdin(Stdio::null()).status() {
        println!("cannot run .ci/programs: {error}");
    }
}

/// cargo-deny.
pub fn cargo_deny(root: &Path, no_install: bool) -> Result<PathBuf> {
    DENY.find(root, no_install)
}

/// The installed toolchain of a Rust version, such as `1.91`, by rustup's name.
pub fn toolchain(version: &str) -> Result<String> {
    let list = Command::new("rustup").args(["toolchain", "list"]).output().context("cannot run rustup")?;
    release(&String::from_utf8_lossy(&list.stdout), version).map(str::to_owned).with_context(|| {
        format!("Rust {version} is not installed; `rustup toolchain install {version} --profile minimal` adds it")
    })
}

/// The toolchain of a version, or of a patch release of it, in the output of `rustup toolchain list`.
fn release<'a>(list: &'a str, version: &str) -> Option<&'a str> {
    let mut names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| name.strip_prefix(version).is_some_and(|rest| rest.starts_with(['.', '-'])))
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

/// Installs one pinned requirement, with its digests, into its own directory.
pub fn pip(requirement: &str, place: &Path) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let wanted = scratch.path().join("requirements.txt");
    std::fs::write(&wanted, requirement).context("cannot write the requirement")?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]);
    pip.args(["--retries=2", "--no-deps", "--no-compile", "--require-hashes", "--target"])
        .arg(place)
        .arg("-r")
        .arg(&wanted);
    quiet(&mut pip)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_release_is_the_toolchain_of_its_version() {
        let list =
            "stable-x86_64-unknown-linux-gnu (active, default)\n1.9.0-x86_64\n1.91.1-x86_64-unknown-linux-gnu\n";
        assert_eq!(release(list, "1.91"), Some("1.91.1-x86_64-unknown-linux-gnu"));
        assert_eq!(release(list, "1.92"), None);
    }
}
