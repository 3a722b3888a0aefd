//! Clients that violate the control protocol. The server closes their connections, logs it, and serves the
//! next client.

use std::io::Write as _;
use std::net::Shutdown;

use landspeed_flow::control::message::{MAX_EARLY_MESSAGE, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Purpose, Status, Token};
use landspeed_model::Parameters;
use landspeed_sys::clock;
use landspeed_testkit::drip::State;

use crate::hostile::common::{Server, TIMEOUT_S, until};
use crate::hostile::raw::{self, ask, connect, control, frame, is_closed, receive_message, run_handshake};

fn short() -> Parameters {
    Parameters { time_ns: Some(200_000_000), ..Parameters::default() }
}

/// Each of these greetings closes its own connection only.
#[test]
fn invalid_greetings_close_only_their_connection() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let hello = serde_json::to_vec(&raw::hello(short())).unwrap();
    let with = |from: &str, to: &str| frame(String::from_utf8(hello.clone()).unwrap().replace(from, to).as_bytes());
    let nested = |depth: usize| frame(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
    let hostile: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("a length and no message", vec![0, 0, 0, 9]),
        ("half a length", vec![0, 0]),
        ("a huge length", u32::MAX.to_be_bytes().to_vec()),
        ("a length just over the limit", (MAX_EARLY_MESSAGE as u32 + 1).to_be_bytes().to_vec()),
        ("half a message", frame(&hello)[..hello.len() / 2].to_vec()),
        ("an empty message", frame(b"")),
        ("no JSON", frame(b"GET / HTTP/1.1")),
        ("no text", frame(&[0xff; 64])),
        ("deep JSON", nested(30_000)),
        ("an unknown message", frame(br#"{"type":"format-disk"}"#)),
        ("another message first", frame(br#"{"type":"opened"}"#)),
        ("a start first", frame(br#"{"type":"start","at_ns":0}"#)),
        ("a key handshake", [0, 48].into_iter().chain([7; 48]).collect()),
        ("millions of streams", with("\"streams\":1", "\"streams\":4000000000")),
        ("no streams", with("\"streams\":1", "\"streams\":0")),
        ("negative streams", with("\"streams\":1", "\"streams\":-1")),
        ("an endless test", with("\"time_ns\":200000000", "\"time_ns\":18446744073709551615")),
        ("a test without end", with("\"time_ns\":200000000", "\"time_ns\":null")),
        ("endless writes", with("\"write_bytes\":262144", "\"write_bytes\":18446744073709551615")),
        ("no interval", with("\"interval_ns\":100000000", "\"interval_ns\":0")),
        ("no host interval", with("\"host_interval_ns\":100000000", "\"host_interval_ns\":0")),
        ("an endless omission", with("\"omit_ns\":0", "\"omit_ns\":18446744073709551615")),
        ("a missing UDP part", with("\"protocol\":\"tcp\"", "\"protocol\":\"udp\"")),
        ("missing sizes", with("\"protocol\":\"tcp\"", "\"protocol\":\"tcprr\"")),
        ("a strange congestion control", with("\"congestion\":null", "\"congestion\":\"../../x\"")),
        ("a core far away", with("\"server_cpus\":[]", "\"server_cpus\":[4294967295]")),
    ];
    for (what, bytes) in hostile {
        let mut stream = control(server.addr);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        assert!(is_closed(stream), "{what}");
    }
    server.run(&["-t", "0.2"]).assert_clean();
    server.wait_for_resources(idle);
}

#[test]
fn messages_out_of_order_end_only_their_test() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for message in [ToServer::Start { at_ns: 0, lead_ns: None }, raw::hello(short()), ToServer::Bye, ToServer::Stop] {
        let mut client = ask(server.addr, short()).expect("accepted");
        client.tx.queue(&message).unwrap();
        assert!(!matches!(receive_message(&mut client.rx), Ok(ToClient::Ready)), "{message:?}");
    }
    server.run(&["-t", "0.2"]).assert_clean();
    server.wait_for_resources(idle);
}

/// Runs a test that requests this start time. Returns its duration, seconds.
fn started_at(at_ns: u64) -> f64 {
    let server = Server::start(&[]);
    let mut client = ask(server.addr, short()).expect("accepted");
    let (mut data, status) = client.data(0);
    assert_eq!(status, Some(Status::Welcome));
    client.ready();
    let begun_ns = clock::monotonic_ns();
    client.tx.queue(&ToServer::Start { at_ns, lead_ns: None }).unwrap();
    data.write_all(&[7; 1000]).unwrap();
    data.shutdown(Shutdown::Write).unwrap();
    let received = loop {
        match receive_message(&mut client.rx).expect("a report in time") {
            ToClient::Report { text, last: true } => break text,
            _ => client.tx.queue(&ToServer::Alive).unwrap(),
        }
    };
    let report: serde_json::Value = serde_json::from_str(&received).unwrap();
    assert_eq!(report["streams"][0]["end"]["bytes"], 1000, "{at_ns}");
    (clock::monotonic_ns() - begun_ns) as f64 / 1e9
}

#[test]
fn start_time_in_the_past_starts_now() {
    started_at(0);
}

/// A start time in the far future is limited to ten seconds from now.
pub fn distant_start() -> State {
    ("a start in the far future", 10.0, Box::new(|_| started_at(u64::MAX)))
}

#[test]
fn a_data_connection_needs_a_token_and_free_stream() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let purpose = Purpose::Data { stream: 0, token: Token([7; 32]) };
    assert_eq!(run_handshake(server.addr, purpose).1, Some(Status::UnknownTest));
    let mut client = ask(server.addr, short()).expect("accepted");
    let mut other = client.token;
    other.0[31] ^= 1;
    assert_eq!(run_handshake(server.addr, Purpose::Data { stream: 0, token: other }).1, Some(Status::UnknownTest));
    let (first, status) = client.data(0);
    assert_eq!(status, Some(Status::Welcome));
    for stream in [0, 1, 1_000_000, 1_000_001, u32::MAX] {
        assert!(is_closed(client.data(stream).0), "stream {stream}");
    }
    client.ready();
    // The token is invalid after its test.
    let token = client.token;
    drop((first, client));
    server.wait_for_resources(idle);
    assert_eq!(run_handshake(server.addr, Purpose::Data { stream: 0, token }).1, Some(Status::UnknownTest));
}

#[test]
fn control_characters_of_clients_do_not_reach_the_log() {
    let server = Server::start(&[]);
    let mut stream = control(server.addr);
    stream.write_all(&frame(b"{\"type\":\"\\u001b[2J\\nlandspeed: listening on evil \\u009b1m\"}")).unwrap();
    assert!(is_closed(stream));
    until(TIMEOUT_S, "the refusal to be logged", || server.process.stdout().contains("refused"));
    let log = server.process.stdout();
    assert!(log.chars().all(|c| c == '\n' || !c.is_control()), "{log:?}");
    assert_eq!(log.lines().count(), 2, "{log:?}");
}

#[test]
fn junk_is_dropped_at_its_first_wrong_byte() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for junk in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01", b"LNDSPEEX", b"SSH-2.0-x\r\n", b"\0"] {
        let mut stream = connect(server.addr);
        stream.write_all(junk).unwrap();
        assert!(is_closed(stream), "{junk:?}");
    }
    let mut strange = preface::encode(Purpose::Control { keyed: false });
    strange[10] = 77;
    let mut stream = connect(server.addr);
    stream.write_all(&strange).unwrap();
    assert!(is_closed(stream));
    server.wait_for_resources(idle);
}

#[test]
fn message_flood_does_not_affect_other_tests() {
    let server = Server::start(&[]);
    let mut client = ask(server.addr, short()).expect("accepted");
    let alive = frame(br#"{"type":"alive"}"#).repeat(20_000);
    let mut stream = client.data(0).0;
    client.ready();
    let now = client.server_clock();
    client.tx.queue(&ToServer::Start { at_ns: now, lead_ns: None }).unwrap();
    let writer = std::thread::spawn(move || {
        // Written in one piece: the sender would need a system call per message.
        let mut flood = connect(server.addr);
        let _ = flood.write_all(&preface::encode(Purpose::Control { keyed: false }));
        let _ = flood.write_all(&alive);
        server
    });
    stream.write_all(&[1; 5000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    while !matches!(receive_message(&mut client.rx).expect("a report"), ToClient::Report { last: true, .. }) {}
    writer.join().unwrap().run(&["-t", "0.2"]).assert_clean();
}
