//! Invalid command lines, and unexpected services at the target.

use std::io::Write as _;

use landspeed_flow::control::preface::{self, Purpose, Status};
use landspeed_sys::process::is_root;
use landspeed_testkit::drip::State;
use landspeed_testkit::{iperf3, skip};

use crate::hostile::common::{
    Process, Server, TIMEOUT_S, assert_short_error, begin, files, finish, landspeed, run, scratch, until,
};
use crate::hostile::raw;
use crate::iperf3::parties::iperf3_server;
use landspeed_testkit::process::run_concurrently;

#[test]
fn an_iperf3_server_is_recognised_on_any_port() {
    let programs = iperf3::programs();
    if programs.is_empty() {
        skip!("no iperf3 is installed");
    }
    for program in &programs {
        let (_server, target) = iperf3_server(program, &[]);
        let ended = begin(&target, &["-t", "1"]).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{program}");
        assert!(ended.stderr.contains("add --iperf3"), "{program}: {}", ended.stderr);
    }
}

/// Invalid options, each with a word that the error must contain.
const INVALID_OPTIONS: &[(&str, &str)] = &[
    ("--time -1", "--time"),
    ("-t 0", "--time"),
    ("-t 1e30", "--time"),
    ("-t nan", "--time"),
    ("-t inf", "--time"),
    ("-t 31d", "--time"),
    ("-O -1", "--omit"),
    ("-n 0", "--bytes"),
    ("-n -1", "--bytes"),
    ("-n 16E", "--bytes"),
    ("--rate 0", "--rate"),
    ("--rate 1e30", "--rate"),
    ("--rate nan", "--rate"),
    ("--rate 1", "--rate"),
    ("-u --rate inf", "--rate"),
    ("--pace 0", "--pace"),
    ("--pace 1e30", "--pace"),
    ("--read-rate 1", "--read-rate"),
    ("-u --read-rate 1M", "--read-rate"),
    ("--rr --read-rate 1M", "--read-rate"),
    ("-P 0", "--parallel"),
    ("-P 100000", "--parallel"),
    ("-P -1", "-1"),
    ("-l 0", "--len"),
    ("-l 1e30", "--len"),
    ("-l -1", "--len"),
    ("-P 128 -l 64M", "--len"),
    ("-u -l 10", "--len"),
    ("-u -l 70000", "--len"),
    ("-u --burst 0", "--burst"),
    ("-u --send splice", "--send"),
    ("-u --mptcp", "--mptcp"),
    ("--mss 1", "--mss"),
    ("--mss 4000000000", "--mss"),
    ("-w 0", "--window"),
    ("-w 1e30", "--window"),
    ("--dscp 64", "--dscp"),
    ("--interval 0.1us", "--interval"),
    ("--interval 1h", "--interval"),
    ("--cpus 0,,1", "--cpus"),
    ("--cpus 0-4000000000", "--cpus"),
    ("--cpus 999", "--cpus"),
    ("--congestion a/b", "--congestion"),
    ("--numa moon", "--numa"),
    ("--send teleport", "--send"),
    ("--rr --sizes 0", "--sizes"),
    ("--rr --sizes 1..1T", "--sizes"),
    ("--rr --rate 1e300", "--rate"),
    ("--rr -R", "--rr"),
    ("--probe=nan", "--probe"),
    ("--probe=0", "--probe"),
    ("--bind 203.0.113.9", "203.0.113.9"),
    ("--key-file /nonexistent/key", "/nonexistent/key"),
    ("--key-file /proc/version", "readable by others"),
    ("--nonsense", "--nonsense"),
];

#[test]
fn invalid_options_are_named_and_nothing_runs() {
    for (options, word) in INVALID_OPTIONS {
        let mut command = landspeed();
        command.args(["run", "127.0.0.1:9"]).args(options.split(' '));
        let ended = Process::start(command).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{options}: {ended:?}");
        let first = ended.stderr.lines().next().unwrap_or_default();
        let begins = first.starts_with("landspeed: ") || first.starts_with("error: ");
        assert!(begins && first.contains(word), "{options}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{options}: {ended:?}");
        assert!(ended.seconds < 20.0, "{options}: {ended:?}");
    }
}

#[test]
fn invalid_values_leave_a_valid_document() {
    for options in ["-l 0", "--mss 1", "-w 0", "--rate 0", "--rate nan", "--interval 0.1us", "--rr --sizes 0"] {
        let args: Vec<_> = options.split(' ').collect();
        run("127.0.0.1:9", &args).assert_failed("bad-parameters");
    }
    run("127.0.0.1:9", &["--key-file", "/nonexistent/key"]).assert_failed("bad-key");
    run("127.0.0.1:9", &["--cpus", "999"]).assert_failed("socket-setup");
}

#[test]
fn unknown_congestion_control_error_names_the_sysctl() {
    let server = Server::start(&[]);
    run_concurrently(["-t1", "-R"], |direction| {
        let run = server.run(&["--congestion", "nosuch", direction]);
        assert_eq!((run.ended.code, run.status()), (2, "failed"), "{:?}", run.ended);
        assert!(run.ended.stderr.contains("nosuch"), "{:?}", run.ended);
        assert!(run.ended.stderr.contains("tcp_available_congestion_control"), "{:?}", run.ended);
    });
    server.run(&["-t", "0.1"]).assert_clean();
}

#[test]
fn server_refuses_cores_it_lacks() {
    let server = Server::start(&[]);
    let run = server.run(&["--peer-cpus", "999"]);
    run.assert_failed("not-permitted");
    assert!(run.ended.stderr.contains("core 999"), "{:?}", run.ended);
}

#[test]
fn unknown_hosts_and_closed_ports_give_advice() {
    let unknown = run("no-such-host.invalid", &[]);
    unknown.assert_failed("unknown-host");
    assert!(unknown.ended.stderr.contains("spelling"), "{:?}", unknown.ended);
    let (listener, addr) = raw::listener();
    drop(listener);
    let closed = run(&addr.to_string(), &[]);
    closed.assert_failed("connection-refused");
    assert!(closed.ended.stderr.contains("landspeed serve"), "{:?}", closed.ended);
}

#[test]
fn an_invalid_target_is_refused_with_an_example() {
    for target in ["host:0", "host:70000", "[::1", "a b", ""] {
        let mut command = landspeed();
        command.args(["run", target]);
        let ended = Process::start(command).end(TIMEOUT_S);
        assert!(ended.code == 2 && ended.stderr.contains("HOST:PORT"), "{target}: {ended:?}");
    }
}

#[test]
fn other_services_are_reported_as_not_landspeed() {
    let (listener, addr) = raw::listener();
    let client = begin(&addr.to_string(), &[]);
    let mut web = raw::welcome(&listener, *b"HTTP/1.1 400 Bad");
    let _ = web.write_all(b" Request\r\n\r\n");
    finish(client.end(TIMEOUT_S)).assert_failed("not-landspeed");

    let client = begin(&addr.to_string(), &[]);
    drop(listener.accept().expect("the client comes"));
    finish(client.end(TIMEOUT_S)).assert_failed("not-landspeed");
}

/// A client gives up on a service that does not respond.
pub fn silent_service() -> State {
    let hold = |_| {
        let (_listener, addr) = raw::listener();
        let run = run(&addr.to_string(), &[]);
        run.assert_failed("timeout");
        run.ended.seconds
    };
    ("a silent service", 10.0, Box::new(hold))
}

#[test]
fn version_mismatch_names_the_host_to_update() {
    for (version, advice) in [(9, "update landspeed on this host"), (0, "update landspeed on the server")] {
        let (listener, addr) = raw::listener();
        let client = begin(&addr.to_string(), &[]);
        let mut answer = preface::encode_answer(Status::Version);
        answer[8..10].copy_from_slice(&u16::to_be_bytes(version));
        let _stream = raw::welcome(&listener, answer);
        let run = finish(client.end(TIMEOUT_S));
        run.assert_failed("version-mismatch");
        assert!(run.ended.stderr.to_lowercase().contains(advice), "{:?}", run.ended);
    }
}

#[test]
fn server_reports_its_version_on_mismatch() {
    let server = Server::start(&[]);
    let mut stream = raw::connect(server.addr);
    let mut shown = preface::encode(Purpose::Control { keyed: false });
    shown[9] = 9;
    stream.write_all(&shown).unwrap();
    let mut answer = [0; preface::ANSWER_LEN];
    std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
    assert_eq!(preface::decode_answer(&answer), Some((preface::PROTOCOL_VERSION, Status::Version)));
    assert!(raw::is_closed(stream));
}

#[test]
fn a_busy_server_serves_the_next_test_afterwards() {
    let server = Server::start(&["--max-tests", "1"]);
    let mut long = server.begin(&["-t", "60"]);
    until(TIMEOUT_S, "the first test to start", || server.process.stdout().contains("start"));
    let busy = server.run(&["-t", "0.1"]);
    busy.assert_failed("server-busy");
    assert!(busy.ended.stderr.contains("Try again"), "{:?}", busy.ended);
    long.kill();
    until(TIMEOUT_S, "the first test to end", || server.process.stdout().contains("end "));
    until(TIMEOUT_S, "a free place", || server.run(&["-t", "0.1"]).ended.code == 0);
}

#[test]
fn an_unwritable_output_fails_before_the_test() {
    let server = Server::start(&[]);
    let directory = scratch();
    let missing = directory.path().join("missing/x.json");
    for option in ["--json", "--jsonl", "--report"] {
        for place in [directory.path(), missing.as_path(), std::path::Path::new("/proc/x")] {
            let mut command = landspeed();
            command.args(["run", &server.addr.to_string(), "-t", "30", option]).arg(place);
            let ended = Process::start(command).end(20);
            assert_eq!(ended.code, 2, "{option} {}: {ended:?}", place.display());
            assert_short_error(&ended);
        }
    }
    let same = directory.path().join("same");
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "30", "--json"]).arg(&same).arg("--report").arg(&same);
    assert_eq!(Process::start(command).end(20).code, 2);
    assert!(files(directory.path()).is_empty());
    assert!(!server.process.stdout().contains("start"));
}

#[test]
fn a_full_disk_loses_only_its_own_output() {
    let server = Server::start(&[]);
    let directory = scratch();
    let report = directory.path().join("run.html");
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "0.2", "--json", "/dev/full", "--report"]).arg(&report);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert_short_error(&ended);
    assert!(ended.stderr.contains("No space left"), "{ended:?}");
    assert!(std::fs::read_to_string(&report).expect("the report").ends_with("</html>\n"));
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "0.2", "--jsonl", "/dev/full", "--json", "-"]);
    let run = finish(Process::start(command).end(TIMEOUT_S));
    assert_eq!((run.ended.code, run.status()), (2, "complete"), "{:?}", run.ended);
}

#[test]
fn full_file_system_keeps_the_previous_file() {
    if !is_root() {
        skip!("mounting a small file system needs root");
    }
    let server = Server::start(&[]);
    let directory = scratch();
    let place = directory.path().to_str().expect("a plain path").to_owned();
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        Process::start(command).end(TIMEOUT_S)
    };
    if shell(&format!("mount -t tmpfs -o size=8k landspeed {place}")).code != 0 {
        skip!("no privilege to mount a file system");
    }
    let target = directory.path().join("x.json");
    std::fs::write(&target, "before").unwrap();
    let mut command = landspeed();
    command.args(["run", &server.addr.to_string(), "-t", "0.2", "-q", "--json"]).arg(&target);
    let ended = Process::start(command).end(TIMEOUT_S);
    let (kept, left) = (std::fs::read_to_string(&target), files(directory.path()));
    assert_eq!(shell(&format!("umount {place}")).code, 0);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert_short_error(&ended);
    assert_eq!(kept.expect("still there"), "before");
    assert_eq!(left, [target]);
}

#[test]
fn invalid_server_options_are_named() {
    let other = Server::start(&[]);
    let taken = other.addr.to_string();
    let wrong: &[(&[&str], &str)] = &[
        (&["--max-tests", "0"], "--max-tests"),
        (&["--listen", "nonsense"], "[::]:5210"),
        (&["--listen", &taken], "--listen"),
        (&["--listen", "203.0.113.9:0"], "ip address"),
        (&["--max-rate", "0"], "--max-rate"),
        (&["--max-duration", "-1"], "--max-duration"),
        (&["--allow", "nonsense"], "192.0.2.0/24"),
        (&["--key-file", "/nonexistent/key"], "/nonexistent/key"),
        (&["--config", "/nonexistent/config"], "/nonexistent/config"),
    ];
    for (args, word) in wrong {
        let mut command = landspeed();
        command.arg("serve").args(*args);
        let ended = Process::start(command).end(TIMEOUT_S);
        assert!(ended.code == 2 && ended.stderr.contains(word), "{args:?}: {ended:?}");
    }
}

#[test]
fn configuration_errors_name_file_line_and_key() {
    let directory = scratch();
    let path = directory.path().join("serve.toml");
    for (text, words) in [
        ("max_tests = 4\nmax_test = 5\n", ["serve.toml:2", "max_test = 5"]),
        ("max_duration = \"-1\"\n", ["serve.toml:1", "max_duration"]),
        ("max_rate = \"fast\"\n", ["serve.toml:1", "max_rate"]),
        ("listen = [\"nowhere\"]\n", ["serve.toml", "listen"]),
        ("allow = [\"anyone\"]\n", ["serve.toml", "allow"]),
        ("max_tests = \n", ["serve.toml:1", "max_tests"]),
        ("max_tests = 0\n", ["serve.toml", "max_tests"]),
    ] {
        std::fs::write(&path, text).unwrap();
        let mut command = landspeed();
        command.args(["serve", "--config"]).arg(&path);
        let ended = Process::start(command).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{text}: {ended:?}");
        assert_short_error(&ended);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{text}: {ended:?}");
    }
}
