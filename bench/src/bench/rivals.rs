//! `cargo xtask bench rivals`: builds current versions of the rivals from source into `target/rivals`. None of it
//! is committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::machine;

/// Options of `cargo xtask bench rivals`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rivals to build (all by default): iperf3, neper, kperf, mahimahi, xfr, rattan
    names: Vec<String>,
    /// Directory with clones named OWNER+NAME/repo, instead of github.com
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
}

/// A rival built from a git repository.
struct Source {
    name: &'static str,
    repository: &'static str,
    /// Repositories that must be placed inside its tree (path and repository).
    inside: &'static [(&'static str, &'static str)],
    build: &'static [&'static [&'static str]],
    /// Path of the program in its tree, and the installed name.
    programs: &'static [(&'static str, &'static str)],
}

const SOURCES: &[Source] = &[
    Source {
        name: "iperf3",
        repository: "esnet/iperf",
        inside: &[],
        build: &[
            &["./configure", "--quiet", "--enable-static", "--disable-shared", "--without-openssl"],
            &["make", "-s"],
        ],
        programs: &[("src/iperf3", "iperf3")],
    },
    Source {
        name: "neper",
        repository: "google/neper",
        inside: &[],
        build: &[&["make", "-s", "tcp_stream", "tcp_rr", "udp_rr"]],
        programs: &[("tcp_stream", "neper_tcp_stream"), ("tcp_rr", "neper_tcp_rr"), ("udp_rr", "neper_udp_rr")],
    },
    Source {
        name: "kperf",
        repository: "facebookexperimental/kperf",
        inside: &[("ccan", "rustyrussell/ccan"), ("ynl-c", "linux-netdev/ynl-c"), ("liburing", "axboe/liburing")],
        build: &[&["make", "-s", "-j1", "server", "client"]],
        programs: &[("server", "kperf_server"), ("client", "kperf_client")],
    },
    Source {
        name: "mahimahi",
        repository: "ravinet/mahimahi",
        inside: &[],
        // The configure script requires Apache and X11, which mm-delay does not use.
        build: &[&[
            "sh",
            "-c",
            "printf '#define %s \"%s\"\\n' IPTABLES \"$(command -v iptables)\" IP \"$(command -v ip)\" \
             DNSMASQ \"$(command -v dnsmasq)\" > config.h && \
             g++ -std=c++11 -O2 -pthread -I. -Isrc/util -Isrc/packet -o mm-delay \
             src/frontend/delayshell.cc src/frontend/delay_queue.cc src/util/*.cc",
        ]],
        programs: &[("mm-delay", "mm-delay")],
    },
];

/// Rivals from crates.io: name and version; `None` is the newest.
const CRATES: &[(&str, Option<&str>)] = &[("xfr", None), ("rattan", Some("0.1.1"))];

/// Version and date of a built rival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltVersion {
    /// Name of the rival.
    pub name: String,
    /// Git commit, or the version of a published crate.
    pub version: String,
    /// Date of the commit, `YYYY-MM-DD`; `None` for a published crate.
    pub date: Option<String>,
}

impl BuiltVersion {
    /// Whether the source is more than a year old on `today` (`YYYY-MM-DD`).
    pub fn is_outdated(&self, today: &str) -> bool {
        let year_before =
            |date: &str| Some(format!("{:04}{}", date.get(..4)?.parse::<u32>().ok()? - 1, date.get(4..)?));
        let limit = year_before(today);
        self.date.as_ref().zip(limit).is_some_and(|(date, limit)| *date < limit)
    }
}

fn directory() -> PathBuf {
    crate::root().join("target").join("rivals")
}

/// Directory of the built programs.
pub fn programs() -> PathBuf {
    directory().join("bin")
}

/// Returns the rivals built here.
pub fn built() -> Vec<BuiltVersion> {
    let list = std::fs::read_to_string(directory().join("built.json")).ok();
    list.and_then(|list| serde_json::from_str(&list).ok()).unwrap_or_default()
}

/// Builds the chosen rivals.
pub fn run(options: &Options) -> Result<()> {
    let is_chosen = |name: &str| options.names.is_empty() || options.names.iter().any(|chosen| chosen == name);
    ensure!(
        options.names.iter().all(|name| {
            CRATES.iter().any(|(other, _)| other == name) || SOURCES.iter().any(|source| source.name == name)
        }),
        "no such rival: there are iperf3, neper, kperf, mahimahi, xfr and rattan"
    );
    std::fs::create_dir_all(programs()).context("cannot create target/rivals/bin")?;
    let mut list = built();
    let mut failed = Vec::new();
    for source in SOURCES.iter().filter(|source| is_chosen(source.name)) {
        match build(source, options.mirror.as_deref()) {
            Ok(built) => record_build(&mut list, built)?,
            Err(error) => failed.push(format!("{}: {error:#}", source.name)),
        }
    }
    for (name, version) in CRATES.iter().filter(|(name, _)| is_chosen(name)) {
        match install(name, *version) {
            Ok(built) => record_build(&mut list, built)?,
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn record_build(list: &mut Vec<BuiltVersion>, built: BuiltVersion) -> Result<()> {
    println!("{} {} {}", built.name, built.version, built.date.as_deref().unwrap_or(""));
    list.retain(|other| other.name != built.name);
    list.push(built);
    super::write(&directory().join("built.json"), &serde_json::to_string_pretty(&list)?)
}

fn build(source: &Source, mirror: Option<&Path>) -> Result<BuiltVersion> {
    let tree = directory().join("src").join(source.name);
    clone(source.repository, mirror, &tree)?;
    for (path, repository) in source.inside {
        let inside = tree.join(path);
        clone(repository, mirror, &inside)?;
        // The commit of the submodule; the newest if the clone does not have it.
        let wanted = output(Command::new("git").current_dir(&tree).args(["rev-parse", &format!("HEAD:{path}")]))?;
        let wanted = wanted.trim();
        if output(Command::new("git").current_dir(&inside).args(["checkout", "--quiet", wanted])).is_err() {
            println!("{}: {repository} does not have {wanted}; its newest commit is used", source.name);
        }
    }
    let jobs = machine::cores().to_string();
    for step in source.build {
        let mut command = Command::new(step[0]);
        command.current_dir(&tree).args(&step[1..]).env("MAKEFLAGS", format!("-j{jobs}"));
        output(&mut command)?;
    }
    for (from, to) in source.programs {
        std::fs::copy(tree.join(from), programs().join(to)).with_context(|| format!("{from} was not built"))?;
    }
    let said = output(Command::new("git").current_dir(&tree).args(["log", "-1", "--format=%h %cs"]))?;
    let (version, date) = said.trim().split_once(' ').context("git says no commit")?;
    Ok(BuiltVersion { name: source.name.to_owned(), version: version.to_owned(), date: Some(date.to_owned()) })
}

fn clone(repository: &str, mirror: Option<&Path>, to: &Path) -> Result<()> {
    let from = mirror.map_or_else(
        || format!("https://github.com/{repository}"),
        |mirror| mirror.join(repository.replace('/', "+")).join("repo").display().to_string(),
    );
    if to.exists() {
        std::fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    output(Command::new("git").args(["clone", "--quiet", &from]).arg(to)).map(drop)
}

fn install(name: &str, version: Option<&str>) -> Result<BuiltVersion> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["install", name, "--locked", "--root"]).arg(directory());
    output(command.args(version.into_iter().flat_map(|version| ["--version", version])))?;
    let said = output(Command::new(programs().join(name)).arg("--version"))?;
    let first = said.lines().next().unwrap_or_default().trim();
    let version = first.trim_start_matches(name).trim_start();
    Ok(BuiltVersion { name: name.to_owned(), version: version.to_owned(), date: None })
}

/// Returns the output of a command; if it fails, the error contains the end of its output.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let finished = command.output().with_context(|| format!("cannot start {program}"))?;
    if finished.status.success() {
        return Ok(String::from_utf8_lossy(&finished.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&finished.stderr);
    let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    bail!("{program} failed ({}): {}", finished.status, last.into_iter().rev().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_older_than_a_year_are_old() {
        let of =
            |date: &str| BuiltVersion { name: "x".to_owned(), version: "1".to_owned(), date: Some(date.to_owned()) };
        assert!(of("2025-11-22").is_outdated("2026-11-23"));
        assert!(!of("2025-11-23").is_outdated("2026-11-23"));
        assert!(!BuiltVersion { date: None, ..of("") }.is_outdated("2026-11-23"));
    }
}
