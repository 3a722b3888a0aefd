//! Tests over paths with a long RTT: set-up, deadlines and the end follow the RTT and the number of streams.

use std::time::{Duration, UNIX_EPOCH};

use landspeed_testkit::iperf3::programs;
use landspeed_testkit::netns::Namespace;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::Process;
use landspeed_testkit::wire::{RIGHT, Wire, WireDirection};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use crate::common::{PROGRAM, in_namespace, list};

/// Joins two namespaces by a path with this delay in each direction.
fn path(delay_ms: u64) -> Result<(Namespace, Namespace, Wire), String> {
    let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
    let direction = WireDirection { delay_ns: delay_ms * 1_000_000, ..WireDirection::default() };
    let wire = Wire::between(&left, &right, [direction, direction], 1)?;
    Ok((left, right, wire))
}

/// Asserts that all streams of a client's iperf3 document moved data.
fn assert_all_moved(said: &Value, streams: usize) {
    assert!(said["error"].is_null(), "{}", said["error"]);
    let found = list(&said["end"]["streams"]);
    assert_eq!(found.len(), streams);
    assert!(found.iter().all(|stream| stream["receiver"]["bytes"].as_u64() > Some(0)), "{said:#}");
}

#[test]
fn sixty_streams_over_200_ms_are_opened_together() {
    let (left, right, _wire) = or_skip!(path(100));
    let server = Process::start(in_namespace(&right, &["iperf3", "-s"]));
    landspeed_testkit::process::until(30, "the server to listen", || server.stdout().contains("listening on"));
    let words = ["iperf3", "-c", RIGHT, "-P", "60", "-t", "1", "-R", "-J"];
    let ended = Process::start(in_namespace(&left, &words)).end(60);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|why| panic!("{why}: {ended:?}"));
    assert_all_moved(&said, 60);
}

#[test]
#[ignore = "long: iperf3 opens one stream after the other"]
fn sixty_streams_of_iperf3_over_200_ms_are_served() {
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (left, right, _wire) = or_skip!(path(100));
    let server = Process::start(in_namespace(&right, &["iperf3", "-s"]));
    landspeed_testkit::process::until(30, "the server to listen", || server.stdout().contains("listening on"));
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", left.name()]).arg(&iperf3.path).args(["-c", RIGHT, "-P", "60", "-t", "2", "-J"]);
    let ended = Process::start(command).end(120);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|why| panic!("{why}: {ended:?}"));
    assert_all_moved(&said, 60);
}

/// Returns the time from the start of a client to the start of its test, seconds.
fn set_up_s(pair: &Pair, options: &str) -> f64 {
    let began = UNIX_EPOCH + Duration::from_nanos(landspeed_sys::clock::realtime_ns());
    let document = pair.run(options);
    assert_eq!(document["status"], "complete", "{options}: {:#}", document["errors"]);
    let started = humantime::parse_rfc3339(document["started"].as_str().expect("a time")).expect("RFC 3339");
    started.duration_since(began).expect("later").as_secs_f64()
}

#[test]
fn set_up_takes_few_round_trips() {
    let (left, right, _wire) = or_skip!(path(1000));
    let pair = Pair::across(PROGRAM, &left, &right, RIGHT);
    // TCP: the control connection, the acceptance, the data connection, its preface and the server's report, the start.
    // UDP: a hello and a proof instead of connection and preface, then the server's report.
    for (options, round_trips) in [("-t 1 -P 60 -b 1M", 5.0), ("-t 1 -u -b 1M", 6.0)] {
        let took = set_up_s(&pair, options) / 2.0;
        assert!(took < round_trips + 2.0, "{options}: {took:.1} round trips of two seconds");
    }
}

#[test]
#[ignore = "long: every exchange takes seconds"]
fn tests_over_three_seconds_are_complete() {
    let (left, right, _wire) = or_skip!(path(1500));
    let pair = Pair::across(PROGRAM, &left, &right, RIGHT);
    for options in ["-t 5", "-t 5 -R", "-t 5 -u -b 2M", "-t 5 -u -b 2M -R"] {
        let document = pair.run(options);
        assert_eq!(document["status"], "complete", "{options}: {:#}", document["errors"]);
        assert!(document["summary"]["goodput_bps"].as_f64() > Some(0.0), "{options}");
    }
}
