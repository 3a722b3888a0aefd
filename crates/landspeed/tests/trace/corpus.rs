//! The test captures of tcpdump and Wireshark: all of them are handled, with the same number of frames as
//! their own tools count. `cargo xtask test` downloads them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::PROGRAM;

/// Variable with the directory of the captures.
const VARIABLE: &str = "LANDSPEED_CAPTURES";
/// Address space limit for reading one capture, KiB; all of them are small.
const MAX_ADDRESS_SPACE_KIB: u32 = 512 << 10;
/// CPU time limit for reading one capture, seconds.
const MAX_CPU_S: u32 = 10;

/// Paths of the captures; `None` if they are missing.
fn captures() -> Option<Vec<PathBuf>> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/captures");
    let root = std::env::var_os(VARIABLE).map_or_else(own, PathBuf::from);
    let mut found = Vec::new();
    let mut places = vec![root];
    while let Some(place) = places.pop() {
        for path in std::fs::read_dir(place).ok()?.flatten().map(|entry| entry.path()) {
            let suffix = path.extension().and_then(|suffix| suffix.to_str());
            match suffix {
                _ if path.is_dir() => places.push(path),
                Some("pcap" | "pcapng" | "cap" | "gz" | "ntar") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    (!found.is_empty()).then_some(found)
}

macro_rules! captures {
    () => {
        match captures() {
            Some(found) => found,
            None => skip!("the captures of tcpdump and Wireshark are not here; `cargo xtask test` downloads them"),
        }
    };
}

/// Runs `trace` with limited memory and CPU time. A panic, a signal or a failure without a message fails
/// the test.
fn trace_with_limits(files: &[&Path]) -> Output {
    let limits = format!("ulimit -v {MAX_ADDRESS_SPACE_KIB}; ulimit -t {MAX_CPU_S}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limits, "sh", PROGRAM, "trace", "--json", "-"]).args(files);
    let output = command.output().expect("the shell runs");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0 | 1) => assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "{files:?}: no document"),
        Some(2) => assert!(said.len() > 20 && !said.contains("panic"), "{files:?}: {said}"),
        _ => panic!("{files:?}: {:?}: {said}", output.status),
    }
    output
}

/// Processes all items in parallel, on all cores.
fn each<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// Number of frames according to Wireshark's capinfos; `None` if it does not read the file.
fn counted(file: &Path) -> Option<u64> {
    let output = Command::new("capinfos").args(["-c", "-M", "-T", "-r"]).arg(file).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.split('\t').next_back()?.trim().parse().ok())?
}

#[test]
fn frame_counts_match_wireshark() {
    let captures = captures!();
    let oracle = Command::new("capinfos").arg("-v").output().is_ok();
    let (agreed, unread) = (AtomicUsize::new(0), AtomicUsize::new(0));
    each(&captures, |file| {
        let output = trace_with_limits(&[file]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let Some(truth) = counted(file) else {
            unread.fetch_add(1, Ordering::Relaxed);
            return;
        };
        assert_eq!(document["capture"]["frames"].as_u64(), Some(truth), "{}", file.display());
        agreed.fetch_add(1, Ordering::Relaxed);
    });
    let (agreed, unread) = (agreed.into_inner(), unread.into_inner());
    println!("{agreed} captures agree with capinfos; {unread} it does not read");
    assert!(captures.len() > 500, "only {} captures", captures.len());
    if oracle {
        assert!(agreed > captures.len() * 9 / 10, "{agreed} of {}", captures.len());
    } else {
        skip!("capinfos is not installed: all were read, but their frames were not counted by another");
    }
}

/// Truncates captures, then corrupts them: every `one_in`th.
fn corrupt_captures(captures: &[PathBuf], one_in: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let captures: Vec<&PathBuf> = captures.iter().step_by(one_in).collect();
    each(&captures, |file| {
        let mut bytes = std::fs::read(file).expect("it can be read");
        let name = file.to_string_lossy().replace('/', "_");
        let damaged = directory.path().join(name);
        std::fs::write(&damaged, &bytes[..bytes.len() * 2 / 3]).expect("room");
        trace_with_limits(&[&damaged]);
        // Change every 97th byte: lengths, times, link types, headers.
        for at in (40..bytes.len()).step_by(97) {
            bytes[at] ^= 0x5a;
        }
        std::fs::write(&damaged, &bytes).expect("room");
        trace_with_limits(&[&damaged]);
        std::fs::remove_file(&damaged).expect("it is there");
    });
}

#[test]
fn truncated_and_damaged_captures_are_handled() {
    corrupt_captures(&captures!(), 5);
}

#[test]
#[ignore = "long: twice as many runs as captures"]
fn all_captures_truncated_and_damaged_are_handled() {
    corrupt_captures(&captures!(), 1);
}

/// Compares neighbours in the list: every `one_in`th pair.
fn compare(captures: &[PathBuf], one_in: usize) {
    let pairs: Vec<&[PathBuf]> = captures.windows(2).step_by(one_in).collect();
    each(&pairs, |pair| {
        trace_with_limits(&[&pair[0], &pair[1]]);
    });
}

#[test]
fn two_captures_can_be_compared() {
    compare(&captures!(), 5);
}

#[test]
#[ignore = "long: as many runs as captures"]
fn any_two_captures_can_be_compared() {
    compare(&captures!(), 1);
}
