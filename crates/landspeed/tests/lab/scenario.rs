//! Runs scenarios of `crates/lab/validation` and reads their results.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Whether the long cases run too.
pub fn long() -> bool {
    std::env::var_os("LANDSPEED_LAB_LONG").is_some()
}

/// The program under test.
pub fn program() -> PathBuf {
    std::env::var_os("LANDSPEED_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_landspeed").into(), PathBuf::from)
}

/// Path of a scenario's file.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/validation").join(format!("{name}.toml"))
}

/// The command that runs a scenario with some keys overridden.
pub fn command(name: &str, sets: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["lab", "run", "--quiet", "--yes", "--json", "-"]).arg(file(name));
    for set in sets {
        command.args(["--set", set]);
    }
    command
}

/// Whether the run's kernel has sub-nanosecond rate precision per frame; otherwise prints a note.
pub fn exact_kernel(ran: &LabRun) -> bool {
    let warnings = ran.document["warnings"].as_array().expect("warnings");
    let inexact = warnings.iter().find(|warning| warning["code"] == "kernel-rounds-rates");
    if let Some(warning) = inexact {
        println!("SKIPPED in part: {}", warning["message"]);
    }
    inexact.is_none()
}

/// Results of a run.
pub struct LabRun {
    /// The lab document.
    pub document: Value,
    captures: Option<TempDir>,
}

/// Runs a scenario and asserts that it completed.
pub fn run(name: &str, sets: &[&str]) -> LabRun {
    finish(command(name, sets), None)
}

/// Runs a scenario with a capture at one place.
pub fn captured(name: &str, sets: &[&str], at: &str) -> LabRun {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = command(name, sets);
    command.args(["--pcap", at, "--pcap-dir"]).arg(directory.path());
    finish(command, Some(directory))
}

/// Runs the command to its end and parses the document on its standard output.
pub fn finish(mut command: Command, captures: Option<TempDir>) -> LabRun {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{command:?}: {} ({error}): {said}", output.status));
    assert_eq!(document["status"], "complete", "{command:?}: {:#} {said}", document["checks"]);
    LabRun { document, captures }
}

impl LabRun {
    /// Digest over all measured values.
    pub fn digest(&self) -> String {
        self.document["digest"].as_str().expect("a digest").to_owned()
    }

    /// Release of the lab's kernel.
    pub fn kernel(&self) -> String {
        self.document["kernel"]["release"].as_str().unwrap_or("?").to_owned()
    }

    /// Payload rate of a flow, bits/s.
    pub fn goodput(&self, flow: usize) -> f64 {
        self.document["flows"][flow]["goodput_bps"].as_f64().expect("a goodput")
    }

    /// The run document of a flow.
    pub fn flow(&self, flow: usize) -> &Value {
        &self.document["flows"][flow]["run"]
    }

    /// Returns the entry with that name in `kind` (`queues`, `links`).
    pub fn named(&self, kind: &str, name: &str) -> &Value {
        let entries = self.document[kind].as_array().expect("a list");
        // A port and the link behind it share a name; the port comes first.
        entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name} in {kind}"))
    }

    /// The captured frames: time in nanoseconds, length, leading bytes.
    pub fn frames(&self) -> Vec<Frame> {
        let directory = self.captures.as_ref().expect("something was captured");
        let name = self.document["captures"][0]["file"].as_str().expect("a file");
        assert_eq!(self.document["captures"][0]["missed"], 0);
        let bytes =
            std::fs::read(directory.path().join(Path::new(name).file_name().expect("a name"))).expect("a file");
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(word(0), 0xa1b2_3c4d, "a capture with nanoseconds");
        let (mut at, mut frames) = (24, Vec::new());
        while at < bytes.len() {
            let kept = word(at + 8) as usize;
            frames.push(Frame {
                at_ns: u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)),
                length: word(at + 12),
                bytes: bytes[at + 16..at + 16 + kept].to_vec(),
            });
            at += 16 + kept;
        }
        frames
    }
}

/// A captured frame.
pub struct Frame {
    /// Time of the frame, nanoseconds.
    pub at_ns: u64,
    /// Length on the link, bytes.
    pub length: u32,
    pub bytes: Vec<u8>,
}

/// Returns a number of the document.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Returns a count of the document.
pub fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// Compares a measured value with the expected one and records both in the table.
///
/// # Panics
/// If they differ by more than the relative `tolerance`.
pub fn assert_close(what: &str, unit: &str, expected: f64, measured: f64, tolerance: f64, ran: &LabRun) {
    note(what, unit, expected, measured, &format!("±{tolerance:.2e}"), ran);
    let error = measured / expected - 1.0;
    assert!(error.abs() <= tolerance, "{what}: {expected} {unit} expected, {measured} measured: {error:+.2e}");
}

/// Records an expected and a measured value in the table and prints them.
pub fn note(what: &str, unit: &str, expected: f64, measured: f64, tolerance: &str, ran: &LabRun) {
    let error = if expected > 0.0 { measured / expected - 1.0 } else { measured };
    let mut row =
        format!("| {what} | {} | {} | {unit} | {error:+.1e} | {tolerance} |", plain(expected), plain(measured));
    println!("{row}");
    let Some(table) = std::env::var_os("LANDSPEED_LAB_TABLE") else { return };
    let _ = writeln!(row, " {} |", ran.kernel());
    let file = std::fs::OpenOptions::new().create(true).append(true).open(table);
    file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the table can be written");
}

fn plain(value: f64) -> String {
    if value.fract().abs() < f64::EPSILON {
        format!("{value:.0}")
    } else if value.abs() < 1000.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.1}")
    }
}

/// User and group id of `nobody`, if this test runs as root.
pub fn unprivileged_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    root.then_some((65_534, 65_534))
}

/// Cache directory of the newest kernel.
pub fn cache() -> PathBuf {
    let list =
        Command::new(program()).args(["lab", "kernel", "list", "--json", "-"]).output().expect("the program runs");
    let kernels: Value = serde_json::from_slice(&list.stdout).expect("a list");
    let executable = kernels[0]["executable"].as_str().expect("a kernel");
    Path::new(executable).ancestors().nth(2).expect("CACHE/ID/vmlinux").to_owned()
}

/// Copies a cache of kernels, without leftovers of builds.
pub fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().expect("a type").is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).expect("a copy");
        }
    }
}

#[test]
fn every_validation_scenario_is_accepted() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = file("x");
    let directory = directory.parent().expect("a directory");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).expect("scenarios") {
        let path = entry.expect("an entry").path();
        let output = Command::new(program()).args(["lab", "run", "--dry-run"]).arg(&path).output().expect("it runs");
        assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
        seen += 1;
    }
    assert!(seen > 5);
}
