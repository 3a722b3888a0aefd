//! Tests the claims of the fuzz targets on stable Rust, with slightly corrupted valid input and with random
//! bytes.

#[path = "../../../fuzz/src/lib.rs"]
mod claims;

use crate::damage::{damage, damaged};
use landspeed_flow::control::keyed_hello::{self, KeyedHello};
use landspeed_flow::control::message::ToServer;
use landspeed_flow::control::preface::{self, Purpose, TestId, Token};
use landspeed_flow::control::{hello, message};
use landspeed_flow::end::{EndReport, PhaseEnds};
use landspeed_flow::mtu;
use landspeed_flow::progress::SenderDone;
use landspeed_flow::udp::header::{self, Format, Stamp};
use proptest::prelude::*;

fn datagram(tag: u32, seq: u64, sent_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0; header::BYTES];
    let format = Format::Landspeed { tag };
    format.write_constant(&mut bytes);
    format.stamp(&mut bytes, Stamp { seq, sent_ns });
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic_a_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        claims::udp_header(&bytes);
        claims::udp_hello(&bytes);
        claims::preface(&bytes);
        claims::control_message(&bytes);
        claims::frames(&bytes);
        claims::mtu_message(&bytes);
        claims::server_report(&bytes);
        claims::printable(&bytes);
    }

    #[test]
    fn corrupt_frames_decode_equally_in_any_segmentation(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..6), damage in damage()) {
        let bytes = messages.iter().flat_map(|m| [&(m.len() as u32).to_be_bytes()[..], m].concat()).collect();
        claims::frames(&damaged(bytes, &damage));
    }

    #[test]
    fn corrupt_path_mtu_messages_are_rejected_or_round_trip(kind in 0..6u8, tag: u32, sequence: u32, size: u32, damage in damage()) {
        use mtu::Kind::{Ack, Done, DownProbe, ProbeUp, Refused, RequestDown};
        let kind = [ProbeUp, Ack, RequestDown, DownProbe, Refused, Done][usize::from(kind)];
        claims::mtu_message(&damaged(mtu::Message::new(kind, tag, sequence, size).encode().to_vec(), &damage));
    }

    #[test]
    fn corrupt_reports_never_panic(startup: Option<u64>, end: Option<u64>, damage in damage()) {
        let cuts = PhaseEnds { startup_end_ns: startup, end_ns: end, ..PhaseEnds::default() };
        let report = EndReport { cuts, ..EndReport::default() };
        claims::server_report(&damaged(serde_json::to_vec(&report).unwrap(), &damage));
    }

    #[test]
    fn corrupt_datagrams_are_rejected_or_round_trip(tag: u32, seq: u64, sent_ns: u64, damage in damage()) {
        claims::udp_header(&damaged(datagram(tag, seq, sent_ns), &damage));
    }

    #[test]
    fn corrupt_udp_hellos_are_rejected_or_round_trip(stream: u32, kind in 0..4u8, token: [u8; 32], nonce: [u8; 16], damage in damage()) {
        let token = Token(token);
        let step = match kind {
            0 => hello::Step::Hello(token),
            1 => hello::Step::Challenge(nonce),
            2 => hello::Step::Proof(token, nonce),
            _ => hello::Step::Welcome,
        };
        claims::udp_hello(&damaged(hello::encode(stream, step).to_vec(), &damage));
    }

    #[test]
    fn corrupt_keyed_hellos_are_rejected_or_round_trip(
        stream: u32, kind in 0..4usize, id: [u8; 16], nonces: [[u8; 16]; 2], proof: [u8; 32], damage in damage()
    ) {
        use keyed_hello::Kind::{Challenge, Hello, Proof, Welcome};
        let kind = [Hello, Challenge, Proof, Welcome][kind];
        let [client_nonce, server_nonce] = nonces;
        let hello = KeyedHello { kind, stream, test: TestId(id), client_nonce, server_nonce, proof };
        claims::udp_hello(&damaged(hello.encode().to_vec(), &damage));
    }

    #[test]
    fn corrupt_prefaces_are_rejected_or_round_trip(
        stream: u32, token: [u8; 32], id: [u8; 16], nonce: [u8; 16], keyed: bool, control: bool, damage in damage()
    ) {
        let purpose = match (control, keyed) {
            (true, keyed) => Purpose::Control { keyed },
            (false, true) => Purpose::KeyedData { stream, test: TestId(id), nonce },
            (false, false) => Purpose::Data { stream, token: Token(token) },
        };
        claims::preface(&damaged(preface::encode(purpose).to_vec(), &damage));
    }

    #[test]
    fn corrupt_messages_are_rejected_or_round_trip(stream: u32, bytes: u64, packets: u64, stopped_ns: u64, damage in damage()) {
        let message = ToServer::SenderDone(SenderDone { stream, bytes, packets, stopped_ns });
        claims::control_message(&damaged(serde_json::to_vec(&message).unwrap(), &damage));
    }
}

#[test]
fn nested_and_oversized_json_is_refused() {
    claims::control_message("[".repeat(message::MAX_EARLY_MESSAGE).as_bytes());
    claims::control_message(format!("{{\"type\":{}", "{\"a\":".repeat(10_000)).as_bytes());
    claims::control_message(br#"{"type":"ping","n":1e400}"#);
}
