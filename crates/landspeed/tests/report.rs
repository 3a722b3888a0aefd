//! `landspeed report` from the command line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{PROGRAM, assert_valid};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");

fn report(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.current_dir(directory).arg("report").args(arguments);
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fixture(name: &str) -> String {
    format!("{FIXTURES}/{name}")
}

/// Creates a directory with `count` copies of a run.
fn runs(count: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lab: Value =
        serde_json::from_slice(&std::fs::read(fixture("reports/lab.json")).expect("a fixture")).expect("JSON");
    let run = serde_json::to_vec(&lab["flows"][0]["run"]).expect("JSON");
    for number in 0..count {
        std::fs::write(directory.path().join(format!("run{number:02}.json")), &run).expect("a file");
    }
    directory
}

#[test]
fn every_kind_of_document_has_a_report() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    for name in [
        "reports/lab.json",
        "reports/labset.json",
        "reports/audit.json",
        "documents/watch.json",
        "documents/tuneup.json",
        "documents/tuneup-map.json",
        "documents/demo.json",
        "documents/udp.json",
        "traces/whole.json",
    ] {
        let output = report(scratch.path(), &[&fixture(name), "-o", "page.html"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let page = std::fs::read_to_string(scratch.path().join("page.html")).expect("a page");
        assert!(page.starts_with("<!doctype html>") && page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn several_runs_are_drawn_together_in_every_format() {
    let directory = runs(3);
    let outputs = [
        "-o",
        "all.html",
        "--svg",
        "svg",
        "--png",
        "png",
        "--markdown",
        "all.md",
        "--csv",
        "all.csv",
        "--gnuplot",
        "plots",
        "--json",
        "out/figures.json",
    ];
    std::fs::create_dir(directory.path().join("out")).expect("a directory");
    let output =
        report(directory.path(), &[&["run00.json", "run01.json", "again=run02.json"][..], &outputs].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("figures of 3 documents"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    let read = |name: &str| std::fs::read(directory.path().join(name)).expect(name);
    let document: Value = serde_json::from_slice(&read("out/figures.json")).expect("JSON");
    assert_eq!(document["schema"], "landspeed.figures/1");
    assert_eq!(document["sources"], serde_json::json!(["run00", "run01", "again"]));
    let goodput = &document["figures"][0]["drawing"]["chart"];
    assert_eq!(goodput["panels"][0]["lines"].as_array().map(Vec::len), Some(3));
    for figure in document["figures"].as_array().expect("figures") {
        let id = figure["id"].as_str().expect("a name");
        assert!(text(&read(&format!("svg/{id}.svg"))).starts_with("<svg "), "{id}");
        assert!(read(&format!("png/{id}.png")).starts_with(b"\x89PNG"), "{id}");
        assert!(text(&read(&format!("plots/{id}.gp"))).contains(&format!("'{id}.dat'")), "{id}");
        assert!(text(&read("all.csv")).contains(id), "{id}");
    }
    assert!(text(&read("all.md")).contains("## Goodput over time"));
    assert_valid("figures", &document);
}

#[test]
fn invalid_documents_are_named_and_the_rest_drawn() {
    let directory = runs(2);
    std::fs::write(directory.path().join("cut.json"), "{\"schema\": \"landspeed.run/1\", ").expect("a file");
    std::fs::write(directory.path().join("later.json"), "{\"schema\": \"landspeed.run/99\"}").expect("a file");
    let output = report(directory.path(), &[".", "-o", "page.html", "--json", "figures.out"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("cut.json: damaged") && errors.contains("later.json: a `landspeed.run/99` document"),
        "{errors}"
    );
    let document: Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("figures.out")).expect("a file")).expect("JSON");
    assert_eq!(document["figures"][0]["drawing"]["chart"]["panels"][0]["lines"].as_array().map(Vec::len), Some(2));
    let page = std::fs::read_to_string(directory.path().join("page.html")).expect("a page");
    assert!(page.contains("later.json"), "the page says what is not drawn");
}

#[test]
fn results_of_other_programs_are_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["iperf3/3.12/tcp.json", "foreign/nuttcp-tcp.txt", "foreign/rrul.flent"] {
        let to = directory.path().join(Path::new(name).file_name().expect("a name"));
        std::fs::copy(fixture(name), to).expect("a copy");
    }
    let output = report(directory.path(), &[".", "-o", "page.html", "--json", "figures.out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("figures.out")).expect("a file")).expect("JSON");
    assert_eq!(document["figures"][0]["drawing"]["rows"]["rows"].as_array().map(Vec::len), Some(3), "{document:#}");
}

#[test]
fn at_most_twenty_runs_are_drawn_and_others_named() {
    let directory = runs(23);
    let output = report(directory.path(), &[".", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // More lines than a chart can tell: a panel for each run.
    assert_eq!(document["figures"][0]["drawing"]["chart"]["panels"].as_array().map(Vec::len), Some(20));
    let note = document["notes"][0]["text"].as_str().expect("a note");
    assert_eq!(note, "23 runs, of which the first 20 are drawn. Not drawn: run20, run21, run22.");
}

#[test]
fn documents_without_figures_are_left_out() {
    let directory = runs(1);
    std::fs::copy(fixture("reports/audit.json"), directory.path().join("audit.json")).expect("a copy");
    let output = report(directory.path(), &["run00.json", "audit.json", "-o", "page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("not drawn together with others: audit (audit)"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn report_errors_give_advice() {
    let directory = runs(1);
    for (arguments, says) in [
        (&["run00.json"][..], "Add -o report.html"),
        (&["absent.json", "-o", "x.html"], "absent.json: no such file"),
        (&[".", "-o", "x.html", "--csv", "x.html"], "Write each to a different file"),
        (&["run00.json", "-o", "nowhere/x.html"], "there is no directory nowhere"),
        (&["run00.json", "-o", "x.html", "--limit", "fast"], "fast"),
        (&["-o", "x.html"], "OPERAND"),
    ] {
        let output = report(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(says), "{arguments:?}: {}", text(&output.stderr));
        assert!(!directory.path().join("x.html").exists(), "{arguments:?}");
    }
}

#[test]
fn full_disk_is_an_error() {
    let directory = runs(1);
    let output = report(directory.path(), &["run00.json", "-o", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("cannot write /dev/full") && errors.contains("Free some space"), "{errors}");
}
