//! The endpoint under well-behaved and hostile scrapers. No test asserts a time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use landspeed_metrics::{Endpoint, Family, MAX_CONNECTIONS, MAX_REQUEST, RunningEndpoint, Samples};

static COUNT: Family = Family::gauge("test_value", "A value of the test");

/// An endpoint on loopback that exports one value.
fn endpoint() -> (SocketAddr, RunningEndpoint) {
    let endpoint = Endpoint::bind(SocketAddr::from(([127, 0, 0, 1], 0)), "1.2.3", "test").expect("it listens");
    let addr = endpoint.local_addr().expect("an address");
    let running = endpoint.start(|samples: &mut Samples| samples.add(&COUNT, Some(42_u64)));
    (addr, running.expect("a thread"))
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    stream.set_write_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    stream
}

/// Sends bytes and returns the whole answer.
fn ask(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(addr);
    stream.write_all(request).expect("it reads");
    answer(&mut stream)
}

fn answer(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and no reset");
    answer
}

/// Scrapes until there is an answer: a connection whose request is late, because its thread had no core, may be closed.
fn scrape(addr: SocketAddr) -> String {
    let attempt = || {
        let (mut stream, mut answer) = (connect(addr), String::new());
        let asked = stream.write_all(GET).and_then(|()| stream.read_to_string(&mut answer));
        asked.ok().filter(|&bytes| bytes > 0).map(|_| answer)
    };
    std::iter::repeat_with(attempt).take(50).flatten().next().expect("an answer")
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn both_formats_are_served() {
    let (addr, _running) = endpoint();
    let plain = ask(addr, GET);
    assert!(
        plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{plain}"
    );
    assert!(plain.contains("\ntest_value 42\n") && !plain.contains("# EOF"), "{plain}");
    assert!(plain.contains("\nlandspeed_build_info{version=\"1.2.3\",command=\"test\"} 1\n"), "{plain}");
    assert!(plain.contains("\nprocess_resident_memory_bytes "), "{plain}");
    let (head, body) = plain.split_once("\r\n\r\n").expect("a body");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    let open = ask(addr, b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n");
    assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"), "{open}");
    assert!(open.contains("\n# UNIT process_cpu_seconds seconds\n") && open.ends_with("# EOF\n"), "{open}");
    let head = ask(addr, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn requests_in_pieces_and_half_closed_connections_are_answered() {
    let (addr, _running) = endpoint();
    let mut stream = connect(addr);
    for byte in GET {
        stream.write_all(&[*byte]).expect("it reads");
    }
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
    let mut stream = connect(addr);
    stream.write_all(GET).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("a half-closed connection");
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
    // One that ends in the middle gets nothing.
    let mut stream = connect(addr);
    stream.write_all(&GET[..10]).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("a half-closed connection");
    assert_eq!(answer(&mut stream), "");
}

#[test]
fn junk_and_long_requests_are_refused() {
    let (addr, _running) = endpoint();
    assert!(ask(addr, b"\x16\x03\x01\x02\x00\x01\x00").starts_with("HTTP/1.1 400 "), "a TLS handshake");
    assert!(ask(addr, b"GET\x01/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(addr, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let post = ask(addr, b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("Allow: GET, HEAD\r\n"), "{post}");
    let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &vec![b'a'; 3 * MAX_REQUEST]].concat();
    assert!(ask(addr, &long).starts_with("HTTP/1.1 431 "), "long headers");
    let many = [b"GET /metrics HTTP/1.1\r\n".as_slice(), &b"A: b\r\n".repeat(100), b"\r\n"].concat();
    assert!(ask(addr, &many).starts_with("HTTP/1.1 431 "), "many headers");
    let counted = ask(addr, GET);
    for (code, count) in [(400, 2), (404, 1), (405, 1), (431, 2)] {
        let line = format!("landspeed_metrics_responses_total{{code=\"{code}\"}} {count}\n");
        assert!(counted.contains(&line), "{line}{counted}");
    }
}

#[test]
fn fifty_scrapers_at_once_are_answered_beside_silent_ones() {
    let (addr, _running) = endpoint();
    let mut silent: Vec<TcpStream> = (0..2 * MAX_CONNECTIONS).map(|_| connect(addr)).collect();
    for stream in &mut silent {
        let _ = stream.write_all(b"GET /met");
    }
    std::thread::scope(|scope| {
        let scrapes: Vec<_> = (0..50).map(|_| scope.spawn(|| scrape(addr))).collect();
        for scrape in scrapes {
            assert!(scrape.join().expect("no panic").contains("\ntest_value 42\n"));
        }
    });
    drop(silent);
    // The text may be one that was written a moment ago, for another scraper.
    let closed = std::iter::repeat_with(|| ask(addr, GET)).take(1000).any(|text| {
        let closed = text.lines().find_map(|line| line.strip_prefix("landspeed_metrics_connections_closed_total "));
        closed.is_some_and(|closed| closed != "0")
    });
    assert!(closed, "silent scrapers were closed for others");
}

#[test]
fn unread_answers_do_not_block_other_scrapers() {
    static LARGE: Family = Family::gauge("test_large", "Long series").labels(&["n"]);
    let endpoint = Endpoint::bind(SocketAddr::from(([127, 0, 0, 1], 0)), "1", "test").expect("it listens");
    let addr = endpoint.local_addr().expect("an address");
    // More bytes than socket buffers hold, in few series: a busy machine must write them within the 10 s of a connection.
    let _running = endpoint.start(|samples: &mut Samples| {
        for n in 0..2500 {
            samples.add_labelled(&LARGE, &[&format!("{n:02500}")], 1_u64);
        }
    });
    let mut slow: Vec<TcpStream> = (0..3).map(|_| connect(addr)).collect();
    for stream in &mut slow {
        stream.write_all(GET).expect("it reads");
        stream.read_exact(&mut [0; 12]).expect("the answer begins");
    }
    let whole = ask(addr, GET);
    assert!(whole.ends_with("2499\"} 1\n"), "{} bytes", whole.len());
}

#[test]
fn a_port_in_use_is_an_error_with_advice() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address");
    let error = Endpoint::bind(addr, "1", "test").expect_err("it is in use");
    assert!(error.to_string().starts_with(&format!("cannot serve metrics on {addr}: ")), "{error}");
    assert!(error.advice().is_some_and(|advice| advice.starts_with("Choose another port")));
}

#[test]
fn stopped_endpoints_do_not_listen() {
    let (addr, running) = endpoint();
    assert!(ask(addr, GET).starts_with("HTTP/1.1 200"));
    drop(running);
    assert!(TcpStream::connect(addr).is_err());
}
