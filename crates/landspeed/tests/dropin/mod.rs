//! `landspeed iperf3` and `--format iperf3-json` as replacements of iperf3: against servers and clients of
//! several releases, and with programs that read its JSON.
#![forbid(unsafe_code)]

mod consumers;
mod far;
mod flags;
mod server_json;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use landspeed_testkit::process::{Process, free_port, until};
use serde_json::Value;

/// Timeout of every test here, seconds; allows for a busy machine.
pub const TIMEOUT_S: u64 = 60;

/// The program under test.
pub fn landspeed() -> PathBuf {
    env!("CARGO_BIN_EXE_landspeed").into()
}

/// Runs a program to its end, with a timeout.
pub fn run(program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(TIMEOUT_S.to_string()).arg(program).args(words).stdin(Stdio::null());
    command.output().expect("timeout, of coreutils, runs")
}

/// Parses standard output as JSON.
pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// A server for one test; killed on drop.
pub struct Server {
    process: Process,
    /// The port it listens on.
    pub port: u16,
}

impl Server {
    /// Starts `PROGRAM WORDS -s -1` on a free port and waits until it listens.
    pub fn start(program: &Path, words: &[&str]) -> Self {
        let port = free_port();
        let mut command = Command::new(program);
        command.args(words).args(["-s", "-1", "--forceflush", "-p", &port.to_string()]).stdin(Stdio::null());
        let process = Process::start(command);
        until(TIMEOUT_S, "the server to listen", || process.stdout().contains("Server listening on"));
        Self { process, port }
    }

    /// Waits until the server exits by itself, successfully.
    pub fn end(self) {
        assert_eq!(self.process.end(TIMEOUT_S).code, 0);
    }
}
