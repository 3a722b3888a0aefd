//! The part of landspeed's control protocol, version 1 without a key, that the attacks need.
//!
//! Written from the wire format and not with the product's code: an attacker is not bound by the client's checks.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use landspeed_stats::SplitMix64;
use serde_json::{Value, json};

use super::connect::{Action, read_array, reset, unexpected};
use super::hold::{HeldTest, SendScript};

const MAGIC: &[u8; 8] = b"LNDSPEED";
/// Announced length of a message sent byte by byte, bytes: below the limit of every state.
const ANNOUNCED_BYTES: u32 = 60_000;
/// Interval between the bytes of a slowly sent message.
const BYTE_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between the bytes of a slowly sent preface: it is not complete within the server's time limit.
const PREFACE_BYTE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum messages skipped while waiting for one of a certain type.
const MAX_SKIPPED_MESSAGES: usize = 1000;
/// Maximum message size to read, bytes.
const MAX_MESSAGE_BYTES: u32 = 4 << 20;
/// Maximum parts of a description to read.
const MAX_DESCRIPTION_PARTS: usize = 64;

/// Builds the first 48 bytes of a connection: kind 1 is control, 2 is data.
fn preface(kind: u8, stream: u32, token: &[u8; 32]) -> Vec<u8> {
    [MAGIC.as_slice(), &1_u16.to_be_bytes(), &[kind, 0], &stream.to_be_bytes(), token].concat()
}

fn control_preface() -> Vec<u8> {
    preface(1, 0, &[0; 32])
}

fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    [&(body.len() as u32).to_be_bytes(), body.as_bytes()].concat()
}

fn read_message(stream: &mut TcpStream) -> io::Result<Value> {
    let length = u32::from_be_bytes(read_array(stream)?);
    if length > MAX_MESSAGE_BYTES {
        return Err(unexpected("a message is longer than 4 MiB"));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}

/// Reads messages up to the first one of type `wanted`.
fn read_until(stream: &mut TcpStream, wanted: &str) -> io::Result<Value> {
    for _ in 0..MAX_SKIPPED_MESSAGES {
        let message = read_message(stream)?;
        match message["type"].as_str() {
            Some(found) if found == wanted => return Ok(message),
            Some("refused" | "error") => return Err(unexpected(&message.to_string())),
            _ => {}
        }
    }
    Err(unexpected("too many messages"))
}

/// Sends a preface and reads the 16-byte answer.
fn send_preface(action: &Action, preface: &[u8]) -> io::Result<TcpStream> {
    let mut stream = action.connect_and_send(preface)?;
    let answer: [u8; 16] = read_array(&mut stream)?;
    if &answer[..8] != MAGIC || answer[10] != 0 {
        return Err(unexpected("the server does not welcome the connection"));
    }
    Ok(stream)
}

/// Builds the parameters of a one-stream TCP upload.
fn parameters(time_ns: u64, rate_bps: u64, interval_ns: u64) -> Value {
    json!({
        "protocol": "tcp", "direction": "upload", "streams": 1, "time_ns": time_ns, "bytes": null, "omit_ns": 0,
        "interval_ns": interval_ns, "host_interval_ns": interval_ns, "write_bytes": 1024, "window_bytes": null,
        "mss_bytes": null, "congestion": null, "nodelay": false, "dscp": null, "mptcp": false, "pace_bps": null,
        "pace_scope": "stream", "rate_bps": rate_bps, "send": "copy", "receive": "copy", "read_rate_bps": null,
        "client_cpus": [], "server_cpus": [], "client_numa": null, "server_numa": null, "family": "any", "bind": null,
        "udp": null, "rr": null, "probe_rate_per_s": null, "probe_mtu": false, "title": null,
    })
}

/// Requests a test; returns the control connection and the test's token.
fn accepted(action: &Action, parameters: &Value) -> io::Result<(TcpStream, [u8; 32])> {
    let mut control = send_preface(action, &control_preface())?;
    control.write_all(&frame(&json!({ "type": "hello", "version": "0.1.0", "parameters": parameters })))?;
    let accepted = read_until(&mut control, "accepted")?;
    let token =
        accepted["token"].as_str().and_then(from_hex).ok_or_else(|| unexpected("an acceptance has no token"))?;
    Ok((control, token))
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    (text.len() == 64).then_some(bytes)
}

/// Starts a test; returns its control and data connections.
fn started(action: &Action, parameters: &Value) -> io::Result<(TcpStream, TcpStream)> {
    let (mut control, token) = accepted(action, parameters)?;
    let data = send_preface(action, &preface(2, 0, &token))?;
    control.write_all(&frame(&json!({ "type": "ping", "n": 0 })))?;
    let pong = read_until(&mut control, "pong")?;
    control.write_all(&frame(&json!({ "type": "opened" })))?;
    read_until(&mut control, "ready")?;
    let now_ns = pong["now_ns"].as_u64().ok_or_else(|| unexpected("a pong has no time"))?;
    control.write_all(&frame(&json!({ "type": "start", "at_ns": now_ns + 20_000_000 })))?;
    Ok((control, data))
}

fn drip_message(mut control: TcpStream) -> io::Result<HeldTest> {
    control.write_all(&ANNOUNCED_BYTES.to_be_bytes())?;
    Ok(HeldTest::with_script(vec![control], SendScript::drip(BYTE_INTERVAL, Vec::new())))
}

/// Sends the preface and then nothing.
pub fn silent_in_greeting(action: &Action) -> io::Result<HeldTest> {
    Ok(HeldTest::silent(send_preface(action, &control_preface())?))
}

/// Sends the preface one byte at a time.
pub fn drip_preface(action: &Action) -> io::Result<HeldTest> {
    Ok(HeldTest::with_script(vec![action.connect()?], SendScript::drip(PREFACE_BYTE_INTERVAL, control_preface())))
}

/// Sends the hello one byte at a time.
pub fn drip_greeting(action: &Action) -> io::Result<HeldTest> {
    drip_message(send_preface(action, &control_preface())?)
}

/// Sends a message between acceptance and start one byte at a time.
pub fn drip_setup(action: &Action) -> io::Result<HeldTest> {
    drip_message(accepted(action, &parameters(1_000_000_000, 8_000, 100_000_000))?.0)
}

/// Completes a test of 0.2 s and then sends its last message one byte at a time.
pub fn drip_last_message(action: &Action) -> io::Result<HeldTest> {
    const TIME_NS: u64 = 200_000_000;
    let (mut control, mut data) = started(action, &parameters(TIME_NS, 8_000, 100_000_000))?;
    data.write_all(&[0; 100])?;
    let done = json!({ "type": "sender-done", "stream": 0, "bytes": 100, "packets": 0, "stopped_ns": TIME_NS });
    std::thread::park_timeout(Duration::from_nanos(TIME_NS));
    control.write_all(&frame(&done))?;
    data.shutdown(std::net::Shutdown::Write)?;
    while read_until(&mut control, "report")?["last"] != true {}
    drip_message(control)
}

/// Starts a test of 8 bit/s for one hour and keeps it open.
pub fn slow_test(action: &Action) -> io::Result<HeldTest> {
    let (control, data) = started(action, &parameters(3_600_000_000_000, 8, 10_000_000_000))?;
    let alive = frame(&json!({ "type": "alive" }));
    Ok(HeldTest::with_script(vec![control, data], SendScript::repeat(Duration::from_secs(4), alive)))
}

/// Starts a test and disconnects: after the acceptance, after the start, or in the middle of its data.
pub fn vanish(action: &Action) -> io::Result<()> {
    let parameters = parameters(10_000_000_000, 100_000_000, 100_000_000);
    if action.number.is_multiple_of(3) {
        reset(accepted(action, &parameters)?.0);
        return Ok(());
    }
    let (control, mut data) = started(action, &parameters)?;
    if action.number % 3 == 2 {
        data.write_all(&[0; 16 * 1024])?;
    }
    reset(data);
    reset(control);
    Ok(())
}

/// Sends data that violates the protocol: random bytes, an HTTP request, a message of 4 GiB, a length without a
/// message.
pub fn junk(action: &Action) -> io::Result<()> {
    match action.number % 4 {
        0 => drop(action.connect_and_send(&random_bytes(action.number, 4096))?),
        1 => drop(action.connect_and_send(HTTP)?),
        2 => drop(send_preface(action, &control_preface())?.write_all(&u32::MAX.to_be_bytes())),
        _ => drop(send_preface(action, &control_preface())?.write_all(&[0, 0, 0, 2, b'{', 0xff])),
    }
    Ok(())
}

/// Request of a browser on the wrong port.
pub const HTTP: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";

/// Returns `count` pseudo-random bytes for a seed.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| random.below(256) as u8).collect()
}

/// Requests the description of the server's host and reads it.
pub fn describe(action: &Action) -> io::Result<()> {
    let mut control = send_preface(action, &control_preface())?;
    control.write_all(&frame(&json!({ "type": "describe", "version": "0.1.0" })))?;
    for _ in 0..MAX_DESCRIPTION_PARTS {
        if read_until(&mut control, "report")?["last"] == true {
            break;
        }
    }
    Ok(())
}

/// Settings that no client may change, or not to this value.
const FORBIDDEN: [(&str, &str); 4] = [
    ("net.ipv4.tcp_fastopen", "1539"),
    ("net.ipv4.tcp_synack_retries", "255"),
    ("net.ipv4.tcp_notsent_lowat", "0"),
    ("net.core.rmem_max", "2147483647"),
];

/// Begins a session for changes of the server's host, and requests 100 that the server must refuse.
pub fn forbidden_changes(action: &Action) -> io::Result<()> {
    let mut control = send_preface(action, &control_preface())?;
    let mut ask = |n: usize, request: Value| {
        control.write_all(&frame(&json!({ "type": "changes", "n": n, "request": request })))?;
        read_until(&mut control, "changes")
    };
    ask(0, json!({ "do": "begin", "version": "0.1.0", "limit_s": 60 }))?;
    for (n, (name, value)) in FORBIDDEN.iter().cycle().take(100).enumerate() {
        let change = json!({ "target": { "kind": "sysctl", "name": name }, "desired": value });
        let answer = ask(n + 1, json!({ "do": "apply", "changes": [change] }))?;
        if answer["answer"]["did"] != "failed" {
            return Err(unexpected(&format!("the server did not refuse {name}: {answer}")));
        }
    }
    Ok(())
}

/// Begins a session for changes of the server's host, and requests 200 with a long name without waiting for the answers.
pub fn flood_of_changes(action: &Action) -> io::Result<()> {
    let mut control = send_preface(action, &control_preface())?;
    let request = |n: usize, request: Value| frame(&json!({ "type": "changes", "n": n, "request": request }));
    control.write_all(&request(0, json!({ "do": "begin", "version": "0.1.0", "limit_s": 60 })))?;
    read_until(&mut control, "changes")?;
    let change = json!({ "target": { "kind": "sysctl", "name": "x".repeat(395) }, "desired": "1" });
    for n in 0..200 {
        control.write_all(&request(n + 1, json!({ "do": "apply", "changes": [change] })))?;
    }
    for _ in 0..200 {
        read_until(&mut control, "changes")?;
    }
    Ok(())
}

/// Fills a datagram: random bytes, or a hello or proof with an unknown token.
pub fn datagram(random: &mut SplitMix64, bytes: &mut Vec<u8>) {
    bytes.clear();
    let kind = match random.below(4) {
        0 | 1 => {
            let length = 1 + random.below(1400);
            let word = random.below(u64::MAX);
            bytes.extend((0..length).map(|at| word.rotate_left((at % 64) as u32) as u8));
            return;
        }
        2 => 1,
        _ => 3,
    };
    bytes.extend_from_slice(b"LNDSUDP1");
    bytes.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    for _ in 0..6 {
        bytes.extend_from_slice(&random.below(u64::MAX).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_prefaces_have_the_length_of_the_protocol() {
        assert_eq!(control_preface().len(), 48);
        let (mut random, mut bytes) = (SplitMix64::new(1), Vec::new());
        for _ in 0..100 {
            datagram(&mut random, &mut bytes);
            assert!(!bytes.starts_with(b"LNDSUDP1") || bytes.len() == 64, "{bytes:?}");
            assert!((1..=1400).contains(&bytes.len()));
        }
    }
}
