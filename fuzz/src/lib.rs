//! Properties that hold for any bytes from an untrusted peer, one function per decoder.
//!
//! No decoder may panic, hang or allocate more than the input's size. Accepted input must be unambiguous: encoded
//! again, it decodes to the same value.
#![forbid(unsafe_code)]

use landspeed_flow::control::frames::Frames;
use landspeed_flow::control::keyed_hello::KeyedHello;
use landspeed_flow::control::message::{ToClient, ToServer};
use landspeed_flow::control::{self, hello, preface};
use landspeed_flow::end::EndReport;
use landspeed_flow::mtu;
use landspeed_flow::udp::header::Format;
use landspeed_flow::validate;

/// The header of a datagram.
///
/// # Panics
/// If the decoder violates its property, as for all functions here.
pub fn udp_header(bytes: &[u8]) {
    let Some(tag) = bytes.first_chunk().copied().map(u32::from_be_bytes) else { return };
    for format in [Format::Landspeed { tag }, Format::Timeval { wide: true }, Format::Timeval { wide: false }] {
        let Some(read) = format.decode(bytes, 0) else { continue };
        let mut written = vec![0; format.bytes()];
        format.write_constant(&mut written);
        format.stamp(&mut written, read);
        // iperf3's microseconds may exceed a second, so the encoding is not unique.
        let again = format.decode(&written, read.seq);
        assert_eq!(again.map(|stamp| stamp.seq), Some(read.seq));
        assert!(matches!(format, Format::Timeval { .. }) || written == bytes[..format.bytes()]);
    }
}

/// The handshake of a UDP flow.
pub fn udp_hello(bytes: &[u8]) {
    if let Some((stream, step)) = hello::decode(bytes) {
        assert!(hello::decode(&hello::encode(stream, step)) == Some((stream, step)));
    }
    if let Some(keyed) = KeyedHello::decode(bytes) {
        assert!(KeyedHello::decode(&keyed.encode()) == Some(keyed));
    }
}

/// The preface of a TCP connection, and the reply to it.
pub fn preface(bytes: &[u8]) {
    if let Some(Ok(purpose)) = bytes.first_chunk().map(preface::decode) {
        assert!(preface::decode(&preface::encode(purpose)) == Ok(purpose));
    }
    if let Some((_, status)) = bytes.first_chunk().and_then(preface::decode_answer) {
        let again = preface::decode_answer(&preface::encode_answer(status));
        assert_eq!(again.map(|(_, status)| status), Some(status));
    }
}

/// Messages of the control connection in both directions, and the report sent in parts. Any parameters must be
/// validated without a panic.
pub fn control_message(bytes: &[u8]) {
    if let Ok(message) = serde_json::from_slice::<ToServer>(bytes) {
        if let ToServer::Hello { parameters, .. } = &message {
            let _ = validate::check(parameters);
        }
        check_round_trip::<ToServer>(&message);
    }
    if let Ok(message) = serde_json::from_slice::<ToClient>(bytes) {
        check_round_trip::<ToClient>(&message);
    }
    if let Ok(report) = serde_json::from_slice::<EndReport>(bytes) {
        check_round_trip::<EndReport>(&report);
    }
}

/// The unencrypted byte stream of a control connection. However it is split, it gives the same messages, and the
/// buffer stays within the limit plus one read.
pub fn frames(bytes: &[u8]) {
    const LIMIT: usize = 64;
    let read = |cut: usize| {
        let (mut frames, mut taken) = (Frames::new(LIMIT), Vec::new());
        for chunk_bytes in bytes.chunks(cut) {
            frames.push(chunk_bytes).expect("in the clear every byte is taken");
            loop {
                match frames.take() {
                    Ok(Some(frame)) => taken.push(frame),
                    Ok(None) => break,
                    Err(_) => return (taken, true),
                }
            }
            assert!(frames.held() < 4 + LIMIT + cut);
        }
        (taken, false)
    };
    let whole = read(bytes.len().max(1));
    assert!(whole.0.iter().all(|frame| frame.len() <= LIMIT));
    for cut in [1, 3, 7] {
        assert_eq!(read(cut), whole);
    }
}

/// A message of the path MTU probe.
pub fn mtu_message(bytes: &[u8]) {
    let Some(message) = mtu::decode(bytes) else { return };
    assert_eq!(mtu::decode(&message.encode()), Some(message));
}

/// A server's report, as parsed by the client.
pub fn server_report(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(report) = EndReport::parse_server_report(text, &[]) {
        assert!(report.streams.is_empty(), "a test without streams has none to report");
    }
}

/// Text from a peer, made printable for a terminal or a log.
pub fn printable(bytes: &[u8]) {
    let shown = control::printable(&String::from_utf8_lossy(bytes), 80);
    assert!(!shown.chars().any(char::is_control));
    assert!(shown.chars().count() <= 80 * 10 + 1, "an escape has at most ten characters");
}

fn check_round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(message: &T) {
    let text = serde_json::to_string(message).expect("what was read can be written");
    serde_json::from_str::<T>(&text).expect("what was written can be read");
}
