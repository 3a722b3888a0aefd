//! The packages of `cargo xtask package`, made from a program that is built already: `LANDSPEED_BINARY`, or the one beside xtask. Each is built
//! twice in different surroundings and compared, judged by its distribution's own tools, and installed below a directory.
#![forbid(unsafe_code)]

mod deb;
mod image;
mod refused;
mod rpm;
mod sbom;
mod tarball;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `cargo xtask`.
const XTASK: &str = env!("CARGO_BIN_EXE_landspeed-xtask");

/// Names the directory with busybox for the tests.
const MACHINES: &str = "LANDSPEED_MACHINES";

/// The program to package, stripped as a release is.
struct Program(tempfile::TempDir);

impl Program {
    /// `Err` says what is missing.
    fn new() -> Result<Self, String> {
        let built = std::env::var_os("LANDSPEED_BINARY")
            .map_or_else(|| Path::new(XTASK).with_file_name("landspeed"), PathBuf::from);
        if !built.is_file() {
            return Err(format!("there is no {}: cargo build --package landspeed", built.display()));
        }
        require(&["strip", "make"])?;
        let place = tempfile::tempdir().expect("a temporary directory");
        succeed(Command::new("strip").arg("-o").arg(place.path().join("landspeed")).arg(built));
        Ok(Self(place))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("landspeed")
    }

    /// `cargo xtask package KIND` into `out`.
    fn package(&self, kind: &str, out: &Path) -> Command {
        let mut xtask = Command::new(XTASK);
        xtask.args(["package", kind, "--fast", "--binary"]).arg(self.path()).arg("--out").arg(out);
        xtask.env("SOURCE_DATE_EPOCH", "1700000000");
        xtask
    }

    /// Builds a package into `out`, and again elsewhere, with another umask, time zone and language, and with spaces in the names of
    /// directories. Both must be equal, byte for byte. Returns its path.
    fn build_twice(&self, kind: &str, out: &Path) -> PathBuf {
        let first = last_line(&succeed(&mut self.package(kind, out)));
        let other = tempfile::Builder::new().prefix("an other ").tempdir().expect("a temporary directory");
        let package = self.package(kind, &other.path().join("out"));
        let mut again = Command::new("sh");
        again.env("SOURCE_DATE_EPOCH", "1700000000");
        again.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(package.get_program()).args(package.get_args());
        again
            .envs([("TZ", "Asia/Kathmandu"), ("LC_ALL", "C.UTF-8"), ("MAKEFLAGS", "-n")])
            .env("TMPDIR", other.path());
        let second = last_line(&succeed(&mut again));
        let [a, b] = [&first, &second].map(|path| std::fs::read(path).expect("a package"));
        assert!(a == b, "{} and {} differ", first.display(), second.display());
        first
    }
}

/// A root for a package manager: a shell for its scripts, and a stand-in for systemd-sysusers that keeps its arguments.
struct Root(tempfile::TempDir);

impl Root {
    /// `Err` says what is missing.
    fn new() -> Result<Self, String> {
        if !is_root() {
            return Err("installing into a directory needs root (chroot)".to_owned());
        }
        let busybox = std::env::var_os(MACHINES).map(|place| Path::new(&place).join("busybox"));
        let busybox = busybox
            .filter(|path| path.is_file())
            .ok_or(format!("{MACHINES} names no busybox (`cargo xtask test` sets it)"))?;
        let root = Self(tempfile::tempdir().expect("a temporary directory"));
        for directory in ["bin", "dev", "etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "tmp"] {
            std::fs::create_dir_all(root.path(directory)).expect("a directory");
        }
        for file in ["dev/null", "var/lib/dpkg/status"] {
            std::fs::write(root.path(file), "").expect("writable");
        }
        std::fs::copy(busybox, root.path("bin/busybox")).expect("copied");
        for applet in ["sh", "rm", "rmdir"] {
            std::os::unix::fs::symlink("busybox", root.path("bin").join(applet)).expect("linked");
        }
        std::fs::write(root.path("bin/systemd-sysusers"), "#!/bin/sh\necho \"$@\" >> /tmp/sysusers\n")
            .expect("writable");
        succeed(Command::new("chmod").arg("755").arg(root.path("bin/systemd-sysusers")));
        Ok(root)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        std::fs::write(path, text).expect("written");
    }

    /// All files and links outside the directories of the package managers.
    fn files(&self) -> BTreeSet<PathBuf> {
        let apart = ["var/lib/dpkg", "var/lib/rpm", "var/log", "tmp"].map(|below| self.path(below));
        files(self.0.path()).into_iter().filter(|path| !apart.iter().any(|apart| path.starts_with(apart))).collect()
    }

    /// Files that are there now or were `before`, not both; without what a change of the accounts makes.
    fn changes(&self, before: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let accounts = ["passwd-", "group-", "shadow", "shadow-", "gshadow", "gshadow-", ".pwd.lock"];
        let accounts = accounts.map(|name| self.path("etc").join(name));
        self.files().symmetric_difference(before).filter(|path| !accounts.contains(path)).cloned().collect()
    }

    /// Runs the installed program in it.
    fn version(&self) -> String {
        let out = succeed(Command::new("chroot").arg(self.0.path()).args(["/usr/bin/landspeed", "--version"]));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

/// All files and links below a directory.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            if entry.file_type().expect("a type").is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path());
            }
        }
    }
    found
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Says which programs are missing.
fn require(programs: &[&str]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from)).collect();
    let missing: Vec<&str> =
        programs.iter().copied().filter(|name| !places.iter().any(|place| place.join(name).is_file())).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("there is no {}", missing.join(", "))) }
}

/// Runs a command that must succeed.
#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let out = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (said, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {}\n{said}{errors}", out.status);
    out
}

/// The path that `package` prints last.
fn last_line(out: &Output) -> PathBuf {
    let said = String::from_utf8_lossy(&out.stdout);
    let mut packages = said.lines().filter(|line| !line.ends_with("SHA256SUMS"));
    packages.next_back().unwrap_or_else(|| panic!("no package: {said}")).into()
}
