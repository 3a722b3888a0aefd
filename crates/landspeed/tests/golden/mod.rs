//! Output of the program, compared with the files in `golden/`.
#![forbid(unsafe_code)]

mod errors;
mod output;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use landspeed_testkit::hosts;
use landspeed_testkit::process::Process;
use tempfile::TempDir;

use crate::common::PROGRAM;

/// Creates a directory with `host` (a recorded host) and `junk` (no known format).
pub fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    hosts::unpack_into("dtn-100g", &directory.path().join("host"));
    std::fs::write(directory.path().join("junk"), "junk = [\n").expect("a file");
    directory
}

/// Starts a server that limits tests to 5 s, and returns its address.
pub fn serve() -> (Process, SocketAddr) {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--max-duration", "5s"]).env("NO_COLOR", "1");
    let server = Process::start(command);
    let address = server.address_in("listening on");
    (server, address)
}

/// Runs a command line in a shell and returns it with its output, and its exit status unless 0.
pub fn transcript(directory: &Path, prefix: &[&str], line: &str) -> String {
    let script = line.replacen("landspeed", "\"$LANDSPEED\"", 1);
    let words = prefix.iter().copied().chain(["sh", "-c", &script]).collect::<Vec<_>>();
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(directory)
        .env("LANDSPEED", PROGRAM)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    let status = match output.status.code() {
        Some(0) => String::new(),
        Some(code) => format!("[exit status {code}]\n"),
        None => "[signal]\n".to_owned(),
    };
    let end = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
    format!("$ {line}\n{printed}{end}{status}\n")
}
