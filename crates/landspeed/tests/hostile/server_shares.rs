//! Shares of one client address in a server, and the service for the other clients.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use landspeed_flow::control::channel::{self, Key, Role};
use landspeed_flow::control::message::{MAX_MESSAGE, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Purpose, Status};
use landspeed_model::{Direction, Parameters, Protocol, UdpParameters};
use landspeed_sys::{clock, process};
use landspeed_testkit::drip::State;

use crate::hostile::common::{Server, TIMEOUT_S, finish, until};
use crate::hostile::raw::{
    self, Client, IO_TIMEOUT, NOT_INTERRUPTED, ask, connect, connect_from, control, frame, receive_message,
    run_handshake,
};

use crate::common::PROGRAM;

const SECOND_NS: u64 = 1_000_000_000;
const OTHER_ADDRESS: [&str; 2] = ["--bind", "127.0.0.2"];

/// Parameters of a long test with minimal resources.
fn minimal_parameters() -> Parameters {
    Parameters {
        time_ns: Some(3600 * SECOND_NS),
        rate_bps: Some(8),
        write_bytes: 1,
        interval_ns: 10 * SECOND_NS,
        host_interval_ns: 1000 * SECOND_NS,
        ..Parameters::default()
    }
}

/// Starts as many tests as one address gets; returns them and the reason of the refusal.
fn fill_share(server: SocketAddr, parameters: &Parameters) -> (Vec<Client>, String) {
    let mut held = Vec::new();
    loop {
        match ask(server, parameters.clone()) {
            Ok(client) => held.push(client),
            Err(why) => return (held, why),
        }
        assert!(held.len() < 500, "no end");
    }
}

/// Starts a server with this limit of open files.
fn with_open_files(limit: u32, args: &str) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {limit}; exec {PROGRAM} serve --listen 127.0.0.1:0 {args}")]);
    Server::of(command)
}

fn from_other_address<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&OTHER_ADDRESS[..], args].concat()
}

#[test]
fn one_address_gets_three_quarters_of_the_slots() {
    let server = Server::start(&["--max-tests", "16"]);
    let idle = server.baseline();
    let (held, refusal) = fill_share(server.addr, &minimal_parameters());
    assert_eq!(held.len(), 12);
    assert!(refusal.starts_with("server-busy"), "{refusal}");
    server.run(&["-t", "0.2"]).assert_failed("server-busy");
    server.run(&from_other_address(&["-t", "0.2"])).assert_clean();
    drop(held);
    server.wait_for_resources(idle);
    server.run(&["-t", "0.2"]).assert_clean();
}

#[test]
fn tests_per_host_are_limited() {
    for (number, places) in [("2", 2), ("8", 8)] {
        let server = Server::start(&["--max-tests", "8", "--max-tests-per-host", number]);
        let (held, refusal) = fill_share(server.addr, &minimal_parameters());
        assert_eq!((held.len(), refusal.split(':').next()), (places, Some("server-busy")), "{refusal}");
        if places < 8 {
            server.run(&from_other_address(&["-t", "0.2"])).assert_clean();
        }
    }
}

#[test]
fn total_rate_is_shared_and_enforced() {
    let server = Server::start(&["--max-total-rate", "80M"]);
    let asks_20m = Parameters { rate_bps: Some(20_000_000), ..minimal_parameters() };
    let first = ask(server.addr, asks_20m.clone()).expect("accepted");
    assert_eq!(first.accepted.parameters.rate_bps, Some(20_000_000), "as asked");
    let greedy = ask(server.addr, Parameters { rate_bps: None, ..minimal_parameters() }).expect("accepted");
    // (3 × 60M free − 20M used) / 4
    assert_eq!(greedy.accepted.parameters.rate_bps, Some(40_000_000));
    assert!(
        greedy.accepted.notes.iter().any(|note| note.contains("--max-total-rate")),
        "{:?}",
        greedy.accepted.notes
    );
    let refusal = ask(server.addr, asks_20m).map(|_| ()).unwrap_err();
    assert!(refusal.starts_with("server-busy"), "{refusal}");
    // Another client gets three quarters of the remaining 20M.
    let run = server.run(&from_other_address(&["-t", "2"]));
    run.assert_clean();
    let goodput = run.document["summary"]["goodput_bps"].as_f64().expect("a rate");
    assert!(goodput < 17e6, "{goodput}");
    drop((first, greedy));
    until(TIMEOUT_S, "the rate to be given back", || {
        ask(server.addr, Parameters { rate_bps: Some(55_000_000), ..minimal_parameters() }).is_ok()
    });
}

#[test]
fn a_client_that_exceeds_its_rate_share_is_stopped() {
    let server = Server::start(&["--max-total-rate", "8M"]);
    let udp = Parameters {
        protocol: Protocol::Udp,
        udp: Some(UdpParameters::default()),
        time_ns: Some(60 * SECOND_NS),
        rate_bps: Some(4_000_000),
        ..Parameters::default()
    };
    let mut client = ask(server.addr, udp).expect("accepted");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.addr).unwrap();
    socket.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
    landspeed_flow::control::hello::run_handshake(&socket, 0, client.token, 0, &NOT_INTERRUPTED).expect("proved");
    client.ready();
    let at_ns = client.server_clock();
    client.tx.queue(&ToServer::Start { at_ns, lead_ns: None }).unwrap();
    // None of these datagrams carries the test's tag.
    let begun = clock::monotonic_ns();
    let code = loop {
        for _ in 0..50 {
            let _ = socket.send(&[0x6a; 1400]);
        }
        client.tx.queue(&ToServer::Alive).expect("the control connection stays open");
        match client.rx.poll::<ToClient>(Duration::from_millis(5)).expect("an answer") {
            Some(ToClient::Error(entry)) => break entry.code,
            _ => assert!(clock::monotonic_ns() - begun < 40 * SECOND_NS, "junk is still taken after 40 s"),
        }
    };
    assert_eq!(code, "rate-exceeded");
}

#[test]
fn a_server_without_descriptors_says_busy_and_serves_other_addresses() {
    process::raise_open_files_limit();
    let server = with_open_files(256, "");
    let idle = server.baseline();
    // Idle connections in all states, more than the server has descriptors.
    let shown = preface::encode(Purpose::Control { keyed: false });
    let mut strangers: Vec<TcpStream> = Vec::new();
    for i in 0..400 {
        let mut stream = connect(server.addr);
        let _ = stream.write_all(&shown[..if i % 2 == 0 { shown.len() } else { i % 48 }]);
        strangers.push(stream);
        if i % 80 == 79 {
            server.run(&from_other_address(&["-t", "0.1"])).assert_clean();
        }
    }
    let own = server.run(&["-t", "0.1"]);
    assert!(own.ended.code == 0 || own.errors() == ["server-busy"], "{:?}", own.errors());
    drop(strangers);
    server.wait_for_resources(idle);
}

#[test]
fn a_test_without_enough_descriptors_is_refused() {
    let server = with_open_files(256, "");
    let idle = server.baseline();
    for args in [&["-t", "0.2", "-P", "128"][..], &["-t", "0.2", "-P", "128", "--bidir"], &["--rr", "-P", "128"]] {
        let run = server.run(args);
        run.assert_failed("not-permitted");
        assert!(run.ended.stderr.contains("open files"), "{:?}", run.ended);
    }
    server.run(&["-t", "0.2", "-P", "8"]).assert_clean();
    server.wait_for_resources(idle);
}

#[test]
fn tests_use_no_more_descriptors_than_reserved() {
    let server = with_open_files(256, "");
    let idle = server.baseline();
    // As many concurrent streams as are admitted: each must run.
    let kinds: [&[&str]; 4] = [&["-b", "20m"], &["-b", "20m", "-R"], &["-b", "2m", "-u"], &["--rr", "--rate", "200"]];
    for kind in kinds {
        let clients: Vec<_> = (0..12).map(|_| server.begin(&[&["-t", "1", "-P", "2"], kind].concat())).collect();
        let mut served = 0;
        for client in clients {
            let run = finish(client.end(2 * TIMEOUT_S));
            if run.errors() == ["server-busy"] {
                continue;
            }
            run.assert_clean();
            served += 1;
        }
        assert!(served >= 4, "{kind:?}: {served} of 12");
        server.wait_for_resources(idle);
    }
}

/// Fills the greeting slots with connections of this address until `first` loses its slot.
fn filler_connections(server: SocketAddr, keyed: bool, first: &TcpStream) -> Vec<TcpStream> {
    let begun = clock::monotonic_ns();
    let mut filler_connections = Vec::new();
    let mut peeked = [0; 1];
    first.set_nonblocking(true).unwrap();
    while first.peek(&mut peeked).is_err() {
        filler_connections.push(run_handshake(server, Purpose::Control { keyed }).0);
        assert!(
            filler_connections.len() < 400 && clock::monotonic_ns() - begun < 9 * SECOND_NS,
            "no client lost its slot"
        );
    }
    first.set_nonblocking(false).unwrap();
    filler_connections
}

#[test]
fn client_displaced_during_greeting_gets_server_busy() {
    process::raise_open_files_limit();
    let server = Server::start(&["--max-tests", "8"]);
    let stream = control(server.addr);
    let _crowd = filler_connections(server.addr, false, &stream);
    let (mut tx, mut rx) =
        channel::open(stream, Role::Client, None, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
    // The client's request is in flight when the refusal arrives.
    tx.queue(&raw::hello(minimal_parameters())).expect("no reset");
    match receive_message(&mut rx) {
        Ok(ToClient::Refused(entry)) => assert_eq!(entry.code, "server-busy"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn client_displaced_during_handshake_gets_server_busy() {
    process::raise_open_files_limit();
    let place = crate::hostile::common::scratch();
    let path = place.path().join("key");
    let key = Key::generate().unwrap();
    std::fs::write(&path, key.to_text()).unwrap();
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let server = Server::start(&["--key-file", path.to_str().unwrap()]);
    let (stream, status) = run_handshake(server.addr, Purpose::Control { keyed: true });
    assert_eq!(status, Some(Status::Welcome));
    let _crowd = filler_connections(server.addr, true, &stream);
    let error = channel::open(stream, Role::Client, Some(&key), MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code(), "server-busy", "{error}");
}

#[test]
fn client_displaced_before_its_preface_gets_server_busy() {
    process::raise_open_files_limit();
    let server = with_open_files(256, "--no-iperf3");
    let other: IpAddr = [127, 0, 0, 3].into();
    let mut early = connect_from(other, server.addr);
    early.write_all(b"L").unwrap();
    let mut filler_connections = Vec::new();
    let mut peeked = [0; 1];
    early.set_nonblocking(true).unwrap();
    // All connections are from the same address; `early` is the oldest.
    while early.peek(&mut peeked).is_err() {
        let mut stream = connect_from(other, server.addr);
        stream.write_all(b"L").unwrap();
        filler_connections.push(stream);
        assert!(filler_connections.len() < 500, "no client lost its slot");
    }
    early.set_nonblocking(false).unwrap();
    let mut answer = [0; preface::ANSWER_LEN];
    std::io::Read::read_exact(&mut early, &mut answer).expect("an answer");
    assert_eq!(preface::decode_answer(&answer).map(|(_, status)| status), Some(Status::Busy));
}

#[test]
fn host_descriptions_are_rate_limited() {
    let server = Server::start(&["--describe"]);
    let describe = |source: [u8; 4]| {
        let mut stream = connect_from(source.into(), server.addr);
        stream.write_all(&preface::encode(Purpose::Control { keyed: false })).unwrap();
        let mut answer = [0; preface::ANSWER_LEN];
        std::io::Read::read_exact(&mut stream, &mut answer).expect("welcome");
        stream.write_all(&frame(br#"{"type":"describe","version":"0"}"#)).unwrap();
        let (_tx, mut rx) =
            channel::open(stream, Role::Client, None, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
        match receive_message(&mut rx) {
            Ok(ToClient::Report { .. }) => None,
            Ok(ToClient::Refused(entry)) => Some(entry),
            other => panic!("{other:?}"),
        }
    };
    // The limit is about one host description per second.
    let begun = clock::monotonic_ns();
    let refusal = (0..200).find_map(|_| describe([127, 0, 0, 1]));
    let refusal = refusal.unwrap_or_else(|| panic!("200 descriptions in {} ns", clock::monotonic_ns() - begun));
    assert_eq!(refusal.code, "server-busy");
    assert!(refusal.advice.is_some_and(|advice| advice.contains("try again in")));
    assert!(describe([127, 0, 0, 2]).is_none(), "another address is not concerned");
}

/// The server stops sending to a client that is silent after the start.
pub fn silent_client() -> State {
    ("data to a silent client", 15.0, Box::new(|_| data_to_a_silent_client()))
}

/// Returns how long data is sent after the client's last message, seconds.
fn data_to_a_silent_client() -> f64 {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let download = Parameters {
        protocol: Protocol::Udp,
        direction: Direction::Download,
        udp: Some(UdpParameters::default()),
        time_ns: Some(3600 * SECOND_NS),
        rate_bps: Some(1_000_000),
        ..Parameters::default()
    };
    let mut client = ask(server.addr, download).expect("accepted");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.addr).unwrap();
    socket.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
    landspeed_flow::control::hello::run_handshake(&socket, 0, client.token, 0, &NOT_INTERRUPTED).expect("proved");
    client.ready();
    // The latest possible start time: the timeout counts from the last message, not from the start.
    let at_ns = client.server_clock() + 10 * SECOND_NS;
    client.tx.queue(&ToServer::Start { at_ns, lead_ns: None }).unwrap();
    let begun = clock::monotonic_ns();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut last_ns = begun;
    let mut datagram = [0; 2048];
    loop {
        let heard = socket.recv(&mut datagram).is_ok();
        let now_ns = clock::monotonic_ns();
        last_ns = if heard { now_ns } else { last_ns };
        assert!(last_ns - begun < 22 * SECOND_NS, "data 22 s after the last sign of life");
        if !heard && now_ns > begun + 13 * SECOND_NS {
            break;
        }
    }
    assert!(last_ns > begun + 9 * SECOND_NS, "the test began");
    server.wait_for_resources((idle.0 + 3, idle.1));
    drop(client);
    server.wait_for_resources(idle);
    (last_ns - begun) as f64 / 1e9
}
