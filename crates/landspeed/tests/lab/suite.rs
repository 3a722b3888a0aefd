//! Suites: criteria decide, and a case that is written runs as a scenario.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{assert_valid, chosen_program};

fn suite(arguments: &[&str]) -> Output {
    let mut command = Command::new(chosen_program());
    command.args(["lab", "suite"]).args(arguments).env("NO_COLOR", "1").env("LANDSPEED_ARCHIVE", "off");
    command.output().expect("the program runs")
}

#[test]
fn a_case_compares_congestion_controls_with_its_limits() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("suite.json");
    let file = file.to_str().expect("plain");
    let arguments =
        ["run", "rfc9743", "--case", "constrained", "--congestion", "reno", "--runs", "2", "--json", file];
    let output = suite(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap_or_else(|why| panic!("{why}: {text}")))
        .expect("a document");
    assert_valid("suite", &document);
    assert_eq!(document["congestion"], serde_json::json!(["cubic", "reno"]), "the baseline runs, too");
    let [case] = &document["cases"].as_array().expect("cases")[..] else { panic!("{document:#}") };
    let criteria = case["criteria"].as_array().expect("criteria");
    let names: Vec<&str> = criteria.iter().filter_map(|found| found["cell"]["cc"].as_str()).collect();
    assert_eq!(names, ["cubic", "reno"], "{document:#}");
    for criterion in criteria {
        let measured = criterion["measured"].as_f64().expect("a value");
        assert!(measured > 0.5 && measured < 0.96, "within the link: {criterion}");
        assert_eq!(criterion["runs"], 2);
        assert_eq!(criterion["met"], criterion["at_least"].as_f64().is_some_and(|limit| measured >= limit));
    }
    let all_met = criteria.iter().all(|criterion| criterion["met"] == true);
    assert_eq!(output.status.code(), Some(i32::from(!all_met)), "{text}");
    assert!(text.contains("CRITERION") && text.contains("RFC 9743"), "{text}");
}

#[test]
fn a_written_case_is_a_scenario_and_names_are_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = directory.path().join("cases");
    let cases = cases.to_str().expect("plain");
    assert_eq!(suite(&["write", "ccwg-bbr", cases]).status.code(), Some(0));
    let scenario = format!("{cases}/startup-plateau.toml");
    let output =
        Command::new(chosen_program()).args(["lab", "run", &scenario, "--dry-run"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // A second time the files exist, and are not overwritten.
    let again = suite(&["write", "ccwg-bbr", cases]);
    assert_eq!(again.status.code(), Some(2));
    let listed = String::from_utf8_lossy(&suite(&[]).stdout).into_owned();
    for name in ["ccwg-bbr", "rfc9743", "rrul"] {
        assert!(listed.contains(name), "{listed}");
        let shown = suite(&["show", name]);
        assert!(shown.status.success() && shown.stdout.len() > 500);
    }
    for (arguments, expected) in [
        (&["run", "rfc9734"][..], "rfc9743"),
        (&["run", "rrul", "--case", "fq_codel"], "fq-codel"),
        (&["run", "ccwg-bbr", "--case", "drain-time"], "visible from outside"),
        (&["show", "nothing"], "no suite"),
    ] {
        let output = suite(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{arguments:?}: {error}");
    }
}
