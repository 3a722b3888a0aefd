//! Servers whose clock is wrong.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use landspeed_flow::control::preface::{self, ANSWER_LEN, PREFACE_LEN, Purpose};
use serde_json::{Value, json};

use crate::hostile::common::{Server, run};
use crate::hostile::raw::frame;

/// Error of the clock, nanoseconds: longer than the test.
const WRONG_NS: u64 = 2_000_000_000;

/// Rewrites a message of the control connection.
type Rewrite = fn(&mut Value);

/// Forwards everything to `server`, and rewrites the messages of control connections.
fn proxy(server: SocketAddr, from_client: Rewrite, from_server: Rewrite) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let addr = listener.local_addr().unwrap();
    // The threads end with the test program.
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(server)) else { return };
            let (near_twin, far_twin) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let control = preface::encode(Purpose::Control { keyed: false });
            let mut first = [0; PREFACE_LEN];
            if near_twin.peek(&mut first).is_err() {
                return;
            }
            let is_control = first[..11] == control[..11];
            std::thread::spawn(move || forward(near, far, is_control.then_some((PREFACE_LEN, from_client))));
            std::thread::spawn(move || forward(far_twin, near_twin, is_control.then_some((ANSWER_LEN, from_server))));
        }
    });
    addr
}

/// Copies until the end; with `control` (the length of its beginning), rewrites the messages.
fn forward(mut from: TcpStream, mut to: TcpStream, control: Option<(usize, Rewrite)>) {
    let _ = match control {
        None => std::io::copy(&mut from, &mut to).map(drop),
        Some((beginning, rewrite)) => forward_messages(&mut from, &mut to, beginning, rewrite),
    };
    let _ = to.shutdown(std::net::Shutdown::Write);
}

fn forward_messages(
    from: &mut TcpStream,
    to: &mut TcpStream,
    beginning: usize,
    rewrite: Rewrite,
) -> std::io::Result<()> {
    let mut bytes = vec![0; beginning];
    from.read_exact(&mut bytes)?;
    to.write_all(&bytes)?;
    loop {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        from.read_exact(&mut text)?;
        let mut message: Value = serde_json::from_slice(&text)?;
        rewrite(&mut message);
        to.write_all(&frame(&serde_json::to_vec(&message)?))?;
    }
}

fn unchanged(_: &mut Value) {}

/// The server's clock is ahead in its answers to pings.
fn ahead(message: &mut Value) {
    if message["type"] == "pong" {
        message["now_ns"] = json!(message["now_ns"].as_u64().expect("a time") + WRONG_NS);
    }
}

/// The server does not learn how far away the client meant the start to be.
fn without_lead(message: &mut Value) {
    if message["type"] == "start" {
        message["lead_ns"] = Value::Null;
    }
}

#[test]
fn wrong_server_clock_does_not_delay_the_test() {
    let server = Server::start(&[]);
    for direction in [&[][..], &["-R"]] {
        let addr = proxy(server.addr, unchanged, ahead);
        let run = run(&addr.to_string(), &[&["-t", "0.5", "-b", "50m"], direction].concat());
        run.assert_clean();
        let steady_ns = run.document["summary"]["steady_ns"].as_u64();
        assert!(steady_ns.is_some_and(|ns| ns > 400_000_000), "{}", run.document["phases"]);
        assert!(run.document["summary"]["goodput_bps"].as_f64() > Some(10e6), "{}", run.document["summary"]);
        let warnings = run.document["warnings"].to_string();
        assert!(warnings.contains("start time was"), "{warnings}");
    }
}

#[test]
fn run_with_contradicting_phases_is_incomplete() {
    let server = Server::start(&[]);
    for direction in [&[][..], &["-R"]] {
        let addr = proxy(server.addr, without_lead, ahead);
        let run = run(&addr.to_string(), &[&["-t", "0.5", "-b", "50m"], direction].concat());
        assert!(run.document["summary"]["bytes_delivered"].as_u64() > Some(1_000_000), "{}", run.document["summary"]);
        assert_eq!((run.ended.code, run.status()), (1, "partial"), "{}", run.document["phases"]);
        let warnings = run.document["warnings"].as_array().expect("a list");
        assert!(warnings.iter().any(|warning| warning["code"] == "contradiction"), "{warnings:?}");
        assert_eq!(run.document["verdict"]["cause"], "undetermined");
    }
}
