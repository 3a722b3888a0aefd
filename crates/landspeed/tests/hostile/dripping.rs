//! Peers that send or read a byte now and then, or nothing: each step of the protocol ends within its
//! documented time, and Ctrl-C takes effect within a second.
//!
//! The bounds allow for a busy machine; without an absolute deadline each of these waits would last hours.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use landspeed_flow::control::message::{Accepted, REPORT_PART_BYTES, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Purpose, Status, Token};
use landspeed_flow::control::{channel, message::MAX_MESSAGE};
use landspeed_model::{HostSnapshot, Parameters, Protocol, RrMode, RrParameters, RrSize};
use landspeed_sys::clock;
use landspeed_testkit::drip::{self, SLACK_S, State};

use crate::hostile::common::{Process, Server, TIMEOUT_S, begin, scratch, until};
use crate::hostile::keys::{new_key, text};
use crate::hostile::raw::{self, IO_TIMEOUT, NOT_INTERRUPTED};
use crate::hostile::{bad_input, claims, server_abuse, server_limits, server_shares, strangers};
use landspeed_testkit::process::run_concurrently;

/// Interval between bytes: shorter than any timeout of a single system call.
const BYTE_INTERVAL: Duration = Duration::from_millis(20);

fn seconds_since(then_ns: u64) -> f64 {
    (clock::monotonic_ns() - then_ns) as f64 / 1e9
}

/// Announces a message of 1 MB and transfers a byte of it now and then, until the peer hangs up or `most_s`
/// have passed. Returns the elapsed time, seconds.
fn drip(stream: &mut TcpStream, most_s: f64) -> f64 {
    drip::drip(stream, &1_000_000_u32.to_be_bytes(), BYTE_INTERVAL, most_s)
}

/// Parameters of a test of `ms` milliseconds at a minimal rate.
fn slow_test_parameters(ms: u64) -> Parameters {
    Parameters {
        time_ns: Some(ms * 1_000_000),
        rate_bps: Some(8000),
        write_bytes: 100,
        streams: 1,
        ..Parameters::default()
    }
}

/// Starts a test with one stream, without a key; returns the control and the data connection.
fn started(server: SocketAddr, parameters: Parameters) -> (TcpStream, TcpStream) {
    let control = raw::control(server);
    let twin = control.try_clone().unwrap();
    let (mut tx, mut rx) =
        channel::open(control, channel::Role::Client, None, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
    tx.queue(&raw::hello(parameters)).unwrap();
    let Ok(ToClient::Accepted(accepted)) = raw::receive_message(&mut rx) else { panic!("not accepted") };
    let token = Token::from_hex(&accepted.token).unwrap();
    let (data, status) = raw::run_handshake(server, Purpose::Data { stream: 0, token });
    assert_eq!(status, Some(Status::Welcome));
    tx.queue(&ToServer::Ping { n: 0 }).unwrap();
    let Ok(ToClient::Pong { now_ns, .. }) = raw::receive_message(&mut rx) else { panic!("no pong") };
    tx.queue(&ToServer::Opened).unwrap();
    assert!(matches!(raw::receive_message(&mut rx), Ok(ToClient::Ready)));
    tx.queue(&ToServer::Start { at_ns: now_ns + 20_000_000, lead_ns: None }).unwrap();
    (twin, data)
}

/// All cases run at the same time: they only wait, and the longest determines the duration.
#[test]
fn every_step_ends_by_its_documented_deadline() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&["--no-iperf3", "--max-duration", "1s"]);
    let keyed = Server::start(&["--no-iperf3", "--key-file", text(&key)]);
    let idle = server.baseline();
    let mut states = slow_clients(server.addr, keyed.addr);
    states.extend(slow_servers(&key));
    states.extend([
        bad_input::silent_service(),
        claims::missing_proof(),
        server_abuse::distant_start(),
        server_limits::endless_sender(server.addr),
        server_limits::more_bytes_than_the_time_limit_allows(server.addr),
        server_shares::silent_client(),
        strangers::idle_prefaces(),
    ]);
    drip::assert_time_limits(states);
    server.wait_for_resources(idle);
    server.run(&["-t", "0.2"]).assert_clean();
}

/// Cases of clients that drip, against a server with a time limit of one second and one with a key.
fn slow_clients(open: SocketAddr, keyed: SocketAddr) -> Vec<State> {
    vec![
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
                let (mut stream, status) = raw::run_handshake(keyed, Purpose::Control { keyed: true });
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
                let hello = raw::hello(slow_test_parameters(500));
                control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
                drip(&mut control, most)
            }),
        ),
        // The time limit of one second, the drain of a stream that never ends, and the closing exchange.
        (
            "run and farewell",
            1.0 + 10.0 + 10.0,
            Box::new(move |most| {
                let (mut control, _data) = started(open, slow_test_parameters(1000));
                drip(&mut control, most)
            }),
        ),
        (
            "farewell",
            1.0 + 10.0,
            Box::new(move |most| {
                let (mut control, data) = started(open, slow_test_parameters(500));
                data.shutdown(std::net::Shutdown::Write).unwrap();
                drip(&mut control, most)
            }),
        ),
        ("unread answers", 60.0, Box::new(move |_| send_without_reading(open))),
    ]
}

/// Sends pings continuously without reading the answers. Returns how long the server allows it, seconds.
fn send_without_reading(server: SocketAddr) -> f64 {
    let mut control = raw::control(server);
    let hello = raw::hello(slow_test_parameters(500));
    let ping = raw::frame(&serde_json::to_vec(&ToServer::Ping { n: 1 }).unwrap()).repeat(1000);
    control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
    control.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let begun_ns = clock::monotonic_ns();
    while !matches!(control.write(&ping), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock) {
        assert!(seconds_since(begun_ns) < 60.0 + SLACK_S, "the server holds on to a client that does not read");
    }
    seconds_since(begun_ns)
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
    data.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
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
        // The server measures every 20 ms, in which loopback transfers tens of megabytes.
        assert!((moved as f64) < allowed + 400e6, "{moved} B in {:.1} s", seconds_since(begun_ns));
    }
    assert!(dripping.join().expect("no panic") < 20.0, "the control connection ends with the test");
}

/// The message that a hostile server drips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DripStage {
    /// Answer to the preface.
    Answer,
    Handshake,
    /// Acceptance of the test.
    Acceptance,
    /// Answer to the first ping.
    Pong,
    /// Answer to the preface of a data connection.
    DataAnswer,
    /// Confirmation that all data connections are open.
    Ready,
    /// Live figures during the test.
    Run,
    /// First part of the report.
    Report,
    SecondPart,
}

/// Follows the protocol up to a state and drips from there on, until stopped.
fn serve_and_drip(listener: &TcpListener, until: DripStage, reached: &AtomicBool, over: &AtomicBool) {
    let (mut control, _) = listener.accept().expect("the client comes");
    let mut shown = [0; preface::PREFACE_LEN];
    control.read_exact(&mut shown).unwrap();
    let welcome = preface::encode_answer(Status::Welcome);
    let endless = |stream: &mut TcpStream, first: &[u8]| {
        let mut bytes = first.iter().copied().chain(std::iter::repeat(b' '));
        while !over.load(Ordering::Relaxed) && stream.write_all(&[bytes.next().unwrap_or_default()]).is_ok() {
            clock::sleep_until(clock::monotonic_ns() + BYTE_INTERVAL.as_nanos() as u64);
        }
    };
    if until == DripStage::Answer {
        reached.store(true, Ordering::Relaxed);
        // There are only sixteen bytes, so each is delayed for long.
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
    if until == DripStage::Handshake {
        // The client has sent its part and waits.
        control.read_exact(&mut [0; 2]).unwrap();
        reached.store(true, Ordering::Relaxed);
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
    let (mut tx, mut rx) =
        channel::open(control, channel::Role::Server, None, MAX_MESSAGE, IO_TIMEOUT, &NOT_INTERRUPTED).unwrap();
    let mut data = Vec::new();
    let announced = 1_000_000_u32.to_be_bytes();
    loop {
        let Ok(message) = rx.wait::<ToServer>("a message", IO_TIMEOUT, over) else { return };
        match message {
            ToServer::Hello { .. } if until == DripStage::Acceptance => break,
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
            ToServer::Ping { .. } if until == DripStage::Pong => break,
            ToServer::Ping { n } => {
                tx.queue(&ToClient::Pong { n, now_ns: clock::monotonic_ns() }).unwrap();
                if n == 9 {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.read_exact(&mut shown).unwrap();
                    if until == DripStage::DataAnswer {
                        raw_control = stream;
                        break;
                    }
                    stream.write_all(&welcome).unwrap();
                    let mut reader = stream.try_clone().unwrap();
                    data.push(stream);
                    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
                }
            }
            ToServer::Opened if until == DripStage::Ready => break,
            ToServer::Opened => tx.queue(&ToClient::Ready).unwrap(),
            ToServer::Start { .. } if until == DripStage::Run => break,
            ToServer::SenderDone(_) if until == DripStage::Report => break,
            ToServer::SenderDone(_) => {
                tx.queue(&ToClient::Report { text: " ".repeat(REPORT_PART_BYTES), last: false }).unwrap();
                break;
            }
            _ => {}
        }
    }
    reached.store(true, Ordering::Relaxed);
    if until == DripStage::DataAnswer {
        endless(&mut raw_control, &welcome[..15]);
    } else {
        endless(&mut raw_control, &announced);
    }
}

/// Every state, with the documented maximum duration of a test of 0.5 s, seconds.
const STATES: [(&str, DripStage, f64); 9] = [
    ("the answer to the preface", DripStage::Answer, 10.0),
    ("the server's key handshake", DripStage::Handshake, 10.0),
    ("the acceptance", DripStage::Acceptance, 15.0),
    ("the answer to a ping", DripStage::Pong, 15.0),
    ("the answer to a data connection's preface", DripStage::DataAnswer, 10.0),
    ("the wait for the server's data connections", DripStage::Ready, 15.0),
    ("live figures", DripStage::Run, 15.0),
    ("the report", DripStage::Report, 0.5 + 15.0 + 10.0),
    ("the report's second part", DripStage::SecondPart, 0.5 + 15.0 + 10.0),
];

/// Runs a client against a server that drips in this state; `judge` gets the client and a flag that is set
/// when the state is reached.
fn against<T>(state: DripStage, key: &Path, judge: impl FnOnce(Process, &AtomicBool) -> T) -> T {
    let (listener, addr) = raw::listener();
    let (reached, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| serve_and_drip(&listener, state, &reached, &over));
        let keyed: &[&str] = if state == DripStage::Handshake { &["--key-file", text(key)] } else { &[] };
        // The server must end the run, so the test itself is long.
        let time = if state == DripStage::Run { "60" } else { "0.5" };
        let judged = judge(begin(&addr.to_string(), &[&["-t", time, "-b", "1M"], keyed].concat()), &reached);
        over.store(true, Ordering::Relaxed);
        judged
    })
}

fn slow_servers(key: &Path) -> Vec<State> {
    let state = |(name, state, limit_s): (&'static str, DripStage, f64)| -> State {
        let key = key.to_owned();
        let hold = move |_| {
            against(state, &key, |client, _| {
                let ended = client.end(120);
                assert_ne!(ended.code, 0, "{name}: {ended:?}");
                ended.seconds
            })
        };
        (name, limit_s, Box::new(hold))
    };
    STATES.map(state).into()
}

#[test]
fn ctrl_c_ends_a_client_of_a_slow_server() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    run_concurrently(STATES, |(name, state, _)| {
        against(state, &key, |client, reached| {
            until(TIMEOUT_S, name, || reached.load(Ordering::Relaxed));
            client.signal("INT");
            let asked_ns = clock::monotonic_ns();
            let ended = client.end(120);
            // Documented is one second; the bound allows for a busy machine and is below every step's deadline.
            assert!(seconds_since(asked_ns) < 4.0, "{name}: {:.1} s after SIGINT", seconds_since(asked_ns));
            assert!(ended.stdout.contains("\"interrupted\""), "{name}: {}", ended.stderr);
        });
    });
}

#[test]
fn sigterm_stops_a_server_with_dripping_clients() {
    let mut server = Server::start(&["--no-iperf3"]);
    let open = server.addr;
    let in_state = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&in_state);
    let drip = move |stream: &mut TcpStream, most_s| {
        counted.fetch_add(1, Ordering::Relaxed);
        drip(stream, most_s)
    };
    let drips: [_; 5] = std::array::from_fn(|_| drip.clone());
    let [preface, greeting, set_up, run, farewell] = drips;
    let states: Vec<Box<dyn FnOnce() -> f64 + Send>> = vec![
        Box::new(move || preface(&mut raw::connect(open), 60.0)),
        Box::new(move || greeting(&mut raw::control(open), 60.0)),
        Box::new(move || {
            let mut control = raw::control(open);
            let hello = raw::hello(slow_test_parameters(500));
            control.write_all(&raw::frame(&serde_json::to_vec(&hello).unwrap())).unwrap();
            set_up(&mut control, 60.0)
        }),
        Box::new(move || {
            let (mut control, _data) = started(open, slow_test_parameters(60_000));
            run(&mut control, 60.0)
        }),
        Box::new(move || {
            let (mut control, data) = started(open, slow_test_parameters(300));
            data.shutdown(std::net::Shutdown::Write).unwrap();
            farewell(&mut control, 60.0)
        }),
    ];
    let drips: Vec<_> = states.into_iter().map(std::thread::spawn).collect();
    until(TIMEOUT_S, "every state to be reached", || in_state.load(Ordering::Relaxed) == 5);
    // The shortest test ends in the meantime.
    clock::sleep_until(clock::monotonic_ns() + 800_000_000);
    server.process.signal("TERM");
    let asked_ns = clock::monotonic_ns();
    until(60, "the server to end", || server.process.has_ended());
    // Documented is one second; the bound allows for a busy machine and is below every step's deadline.
    assert!(seconds_since(asked_ns) < 4.0, "{:.1} s after SIGTERM", seconds_since(asked_ns));
    for drip in drips {
        drip.join().expect("no panic");
    }
}
