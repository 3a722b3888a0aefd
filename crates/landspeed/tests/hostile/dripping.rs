//! Peers that move a byte now and then: each step of the protocol ends in its documented time, and Ctrl-C within a second.
//!
//! Bounds here have slack for a busy machine; without an absolute deadline each of these waits lasts hours.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_flow::control::message::{Accepted, REPORT_PART, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Purpose, Status, Token};
use landspeed_flow::control::{channel, message::MAX_MESSAGE};
use landspeed_model::{HostSnapshot, Parameters, Protocol, RrMode, RrParameters, RrSize};
use landspeed_sys::clock;
use landspeed_testkit::drip::{self, SLACK_S, State};

use crate::common::{Process, Server, begin, landspeed, scratch};
use crate::raw::{self, NEVER, SHORT};

/// A byte comes so often: soon enough for every timeout of a single system call.
const EVERY: Duration = Duration::from_millis(8);

fn seconds_since(then_ns: u64) -> f64 {
    (clock::monotonic_ns() - then_ns) as f64 / 1e9
}

/// Announces a message of 1 MB and moves a byte of it now and then, until the peer hangs up or `most_s` have passed. How
/// long that took, seconds.
fn drip(stream: &mut TcpStream, most_s: f64) -> f64 {
    drip::drip(stream, &1_000_000_u32.to_be_bytes(), EVERY, most_s)
}

/// A test of `ms` milliseconds at almost no rate.
fn slow_test(ms: u64) -> Parameters {
    Parameters {
        time_ns: Some(ms * 1_000_000),
        rate_bps: Some(8000),
        write_bytes: 100,
        streams: 1,
        ..Parameters::default()
    }
}

/// A client of one stream whose test has started; its control connection in the clear.
fn started(server: SocketAddr, parameters: Parameters) -> (TcpStream, TcpStream) {
    let control = raw::control(server);
    let twin = control.try_clone().unwrap();
    let (mut tx, mut rx) = channel::open(control, channel::Role::Client, None, MAX_MESSAGE, SHORT, &NEVER).unwrap();
    tx.queue(&ToServer::Hello { version: "0".into(), parameters: Box::new(parameters) }).unwrap();
    let Ok(ToClient::Accepted(accepted)) = raw::hear(&mut rx) else { panic!("not accepted") };
    let token = Token::from_hex(&accepted.token).unwrap();
    let (data, status) = raw::introduce(server, Purpose::Data { stream: 0, token });
    assert_eq!(status, Some(Status::Welcome));
    tx.queue(&ToServer::Ping { n: 0 }).unwrap();
    let Ok(ToClient::Pong { now_ns, .. }) = raw::hear(&mut rx) else { panic!("no pong") };
    tx.queue(&ToServer::Opened).unwrap();
    assert!(matches!(raw::hear(&mut rx), Ok(ToClient::Ready)));
    tx.queue(&ToServer::Start { at_ns: now_ns + 20_000_000 }).unwrap();
    (twin, data)
}

#[test]
fn a_slow_client_delays_the_server_within_limits() {
    let directory = scratch();
    let key = directory.path().join("key");
    let made = Process::start({
        let mut command = landspeed();
        command.args(["serve", "--new-key"]).arg(&key);
        command
    });
    assert_eq!(made.end(60).code, 0);
    let server = Server::start(&["--no-iperf3", "--max-duration", "1s"]);
    let keyed = Server::start(&["--no-iperf3", "--key-file", key.to_str().unwrap()]);
    let (open, keyed_addr) = (server.addr, keyed.addr);
    let idle = server.baseline();
    let states: Vec<State> = vec![
        (
            "preface",
            5.0,
            Box::new(move |most| {
                let preface = preface::encode(Purpose::Control { keyed: false });
                drip::drip(&mut raw::connect(open), &preface, Duration::from_millis(400), most)
            }),
        ),
        (
            "key handshake",
            5.0,
            Box::new(move |most| {
                let (mut stream, status) = raw::introduce(keyed_addr, Purpose::Control { keyed: true });
                assert_eq!(status, Some(Status::Welcome));
                drip::drip(&mut stream, &[0, 200], Duration::from_millis(100), most)
            }),
        ),
        ("greeting", 10.0, Box::new(move |most| drip(&mut raw::control(open), most))),
        (
            "set-up",
            10.0,
            Box::new(move |most| {
                let mut control = raw::control(open);
                let hello = ToServer::Hello { version: "0".into(), parameters: Box::new(slow_test(500)) };
                control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
                drip(&mut control, most)
            }),
        ),
        // Its own second, the drain of a stream that never ends, and the farewell.
        (
            "run and farewell",
            1.0 + 10.0 + 10.0,
            Box::new(move |most| {
                let (mut control, _data) = started(open, slow_test(1000));
                drip(&mut control, most)
            }),
        ),
        (
            "farewell",
            1.0 + 10.0,
            Box::new(move |most| {
                let (mut control, data) = started(open, slow_test(500));
                data.shutdown(std::net::Shutdown::Write).unwrap();
                drip(&mut control, most)
            }),
        ),
    ];
    drip::hold_no_longer_than_documented(states);
    server.settles_to(idle);
    drop(keyed);
    server.run(&["-t", "0.2"]).assert_clean();
}

#[test]
fn a_client_that_reads_no_answers_is_cut() {
    let server = Server::start(&["--no-iperf3"]);
    let mut control = raw::control(server.addr);
    let hello = ToServer::Hello { version: "0".into(), parameters: Box::new(slow_test(500)) };
    let ping = raw::frame(&serde_json::to_vec(&ToServer::Ping { n: 1 }).unwrap()).repeat(1000);
    control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
    control.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let begun_ns = clock::monotonic_ns();
    while !matches!(control.write(&ping), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock) {
        assert!(seconds_since(begun_ns) < 60.0 + SLACK_S, "the server holds on to a client that does not read");
    }
}

#[test]
fn the_rate_limit_holds_for_a_slow_client() {
    const ALLOWED_BPS: f64 = 10e6;
    let server = Server::start(&["--no-iperf3", "--max-rate", "10M"]);
    let sizes = vec![RrSize { request_bytes: 1, response_bytes: 1 << 20 }];
    let (mut control, mut data) = started(
        server.addr,
        Parameters {
            protocol: Protocol::TcpRr,
            time_ns: Some(20_000_000_000),
            streams: 1,
            rr: Some(RrParameters { mode: RrMode::ClosedLoop, rate_per_s: None, sizes }),
            ..Parameters::default()
        },
    );
    let dripping = std::thread::spawn(move || drip(&mut control, 20.0));
    data.set_read_timeout(Some(SHORT)).unwrap();
    let begun_ns = clock::monotonic_ns();
    let mut buffer = vec![0; 1 << 20];
    let (mut moved, mut owed) = (0_u64, 0_u64);
    loop {
        if owed == 0 {
            if data.write_all(b"?").is_err() {
                break;
            }
            owed = 1 << 20;
        }
        match data.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => (moved, owed) = (moved + n as u64, owed.saturating_sub(n as u64)),
        }
        let allowed = ALLOWED_BPS / 8.0 * (seconds_since(begun_ns) + 1.0) * 1.1 + f64::from(1 << 20);
        // The server counts every 20 ms, in which loopback moves tens of megabytes.
        assert!((moved as f64) < allowed + 400e6, "{moved} B in {:.1} s", seconds_since(begun_ns));
    }
    assert!(dripping.join().expect("no panic") < 20.0, "the control connection ends with the test");
}

/// What a hostile server drips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The answer to the preface.
    Answer,
    /// The key handshake.
    Handshake,
    /// The acceptance.
    Acceptance,
    /// The answer to the first ping.
    Pong,
    /// The answer to a data connection's preface.
    DataAnswer,
    /// That all data connections are there.
    Ready,
    /// Live figures.
    Run,
    /// The report's first part, or its second.
    Report,
    SecondPart,
}

/// Goes along with a client up to a state and drips from there, until stopped.
fn dripping_server(listener: &TcpListener, until: Until, over: &AtomicBool) {
    let (mut control, _) = listener.accept().expect("the client comes");
    let mut shown = [0; preface::PREFACE_LEN];
    control.read_exact(&mut shown).unwrap();
    let welcome = preface::encode_answer(Status::Welcome);
    let endless = |stream: &mut TcpStream, first: &[u8]| {
        let mut bytes = first.iter().copied().chain(std::iter::repeat(b' '));
        while !over.load(Ordering::Relaxed) && stream.write_all(&[bytes.next().unwrap_or_default()]).is_ok() {
            clock::sleep_until(clock::monotonic_ns() + EVERY.as_nanos() as u64);
        }
    };
    if until == Until::Answer {
        // Sixteen bytes are few: each takes its time.
        for byte in &welcome[..15] {
            let _ = control.write_all(&[*byte]);
            let next_ns = clock::monotonic_ns() + 4_000_000_000;
            while !over.load(Ordering::Relaxed) && clock::monotonic_ns() < next_ns {
                clock::sleep_until(clock::monotonic_ns() + 5_000_000);
            }
        }
        return;
    }
    control.write_all(&welcome).unwrap();
    if until == Until::Handshake {
        for byte in [0, 200].into_iter().chain(std::iter::repeat_n(7, 199)) {
            let _ = control.write_all(&[byte]);
            let next_ns = clock::monotonic_ns() + 200_000_000;
            while !over.load(Ordering::Relaxed) && clock::monotonic_ns() < next_ns {
                clock::sleep_until(clock::monotonic_ns() + 5_000_000);
            }
        }
        return;
    }
    let mut raw_control = control.try_clone().unwrap();
    let (mut tx, mut rx) = channel::open(control, channel::Role::Server, None, MAX_MESSAGE, SHORT, &NEVER).unwrap();
    let mut data = Vec::new();
    let announced = 1_000_000_u32.to_be_bytes();
    loop {
        let Ok(message) = rx.wait::<ToServer>("a message", SHORT, over) else { return };
        match message {
            ToServer::Hello { .. } if until == Until::Acceptance => break,
            ToServer::Hello { parameters, .. } => {
                let accepted = Accepted {
                    id: "0123456789abcdef".into(),
                    token: Token([7; 32]).to_hex(),
                    version: "0".into(),
                    parameters: *parameters,
                    notes: Vec::new(),
                    host: HostSnapshot::default(),
                };
                tx.queue(&ToClient::Accepted(Box::new(accepted))).unwrap();
            }
            ToServer::Ping { .. } if until == Until::Pong => break,
            ToServer::Ping { n } => {
                tx.queue(&ToClient::Pong { n, now_ns: clock::monotonic_ns() }).unwrap();
                if n == 9 {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.read_exact(&mut shown).unwrap();
                    if until == Until::DataAnswer {
                        raw_control = stream;
                        break;
                    }
                    stream.write_all(&welcome).unwrap();
                    let mut reader = stream.try_clone().unwrap();
                    data.push(stream);
                    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
                }
            }
            ToServer::Opened if until == Until::Ready => break,
            ToServer::Opened => tx.queue(&ToClient::Ready).unwrap(),
            ToServer::Start { .. } if until == Until::Run => break,
            ToServer::SenderDone(_) if until == Until::Report => break,
            ToServer::SenderDone(_) => {
                tx.queue(&ToClient::Report { text: " ".repeat(REPORT_PART), last: false }).unwrap();
                break;
            }
            _ => {}
        }
    }
    if until == Until::DataAnswer {
        endless(&mut raw_control, &welcome[..15]);
    } else {
        endless(&mut raw_control, &announced);
    }
}

/// A client against such a server; the guard ends the server.
fn against(until: Until, arguments: &[&str]) -> (Process, Arc<AtomicBool>, std::thread::JoinHandle<()>) {
    let (listener, addr) = raw::listener();
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let server = std::thread::spawn(move || dripping_server(&listener, until, &flag));
    (begin(&addr.to_string(), arguments), over, server)
}

/// Every state, how long a test of 0.5 s may last in it by the documentation, seconds.
const STATES: [(Until, f64); 9] = [
    (Until::Answer, 10.0),
    (Until::Handshake, 10.0),
    (Until::Acceptance, 15.0),
    (Until::Pong, 15.0),
    (Until::DataAnswer, 10.0),
    (Until::Ready, 15.0),
    (Until::Run, 15.0),
    (Until::Report, 0.5 + 15.0 + 10.0),
    (Until::SecondPart, 0.5 + 15.0 + 10.0),
];

fn each_state(judge: impl Fn(Until, f64, Process) + Sync) {
    let directory = scratch();
    let key = directory.path().join("key");
    let mut command = landspeed();
    command.args(["serve", "--new-key"]).arg(&key);
    assert_eq!(Process::start(command).end(60).code, 0);
    let key = key.to_str().unwrap();
    std::thread::scope(|scope| {
        for (until, limit_s) in STATES {
            let judge = &judge;
            scope.spawn(move || {
                let keyed: &[&str] = if until == Until::Handshake { &["--key-file", key] } else { &[] };
                // Only the server ends the run: a test without an end.
                let time = if until == Until::Run { "60" } else { "0.5" };
                let (client, over, server) = against(until, &[&["-t", time, "-b", "1M"], keyed].concat());
                judge(until, limit_s, client);
                over.store(true, Ordering::Relaxed);
                let _ = server.join();
            });
        }
    });
}

#[test]
fn a_slow_server_delays_the_client_within_limits() {
    each_state(|until, limit_s, client| {
        let ended = client.end(120);
        assert!(ended.seconds < limit_s + SLACK_S, "{until:?}: {:.1} s; documented: {limit_s} s", ended.seconds);
        assert_ne!(ended.code, 0, "{until:?}: {ended:?}");
    });
}

#[test]
fn ctrl_c_ends_a_client_of_a_slow_server() {
    each_state(|until, _, client| {
        // The state is reached within moments; the wait in it lasts ten seconds and more.
        clock::sleep_until(clock::monotonic_ns() + 4_000_000_000);
        client.signal("INT");
        let asked_ns = clock::monotonic_ns();
        let ended = client.end(120);
        // A second is documented; a busy machine takes longer, no deadline of a step is as short.
        assert!(seconds_since(asked_ns) < 4.0, "{until:?}: {:.1} s after SIGINT", seconds_since(asked_ns));
        assert!(ended.stdout.contains("\"interrupted\""), "{until:?}: {}", ended.stderr);
    });
}

#[test]
fn a_server_is_stopped_whatever_state_its_clients_drip_in() {
    let mut server = Server::start(&["--no-iperf3"]);
    let open = server.addr;
    let states: Vec<Box<dyn FnOnce() -> f64 + Send>> = vec![
        Box::new(move || drip(&mut raw::connect(open), 60.0)),
        Box::new(move || drip(&mut raw::control(open), 60.0)),
        Box::new(move || {
            let mut control = raw::control(open);
            let hello = ToServer::Hello { version: "0".into(), parameters: Box::new(slow_test(500)) };
            control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
            drip(&mut control, 60.0)
        }),
        Box::new(move || {
            let (mut control, _data) = started(open, slow_test(60_000));
            drip(&mut control, 60.0)
        }),
        Box::new(move || {
            let (mut control, data) = started(open, slow_test(300));
            data.shutdown(std::net::Shutdown::Write).unwrap();
            drip(&mut control, 60.0)
        }),
    ];
    let drips: Vec<_> = states.into_iter().map(std::thread::spawn).collect();
    clock::sleep_until(clock::monotonic_ns() + 3_000_000_000);
    server.process.signal("TERM");
    let asked_ns = clock::monotonic_ns();
    crate::common::until(60, "the server to end", || server.process.has_ended());
    // A second is documented; a busy machine takes longer, no deadline of a step is as short.
    assert!(seconds_since(asked_ns) < 4.0, "{:.1} s after SIGTERM", seconds_since(asked_ns));
    for drip in drips {
        drip.join().expect("no panic");
    }
}
