//! Tests between two servers requested by a third host: results, permissions, and misbehaving peers.

use landspeed_flow::control::channel::{self, Receiver, Role, Sender};
use landspeed_flow::control::message::{MAX_MESSAGE, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Status};
use landspeed_flow::control::third_party::{ThirdPartyEvent, ThirdPartyRequest, ThirdPartyResult};
use landspeed_model::Parameters;
use landspeed_sys::clock;

use crate::hostile::common::{Process, Run, Server, TIMEOUT_S, begin, finish, landspeed, scratch, until};
use crate::hostile::raw;
use landspeed_testkit::process::run_concurrently;

/// Starts a server that may test against others on loopback.
fn runner(args: &[&str]) -> Server {
    Server::start(&[&["--allow-third-party", "127.0.0.0/8"], args].concat())
}

fn from(runner: &Server, target: &Server, args: &[&str]) -> Run {
    target.run(&[&["--from", &runner.addr.to_string()], args].concat())
}

#[test]
fn two_servers_measure_their_path_for_a_third_host() {
    let (runner, target) = (runner(&[]), Server::start(&[]));
    let tests = [
        &["-t", "0.5", "-b", "50m"][..],
        &["-t", "0.5", "-b", "50m", "-R", "-P", "2"],
        &["-t", "0.5", "-b", "50m", "--bidir", "--probe"],
        &["-t", "0.5", "-u", "-b", "20m"],
        &["-t", "0.5", "--rr", "--sizes", "1,1k"],
        &["-n", "4M", "--probe-mtu"],
    ];
    run_concurrently(tests, |args| {
        let run = from(&runner, &target, args);
        run.assert_clean();
        let document = &run.document;
        assert_eq!(document["third_party"]["from"], runner.addr.to_string(), "{args:?}");
        assert!(document["third_party"]["asker_addr"].as_str().is_some_and(|addr| addr.starts_with("127.0.0.1:")));
        assert!(document["hosts"]["client"]["hostname"].is_string() && document["hosts"]["server"].is_object());
        assert_eq!(document["path"]["target"], target.addr.to_string());
        assert!(document["command"].as_array().is_some_and(|words| words.iter().any(|word| word == "--from")));
    });
    assert_eq!(runner.process.stdout().matches("third-party test to 127.0.0.1:").count(), 6);
    assert_eq!(target.process.stdout().matches("end      complete").count(), 6);
}

#[test]
fn summary_names_both_hosts_of_a_third_party_test() {
    let (runner, target) = (runner(&[]), Server::start(&[]));
    let mut command = landspeed();
    command.args(["run", &target.addr.to_string(), "--from", &runner.addr.to_string()]);
    command.args(["-t", "1.5", "-b", "50m", "-v"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains(&format!("hosts    client {}, server {}", runner.addr, target.addr)),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("asked by 127.0.0.1:"), "{}", ended.stdout);
    // On a busy machine the first interval may take slightly more than a second.
    assert!(ended.stdout.lines().any(|line| line.trim_start().starts_with("0.0-1.")), "{}", ended.stdout);
}

#[test]
fn a_server_tests_against_allowed_targets_only() {
    let target = Server::start(&[]);
    let run = from(&Server::start(&[]), &target, &["-t", "0.2"]);
    run.assert_failed("not-permitted");
    assert!(run.ended.stderr.contains("--allow-third-party"), "{}", run.ended.stderr);
    let narrow = Server::start(&["--allow-third-party", "192.0.2.0/24", "--allow-third-party", "2001:db8::/32"]);
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        let place = format!("{host}:{}", target.addr.port());
        let run = crate::hostile::common::run(&place, &["--from", &narrow.addr.to_string(), "-t", "0.2"]);
        run.assert_failed("not-permitted");
    }
    assert!(!target.process.stdout().contains("start"), "{}", target.process.stdout());
}

#[test]
fn third_party_targets_are_required_without_a_key() {
    let mut command = landspeed();
    command.args(["serve", "--listen", "127.0.0.1:0", "--no-iperf3", "--allow-third-party"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 2);
    crate::hostile::common::assert_short_error(&ended);
    assert!(runner(&[]).process.stderr().contains("warning"));
}

#[test]
fn third_party_key_applies_to_both_servers() {
    let directory = scratch();
    let key = |name: &str| {
        let path = directory.path().join(name).display().to_string();
        let mut command = landspeed();
        command.args(["serve", "--new-key", &path]);
        assert_eq!(Process::start(command).end(TIMEOUT_S).code, 0);
        path
    };
    let (site, other) = (key("site"), key("other"));
    let runner = Server::start(&["--key-file", &site, "--allow-third-party"]);
    let (keyed, open) = (Server::start(&["--key-file", &site]), Server::start(&[]));
    let run = from(&runner, &keyed, &["-t", "0.3", "--key-file", &site]);
    run.assert_clean();
    assert_eq!(run.document["third_party"]["authenticated"], true);
    assert_eq!(run.document["path"]["authenticated"], true);
    from(&runner, &keyed, &["-t", "0.3"]).assert_failed("key-required");
    from(&runner, &keyed, &["-t", "0.3", "--key-file", &other]).assert_failed("wrong-key");
    let run = from(&runner, &open, &["-t", "0.3", "--key-file", &site]);
    run.assert_failed("key-unexpected");
    assert!(run.ended.stderr.contains(&open.addr.to_string()), "it names the server: {}", run.ended.stderr);
}

#[test]
fn unreachable_third_party_targets_are_reported() {
    let runner = runner(&[]);
    let idle = runner.baseline();
    let at = |target: &str| crate::hostile::common::run(target, &["--from", &runner.addr.to_string(), "-t", "0.2"]);
    let free = landspeed_testkit::process::free_port();
    at(&format!("127.0.0.1:{free}")).assert_failed("connection-refused");
    at("no-such-host.invalid").assert_failed("unknown-host");
    let full = Server::start(&["--max-duration", "1s"]);
    let run = crate::hostile::common::run(&full.addr.to_string(), &["--from", &runner.addr.to_string(), "-t", "5"]);
    run.assert_failed("not-permitted");
    assert!(run.ended.stderr.contains(&runner.addr.to_string()), "{}", run.ended.stderr);
    runner.wait_for_resources(idle);
}

#[test]
fn server_limits_apply_to_its_third_party_tests() {
    let target = Server::start(&[]);
    let limited = runner(&["--max-rate", "20M", "--max-duration", "10s", "--max-tests", "1"]);
    for args in [&["-t", "1"][..], &["-t", "1", "-R"], &["-t", "1", "-u", "-b", "500m"]] {
        let run = from(&limited, &target, args);
        run.assert_clean();
        let goodput = run.document["summary"]["goodput_bps"].as_f64().expect("a rate");
        assert!(goodput < 22e6, "{args:?}: {goodput} bit/s");
        assert!(run.document["warnings"].to_string().contains("--max-rate"), "{args:?}");
    }
    from(&limited, &target, &["-t", "20"]).assert_failed("not-permitted");
    // This test takes the only slot.
    let start_transferring = target.begin(&["--from", &limited.addr.to_string(), "-t", "9"]);
    until(TIMEOUT_S, "the test at the target", || target.process.stdout().matches(" start ").count() == 4);
    limited.run(&["-t", "0.2"]).assert_failed("server-busy");
    from(&limited, &target, &["-t", "0.2"]).assert_failed("server-busy");
    start_transferring.signal("INT");
    assert_eq!(finish(start_transferring.end(TIMEOUT_S)).errors(), ["interrupted"]);
}

/// Starts a test of a minute and waits for its first figures.
fn measuring(runner: &Server, target: &Server) -> Process {
    let scratch = tempfile::tempdir().expect("a directory");
    let events = scratch.path().join("events.jsonl");
    let from = runner.addr.to_string();
    let asker = target.begin(&["--from", &from, "-t", "60", "-b", "50m", "--jsonl", events.to_str().expect("text")]);
    let said = || std::fs::read_to_string(&events).unwrap_or_default();
    until(TIMEOUT_S, "the first progress", || said().contains("\"progress\""));
    asker
}

#[test]
fn third_party_test_ends_with_its_client() {
    let (runner, target) = (runner(&[]), Server::start(&[]));
    let idle = [runner.baseline(), target.baseline()];
    for how in ["INT", "KILL"] {
        let asker = measuring(&runner, &target);
        let since_ns = clock::monotonic_ns();
        asker.signal(how);
        let ended = asker.end(TIMEOUT_S);
        if how == "INT" {
            let run = finish(ended);
            assert_eq!((run.ended.code, run.status()), (1, "partial"), "{}", run.ended.stderr);
            assert_eq!(run.errors(), ["interrupted"]);
            assert_eq!(run.document["conservation"]["holds"], true, "{}", run.document["conservation"]);
        }
        runner.wait_for_resources(idle[0]);
        target.wait_for_resources(idle[1]);
        let took_s = (clock::monotonic_ns() - since_ns) / 1_000_000_000;
        assert!(took_s < 10, "{how}: {took_s} s");
    }
}

#[test]
fn vanished_third_party_servers_are_reported() {
    let (mut runner, mut target) = (runner(&[]), Server::start(&[]));
    let asker = measuring(&runner, &target);
    target.process.kill();
    let run = finish(asker.end(TIMEOUT_S));
    assert_eq!(run.status(), "partial", "{}", run.ended.stderr);
    // The stream may fail before the loss of the control connection is detected.
    assert!([&["peer-lost"][..], &["peer-lost", "stream"]].contains(&&run.errors()[..]), "{:?}", run.errors());
    let target = Server::start(&[]);
    let idle = target.baseline();
    let asker = measuring(&runner, &target);
    runner.process.kill();
    finish(asker.end(TIMEOUT_S)).assert_failed("peer-lost");
    target.wait_for_resources(idle);
}

fn request(target: &str, parameters: Parameters) -> ToServer {
    let request = ThirdPartyRequest { version: "0".into(), target: target.into(), parameters, queue: false };
    ToServer::ThirdParty { request: Box::new(request) }
}

fn ask(runner: &Server, message: &ToServer) -> (Sender, Receiver) {
    let stream = raw::control(runner.addr);
    let (mut tx, rx) =
        channel::open(stream, Role::Client, None, MAX_MESSAGE, raw::IO_TIMEOUT, &raw::NOT_INTERRUPTED).unwrap();
    tx.queue(message).unwrap();
    (tx, rx)
}

#[test]
fn invalid_third_party_requests_are_refused() {
    let runner = runner(&[]);
    let idle = runner.baseline();
    let parameters = Parameters::default;
    let long = "x".repeat(10_000);
    for message in [
        request("", parameters()),
        request("\u{1b}[2J", parameters()),
        request("a b:5210", parameters()),
        request(&long, parameters()),
        request("127.0.0.1:0", parameters()),
        request("127.0.0.1", Parameters { streams: 0, ..parameters() }),
        request("127.0.0.1", Parameters { time_ns: Some(u64::MAX), ..parameters() }),
        request("127.0.0.1", Parameters { interval_ns: 0, ..parameters() }),
        request("127.0.0.1", Parameters { client_cpus: vec![u32::MAX], ..parameters() }),
    ] {
        let (_tx, mut rx) = ask(&runner, &message);
        let answer = raw::receive_message(&mut rx);
        // A name that does not resolve is a failed test with a report.
        let refused = match &answer {
            Ok(ToClient::Refused(_)) => true,
            Ok(ToClient::Report { text, .. }) => text.contains("cannot resolve"),
            _ => false,
        };
        assert!(refused, "{message:?}: {answer:?}");
    }
    runner.wait_for_resources(idle);
    assert!(!runner.process.stdout().chars().any(|c| c != '\n' && c.is_control()));
}

#[test]
fn a_message_out_of_order_ends_the_test() {
    let (runner, target) = (runner(&[]), Server::start(&[]));
    let idle = [runner.baseline(), target.baseline()];
    for message in [ToServer::Opened, ToServer::Tap, request("127.0.0.1", Parameters::default())] {
        let (mut tx, mut rx) = ask(&runner, &request(&target.addr.to_string(), Parameters::default()));
        until(TIMEOUT_S, "the acceptance", || {
            matches!(
                raw::receive_message(&mut rx),
                Ok(ToClient::ThirdParty { event: ThirdPartyEvent::Accepted { .. } })
            )
        });
        tx.queue(&message).unwrap();
        until(TIMEOUT_S, "the end", || !matches!(raw::receive_message(&mut rx), Ok(ToClient::ThirdParty { .. })));
        runner.wait_for_resources(idle[0]);
        target.wait_for_resources(idle[1]);
    }
}

#[test]
fn dripping_target_releases_its_slot() {
    let runner = runner(&[]);
    let idle = runner.baseline();
    let (listener, addr) = raw::listener();
    let dripping = std::thread::spawn(move || {
        use std::io::Write as _;
        let Ok((mut stream, _)) = listener.accept() else { return };
        while stream.write_all(b"l").is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(60));
        }
    });
    let run = crate::hostile::common::run(&addr.to_string(), &["--from", &runner.addr.to_string(), "-t", "0.2"]);
    assert_eq!((run.ended.code, run.status()), (2, "failed"), "{:?}", run.ended);
    runner.wait_for_resources(idle);
    dripping.join().expect("it ends with its connection");
}

/// Runs a third-party client whose server answers the request with `messages`.
fn answered(messages: impl FnOnce(ThirdPartyRequest) -> Vec<ToClient>) -> Run {
    let (listener, addr) = raw::listener();
    let asker = begin("127.0.0.1:1", &["--from", &addr.to_string(), "-t", "0.2"]);
    let stream = raw::welcome(&listener, preface::encode_answer(Status::Welcome));
    let (mut tx, mut rx) =
        channel::open(stream, Role::Server, None, MAX_MESSAGE, raw::IO_TIMEOUT, &raw::NOT_INTERRUPTED).unwrap();
    let asked = match rx.wait::<ToServer>("the request", raw::IO_TIMEOUT, &raw::NOT_INTERRUPTED).unwrap() {
        ToServer::ThirdParty { request } => *request,
        other => panic!("{other:?}"),
    };
    for message in messages(asked) {
        tx.queue(&message).unwrap();
    }
    drop((tx, rx));
    finish(asker.end(TIMEOUT_S))
}

fn result(asked: &ThirdPartyRequest) -> ThirdPartyResult {
    ThirdPartyResult {
        version: "0".into(),
        asker_addr: "127.0.0.1:1".into(),
        id: "0".repeat(32),
        started_unix_ns: u64::MAX,
        effective: Some(asked.parameters.clone()),
        server_version: None,
        path: None,
        client_host: None,
        server_host: None,
        client_notes: Vec::new(),
        server_notes: Vec::new(),
        errors: Vec::new(),
        client_reports: false,
        server_reports: false,
    }
}

fn whole(text: impl Into<String>) -> ToClient {
    ToClient::Report { text: text.into(), last: true }
}

#[test]
fn older_server_is_reported_as_unsupported() {
    answered(|_| Vec::new()).assert_failed("unsupported");
}

#[test]
fn invalid_third_party_answers_are_rejected() {
    let json = |result: &ThirdPartyResult| whole(serde_json::to_string(result).unwrap());
    answered(|_| vec![ToClient::Ready]).assert_failed("protocol");
    answered(|_| vec![whole("[")]).assert_failed("protocol");
    answered(|_| vec![whole("{}")]).assert_failed("protocol");
    let other = Parameters { streams: 100, ..Parameters::default() };
    answered(|asked| vec![json(&ThirdPartyResult { effective: Some(other), ..result(&asked) })])
        .assert_failed("protocol");
    for report in ["{}", r#"{"streams":[{"id":9}]}"#, "18446744073709551615"] {
        let run = answered(|asked| {
            let result = ThirdPartyResult { client_reports: true, server_reports: true, ..result(&asked) };
            vec![json(&result), whole(report), whole(report)]
        });
        assert_eq!((run.ended.code, run.errors()), (2, vec!["protocol"]), "{report}: {:?}", run.ended);
    }
    let evil = "\u{1b}[2J\u{7}";
    let run = answered(|asked| {
        let entry = landspeed_model::ErrorEntry { code: "x".into(), message: evil.into(), advice: Some(evil.into()) };
        vec![json(&ThirdPartyResult { errors: vec![entry; 1000], version: evil.into(), ..result(&asked) })]
    });
    assert_eq!(run.status(), "failed");
    assert!(run.ended.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", run.ended.stderr);
    assert!(run.errors().len() <= 64);
}
