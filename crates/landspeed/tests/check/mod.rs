//! `landspeed check` from the command line: this host, recorded hosts, a remote host.
#![forbid(unsafe_code)]

mod here;
mod peer;
mod recorded;

use std::process::Output;

use landspeed_testkit::process::Process;
use serde_json::Value;

use crate::common::landspeed;

/// Runs `landspeed check ARGUMENTS`.
fn check(arguments: &[&str]) -> Output {
    landspeed().arg("check").args(arguments).output().expect("the program starts")
}

/// Returns the document of `landspeed check ARGUMENTS --json -`.
fn document(arguments: &[&str]) -> Value {
    let output = check(&[arguments, &["--json", "-"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{arguments:?} printed no document: {e}; {error}"))
}

/// Returns standard error of a command that must fail.
fn failure(arguments: &[&str]) -> String {
    let output = check(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the codes in a list of a document.
fn codes<'a>(document: &'a Value, list: &str) -> Vec<&'a str> {
    document[list].as_array().expect("a list").iter().filter_map(|entry| entry["code"].as_str()).collect()
}

/// Starts a server on loopback and returns it with its address; it is killed on drop.
fn serve(arguments: &[&str]) -> (Process, String) {
    let server = Process::start(landspeed().args(["serve", "--listen", "127.0.0.1:0"]).args(arguments));
    let address = server.address_in("listening on").to_string();
    (server, address)
}
