//! Clients that speak iperf3 badly or not at all: our server tells them, forgets them, and serves the next one.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::process::until;
use landspeed_testkit::random::Random;
use serde_json::{Value, json};

use crate::parties::{our_client, our_server};

/// A client that says whatever a test wants.
struct Client {
    stream: TcpStream,
    cookie: [u8; 37],
}

/// Names clients: a name that a test has is that of its streams.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

impl Client {
    fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut cookie = [0; 37];
        let name = format!("{:036}", CLIENTS.fetch_add(1, Ordering::Relaxed));
        cookie[..36].copy_from_slice(name.as_bytes());
        Self { stream, cookie }
    }

    /// Up to the question for the parameters.
    fn introduced(addr: SocketAddr) -> Self {
        let mut client = Self::connect(addr);
        let cookie = client.cookie;
        client.say(&cookie);
        assert_eq!(client.hear(), Some(9), "it asks what is wanted");
        client
    }

    fn say(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn say_json(&mut self, text: &str) {
        self.say(&(text.len() as u32).to_be_bytes());
        self.say(text.as_bytes());
    }

    /// The next byte; nothing when the server hung up.
    fn hear(&mut self) -> Option<i8> {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte), Ok(1)).then(|| byte[0] as i8)
    }

    /// iperf3's number for what is wrong.
    fn refusal(&mut self) -> Option<i32> {
        let mut bytes = [0; 9];
        self.stream.read_exact(&mut bytes).ok()?;
        let [-2, number @ .., _, _, _, _] = bytes.map(|b| b as i8) else { return None };
        Some(i32::from_be_bytes(number.map(|b| b as u8)))
    }

    /// A data connection of this client's test.
    fn data(&self) -> Self {
        let mut data = Self::connect(self.stream.peer_addr().expect("connected"));
        data.say(&self.cookie);
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

/// An honest client is served as if nothing had happened.
#[track_caller]
fn serves_on(addr: SocketAddr) {
    let (code, document) = our_client(&addr.to_string(), "-t 0.2");
    assert_eq!(code, 0, "{:#}", document["errors"]);
}

#[test]
fn what_is_no_request_is_refused_with_a_number() {
    let (_server, addr) = our_server(&[]);
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
        let mut client = Client::introduced(addr);
        client.say_json(text);
        assert_eq!(client.refusal(), Some(number), "{text:.60}");
    }
    // A length that no text has takes no memory.
    let mut client = Client::introduced(addr);
    client.say(&u32::MAX.to_be_bytes());
    assert_eq!(client.refusal(), Some(114));
    serves_on(addr);
}

#[test]
fn who_leaves_at_any_step_is_forgotten() {
    let (server, addr) = our_server(&["--max-tests", "2"]);
    serves_on(addr);
    let before = server.resources();
    for step in 0..7 {
        let mut client = Client::connect(addr);
        let mut data = None;
        let script: [&mut dyn FnMut(&mut Client); 6] = [
            &mut |c| {
                let cookie = c.cookie;
                c.say(&cookie[..20]);
            },
            &mut |c| {
                let cookie = c.cookie;
                c.say(&cookie[20..]);
            },
            &mut |c| c.say_json(&wanted().to_string()),
            &mut |c| {
                assert_eq!((c.hear(), c.hear()), (Some(9), Some(10)));
                data = Some(c.data());
            },
            &mut |c| assert_eq!((c.hear(), c.hear()), (Some(1), Some(2))),
            &mut |c| c.say(&[4]),
        ];
        for act in script.into_iter().take(step) {
            act(&mut client);
        }
        let _ = client.stream.shutdown(Shutdown::Both);
        drop(data);
    }
    until(30, "every session to end", || server.resources() <= before);
    serves_on(addr);
}

#[test]
fn words_out_of_turn_end_the_test_and_nothing_else() {
    let (server, addr) = our_server(&[]);
    for word in [0, 1, 2, 3, 9, 10, 13, 14, 16, 0xFF, 0x80] {
        let mut client = Client::introduced(addr);
        client.say_json(&wanted().to_string());
        assert_eq!(client.hear(), Some(10));
        client.say(&[word]);
        assert_eq!(client.hear(), None, "{word} before the streams");
        let mut client = Client::introduced(addr);
        client.say_json(&wanted().to_string());
        assert_eq!(client.hear(), Some(10));
        let _data = client.data();
        assert_eq!((client.hear(), client.hear()), (Some(1), Some(2)));
        client.say(&[word]);
        assert_eq!(client.hear(), None, "{word} during the test");
    }
    assert!(server.stdout().contains("it said 16 during the test"), "{}", server.stdout());
    serves_on(addr);
}

#[test]
fn one_stream_too_many_is_hung_up_on() {
    let (_server, addr) = our_server(&[]);
    let mut client = Client::introduced(addr);
    client.say_json(&wanted().to_string());
    assert_eq!(client.hear(), Some(10));
    let _data = client.data();
    assert_eq!((client.hear(), client.hear()), (Some(1), Some(2)));
    // The cookie is no test's any more: this is a client of its own.
    let mut more = Client::connect(addr);
    more.say(&client.cookie);
    assert_eq!(more.hear(), Some(9));
    client.say(&[4]);
    assert_eq!(client.hear(), Some(13));
    client.say_json(&results().to_string());
    let mut length = [0; 4];
    client.stream.read_exact(&mut length).expect("results");
    serves_on(addr);
}

#[test]
fn damaged_dialogues_never_stop_the_server() {
    let (server, addr) = our_server(&[]);
    serves_on(addr);
    let before = server.resources();
    let mut random = Random::new(0x1_9e3f);
    for _ in 0..80 {
        let (wanted, results) = (wanted().to_string(), results().to_string());
        let mut client = Client::connect(addr);
        client.stream.set_read_timeout(Some(Duration::from_millis(150))).expect("a timeout");
        let cookie = client.cookie;
        client.say(&cookie);
        client.say_json(&damaged(&mut random, &wanted));
        let _data = client.data();
        let _ = (client.hear(), client.hear(), client.hear());
        client.say(&[4]);
        client.say_json(&damaged(&mut random, &results));
        client.say(&[16]);
        let _ = client.hear();
    }
    until(60, "every session to end", || server.resources() <= before);
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    serves_on(addr);
}

/// The text with a few of its characters changed, cut or doubled.
fn damaged(random: &mut Random, text: &str) -> String {
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

#[test]
fn a_silent_crowd_does_not_keep_others_out() {
    let (server, addr) = our_server(&[]);
    let crowd: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(addr).expect("a connection")).collect();
    let halves: Vec<Client> = (0..20).map(|_| Client::connect(addr)).collect();
    serves_on(addr);
    drop((crowd, halves));
    // All of them are gone within the time they had for their cookie.
    let deadline = clock::monotonic_ns() + 20_000_000_000;
    until(20, "the crowd to be forgotten", || server.resources().0 < 60 || clock::monotonic_ns() > deadline);
    serves_on(addr);
}
