//! `landspeed iperf3` and `--format iperf3-json` where iperf3 would have been: its servers and clients of several releases
//! at the other end, and programs that read its JSON.
#![forbid(unsafe_code)]

mod consumers;
mod far;
mod flags;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use landspeed_sys::clock;
use serde_json::Value;

/// More than any test here takes on a busy machine, seconds.
pub const PATIENCE_S: u64 = 60;

/// The program under test.
pub fn landspeed() -> PathBuf {
    env!("CARGO_BIN_EXE_landspeed").into()
}

/// Runs to the end, in bounded time.
pub fn run(program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE_S.to_string()).arg(program).args(words).stdin(Stdio::null());
    command.output().expect("timeout, of coreutils, runs")
}

/// Standard output as JSON.
pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// A server for one test, ended when dropped.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub port: u16,
}

impl Server {
    /// `PROGRAM WORDS -s -1` on a free port; it listens.
    pub fn start(program: &Path, words: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let mut child = Command::new(program)
            .args(words)
            .args(["-s", "-1", "--forceflush", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Server listening on"));
        assert!(listens, "{} ended without listening", program.display());
        // The rest is read, lest it block.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) -> bool {
        let deadline = clock::monotonic_ns() + PATIENCE_S * 1_000_000_000;
        while clock::monotonic_ns() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status.success();
            }
            clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
