//! `serve --queue`: clients wait in order, and tests at the same time are marked.

use landspeed_model::Parameters;
use landspeed_sys::clock;
use landspeed_testkit::process::{Ended, Process, until};
use serde_json::Value;

use crate::common::landspeed;
use crate::hostile::common::{Server, TIMEOUT_S};
use crate::hostile::raw;

/// Starts a client that prints what it waits for.
fn client(server: &Server, seconds: &str) -> Process {
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-b", "10m", "-t", seconds]);
    Process::start(command)
}

fn starts(server: &Server) -> usize {
    server.process.stdout().matches("  start  ").count()
}

#[test]
fn clients_of_a_busy_server_wait_in_order() {
    let server = Server::start(&["--max-tests", "1", "--queue=4"]);
    let first = client(&server, "6");
    until(TIMEOUT_S, "the first test", || starts(&server) == 1);
    let second = client(&server, "0.3");
    until(TIMEOUT_S, "the second in the queue", || second.stdout().contains("position 1 of 1 in its queue, about"));
    let third = client(&server, "0.5");
    until(TIMEOUT_S, "the third in the queue", || third.stdout().contains("position 2 of 2"));
    let fourth = client(&server, "0.4");
    until(TIMEOUT_S, "the fourth in the queue", || fourth.stdout().contains("position 3 of 3"));
    // One host gets three quarters of the queue.
    let fifth = client(&server, "0.2").end(TIMEOUT_S);
    assert_eq!(fifth.code, 2);
    assert!(fifth.stderr.contains("other clients wait for this server"), "{}", fifth.stderr);
    // A client that gives up leaves the queue.
    third.signal("INT");
    let third = third.end(TIMEOUT_S);
    assert_eq!(third.code, 2, "{}{}", third.stdout, third.stderr);
    until(TIMEOUT_S, "the fourth to move up", || fourth.stdout().contains("position 2 of 2"));
    for client in [first, second, fourth] {
        let ended = client.end(TIMEOUT_S);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
    let log = server.process.stdout();
    let ends = log.matches("end      complete").count();
    assert_eq!((starts(&server), ends), (3, 3), "{log}");
    let durations: Vec<&str> =
        log.lines().filter_map(|line| line.split("end      complete").nth(1)?.rsplit(" in ").next()).collect();
    let in_order = durations.iter().zip(["6", "3", "4"]).all(|(duration, begin)| duration.starts_with(begin));
    assert!(in_order, "{log}");
}

#[test]
fn a_client_that_does_not_know_the_queue_is_refused() {
    let server = Server::start(&["--max-tests", "1", "--queue"]);
    let running = client(&server, "5");
    until(TIMEOUT_S, "a test", || starts(&server) == 1);
    let ask = || match raw::ask(server.addr, Parameters { time_ns: Some(100_000_000), ..Parameters::default() }) {
        Ok(_) => panic!("it got a test"),
        Err(why) => why,
    };
    assert!(ask().starts_with("server-busy: 1 tests are running"), "{}", ask());
    let waiting = client(&server, "2");
    until(TIMEOUT_S, "a client in the queue", || waiting.stdout().contains("position 1 of 1"));
    assert!(ask().starts_with("server-busy: "), "{}", ask());
    assert_eq!((running.end(TIMEOUT_S).code, waiting.end(TIMEOUT_S).code), (0, 0));
}

#[test]
fn a_client_waits_no_longer_than_the_server_allows() {
    let server = Server::start(&["--max-tests", "1", "--queue", "--queue-time", "1s"]);
    let running = client(&server, "5");
    until(TIMEOUT_S, "a test", || starts(&server) == 1);
    let ended = client(&server, "0.2").end(TIMEOUT_S);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("no test ended within 1 s"), "{}", ended.stderr);
    assert_eq!(running.end(TIMEOUT_S).code, 0);
}

#[test]
fn third_party_tests_wait_in_the_queue_of_the_target() {
    let target = Server::start(&["--max-tests", "1", "--queue"]);
    let runner = Server::start(&["--allow-third-party", "127.0.0.0/8"]);
    let running = client(&target, "4");
    until(TIMEOUT_S, "a test", || starts(&target) == 1);
    let mut command = landspeed();
    command.args(["run", &target.addr.to_string(), "--from", &runner.addr.to_string(), "-b", "10m", "-t", "0.3"]);
    let waiting = Process::start(command);
    until(TIMEOUT_S, "the test in the queue", || waiting.stdout().contains("position 1 of 1"));
    assert_eq!(running.end(TIMEOUT_S).code, 0);
    let ended = waiting.end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

/// Runs a test between two servers in each direction, while each server waits for the other; returns the ends of both.
fn tests_that_wait_for_each_other() -> [Ended; 2] {
    let options = ["--max-tests", "1", "--queue", "--allow-third-party", "127.0.0.0/8"];
    let (a, b) = (Server::start(&options), Server::start(&options));
    // Both servers are busy first, so that each test has its own server's place before it asks for the other's.
    let busy = [client(&a, "3"), client(&b, "3")];
    until(TIMEOUT_S, "two tests", || starts(&a) + starts(&b) == 2);
    let begin = |from: &Server, target: &Server| {
        let mut command = landspeed();
        command.args(["run", &target.addr.to_string(), "--from", &from.addr.to_string(), "-b", "10m", "-t", "0.5"]);
        Process::start(command)
    };
    let tests = [begin(&a, &b), begin(&b, &a)];
    assert!(busy.into_iter().all(|client| client.end(TIMEOUT_S).code == 0));
    tests.map(|test| test.end(TIMEOUT_S))
}

#[test]
fn one_of_two_tests_that_wait_for_each_other_starts() {
    // Both may give up at the same moment, by chance.
    for last in [false, true] {
        let ended = tests_that_wait_for_each_other();
        let failed: Vec<&Ended> = ended.iter().filter(|ended| ended.code != 0).collect();
        for ended in &failed {
            assert!(ended.stderr.contains("others wait for this server"), "{}", ended.stderr);
        }
        if failed.len() == 1 {
            return;
        }
        assert!(!last, "{} of 2 failed", failed.len());
    }
}

#[test]
fn tests_at_the_same_time_are_marked_in_both_documents() {
    let server = Server::start(&[]);
    let single = server.run(&["-t", "0.2", "-b", "5m"]);
    assert_eq!(single.document["other_tests"], serde_json::json!({"client": null, "server": 0}));
    let (first, second) = (server.begin(&["-t", "4", "-b", "5m"]), server.begin(&["-t", "4", "-b", "5m"]));
    for process in [first, second] {
        let ended = process.end(TIMEOUT_S);
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(document["other_tests"]["server"], 1, "{}", document["other_tests"]);
        let warnings = document["warnings"].as_array().expect("a list");
        assert!(warnings.iter().any(|warning| warning["code"] == "overlapping-tests"), "{warnings:#?}");
    }
}

#[test]
fn a_test_whose_server_was_stopped_is_not_complete() {
    for options in [&["-u"][..], &["-u", "--reverse"], &["--reverse"]] {
        let server = Server::start(&[]);
        let client = server.begin(&[&["-t", "30", "-b", "5m"], options].concat());
        until(TIMEOUT_S, "a test", || starts(&server) == 1);
        // Some data, so that there is a result that could pass for that of the whole test.
        clock::sleep_until(clock::monotonic_ns() + 1_000_000_000);
        server.process.signal("TERM");
        let ended = client.end(TIMEOUT_S);
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!((ended.code, document["status"].as_str()), (1, Some("partial")), "{options:?}: {document:#}");
        assert_eq!(document["errors"][0]["code"], "server-stopped", "{options:?}: {}", document["errors"]);
        assert!(document["summary"]["goodput_bps"].is_f64(), "what was measured is there: {options:?}");
        until(TIMEOUT_S, "the server's log", || server.process.stdout().contains("this server was stopped"));
    }
}
