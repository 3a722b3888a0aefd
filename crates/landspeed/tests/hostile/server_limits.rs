//! Server limits that clients cannot exceed.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_flow::control::message::{ToClient, ToServer};
use landspeed_flow::progress::LiveReading;
use landspeed_model::{Direction, Parameters, Protocol, RrMode, RrParameters, RrSize};
use landspeed_testkit::drip::{State, drip};

use crate::hostile::common::{Server, TIMEOUT_S};
use crate::hostile::raw::{ask, receive_message};
use landspeed_testkit::process::run_concurrently;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn tests_over_the_time_limit_are_refused_or_ended() {
    let server = Server::start(&["--max-duration", "1s"]);
    let run = server.run(&["-t", "2"]);
    run.assert_failed("not-permitted");
    assert!(run.ended.stderr.contains("1 s"), "{:?}", run.ended);
    server.run(&["-t", "0.5", "-b", "50m"]).assert_clean();
}

/// A test of more bytes than the time limit of one second allows ends after it and the drain.
pub fn more_bytes_than_the_time_limit_allows(server: SocketAddr) -> State {
    let hold = move |_| {
        let run = crate::hostile::common::run(&server.to_string(), &["-n", "100T", "-b", "10m"]);
        assert!(run.document["summary"]["bytes_delivered"].as_u64() > Some(0));
        run.ended.seconds
    };
    ("more bytes than the time limit allows", 1.0 + 10.0, Box::new(hold))
}

/// A client that never stops sending is stopped after its second and the drain.
pub fn endless_sender(server: SocketAddr) -> State {
    let hold = move |most_s| {
        let parameters = Parameters { time_ns: Some(SECOND_NS), ..Parameters::default() };
        let mut client = ask(server, parameters).expect("accepted");
        let mut data = client.data(0).0;
        client.ready();
        let now = client.server_clock();
        client.tx.queue(&ToServer::Start { at_ns: now, lead_ns: None }).unwrap();
        drip(&mut data, &[], Duration::from_millis(5), most_s)
    };
    ("a client that never stops sending", 1.0 + 10.0, Box::new(hold))
}

#[test]
fn rate_limit_applies_in_every_direction() {
    let server = Server::start(&["--max-rate", "80M"]);
    let tests = [&["-t", "1"][..], &["-t", "1", "-R"], &["-t", "1", "-P", "4"], &["-t", "1", "-u", "-b", "1G"]];
    run_concurrently(tests, |args| {
        let run = server.run(args);
        run.assert_clean();
        let goodput = run.document["summary"]["goodput_bps"].as_f64().expect("a rate");
        assert!(goodput < 90e6, "{args:?}: {goodput}");
        assert!(run.document["warnings"].to_string().contains("--max-rate"), "{}", run.document["warnings"]);
    });
}

#[test]
fn a_client_that_ignores_the_rate_is_read_slowly() {
    let server = Server::start(&["--max-rate", "80M"]);
    let parameters = Parameters { time_ns: Some(4 * SECOND_NS), ..Parameters::default() };
    let mut client = ask(server.addr, parameters).expect("accepted");
    assert_eq!(client.accepted.parameters.rate_bps, Some(80_000_000));
    let mut data = client.data(0).0;
    client.ready();
    let now = client.server_clock();
    client.tx.queue(&ToServer::Start { at_ns: now, lead_ns: None }).unwrap();
    let flood = std::thread::spawn(move || while data.write_all(&[7; 16_384]).is_ok() {});
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(t_ns, _)| *t_ns < 2_000_000_000) {
        if let ToClient::Progress(LiveReading { t_ns, received, .. }) =
            receive_message(&mut client.rx).expect("live figures")
        {
            seen.push((t_ns, received));
        }
    }
    drop(client);
    flood.join().unwrap();
    for (t_ns, received) in seen {
        let most = 10_000_000.0 * 1.06 * t_ns as f64 / 1e9 + 1e6;
        assert!((received as f64) < most, "{received} B after {t_ns} ns");
    }
}

#[test]
fn requests_above_the_rate_limit_are_refused_or_stopped() {
    let server = Server::start(&["--max-rate", "8M"]);
    let run = server.run(&["--rr", "--rate", "1000", "--sizes", "64k"]);
    run.assert_failed("not-permitted");
    let run = server.run(&["--rr", "--sizes", "256k", "-t", "30"]);
    assert_ne!(run.ended.code, 0, "{}", run.document["status"]);
    assert!(run.errors().contains(&"rate-exceeded"), "{:?}", run.errors());
    assert!(run.ended.seconds < 25.0);
}

#[test]
fn clients_outside_allowed_networks_are_refused() {
    let server = Server::start(&["--allow", "192.0.2.0/24", "--allow", "2001:db8::/32"]);
    let run = server.run(&["-t", "0.2"]);
    run.assert_failed("not-allowed");
    assert!(run.ended.stderr.contains("--allow"), "{:?}", run.ended);
    let server = Server::listening("[::]:0", &["--allow", "127.0.0.0/8"]);
    let at = |host: &str| format!("{host}:{}", server.addr.port());
    crate::hostile::common::run(&at("127.0.0.1"), &["-t", "0.2"]).assert_clean();
    crate::hostile::common::run(&at("[::1]"), &["-t", "0.2"]).assert_failed("not-allowed");
}

#[test]
fn memory_and_threads_of_all_tests_together_are_bounded() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let greedy = |streams, write_bytes| Parameters { streams, write_bytes, ..Parameters::default() };
    assert!(ask(server.addr, greedy(128, 64 << 20)).is_err_and(|why| why.contains("not-permitted")));
    // Each of these tests is allowed, but only a few at once.
    let mut held = Vec::new();
    let refusal = loop {
        match ask(server.addr, greedy(128, 8 << 20)) {
            Ok(client) => held.push(client),
            Err(why) => break why,
        }
        assert!(held.len() < 32, "32 GiB were promised");
    };
    assert!(refusal.contains("server-busy"), "{refusal}");
    // An ordinary test is still accepted.
    server.run(&["-t", "0.2"]).assert_clean();
    server.run(&["-t", "0.2", "--bind", "127.0.0.2"]).assert_clean();
    drop(held);
    let mut held = Vec::new();
    let sizes = vec![RrSize { request_bytes: 1, response_bytes: 1 }; 8];
    let rr = RrParameters { mode: RrMode::ClosedLoop, rate_per_s: None, sizes };
    let many = Parameters { protocol: Protocol::TcpRr, streams: 128, rr: Some(rr), ..Parameters::default() };
    let refusal = loop {
        match ask(server.addr, many.clone()) {
            Ok(client) => held.push(client),
            Err(why) => break why,
        }
        assert!(held.len() < 32, "32768 threads were promised");
    };
    assert!(refusal.contains("server-busy"), "{refusal}");
    drop(held);
    server.wait_for_resources(idle);
    server.run(&["-t", "0.2"]).assert_clean();
}

#[test]
fn sampling_interval_is_raised_to_fit_the_report() {
    let server = Server::start(&[]);
    let hour = Parameters {
        time_ns: Some(3600 * SECOND_NS),
        interval_ns: 1_000_000,
        host_interval_ns: 1_000_000,
        streams: 100,
        direction: Direction::Both,
        ..Parameters::default()
    };
    let client = ask(server.addr, hour).expect("accepted");
    let granted = &client.accepted.parameters;
    assert!(granted.interval_ns >= 7 * SECOND_NS, "{}", granted.interval_ns);
    assert!(granted.host_interval_ns >= SECOND_NS / 10, "{}", granted.host_interval_ns);
    assert!(client.accepted.notes.iter().any(|note| note.contains("sampling")), "{:?}", client.accepted.notes);
}

#[test]
fn a_client_that_leaves_early_frees_its_slot() {
    let server = Server::start(&["--max-tests", "2"]);
    for _ in 0..6 {
        let mut held = None;
        crate::hostile::common::until(TIMEOUT_S, "a free place", || {
            held = ask(server.addr, Parameters::default()).ok();
            held.is_some()
        });
        drop(held);
    }
}
