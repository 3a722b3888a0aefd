//! Path MTU probes over loopback: exact at the largest packets, bounded in time, and unaffected by foreign
//! datagrams.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::control::hello::{self, Step};
use landspeed_flow::control::preface::Token;
use landspeed_flow::mtu::{HEADER_LEN, Kind, MAX_PAYLOAD, Message, decode, probe, serve};
use landspeed_model::{Direction, MtuProbe};
use landspeed_sys::clock::monotonic_ns;

const TAG: u32 = 0x7e57_3755;
const S: u64 = 1_000_000_000;

fn pair(host: &str) -> Option<(UdpSocket, UdpSocket)> {
    let (client, server) = (UdpSocket::bind((host, 0)).ok()?, UdpSocket::bind((host, 0)).ok()?);
    client.connect(server.local_addr().ok()?).ok()?;
    server.connect(client.local_addr().ok()?).ok()?;
    Some((client, server))
}

fn probe_both_directions(host: &str) -> Option<Vec<MtuProbe>> {
    let (client, server) = pair(host)?;
    let found = std::thread::scope(|scope| {
        scope.spawn(|| serve(&server, TAG, 0, &AtomicBool::new(false)));
        probe(&client, TAG, 0, &AtomicBool::new(false))
    });
    println!("{found:#?}");
    assert_eq!(found.iter().map(|one| one.direction).collect::<Vec<_>>(), [Direction::Upload, Direction::Download]);
    Some(found)
}

#[test]
fn ipv4_loopback_carries_packets_of_65535_bytes() {
    for found in probe_both_directions("127.0.0.1").expect("loopback") {
        assert_eq!((found.path_mtu_bytes, found.smallest_failed_bytes), (Some(65_535), None), "{found:?}");
        assert_eq!((found.interface_mtu_bytes, found.silent), (Some(65_536), 0), "{found:?}");
    }
}

#[test]
fn ipv6_loopback_carries_exactly_its_mtu() {
    let Some(both) = probe_both_directions("::1") else { landspeed_testkit::skip!("no IPv6 loopback here") };
    for found in both {
        assert_eq!((found.path_mtu_bytes, found.smallest_failed_bytes), (Some(65_536), Some(65_537)), "{found:?}");
        assert_eq!((found.interface_mtu_bytes, found.silent), (Some(65_536), 0), "{found:?}");
        assert!(found.note.as_deref().is_some_and(|note| note.contains("interface")), "{found:?}");
    }
}

#[test]
fn an_unresponsive_server_ends_probing_with_a_note() {
    let (client, _silent) = pair("127.0.0.1").expect("loopback");
    let start = monotonic_ns();
    let found = probe(&client, TAG, 0, &AtomicBool::new(false));
    assert!(monotonic_ns() - start < 15 * S);
    assert!(found.iter().all(|one| one.path_mtu_bytes.is_none() && one.note.is_some()), "{found:?}");
}

#[test]
fn an_interrupted_probe_has_a_note() {
    let (client, server) = pair("127.0.0.1").expect("loopback");
    let found = std::thread::scope(|scope| {
        scope.spawn(|| serve(&server, TAG, 0, &AtomicBool::new(false)));
        probe(&client, TAG, 0, &AtomicBool::new(true))
    });
    for one in found {
        assert_eq!(one.path_mtu_bytes, None, "{one:?}");
        assert!(one.note.as_deref().is_some_and(|note| note.contains("interrupted")), "{one:?}");
    }
}

#[test]
fn the_server_exits_when_the_client_is_idle() {
    let (_client, server) = pair("127.0.0.1").expect("loopback");
    let start = monotonic_ns();
    serve(&server, TAG, 0, &AtomicBool::new(false));
    assert!((2 * S..15 * S).contains(&(monotonic_ns() - start)));
}

#[test]
fn foreign_and_malformed_requests_are_not_answered() {
    let (client, server) = pair("127.0.0.1").expect("loopback");
    client.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&server, TAG, 0, &AtomicBool::new(false)));
        let mut short = Message::new(Kind::ProbeUp, TAG, 1, 1_000).encode().to_vec();
        short.resize(999, 0);
        let unanswered = [
            Message::new(Kind::RequestDown, TAG ^ 1, 0, 60_000).encode().to_vec(),
            short,
            Message::new(Kind::RequestDown, TAG, 2, MAX_PAYLOAD + 1).encode().to_vec(),
            Message::new(Kind::RequestDown, TAG, 3, 0).encode().to_vec(),
            Message::new(Kind::Ack, TAG, 4, 100).encode().to_vec(),
            Message::new(Kind::DownProbe, TAG, 5, 100).encode().to_vec(),
            Message::new(Kind::RequestDown, TAG, 6, 100).encode()[..HEADER_LEN - 1].to_vec(),
            vec![0; 64],
            vec![],
        ];
        for datagram in &unanswered {
            client.send(datagram).expect("sent");
        }
        // A valid request follows them; loopback preserves the order.
        client.send(&Message::new(Kind::RequestDown, TAG, 7, 5_000).encode()).expect("sent");
        let mut buffer = vec![0; 70_000];
        let n = client.recv(&mut buffer).expect("an answer");
        let answer = decode(&buffer[..n]).expect("a message");
        assert_eq!((answer.kind, answer.sequence, answer.size, n), (Kind::DownProbe, 7, 5_000, 5_000));
        client.send(&Message::new(Kind::Done, TAG, 8, 0).encode()).expect("sent");
        let n = client.recv(&mut buffer).expect("an answer");
        assert_eq!(decode(&buffer[..n]).map(|message| (message.kind, message.sequence)), Some((Kind::Ack, 8)));
    });
}

#[test]
fn a_lost_welcome_is_retransmitted() {
    let (client, server) = pair("127.0.0.1").expect("loopback");
    client.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&server, TAG, 0, &AtomicBool::new(false)));
        client.send(&hello::encode(7, Step::Proof(Token([1; 32]), [2; 16]))).expect("sent");
        let mut buffer = [0; 128];
        let n = client.recv(&mut buffer).expect("an answer");
        assert_eq!(hello::decode(&buffer[..n]), Some((7, Step::Welcome)));
        client.send(&Message::new(Kind::Done, TAG, 0, 0).encode()).expect("sent");
    });
}
