//! An emulated path around a command.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use landspeed_testkit::process::Process;
use serde_json::Value;

use super::{TIMEOUT_S, assert_no_network_verdict, certificate, landspeed, number, path_file, suspend};
use crate::common::PROGRAM;

const LINK: &str = "[[link]]\nrate = \"100M\"\ndelay = \"20ms\"\nqueue = { kind = \"bfifo\", limit = \"500KB\" }";
/// User id of `nobody`.
pub(super) const USER: u32 = 65_534;

/// Checks that user namespaces are available; the error gives the reason.
pub(super) fn user_namespaces() -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["-U", "-n", "true"]);
    if landspeed_sys::process::is_root() {
        command.uid(USER).gid(USER);
    }
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("no user namespaces: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(why) => Err(format!("cannot run unshare: {why}")),
    }
}

/// Runs `landspeed run` over a path, and returns its document and the certificate.
pub(super) fn run_over_path(command: &mut Command, directory: &std::path::Path) -> (Value, Value) {
    let (json, run) = (directory.join("certificate.json"), directory.join("run.json"));
    command.args(["--json".as_ref(), json.as_os_str(), "--".as_ref(), PROGRAM.as_ref()]);
    command.args(["run", "198.18.0.2", "-t", "2s", "--quiet", "--json"]).arg(&run);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert!(ended.code < 2, "{}", ended.stderr);
    let run = serde_json::from_str(&std::fs::read_to_string(run).expect("a run")).expect("JSON");
    (run, certificate(&json))
}

fn assert_path_was_measured(run: &Value, certificate: &Value) {
    assert_eq!(certificate["ended"], "command");
    assert_eq!(number(certificate, "/asked/forward/delay_ns"), 20_000_000);
    let least = number(certificate, "/delivered/forward/delay_ns/min");
    assert!(least >= 20_000_000, "{least}");
    // 100 Mb/s with framing: a second exceeds it only by frames delayed from the one before.
    let peak = number(certificate, "/delivered/forward/peak_rate_bps");
    assert!(peak <= 110_000_000, "{peak}");
    let streams = run["streams"].as_array().expect("streams");
    let samples = streams.iter().flat_map(|stream| stream["sender"]["samples"].as_array().into_iter().flatten());
    let rtt_min_us = samples.filter_map(|sample| sample["tcp"]["min_rtt_us"].as_u64()).filter(|us| *us > 0).min();
    assert!(rtt_min_us >= Some(40_000), "{rtt_min_us:?}");
    for direction in ["forward", "reverse"] {
        let at = |name: &str| number(certificate, &format!("/delivered/{direction}/{name}_packets"));
        assert_eq!(at("offered") + at("duplicated"), at("delivered") + at("dropped") + at("inside"), "{direction}");
        assert!(at("delivered") > 100, "{direction}");
    }
}

#[test]
fn root_runs_a_command_over_the_path() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("namespaces without a user namespace need root");
    }
    let (directory, file) = path_file(LINK);
    let mut command = landspeed();
    command.arg("emulate").arg(&file);
    let (run, certificate) = run_over_path(&mut command, directory.path());
    assert_path_was_measured(&run, &certificate);
}

#[test]
fn an_ordinary_user_runs_a_command_over_the_path() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (directory, file) = path_file(LINK);
    let mut command = landspeed();
    if landspeed_sys::process::is_root() {
        command.uid(USER).gid(USER);
    }
    command.current_dir(directory.path()).arg("emulate").arg(&file);
    let (run, certificate) = run_over_path(&mut command, directory.path());
    assert_path_was_measured(&run, &certificate);
}

#[test]
fn the_remote_command_is_reached_and_ends_with_the_command() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (_directory, file) = path_file(LINK);
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--quiet", "--remote", "exec sleep 71.125", "--", "sh", "-c", "exit 3"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("the command ended with status 3"), "{}", ended.stderr);
    assert!(!super::leftovers::runs("71.125"), "the remote command is left");
}

#[test]
fn a_time_limit_ends_the_command() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (directory, file) = path_file(LINK);
    let json = directory.path().join("certificate.json");
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--time", "1s", "--quiet", "--json"]).arg(&json);
    command.args(["--", "sleep", "72.125"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(certificate(&json)["ended"], "time", "{}", ended.stderr);
    assert!(!super::leftovers::runs("72.125"), "the command is left");
}

#[test]
fn the_command_sees_nothing_but_the_path() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (_directory, file) = path_file(LINK);
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--quiet", "--", "cat", "/proc/net/dev"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    let names: Vec<&str> =
        ended.stdout.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert!(names.contains(&"lo") && names.contains(&"path0"), "{}{}", ended.stdout, ended.stderr);
    assert!(!names.iter().any(|name| name.starts_with("eth") || name.starts_with("en")), "{names:?}");
}

#[test]
fn invalid_emulated_seconds_withdraw_the_verdict() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (directory, file) =
        path_file("[[link]]\nrate = \"50M\"\ndelay = \"5ms\"\nqueue = { kind = \"bfifo\", limit = \"200KB\" }");
    let run = directory.path().join("run.json");
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--", PROGRAM]);
    command.args(["run", "198.18.0.2", "-t", "4s", "--json"]).arg(&run);
    let process = Process::start(command);
    suspend(&process, &process);
    let ended = process.end(TIMEOUT_S);
    assert!(ended.code < 2, "{}", ended.stderr);
    assert_no_network_verdict(&run);
}

#[test]
fn certificate_is_rendered_as_a_report() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (directory, file) = path_file(LINK);
    let report = directory.path().join("report.html");
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--quiet", "--report"]).arg(&report);
    command.args(["--", "ping", "-c", "3", "-i", "0.2", "198.18.0.2"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    if ended.stderr.contains("cannot run ping") {
        landspeed_testkit::skip!("{}", ended.stderr);
    }
    assert!(ended.code < 2, "{}", ended.stderr);
    let html = std::fs::read_to_string(report).expect("a report");
    assert!(html.starts_with("<!doctype html>") && html.contains("a test · landspeed emulate"));
    let none = landspeed().arg("emulate").arg(&file).args(["--report", "/nonexistent/x", "--", "true"]).output();
    assert!(String::from_utf8_lossy(&none.expect("it runs").stderr).contains("cannot write /nonexistent/x"));
}
