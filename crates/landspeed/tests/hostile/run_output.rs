//! Output of `run`, `serve` and `calc`.

use std::process::Command;

use serde_json::Value;

use crate::hostile::common::{Ended, Process, Server, TIMEOUT_S, landspeed, until};
use landspeed_testkit::process::run_concurrently;

/// Runs a command with its output for people.
fn ended(args: &[&str]) -> Ended {
    let mut command = landspeed();
    command.args(args).env_remove("COLUMNS");
    Process::start(command).end(TIMEOUT_S)
}

fn run(server: &Server, args: &[&str]) -> Ended {
    let target = server.addr.to_string();
    ended(&[&["run", &target], args].concat())
}

/// Splits the output into interval lines and summary lines.
fn parts(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (intervals, summary) = text.split_once("\n\n").unwrap_or_else(|| panic!("two parts: {text}"));
    (intervals.lines().collect(), summary.lines().collect())
}

#[test]
fn every_kind_of_test_prints_its_intervals_and_eight_lines() {
    let server = Server::start(&[]);
    let kinds: [(&[&str], &[&str], &str); 5] = [
        (&["-b", "50m"], &["goodput", "retransmits", "RTT", "cwnd"], "network"),
        (&["-b", "50m", "-P", "3", "-R"], &["goodput", "retransmits", "RTT", "cwnd"], "network"),
        (&["-b", "50m", "--bidir"], &["goodput", "retransmits", "RTT", "cwnd"], "network"),
        (&["-u", "-b", "10m"], &["goodput", "lost", "jitter"], "loss"),
        (&["--rr"], &["transactions/s", "mean latency"], "latency"),
    ];
    run_concurrently(kinds, |(args, columns, label)| {
        let ended = run(&server, &[&["-t", "1.5"], args].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}");
        let (intervals, summary) = parts(&ended.stdout);
        assert!(columns.iter().all(|column| intervals[0].contains(column)), "{}", ended.stdout);
        let directions = if args.contains(&"--bidir") { 2 } else { 1 };
        assert_eq!(intervals.len(), 1 + 2 * directions, "the last interval is printed, too: {}", ended.stdout);
        assert!(intervals.last().is_some_and(|line| line.contains("-1.5 s")), "{}", ended.stdout);
        assert!(!intervals[1].contains(" - "), "no column is empty: {}", ended.stdout);
        assert!(summary.len() <= 8, "{args:?}: {}", ended.stdout);
        assert!(summary[0].trim_start().starts_with("result"), "{}", ended.stdout);
        assert!(summary.iter().any(|line| line.trim_start().starts_with(label)), "{}", ended.stdout);
        assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    });
    let long = run(&server, &["-t", "1.5", "-b", "50m", "-v"]);
    for label in ["reason", "evidence", "accounting", "CPU", "note"] {
        assert!(long.stdout.contains(&format!("\n  {label}")), "{label}: {}", long.stdout);
    }
}

#[test]
fn progress_follows_the_interval_without_repeated_samples() {
    let server = Server::start(&[]);
    run_concurrently([(["-i", "500ms"], 3), (["-i", "10ms"], 7)], |(args, most)| {
        let ended = run(&server, &[&["-t", "1.3", "-b", "500m", "--jsonl", "-"][..], &args].concat());
        let events: Vec<Value> =
            ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let progress: Vec<(u64, u64)> = events
            .iter()
            .filter(|event| event["event"] == "progress")
            .map(|event| (event["t_ns"].as_u64().expect("t"), event["uploaded_bytes"].as_u64().expect("bytes")))
            .collect();
        assert!((1..=most).contains(&progress.len()), "{args:?}: {progress:?}");
        assert!(progress.windows(2).all(|pair| pair[0].0 < pair[1].0), "{progress:?}");
        // Samples after the end of the test show no progress.
        let moving: Vec<_> = progress.iter().filter(|(t_ns, _)| *t_ns < 1_300_000_000).collect();
        assert!(moving.windows(2).all(|pair| pair[0].1 < pair[1].1), "{progress:?}");
    });
}

#[test]
fn a_server_logs_time_rate_and_requests() {
    let server = Server::start(&[]);
    run(&server, &["-t", "0.3", "-b", "50m", "-q"]);
    run(&server, &["-t", "0.3", "-q", "--rr"]);
    until(TIMEOUT_S, "two tests to be logged", || server.process.stdout().matches("complete").count() == 2);
    let log = server.process.stdout();
    let ends: Vec<&str> = log.lines().filter(|line| line.contains("end      complete")).collect();
    assert!(ends.iter().all(|line| line.as_bytes()[10] == b'T' && line[..20].ends_with('Z')), "{log}");
    assert!(ends[0].contains("received ") && ends[0].contains("b/s"), "{log}");
    assert!(ends[1].contains("answered ") && ends[1].contains(" requests"), "{log}");
}

#[test]
fn lost_server_is_reported_first_without_figures() {
    let server = Server::start(&[]);
    let target = server.addr.to_string();
    let mut command = landspeed();
    command.args(["run", &target, "-t", "20", "-b", "50m", "-v"]);
    let client = Process::start(command);
    until(TIMEOUT_S, "two intervals", || client.stdout().lines().count() > 2);
    drop(server);
    let ended = client.end(TIMEOUT_S);
    let (_, summary) = parts(&ended.stdout);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(summary[0].contains("cut short"), "{}", ended.stdout);
    assert!(!ended.stdout.contains(" 0 B"), "{}", ended.stdout);
    assert!(ended.stdout.contains("report is missing"), "{}", ended.stdout);
}

#[test]
fn iperf3_command_lines_get_advice() {
    let client = ended(&["-c", "192.0.2.1"]);
    assert!(client.code == 2 && client.stderr.contains("landspeed iperf3 -c HOST"), "{}", client.stderr);
    let server = ended(&["-s"]);
    assert!(server.code == 2 && server.stderr.contains("landspeed serve"), "{}", server.stderr);
    let refused = ended(&["run", "127.0.0.1:1"]);
    assert!(refused.code == 2 && refused.stderr.contains("--iperf3"), "{}", refused.stderr);
}

#[test]
fn an_rtt_without_a_unit_is_refused() {
    let bare = ended(&["calc", "--rate", "10G", "--rtt", "92"]);
    assert!(bare.code == 2 && bare.stderr.contains("92ms"), "{}", bare.stderr);
    let with = ended(&["calc", "--rate", "10G", "--rtt", "92ms"]);
    assert!(with.code == 0 && with.stdout.contains("115 MB"), "{}", with.stdout);
}

#[test]
fn missing_capture_privilege_fails_before_the_test() {
    let server = Server::start(&[]);
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-net_raw").arg(landspeed().get_program());
    command.args(["run", &server.addr.to_string(), "-t", "0.3", "--tap", "/nonexistent/x"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    if ended.stderr.contains("setpriv:") {
        landspeed_testkit::skip!("no capability can be given up here: {}", ended.stderr);
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("CAP_NET_RAW") && ended.stderr.contains("setcap cap_net_raw+ep /"), "{ended:?}");
    assert!(!server.process.stdout().contains("start"), "the server saw no test");
}
