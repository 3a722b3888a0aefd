//! `landspeed demo` over loopback.

use std::path::Path;
use std::process::Command;

use landspeed_testkit::process::{Ended, Process, signal, until};
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid};

/// Timeout of the demo without the lab on a busy machine, seconds.
const TIMEOUT_S: u64 = 120;

fn begin(out: &Path) -> Process {
    let mut command = Command::new(PROGRAM);
    command.args(["demo", "--no-lab", "--out"]).arg(out);
    Process::start(command)
}

fn read(out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join("demo.json")).expect("demo.json is written");
    serde_json::from_str(&text).expect("demo.json is JSON")
}

fn results(document: &Value) -> Vec<(&str, &str)> {
    let scenes = document["scenes"].as_array().expect("a list");
    scenes.iter().map(|s| (s["name"].as_str().expect("text"), s["result"].as_str().expect("text"))).collect()
}

#[test]
fn three_claims_hold_on_loopback_and_each_has_its_report() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let out = scratch.path().join("new");
    let Ended { code, stdout, stderr, .. } = begin(&out).end(TIMEOUT_S);
    let document = read(&out);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let expected = [("accounting", "holds"), ("fault", "holds"), ("udp", "holds"), ("lab", "not-checked")];
    assert_eq!(results(&document), expected, "{stdout}{stderr}");
    assert!(stdout.contains("3 of 4 claims hold; not checked: lab."), "{stdout}");
    assert!(
        stdout.lines().filter(|line| !line.starts_with("report")).all(|line| line.chars().count() <= 80),
        "{stdout}"
    );

    let index = std::fs::read_to_string(out.join("index.html")).expect("index.html is written");
    for name in ["accounting", "fault", "udp"] {
        assert!(index.contains(&format!("href=\"{name}.html\"")), "{name}");
        let report = std::fs::read_to_string(out.join(format!("{name}.html"))).expect("a report");
        assert!(report.starts_with("<!doctype html>"), "{name}");
        let run = std::fs::read_to_string(out.join(format!("{name}.json"))).expect("a document");
        let run: Value = serde_json::from_str(&run).expect("JSON");
        assert_eq!((&run["schema"], &run["status"]), (&"landspeed.run/1".into(), &"complete".into()), "{name}");
    }
    assert_valid("demo", &document);
}

#[test]
fn ctrl_c_keeps_the_completed_demo_parts() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let demo = begin(scratch.path());
    until(TIMEOUT_S, "the second scene", || demo.stdout().contains("\n2  "));
    signal(demo.id(), "INT");
    let Ended { code, stdout, stderr, .. } = demo.end(20);
    assert_eq!(code, 1, "{stdout}{stderr}");
    let document = read(scratch.path());
    let expected =
        [("accounting", "holds"), ("fault", "not-checked"), ("udp", "not-checked"), ("lab", "not-checked")];
    assert_eq!(results(&document), expected, "{stdout}{stderr}");
    assert!(document["scenes"][1]["reason"].as_str().is_some_and(|why| why.contains("interrupted")));
    assert!(scratch.path().join("accounting.html").exists() && scratch.path().join("index.html").exists());
}
