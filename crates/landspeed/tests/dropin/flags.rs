//! Interfaces that scripts rely on besides the figures: lines, files, exit status, program name.

use landspeed_testkit::process::run_concurrently;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use landspeed_sys::clock;
use landspeed_testkit::process::free_port;

use super::{Server, TIMEOUT_S, json, landspeed, run};

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn symlink_named_iperf3_behaves_like_iperf3() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = directory.path().join("iperf3");
    symlink(landspeed(), &name).expect("a link");
    assert!(text(&run(&name, &["--version"])).starts_with("iperf 3."));
    let server = Server::start(&name, &[]);
    let out = run(&name, &["-c", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1", "-b", "50M", "-f", "m"]);
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    // Parse the receiver's rate as scripts do.
    let receiver = said.lines().find(|line| line.ends_with("receiver")).expect("a receiver's line");
    let words: Vec<&str> = receiver.split_whitespace().collect();
    let unit = words.iter().position(|word| *word == "Mbits/sec").expect("-f m");
    assert!(words[unit - 1].parse::<f64>().expect("a rate") > 0.0, "{receiver}");
    assert!(said.ends_with("\niperf Done.\n"), "{said}");
}

#[test]
fn a_background_server_outlives_its_parent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pid = directory.path().join("pid");
    let port = free_port().to_string();
    // A typical command of scripts. With -1 the server exits after one test and leaves no process.
    let out = run(&landspeed(), &["iperf3", "-s1D", "-p", &port, "-I", &pid.to_string_lossy()]);
    assert!(out.status.success(), "{out:?}");
    let deadline = clock::monotonic_ns() + TIMEOUT_S * 1_000_000_000;
    let mut served = false;
    while !served && clock::monotonic_ns() < deadline {
        // The server may not listen yet.
        served = run(&landspeed(), &["iperf3", "-c", "127.0.0.1", "-p", &port, "-n", "1M"]).status.success();
    }
    let mut gone = false;
    while !gone && clock::monotonic_ns() < deadline {
        // The server removes its PID file when it exits.
        gone = !pid.exists();
        clock::sleep_until(clock::monotonic_ns() + 5_000_000);
    }
    if !gone && let Ok(number) = std::fs::read_to_string(&pid) {
        let _ = Command::new("kill").arg(number.trim_end_matches('\0')).status();
    }
    assert!(served && gone, "served: {served}, gone: {gone}");
}

#[test]
fn a_test_ended_by_timeout_is_reported() {
    run_concurrently([&["-b", "50M"][..], &["-u"]], |kind| {
        let server = Server::start(&landspeed(), &["iperf3"]);
        let port = server.port.to_string();
        // timeout sends two signals, to the program and to its group: one request to stop, not a second Ctrl-C.
        let program = landspeed();
        let program = program.to_string_lossy();
        let words = ["-s", "INT", "2", &program, "iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "30"];
        let out = run(std::path::Path::new("timeout"), &[&words[..], kind].concat());
        let said = text(&out);
        assert!(said.lines().any(|line| line.ends_with("sender")), "{out:?}");
        // The receiver sent no results, so no receiver line is printed.
        assert!(!said.lines().any(|line| line.ends_with("receiver")), "{out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("interrupted"), "{out:?}");
    });
}

#[test]
fn intervals_are_printed_while_the_test_runs_and_add_up() {
    let server = Server::start(&landspeed(), &["iperf3"]);
    let port = server.port.to_string();
    let mut words = vec!["iperf3", "-c", "127.0.0.1", "-p", &port, "-P", "2", "-b", "50M", "--json-stream"];
    words.extend(["-t", "2", "-O", "1", "-i", "0.5"]);
    let mut client = Command::new("timeout")
        .arg(TIMEOUT_S.to_string())
        .arg(landspeed())
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("timeout, of coreutils, runs");
    let lines = BufReader::new(client.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut running_at = Vec::new();
    let mut events = Vec::new();
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if event["event"] != "end" {
            running_at.push(client.try_wait().expect("a child").is_none());
        }
        events.push(event);
    }
    assert!(client.wait().expect("a child").success());
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    assert_eq!(names, ["start", "interval", "interval", "interval", "interval", "interval", "interval", "end"]);
    // The client still ran when the first interval arrived, with five more to come.
    assert!(running_at[1], "{running_at:?}");
    let (mut omitted, mut moved) = (0, 0);
    for event in &events[1..7] {
        let sum = &event["data"]["sum"];
        let bytes = sum["bytes"].as_u64().expect("bytes");
        if sum["omitted"] == true {
            omitted += bytes;
        } else {
            moved += bytes;
        }
        assert_eq!(event["data"]["streams"].as_array().map(Vec::len), Some(2));
    }
    assert!(omitted > 0, "{events:?}");
    let end = &events[7]["data"];
    assert_eq!(end["sum_sent"]["bytes"], moved);
    assert_eq!(end["sum_received"]["bytes"], moved);
}

#[test]
fn an_endless_test_runs_until_the_server_ends() {
    let server = Server::start(&landspeed(), &["iperf3"]);
    let script = format!(
        "timeout {TIMEOUT_S} {} iperf3 -c 127.0.0.1 -p {} -t 0 -i 0.1 | head -n 4",
        landspeed().display(),
        server.port
    );
    let out = run(std::path::Path::new("sh"), &["-c", &script]);
    let said = text(&out);
    assert_eq!(said.lines().count(), 4, "{out:?}");
    assert!(said.lines().last().is_some_and(|line| line.contains(" sec ")), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("Broken pipe"), "{out:?}");
}

#[test]
fn unreachable_server_is_an_error_with_status_1() {
    let port = free_port().to_string();
    let out = run(&landspeed(), &["iperf3", "-c", "127.0.0.1", "-p", &port]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).starts_with("iperf3: error - "), "{out:?}");
    let out = run(&landspeed(), &["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"]);
    assert_eq!(out.status.code(), Some(1));
    let document = json(&out);
    assert!(document["error"].as_str().is_some_and(|error| error.contains("refused")), "{document}");
    assert_eq!(document["intervals"], serde_json::json!([]));
}

#[test]
fn the_exit_status_is_that_of_iperf3() {
    let programs = landspeed_testkit::iperf3::programs();
    let Some(newest) = programs.last() else { landspeed_testkit::skip!("no iperf3 is here: cargo xtask iperf3") };
    // No server listens on port 1.
    for line in [
        "",
        "--help",
        "--version",
        "--no-such-option",
        "-c",
        "-c 127.0.0.1 -p 1",
        "-c 127.0.0.1 -p 1 -u",
        "-c 127.0.0.1 -p 1 -J",
        "-c 127.0.0.1 -p 1 -t x",
        "-c 127.0.0.1 -p 1 -P 1000",
        "-c 127.0.0.1 -p 1 -R --bidir",
        "-c 127.0.0.1 -p 1 -f q",
        "-c 127.0.0.1 -p 1 -f mbits",
        "-c 127.0.0.1 -p 1 -i 100",
        "-c 127.0.0.1 -p 1 -t 10 -n 1M",
        "-c 127.0.0.1 -p 1 -S 256",
        "-c 127.0.0.1 -p 70000",
        "-c 127.0.0.1 -p 1 --logfile /nonexistent/log",
        "-s -c 127.0.0.1",
        "-s -u",
        "-s -R",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let theirs = run(&newest.path, &words).status.code();
        let ours = run(&landspeed(), &[&["iperf3"][..], &words].concat());
        assert_eq!(ours.status.code(), theirs, "{newest} {line}: {}", String::from_utf8_lossy(&ours.stderr));
    }
}

#[test]
fn an_unsupported_flag_is_named() {
    for flag in ["--sctp", "--dont-fragment", "--timestamps"] {
        let out = run(&landspeed(), &["iperf3", "-c", "127.0.0.1", flag]);
        assert!(!out.status.success());
        assert!(String::from_utf8_lossy(&out.stderr).contains(flag), "{out:?}");
    }
}

#[test]
fn output_goes_to_the_log_file_as_json_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (log, pid) = (directory.path().join("log"), directory.path().join("pid"));
    let server = Server::start(&landspeed(), &["iperf3", "-I", &pid.to_string_lossy()]);
    let number = std::fs::read_to_string(&pid).expect("-I");
    assert!(number.trim_end_matches('\0').parse::<u32>().is_ok_and(|number| number > 1), "{number:?}");
    let port = server.port.to_string();
    let log_name = log.to_string_lossy();
    let words = ["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "2", "-b", "50M", "--json-stream"];
    let words = [&words[..], &["--logfile", &log_name]].concat();
    let out = run(&landspeed(), &words);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let said = std::fs::read_to_string(&log).expect("--logfile");
    let events: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let names: Vec<_> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["start", "interval", "interval", "end"]);
}
