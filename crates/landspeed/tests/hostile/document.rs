//! Every kind of run writes a document that matches its schema; standard output carries only one kind of
//! output.

use serde_json::Value;

use crate::common::PROGRAM;
use crate::hostile::common::{Process, Run, Server, TIMEOUT_S, files, landspeed, scratch, validate_document};
use landspeed_testkit::process::run_concurrently;

#[test]
fn every_kind_of_test_has_a_valid_balanced_document() {
    let server = Server::start(&[]);
    let kinds = [
        "-t 0.2",
        "-t 0.2 -R",
        "-t 0.2 --bidir -P 2",
        "-n 1M",
        "-n 1M -R -P 3",
        "-n 1",
        "-t 0.2 -O 0.2 -i 1ms",
        "-t 0.2 -Z",
        "-t 0.2 --send splice --receive discard",
        "-t 0.2 --send zerocopy -R",
        "-t 0.2 -l 1",
        "-t 0.2 -b 10M",
        "-t 0.2 --pace 50M -P 2 --pace-total",
        "-t 0.2 --read-rate 100M",
        "-t 0.2 -w 64K -M 1000 -N -C reno",
        "-t 0.2 --probe",
        "-t 0.2 --probe-mtu",
        "-t 0.2 -u",
        "-t 0.2 -u -R -b 20M -l 64",
        "-t 0.2 -u --bidir -b 20M --burst 10 --coarse",
        "-t 0.2 -u -b 20M --no-gso --no-gro -l 9000",
        "-n 100K -u -b 20M",
        "-t 0.2 --rr",
        "-t 0.2 --rr --rate 500 -l 64/1k",
        "-t 0.2 --rr --connect",
        "-t 0.6 --rr --sizes 1,64,1k",
        "-t 0.2 --rr -u",
        "-t 0.2 --rr -u --rate 500 -P 2",
        "-t 0.2 -T title --dscp ef",
    ];
    for some in kinds.chunks(8) {
        run_concurrently(some, |options| {
            let args: Vec<_> = options.split(' ').collect();
            let run = server.run(&args);
            assert_eq!(
                (run.ended.code, run.status()),
                (0, "complete"),
                "{options}: {}\n{}",
                run.ended.stderr,
                run.document["errors"]
            );
            run.assert_clean();
        });
    }
}

/// Parses the lines of a `--jsonl` output.
fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["event"].as_str()).collect()
}

#[test]
fn jsonl_ends_with_the_document() {
    let server = Server::start(&[]);
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "0.5", "--jsonl", "-"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = events(&ended.stdout);
    let kinds = kinds(&events);
    assert_eq!((kinds.first(), kinds.last()), (Some(&"accepted"), Some(&"document")), "{kinds:?}");
    assert!(kinds.contains(&"progress"), "{kinds:?}");
    validate_document(&events.last().expect("a line")["document"]);
    // A failed run has a document too.
    let mut command = landspeed();
    command.args(["run", "127.0.0.1:9", "--jsonl", "-"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    let events = self::events(&ended.stdout);
    assert_eq!((ended.code, self::kinds(&events)), (2, vec!["document"]));
    validate_document(&events[0]["document"]);
}

#[test]
fn output_files_are_complete_without_temporary_files() {
    let server = Server::start(&[]);
    let directory = scratch();
    let path = |name: &str| directory.path().join(name);
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "0.3"]);
    command.arg("--json").arg(path("a.json")).arg("--jsonl").arg(path("a.jsonl")).arg("--report").arg(path("a.html"));
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("  cause  "), "a person reads the summary: {ended:?}");
    let document: Value = serde_json::from_slice(&std::fs::read(path("a.json")).unwrap()).unwrap();
    validate_document(&document);
    let lines = std::fs::read_to_string(path("a.jsonl")).unwrap();
    assert_eq!(events(&lines).last().expect("a line")["document"]["id"], document["id"]);
    let mut left = files(directory.path());
    left.sort();
    assert_eq!(left, [path("a.html"), path("a.json"), path("a.jsonl")]);
}

#[test]
fn documented_json_paths_exist() {
    let server = Server::start(&[]);
    let tcp = server.run(&["-t", "0.3"]);
    let udp = server.run(&["-t", "0.3", "-u", "-b", "10M"]);
    let at = |run: &Run, path: &str| run.document.pointer(path).cloned();
    assert_eq!(at(&tcp, "/schema"), Some("landspeed.run/1".into()));
    for path in ["/summary/goodput_bps", "/summary/bytes_delivered", "/summary/retransmits"] {
        assert!(at(&tcp, path).is_some_and(|v| v.is_number()), "{path}");
    }
    for path in ["/verdict/cause", "/verdict/next_step", "/conservation/holds", "/conservation/unaccounted_bytes"] {
        assert!(at(&tcp, path).is_some_and(|v| !v.is_null()), "{path}");
    }
    assert!(at(&tcp, "/verdict/evidence").is_some_and(|v| v.is_array()));
    assert!(at(&tcp, "/streams/0/intervals/0/bytes").is_some_and(|v| v.is_u64()));
    for name in ["sent", "delivered", "lost", "duplicate", "reordered", "late"] {
        assert!(at(&udp, &format!("/udp/{name}_packets")).is_some_and(|v| v.is_i64()), "{name}");
    }
}

#[test]
fn every_command_help_has_examples() {
    let help = |args: &[&str]| {
        let mut command = landspeed();
        command.args(args);
        let ended = Process::start(command).end(TIMEOUT_S);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.stdout
    };
    let top = help(&["--help"]);
    assert!(top.contains("Examples:") && top.contains("Exit status: 0 clean, 1 findings, 2 failure"), "{top}");
    let commands: Vec<_> = top
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty()))
        .collect();
    assert!(commands.contains(&"run") && commands.contains(&"serve"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let text = help(&[command, "--help"]);
        assert!(text.contains("Examples:"), "{command} shows no example:\n{text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(help(&["completions", shell]).contains("landspeed"), "{shell}");
    }
}

#[test]
fn closed_stdout_does_not_panic() {
    let server = Server::start(&[]);
    let script =
        format!("{PROGRAM} run {} -t 0.5 --json - | head -c 10; {PROGRAM} schema run | head -c 10", server.addr);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}
