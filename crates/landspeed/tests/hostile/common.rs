//! Starts servers and clients, and checks the documents they write.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use landspeed_sys::clock;
pub use landspeed_testkit::process::{Ended, Process, until};
use serde_json::Value;

pub use crate::common::landspeed;
use crate::common::{assert_matches, schema};

/// Timeout of every run of these tests, seconds; allows for a busy machine.
pub const TIMEOUT_S: u64 = 60;

/// A server on a port assigned by the kernel.
pub struct Server {
    pub process: Process,
    pub addr: SocketAddr,
}

impl Server {
    /// Starts a server on IPv4 loopback.
    pub fn start(args: &[&str]) -> Self {
        Self::listening("127.0.0.1:0", args)
    }

    pub fn listening(listen: &str, args: &[&str]) -> Self {
        let mut command = landspeed();
        command.args(["serve", "--listen", listen]).args(args);
        Self::of(command)
    }

    /// Starts any command that becomes a server.
    pub fn of(command: Command) -> Self {
        let process = Process::start(command);
        let addr = process.address_in("listening on");
        Self { process, addr }
    }

    /// Runs a client against it to its end; the document is on standard output.
    pub fn run(&self, args: &[&str]) -> Run {
        finish(self.begin(args).end(TIMEOUT_S))
    }

    /// Starts a client against it.
    pub fn begin(&self, args: &[&str]) -> Process {
        begin(&self.addr.to_string(), args)
    }

    /// Waits until its open files and threads are down to these numbers.
    pub fn wait_for_resources(&self, (fds, threads): (usize, usize)) {
        let mut now = (0, 0);
        until(TIMEOUT_S, &format!("the server to return to {fds} descriptors and {threads} threads"), || {
            now = self.process.resources();
            now.0 <= fds && now.1 <= threads
        });
    }

    /// Open files and threads of the idle server, after a first test so that lazily created resources exist.
    pub fn baseline(&self) -> (usize, usize) {
        self.baseline_with(&[])
    }

    /// As [`Self::baseline`], with options for the first test.
    pub fn baseline_with(&self, args: &[&str]) -> (usize, usize) {
        assert_eq!(self.run(&[&["-t", "0.1"], args].concat()).ended.code, 0);
        let mut last = (0, 0);
        until(TIMEOUT_S, "the server to be idle", || {
            let now = self.process.resources();
            let same = now == last;
            last = now;
            clock::sleep_until(clock::monotonic_ns() + 50_000_000);
            same && now.1 <= 4
        });
        last
    }
}

/// Starts a client.
pub fn begin(target: &str, args: &[&str]) -> Process {
    let mut command = landspeed();
    command.args(["run", target, "--json", "-"]).args(args);
    Process::start(command)
}

/// Runs a client to its end; the document is on standard output.
pub fn run(target: &str, args: &[&str]) -> Run {
    finish(begin(target, args).end(TIMEOUT_S))
}

/// A finished client with its checked document.
#[derive(Debug)]
pub struct Run {
    pub ended: Ended,
    pub document: Value,
}

impl Run {
    pub fn status(&self) -> &str {
        self.document["status"].as_str().unwrap_or_default()
    }

    /// Error codes in the document.
    pub fn errors(&self) -> Vec<&str> {
        let list = self.document["errors"].as_array().expect("a list");
        list.iter().filter_map(|error| error["code"].as_str()).collect()
    }

    /// Asserts that the test completed and its accounting is balanced.
    pub fn assert_clean(&self) {
        assert_eq!((self.ended.code, self.status()), (0, "complete"), "{}\n{}", self.ended.stderr, self.accounting());
        assert_eq!(self.document["conservation"]["holds"], true, "{}", self.accounting());
        assert_eq!(self.document["conservation"]["unaccounted_bytes"], 0, "{}", self.accounting());
    }

    /// Asserts that nothing ran, and that standard error and the document give the reason.
    pub fn assert_failed(&self, code: &str) {
        assert_eq!((self.ended.code, self.status()), (2, "failed"), "{:?}", self.ended);
        assert_eq!(self.errors(), [code], "{}", self.ended.stderr);
        assert_short_error(&self.ended);
    }

    fn accounting(&self) -> String {
        format!("{}\n{}", self.document["errors"], self.document["conservation"])
    }
}

/// Asserts one line on standard error that begins with the program's name, and at most one more with
/// advice.
pub fn assert_short_error(ended: &Ended) {
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(matches!(lines.len(), 1 | 2) && lines[0].starts_with("landspeed: "), "two lines: {ended:?}");
    let advice = lines.get(1).and_then(|line| line.chars().next());
    assert!(advice.is_none_or(char::is_uppercase), "advice is a sentence: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}

/// Parses the document on a client's standard output, which must contain nothing else, and checks it.
pub fn finish(ended: Ended) -> Run {
    let document: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("standard output is not one JSON document: {error}\n{ended:?}"));
    validate_document(&document);
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    Run { ended, document }
}

/// Checks what every document must satisfy: it matches its schema, and its intervals add up.
pub fn validate_document(document: &Value) {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    assert_matches(SCHEMA.get_or_init(|| schema("run")), document);
    assert_eq!(document["conservation"]["intervals_minus_totals_bytes"], 0, "{}", document["conservation"]);
    for stream in document["streams"].as_array().expect("a list") {
        let Some(total) = stream["receiver"]["bytes"].as_u64() else { continue };
        if stream["intervals_from"] == "receiver" {
            let sum: u64 =
                stream["intervals"].as_array().expect("a list").iter().filter_map(|i| i["bytes"].as_u64()).sum();
            assert_eq!(sum, total, "stream {}", stream["id"]);
        }
    }
}

/// A temporary directory, removed after the test.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("landspeed-").tempdir().expect("a temporary directory")
}

/// Files in a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).expect("a directory").filter_map(|entry| Some(entry.ok()?.path())).collect()
}
