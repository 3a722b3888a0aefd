//! `landspeed qualify` from the command line, over loopback. What its results mean for sections with small buffers and losses is
//! tested in virtual time (`crates/qualify/tests/sections.rs`, `lab::section`).

use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::or_skip;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{Process, signal, until};
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid, in_namespace, landspeed};

/// Timeout of a command, seconds.
const TIMEOUT_S: u64 = 300;

#[test]
fn a_section_over_loopback_has_a_result_for_each_test() {
    let pair = Pair::on_loopback(PROGRAM);
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("section.json");
    let mut command = landspeed();
    command
        .args(["qualify", pair.target(), "--target", "20M", "--target-rtt", "5ms", "--time", "20ms", "--json"])
        .arg(&path);
    let ended = Process::start(&mut command).end(TIMEOUT_S);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{why}: {}", ended.stderr));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_valid("qualify", &document);
    // The tests are too short for a pass, and a busy host decides nothing.
    assert_eq!((ended.code, document["verdict"].as_str()), (1, Some("inconclusive")), "{document:#}");
    let tests = document["tests"].as_array().expect("a list");
    let names: Vec<&str> = tests.iter().filter_map(|test| test["name"].as_str()).collect();
    assert_eq!(names[..3], ["background-loss", "delivery-at-target-rate", "slow-start-bursts"]);
    for name in names {
        assert!(ended.stdout.contains(name), "{}", ended.stdout);
    }
    assert!(ended.stdout.contains("--time is too short for a pass"), "{}", ended.stdout);
    assert_eq!(document["derived"]["window_packets"], 9, "⌈20e6 × 0.005 / 8 / 1448⌉");
    assert!(document["section"]["rtt_ns"].as_u64().is_some_and(|rtt_ns| rtt_ns > 0));
}

#[test]
fn a_section_longer_than_the_path_is_refused() {
    let pair = Pair::on_loopback(PROGRAM);
    let mut command = landspeed();
    command.args(["qualify", pair.target(), "--target", "1M", "--target-rtt", "1ns"]);
    let ended = Process::start(&mut command).end(TIMEOUT_S);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains(": the section alone has "), "{}", ended.stderr);
    assert!(ended.stderr.contains("Give --target-rtt the RTT of the whole path"), "{}", ended.stderr);
}

#[test]
fn a_server_that_does_not_answer_is_a_failure() {
    let mut command = landspeed();
    command.args(["qualify", "127.0.0.1:1", "--target", "1G", "--target-rtt", "10ms", "--json", "-"]);
    let ended = Process::start(&mut command).end(TIMEOUT_S);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_valid("qualify", &document);
    assert_eq!((ended.code, document["status"].as_str()), (2, Some("failed")));
    assert!(ended.stderr.contains("Connection refused"), "{}", ended.stderr);
}

#[test]
fn packets_that_do_not_pass_are_refused() {
    let (left, right) = (or_skip!(Namespace::new("left")), or_skip!(Namespace::new("right")));
    veth(&left, &right, "10.91.0.1/24", "10.91.0.2/24");
    let pair = Pair::across(PROGRAM, &left, &right, "10.91.0.2");
    let arguments = ["qualify", pair.target(), "--target", "1G", "--target-rtt", "92ms", "--target-mtu", "9000"];
    let ended = Process::start(&mut in_namespace(&left, &arguments)).end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("path MTU is 1500"), "{}", ended.stderr);
    assert!(ended.stderr.contains("se --target-mtu 1500"), "{}", ended.stderr);
}

#[test]
fn a_server_that_stops_ends_the_tests() {
    let (left, right) = (or_skip!(Namespace::new("left")), or_skip!(Namespace::new("right")));
    veth(&left, &right, "10.92.0.1/24", "10.92.0.2/24");
    let pair = Pair::across(PROGRAM, &left, &right, "10.92.0.2");
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("section.json");
    let file = path.to_str().expect("a path in UTF-8");
    let arguments =
        ["qualify", pair.target(), "--target", "10M", "--target-rtt", "100ms", "--time", "20s", "--json", file];
    let process = Process::start(&mut in_namespace(&left, &arguments));
    until(TIMEOUT_S, "the second test starts", || process.stdout().contains("delivery-at-target-rate (RFC"));
    signal(pair.server_id(), "KILL");
    let ended = process.end(TIMEOUT_S);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{why}: {}", ended.stderr));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_valid("qualify", &document);
    assert_eq!((ended.code, document["status"].as_str()), (2, Some("partial")), "{}", ended.stderr);
    assert_eq!(document["verdict"], "inconclusive");
    assert_eq!(document["tests"][0]["name"], "background-loss", "the results until then are kept");
    assert!(ended.stderr.starts_with("landspeed: "), "{}", ended.stderr);
}
