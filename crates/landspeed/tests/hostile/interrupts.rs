//! Tests that end early: by signals, and by peers that vanish.

use crate::hostile::common::{Process, Server, TIMEOUT_S, finish, scratch, until};
use crate::hostile::raw;
use landspeed_testkit::process::run_concurrently;

/// Starts a client and waits until it transfers data.
fn start_transferring(server: &Server, args: &[&str]) -> (Process, tempfile::TempDir) {
    let directory = scratch();
    let events = directory.path().join("events");
    let client = server.begin(&[args, &["--jsonl", events.to_str().expect("a plain path")]].concat());
    until(TIMEOUT_S, "traffic", || {
        let lines = std::fs::read_to_string(&events).unwrap_or_default();
        lines.lines().filter(|line| line.contains("\"progress\"")).count() >= 4
    });
    (client, directory)
}

#[test]
fn results_before_a_lost_server_are_kept() {
    let tests = [
        &["-t", "60", "-b", "50m"][..],
        &["-t", "60", "-b", "50m", "-R", "-P", "2"],
        &["-t", "60", "-b", "50m", "-u", "-R"],
    ];
    run_concurrently(tests, |args| {
        let mut server = Server::start(&[]);
        let (client, _directory) = start_transferring(&server, args);
        server.process.kill();
        let run = finish(client.end(TIMEOUT_S));
        assert_eq!((run.ended.code, run.status()), (1, "partial"), "{args:?}: {:?}", run.ended.stderr);
        assert!(run.errors().contains(&"peer-lost"), "{args:?}: {:?}", run.errors());
        assert_eq!(run.document["conservation"]["holds"], false);
        let near = if args.contains(&"-R") { "receiver" } else { "sender" };
        for stream in run.document["streams"].as_array().expect("a list") {
            assert!(stream[near]["bytes"].as_u64() > Some(0), "{args:?}: {stream}");
            assert!(!stream["intervals"].as_array().expect("a list").is_empty());
        }
        assert!(run.ended.seconds < 40.0, "{:?}", run.ended.seconds);
    });
}

#[test]
fn a_server_releases_the_resources_of_vanished_clients() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for args in [
        &["-t", "60", "-b", "50m", "-P", "4"][..],
        &["-t", "60", "-b", "50m", "-u"],
        &["-t", "60", "-R"],
        &["--rr", "--rate", "1000"],
    ] {
        let (mut client, _directory) = start_transferring(&server, args);
        client.kill();
        server.run(&["-t", "0.2"]).assert_clean();
        server.wait_for_resources(idle);
    }
}

#[test]
fn ctrl_c_ends_a_test_with_both_reports() {
    let server = Server::start(&[]);
    let tests = [&["-t", "60"][..], &["-t", "60", "-b", "50m", "-R"], &["-t", "60", "-u", "-b", "50m"]];
    run_concurrently(tests, |args| {
        let (client, _directory) = start_transferring(&server, args);
        client.signal("INT");
        let run = finish(client.end(TIMEOUT_S));
        assert_eq!((run.ended.code, run.status()), (1, "partial"), "{args:?}: {:?}", run.ended.stderr);
        assert_eq!(run.errors(), ["interrupted"], "{args:?}: {}", run.document["errors"]);
        assert_eq!(run.document["conservation"]["holds"], true, "{args:?}: {}", run.document["conservation"]);
        assert!(run.document["summary"]["bytes_delivered"].as_u64() > Some(0));
    });
}

#[test]
fn ctrl_c_ends_a_client_of_a_silent_server() {
    let (listener, addr) = raw::listener();
    let client = crate::hostile::common::begin(&addr.to_string(), &[]);
    let _silent = listener.accept().expect("the client comes");
    client.signal("INT");
    let run = finish(client.end(5));
    run.assert_failed("interrupted");
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::start(&[]);
    let (client, _directory) = start_transferring(&server, &["-t", "60", "-b", "50m"]);
    server.process.signal("STOP");
    client.signal("INT");
    // The second signal counts only after the client has handled the first one, when sending stops.
    until(TIMEOUT_S, "the first to be taken", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", client.id())).unwrap_or_default();
        status.lines().any(|line| line.starts_with("SigPnd") || line.starts_with("ShdPnd"))
            && !status.lines().any(|line| line.starts_with("ShdPnd") && !line.ends_with("0000"))
    });
    // Two signals within a tenth of a second count as one.
    landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 150_000_000);
    client.signal("INT");
    let ended = client.end(5);
    assert_eq!(ended.code, 130, "{ended:?}");
    server.process.signal("CONT");
}

#[test]
fn a_stopping_server_ends_its_tests_with_reports() {
    run_concurrently(["TERM", "INT"], |signal| {
        let server = Server::start(&[]);
        let (client, _directory) = start_transferring(&server, &["-t", "60", "-b", "50m"]);
        server.process.signal(signal);
        let run = finish(client.end(TIMEOUT_S));
        assert_eq!((run.ended.code, run.status()), (1, "partial"), "{:?}", run.ended.stderr);
        assert!(run.document["streams"][0]["sender"]["bytes"].as_u64() > Some(0));
        let ended = server.process.end(TIMEOUT_S);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.stdout.contains("stopped after"), "{ended:?}");
    });
}
