//! Invalid iperf3 clients: our server answers them with an error, drops them, and serves the next one.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::drip::{self, State};
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::process::until;
use landspeed_testkit::random::Random;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::iperf3::parties::{landspeed_client, landspeed_server, landspeed_server_at};
use landspeed_testkit::process::run_concurrently;

/// An iperf3 client that can send arbitrary messages.
struct Client {
    stream: TcpStream,
    cookie: [u8; 37],
}

/// Source of unique cookies: a connection with the cookie of a running test is one of its streams.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

impl Client {
    fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Self { stream, cookie: Self::next_cookie() }
    }

    fn next_cookie() -> [u8; 37] {
        let mut cookie = [0; 37];
        let name = format!("{:036}", CLIENTS.fetch_add(1, Ordering::Relaxed));
        cookie[..36].copy_from_slice(name.as_bytes());
        cookie
    }

    /// Connects, up to the server's request for parameters.
    fn connect_and_send_cookie(addr: SocketAddr) -> Self {
        let mut client = Self::connect(addr);
        let cookie = client.cookie;
        client.send_bytes(&cookie);
        assert_eq!(client.receive_byte(), Some(9), "it asks what is wanted");
        client
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn send_json(&mut self, text: &str) {
        self.send_bytes(&(text.len() as u32).to_be_bytes());
        self.send_bytes(text.as_bytes());
    }

    /// Receives a byte; `None` if the server closed the connection.
    fn receive_byte(&mut self) -> Option<i8> {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte), Ok(1)).then(|| byte[0] as i8)
    }

    /// Receives iperf3's error number.
    fn receive_error(&mut self) -> Option<i32> {
        let mut bytes = [0; 9];
        self.stream.read_exact(&mut bytes).ok()?;
        let [-2, number @ .., _, _, _, _] = bytes.map(|b| b as i8) else { return None };
        Some(i32::from_be_bytes(number.map(|b| b as u8)))
    }

    /// Opens a data connection of this client's test.
    fn data(&self) -> Self {
        let mut data = Self::connect(self.stream.peer_addr().expect("connected"));
        data.send_bytes(&self.cookie);
        data
    }
}

fn wanted() -> Value {
    json!({"tcp": true, "omit": 0, "time": 1, "num": 0, "blockcount": 0, "parallel": 1, "len": 1000, "client_version": "3.12"})
}

fn results() -> Value {
    let stream = json!({"id": 1, "bytes": 0, "retransmits": 0, "jitter": 0, "errors": 0, "packets": 0});
    json!({"cpu_util_total": 1, "cpu_util_user": 1, "cpu_util_system": 1, "sender_has_retransmits": 1, "streams": [stream]})
}

/// Asserts that the server still serves a valid client.
#[track_caller]
fn assert_serves(addr: SocketAddr) {
    let (code, document) = landspeed_client(&addr.to_string(), "-t 0.2");
    assert_eq!(code, 0, "{:#}", document["errors"]);
}

#[test]
fn an_invalid_request_is_refused_with_an_error_number() {
    let (_server, addr) = landspeed_server(&[]);
    let deep = "[".repeat(60_000);
    for (text, number) in [
        ("", 114),
        ("{", 114),
        ("[1,2]", 114),
        (deep.as_str(), 114),
        (r#"{"tcp":true,"parallel":1000000}"#, 6),
        (r#"{"tcp":true,"len":1e300}"#, 7),
        (r#"{"tcp":true,"window":1e300}"#, 8),
        (r#"{"udp":true,"len":70000}"#, 20),
        (r#"{"tcp":true,"time":-1}"#, 37),
        (r#"{"sctp":true}"#, 131),
        (r#"{"tcp":true,"server_affinity":5000}"#, 132),
        (r#"{"tcp":true,"congestion":"../../etc/passwd","reverse":true}"#, 134),
    ] {
        let mut client = Client::connect_and_send_cookie(addr);
        client.send_json(text);
        assert_eq!(client.receive_error(), Some(number), "{text:.60}");
    }
    // A length above the limit allocates no memory.
    let mut client = Client::connect_and_send_cookie(addr);
    client.send_bytes(&u32::MAX.to_be_bytes());
    assert_eq!(client.receive_error(), Some(114));
    assert_serves(addr);
}

#[test]
fn dripping_clients_are_dropped_by_the_documented_deadlines() {
    fn drip(mut client: Client, first: &[u8], every_ms: u64, most_s: f64) -> f64 {
        drip::drip(&mut client.stream, first, Duration::from_millis(every_ms), most_s)
    }
    let (_server, addr) = landspeed_server(&[]);
    let announced = 60_000_u32.to_be_bytes();
    let up_to_the_start = move || {
        let mut client = Client::connect_and_send_cookie(addr);
        client.send_json(&wanted().to_string());
        assert_eq!(client.receive_byte(), Some(10));
        let data = client.data();
        assert_eq!((client.receive_byte(), client.receive_byte()), (Some(1), Some(2)));
        (client, data)
    };
    let states: Vec<State> = vec![
        ("cookie", 5.0, Box::new(move |most| drip(Client::connect(addr), &[b'a'; 36], 300, most))),
        ("request", 10.0, Box::new(move |most| drip(Client::connect_and_send_cookie(addr), &announced, 8, most))),
        (
            "results",
            10.0,
            Box::new(move |most| {
                let (mut client, _data) = up_to_the_start();
                client.send_bytes(&[4]);
                assert_eq!(client.receive_byte(), Some(13));
                drip(client, &announced, 8, most)
            }),
        ),
    ];
    drip::assert_time_limits(states);
    assert_serves(addr);
}

#[test]
fn disconnected_clients_release_their_resources() {
    let (server, addr) = landspeed_server(&["--max-tests", "2"]);
    assert_serves(addr);
    let before = server.resources();
    for step in 0..7 {
        let mut client = Client::connect(addr);
        let mut data = None;
        let script: [&mut dyn FnMut(&mut Client); 6] = [
            &mut |c| {
                let cookie = c.cookie;
                c.send_bytes(&cookie[..20]);
            },
            &mut |c| {
                let cookie = c.cookie;
                c.send_bytes(&cookie[20..]);
            },
            &mut |c| c.send_json(&wanted().to_string()),
            &mut |c| {
                assert_eq!((c.receive_byte(), c.receive_byte()), (Some(9), Some(10)));
                data = Some(c.data());
            },
            &mut |c| assert_eq!((c.receive_byte(), c.receive_byte()), (Some(1), Some(2))),
            &mut |c| c.send_bytes(&[4]),
        ];
        for act in script.into_iter().take(step) {
            act(&mut client);
        }
        let _ = client.stream.shutdown(Shutdown::Both);
        drop(data);
        until(30, "the session to end", || server.resources() <= before);
    }
    assert_serves(addr);
}

#[test]
fn messages_out_of_order_end_only_their_test() {
    let (server, addr) = landspeed_server(&["--max-tests", "32"]);
    // The server waits a second for the client's last message.
    run_concurrently([0, 1, 2, 3, 9, 10, 13, 14, 16, 0xFF, 0x80].chunks(3), |words| {
        for &word in words {
            let mut client = Client::connect_and_send_cookie(addr);
            client.send_json(&wanted().to_string());
            assert_eq!(client.receive_byte(), Some(10));
            client.send_bytes(&[word]);
            assert_eq!(client.receive_byte(), None, "{word} before the streams");
            let mut client = Client::connect_and_send_cookie(addr);
            client.send_json(&wanted().to_string());
            assert_eq!(client.receive_byte(), Some(10));
            let _data = client.data();
            assert_eq!((client.receive_byte(), client.receive_byte()), (Some(1), Some(2)));
            client.send_bytes(&[word]);
            assert_eq!(client.receive_byte(), None, "{word} during the test");
        }
    });
    assert!(server.stdout().contains("it said 16 during the test"), "{}", server.stdout());
    assert_serves(addr);
}

#[test]
fn extra_stream_is_treated_as_a_new_client() {
    let (_server, addr) = landspeed_server(&[]);
    let mut client = Client::connect_and_send_cookie(addr);
    client.send_json(&wanted().to_string());
    assert_eq!(client.receive_byte(), Some(10));
    let _data = client.data();
    assert_eq!((client.receive_byte(), client.receive_byte()), (Some(1), Some(2)));
    // The test of this cookie has ended, so this is a new client.
    let mut more = Client::connect(addr);
    more.send_bytes(&client.cookie);
    assert_eq!(more.receive_byte(), Some(9));
    client.send_bytes(&[4]);
    assert_eq!(client.receive_byte(), Some(13));
    client.send_json(&results().to_string());
    let mut length = [0; 4];
    client.stream.read_exact(&mut length).expect("results");
    assert_serves(addr);
}

#[test]
fn corrupt_messages_do_not_stop_the_server() {
    let (server, addr) = landspeed_server(&["--max-tests", "32"]);
    assert_serves(addr);
    let before = server.resources();
    // These clients mostly wait for answers that do not come.
    run_concurrently(0..8, |seed| {
        let mut random = Random::new(0x1_9e3f + seed);
        for _ in 0..10 {
            let (wanted, results) = (wanted().to_string(), results().to_string());
            let mut client = Client::connect(addr);
            client.stream.set_read_timeout(Some(Duration::from_millis(150))).expect("a timeout");
            let cookie = client.cookie;
            client.send_bytes(&cookie);
            client.send_json(&corrupt_text(&mut random, &wanted));
            let _data = client.data();
            let _ = (client.receive_byte(), client.receive_byte(), client.receive_byte());
            client.send_bytes(&[4]);
            client.send_json(&corrupt_text(&mut random, &results));
            client.send_bytes(&[16]);
            let _ = client.receive_byte();
        }
    });
    until(60, "every session to end", || server.resources() <= before);
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    assert_serves(addr);
}

/// Returns the text with a few characters changed, truncated or repeated.
fn corrupt_text(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = b"0123456789eE-+.{}[]\",:tfn"[random.below(25) as usize],
            2 => bytes.extend_from_within(at..),
            _ => bytes.insert(at, b'9'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Requests a test from a source address of this host; returns the client and the server's answer.
fn request_from(source: [u8; 4], addr: SocketAddr, wanted: &str) -> (Client, Option<i8>) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((source, 0)).into()).expect("an address of loopback");
    socket.connect(&addr.into()).expect("a connection");
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut client = Client { stream, cookie: Client::next_cookie() };
    let cookie = client.cookie;
    client.send_bytes(&cookie);
    assert_eq!(client.receive_byte(), Some(9), "it asks what is wanted");
    client.send_json(wanted);
    let answer = client.receive_byte();
    (client, answer)
}

#[test]
fn one_address_does_not_take_all_slots() {
    let (_server, addr) = landspeed_server(&["--max-tests", "8"]);
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        let (client, answer) = request_from([127, 0, 0, 1], addr, &wanted().to_string());
        held.push(client);
        answers.push(answer);
    }
    // Six requests for streams, then "access denied", which clients report as busy.
    assert_eq!(answers, [[Some(10); 6].as_slice(), &[Some(-1); 2]].concat());
    assert_eq!(request_from([127, 0, 0, 2], addr, &wanted().to_string()).1, Some(10));
}

#[test]
fn total_rate_limit_applies_to_iperf3_clients() {
    let (_server, addr) = landspeed_server(&["--max-total-rate", "100M"]);
    let with_rate = |bps: u64| {
        let mut wanted = wanted();
        wanted["bandwidth"] = bps.into();
        wanted.to_string()
    };
    // A test without a rate reserves three quarters, all that one address gets.
    let (_unlimited, answer) = request_from([127, 0, 0, 1], addr, &wanted().to_string());
    assert_eq!(answer, Some(10));
    assert_eq!(request_from([127, 0, 0, 1], addr, &with_rate(10_000_000)).1, Some(-1));
    let (_modest, answer) = request_from([127, 0, 0, 2], addr, &with_rate(10_000_000));
    assert_eq!(answer, Some(10));
    // The iperf3 protocol cannot grant less than requested.
    let (mut client, answer) = request_from([127, 0, 0, 3], addr, &with_rate(50_000_000));
    assert_eq!(answer, Some(-2));
    let mut number = [0; 4];
    client.stream.read_exact(&mut number).expect("a number");
    assert_eq!(i32::from_be_bytes(number), 27);
}

#[test]
fn displaced_client_gets_server_busy() {
    landspeed_sys::process::raise_open_files_limit();
    let (_server, addr) = landspeed_server(&[]);
    let mut first = Client::connect_and_send_cookie(addr);
    let mut crowd = Vec::new();
    first.stream.set_nonblocking(true).expect("a socket");
    while first.stream.peek(&mut [0]).is_err() {
        crowd.push(Client::connect_and_send_cookie(addr));
        assert!(crowd.len() < 400, "no client lost its slot");
    }
    first.stream.set_nonblocking(false).expect("a socket");
    first.send_json(&wanted().to_string());
    assert_eq!(first.receive_byte(), Some(-1));
}

#[test]
fn udp_to_a_vanished_host_stops_in_time() {
    let left = landspeed_testkit::or_skip!(Namespace::new("left"));
    let right = landspeed_testkit::or_skip!(Namespace::new("right"));
    let link = veth(&left, &right, "10.9.0.1/24", "10.9.0.2/24");
    let (server, addr) = left.run(|| landspeed_server_at("10.9.0.1:0", &[]));
    let wanted = json!({"udp": true, "omit": 0, "time": 3600, "num": 0, "blockcount": 0, "parallel": 1, "len": 1000,
        "reverse": true, "bandwidth": 1_000_000, "client_version": "3.12"});
    let (mut client, socket) = right.run(|| {
        let mut client = Client::connect_and_send_cookie(addr);
        client.send_json(&wanted.to_string());
        assert_eq!(client.receive_byte(), Some(10));
        let socket = std::net::UdpSocket::bind("10.9.0.2:0").expect("a socket");
        socket.connect(addr).expect("a route");
        socket.send(&[0x39, 0x38, 0x37, 0x36]).expect("a hello");
        (client, socket)
    });
    assert_eq!((client.receive_byte(), client.receive_byte()), (Some(1), Some(2)));
    until(20, "data", || socket.recv(&mut [0; 2000]).is_ok_and(|n| n == 1000));
    right.exec(["ip", "link", "set", &link.b, "down"]);
    // The documented timeout is 15 s without an acknowledgement; the rest allows for a busy machine.
    until(40, "the server to give the client up", || server.stdout().contains("end "));
}

#[test]
fn idle_connections_do_not_block_other_clients() {
    let (server, addr) = landspeed_server(&[]);
    let crowd: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(addr).expect("a connection")).collect();
    let halves: Vec<Client> = (0..20).map(|_| Client::connect(addr)).collect();
    assert_serves(addr);
    drop((crowd, halves));
    // All are disconnected within the timeout for the cookie.
    let deadline = clock::monotonic_ns() + 20_000_000_000;
    until(20, "the crowd to be forgotten", || server.resources().0 < 60 || clock::monotonic_ns() > deadline);
    assert_serves(addr);
}
