//! `landspeed check` as a person runs it: this host, recorded hosts, both ends of a path.
#![forbid(unsafe_code)]

mod here;
mod peer;
mod recorded;

use std::process::{Command, Output, Stdio};

use landspeed_testkit::process::Process;
use serde_json::Value;

/// The program under test.
fn landspeed() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landspeed"));
    command.stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

/// What `landspeed check ARGUMENTS` says.
fn check(arguments: &[&str]) -> Output {
    landspeed().arg("check").args(arguments).output().expect("the program starts")
}

/// The document of `landspeed check ARGUMENTS --json -`.
fn document(arguments: &[&str]) -> Value {
    let output = check(&[arguments, &["--json", "-"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{arguments:?} printed no document: {e}; {error}"))
}

/// The error text of a command, which must fail.
fn failure(arguments: &[&str]) -> String {
    let output = check(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The codes of a list in a document.
fn codes<'a>(document: &'a Value, list: &str) -> Vec<&'a str> {
    document[list].as_array().expect("a list").iter().filter_map(|entry| entry["code"].as_str()).collect()
}

/// A server on loopback, ended when dropped; its address.
fn serve(arguments: &[&str]) -> (Process, String) {
    let server = Process::start(landspeed().args(["serve", "--listen", "127.0.0.1:0"]).args(arguments));
    let address = server.address_in("listening on").to_string();
    (server, address)
}
