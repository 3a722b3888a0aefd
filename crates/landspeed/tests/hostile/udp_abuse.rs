//! The UDP port sends nothing unrequested, and never more bytes than it received.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_flow::control::hello::{self, HELLO_LEN, Step};
use landspeed_flow::control::message::{ToClient, ToServer};
use landspeed_flow::control::preface::Token;
use landspeed_flow::progress::SenderDone;
use landspeed_flow::udp::header::{self, Format, Stamp};
use landspeed_model::{Direction, Parameters, Protocol, UdpParameters};
use landspeed_sys::clock;

use crate::hostile::common::{Server, TIMEOUT_S, finish, until};
use crate::hostile::raw::{ask, receive_message};

/// A socket with a short timeout: on loopback answers arrive at once.
fn socket(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((server.ip(), 0)).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

/// Receives until no more answers arrive; returns datagrams and bytes.
fn answers(socket: &UdpSocket) -> (usize, usize) {
    let (mut datagrams, mut bytes) = (0, 0);
    let mut buffer = vec![0; 65_536];
    while let Ok(n) = socket.recv(&mut buffer) {
        (datagrams, bytes) = (datagrams + 1, bytes + n);
    }
    (datagrams, bytes)
}

fn flood_parameters() -> Parameters {
    Parameters {
        protocol: Protocol::Udp,
        direction: Direction::Download,
        udp: Some(UdpParameters::default()),
        rate_bps: Some(1_000_000_000),
        ..Parameters::default()
    }
}

#[test]
fn unknown_senders_get_no_answer() {
    let server = Server::start(&[]);
    let socket = socket(server.addr);
    let _test = ask(server.addr, flood_parameters()).expect("accepted");
    let token = Token([7; 32]);
    for step in [Step::Hello(token), Step::Challenge([1; 16]), Step::Proof(token, [1; 16]), Step::Welcome] {
        for stream in [0, 1, u32::MAX] {
            socket.send(&hello::encode(stream, step)).unwrap();
        }
    }
    for length in [0, 1, 24, HELLO_LEN - 1, HELLO_LEN + 1, 1448, 9000] {
        socket.send(&vec![0x4c; length]).unwrap();
    }
    assert_eq!(answers(&socket), (0, 0));
}

#[test]
fn unproved_addresses_get_no_amplification() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    let test = ask(server.addr, flood_parameters()).expect("accepted");
    let socket = socket(server.addr);
    let mut sent = 0;
    for _ in 0..50 {
        sent += socket.send(&hello::encode(0, Step::Hello(test.token))).unwrap();
        // A guessed nonce.
        sent += socket.send(&hello::encode(0, Step::Proof(test.token, [9; 16]))).unwrap();
    }
    let (datagrams, bytes) = answers(&socket);
    assert!(datagrams >= 1, "the first hello is answered");
    assert!(bytes <= sent, "{bytes} B came back for {sent} B");
    // A client that only sends a hello does not block others; once the stream is proved, others with the token
    // get no answer.
    let other = self::socket(server.addr);
    hello::run_handshake(&other, 0, test.token, 0, &crate::hostile::raw::NOT_INTERRUPTED)
        .expect("the stream is still open");
    let late = self::socket(server.addr);
    late.send(&hello::encode(0, Step::Hello(test.token))).unwrap();
    assert_eq!(answers(&late), (0, 0));
    drop(test);
    server.wait_for_resources(idle);
}

#[test]
fn an_unproved_flow_keeps_a_test_from_starting() {
    let server = Server::start(&[]);
    let mut test = ask(server.addr, flood_parameters()).expect("accepted");
    let socket = socket(server.addr);
    socket.send(&hello::encode(0, Step::Hello(test.token))).unwrap();
    let mut buffer = [0; HELLO_LEN];
    let n = socket.recv(&mut buffer).expect("the challenge");
    assert!(matches!(hello::decode(&buffer[..n]), Some((0, Step::Challenge(_)))));
    test.tx.queue(&ToServer::Opened).unwrap();
    test.tx.queue(&ToServer::Start { at_ns: 0, lead_ns: None }).unwrap();
    assert!(!matches!(receive_message(&mut test.rx), Ok(ToClient::Ready)));
    assert_eq!(answers(&socket), (0, 0));
}

#[test]
fn a_welcome_needs_a_proof_beyond_the_token() {
    let server = Server::start(&[]);
    let test = ask(server.addr, flood_parameters()).expect("accepted");
    let socket = socket(server.addr);
    socket.send(&hello::encode(0, Step::Hello(test.token))).unwrap();
    let mut buffer = [0; HELLO_LEN];
    let n = socket.recv(&mut buffer).expect("the challenge");
    let Some((0, Step::Challenge(nonce))) = hello::decode(&buffer[..n]) else { panic!("{buffer:?}") };
    for wrong in [
        hello::encode(1, Step::Proof(test.token, nonce)),
        hello::encode(0, Step::Proof(Token([0; 32]), nonce)),
        hello::encode(0, Step::Proof(test.token, [0; 16])),
        hello::encode(0, Step::Welcome),
    ] {
        socket.send(&wrong).unwrap();
    }
    assert_eq!(answers(&socket), (0, 0));
    socket.send(&hello::encode(0, Step::Proof(test.token, nonce))).unwrap();
    let n = socket.recv(&mut buffer).expect("the welcome");
    assert_eq!(hello::decode(&buffer[..n]), Some((0, Step::Welcome)));
    assert_eq!(answers(&socket), (0, 0), "nothing flows before the start");
}

#[test]
fn impossible_sequence_numbers_and_counts_are_survived() {
    let server = Server::start(&[]);
    let idle = server.baseline();
    for last in [0, u64::MAX, 1 << 63] {
        let upload = Parameters { direction: Direction::Upload, time_ns: Some(300_000_000), ..flood_parameters() };
        let mut test = ask(server.addr, upload).expect("accepted");
        let socket = socket(server.addr);
        hello::run_handshake(&socket, 0, test.token, 0, &crate::hostile::raw::NOT_INTERRUPTED).expect("proved");
        test.ready();
        let at_ns = test.server_clock();
        test.tx.queue(&ToServer::Start { at_ns, lead_ns: None }).unwrap();
        let mut datagram = vec![0; 1448];
        let format = Format::Landspeed { tag: test.token.datagram_tag(0) };
        format.write_constant(&mut datagram);
        for seq in [0, 1, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 5, 1 << 32, 0] {
            for sent_ns in [0, u64::MAX, at_ns] {
                format.stamp(&mut datagram, Stamp { seq, sent_ns });
                socket.send(&datagram).unwrap();
                // Only the header, and longer than a datagram of this test.
                socket.send(&datagram[..header::BYTES]).unwrap();
                socket.send(&datagram.repeat(3)).unwrap();
            }
        }
        let done = SenderDone { stream: 0, bytes: last, packets: last, stopped_ns: last };
        let nobody = SenderDone { stream: u32::MAX, ..done };
        test.tx.queue(&ToServer::SenderDone(nobody)).unwrap();
        test.tx.queue(&ToServer::SenderDone(done)).unwrap();
        // The receiver must not wait for datagrams that were never sent.
        test.tx.queue(&ToServer::Bye).unwrap();
        loop {
            match receive_message(&mut test.rx).expect("a report") {
                ToClient::Report { last: true, .. } => break,
                ToClient::Error(entry) => panic!("{}", entry.message),
                _ => {}
            }
        }
    }
    server.wait_for_resources(idle);
    server.run(&["-t", "0.2", "-u"]).assert_clean();
    assert!(!server.process.stderr().contains("panicked"), "{}", server.process.stderr());
}

#[test]
fn invalid_datagrams_do_not_disturb_a_running_flow() {
    let server = Server::start(&[]);
    let test = server.begin(&["-t", "1", "-u", "-b", "20m", "-P", "2"]);
    until(TIMEOUT_S, "the test to start", || server.process.stdout().contains("start"));
    let socket = socket(server.addr);
    let junk = [hello::encode(0, Step::Hello(Token([7; 32]))).to_vec(), vec![0; 1448], vec![0xff; 24]];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for datagram in &junk {
                    let _ = socket.send(datagram);
                }
                clock::sleep_until(clock::monotonic_ns() + 50_000);
            }
        });
        let run = finish(test.end(TIMEOUT_S));
        over.store(true, Ordering::Relaxed);
        run.assert_clean();
    });
    assert_eq!(answers(&socket), (0, 0));
}
