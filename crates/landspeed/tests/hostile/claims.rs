//! Who may open a stream of a test: with a key any peer that proves it, without one only the address of the
//! control connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use landspeed_flow::control::channel::Key;
use landspeed_flow::control::credentials::{self, CHALLENGE_LEN, Credentials, Step};
use landspeed_flow::control::hello::{self, KEYED_HELLO_LEN};
use landspeed_flow::control::keyed_hello::{self, KeyedHello, Kind};
use landspeed_flow::control::message::ToServer;
use landspeed_flow::control::preface::{Nonce, Purpose, Status};
use landspeed_model::{Direction, Parameters, Protocol, UdpParameters};
use landspeed_testkit::drip::{self, State};

use crate::hostile::common::{Server, run, scratch};
use crate::hostile::keys::{new_key, text};
use crate::hostile::raw::{self, Client};
use crate::hostile::thief::{self, ATTACKER_IP, RelayAttack};
use landspeed_testkit::process::run_concurrently;

/// Every kind of data transfer.
const TESTS: [&[&str]; 8] = [
    &["-t", "0.5", "-b", "20m", "-P", "2"],
    &["-t", "0.5", "-b", "20m", "-P", "2", "-R"],
    &["-t", "0.5", "--rr", "--rate", "500"],
    &["-t", "1", "--rr", "--connect"],
    &["-t", "0.5", "-u", "-b", "20m", "-P", "2"],
    &["-t", "0.5", "-u", "-b", "20m", "-R"],
    &["-t", "0.5", "-u", "--rr", "--rate", "500"],
    &["-t", "0.5", "-b", "20m", "--probe-mtu"],
];

/// Computes a proof for a server's nonce.
type ProofFunction<'a> = dyn Fn(&Nonce) -> [u8; 32] + 'a;

#[test]
fn replayed_stream_openings_fail_with_a_key() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&key)]);
    let idle = server.baseline_with(&["--key-file", text(&key)]);
    run_concurrently(TESTS, |test| {
        let (addr, attack_counts) = thief::start(server.addr, RelayAttack::ReplayMessages);
        let run = run(&addr.to_string(), &[test, &["--key-file", text(&key)]].concat());
        run.assert_clean();
        assert_eq!(run.document["path"]["authenticated"], true);
        assert!(attack_counts.copies.load(Ordering::SeqCst) > 0, "nothing was stolen, nothing was tested: {test:?}");
        let got = (attack_counts.bytes.load(Ordering::SeqCst), attack_counts.accepted_copies.load(Ordering::SeqCst));
        assert_eq!(got, (0, 0), "bytes and welcomes for the thief: {test:?}");
    });
    server.wait_for_resources((idle.0 + 2, idle.1));
}

#[test]
fn replayed_openings_from_other_addresses_fail_without_a_key() {
    let server = Server::start(&[]);
    run_concurrently(TESTS, |test| {
        let (addr, attack_counts) = thief::start(server.addr, RelayAttack::ReplayMessages);
        run(&addr.to_string(), test).assert_clean();
        assert!(attack_counts.copies.load(Ordering::SeqCst) > 0, "nothing was stolen, nothing was tested: {test:?}");
        let got = (attack_counts.bytes.load(Ordering::SeqCst), attack_counts.accepted_copies.load(Ordering::SeqCst));
        assert_eq!(got, (0, 0), "bytes and welcomes for the thief: {test:?}");
    });
}

#[test]
fn a_man_in_the_middle_is_detected() {
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&key)]);
    let tests = [&["-t", "0.5"][..], &["-t", "0.5", "-R"], &["-t", "0.5", "-u"], &["-t", "0.5", "--probe-mtu"]];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (addr, _) = thief::start(server.addr, RelayAttack::Impersonate);
            let connect = run(&addr.to_string(), &["-t", "3", "--rr", "--connect", "--key-file", text(&key)]);
            assert_ne!(connect.ended.code, 0);
            assert!(
                connect.document.to_string().contains("its other end does not have the key"),
                "{}",
                connect.document
            );
        });
        run_concurrently(tests, |test| {
            let (addr, _) = thief::start(server.addr, RelayAttack::Impersonate);
            run(&addr.to_string(), &[test, &["--key-file", text(&key)]].concat()).assert_failed("unproved-server");
        });
    });
}

#[test]
fn data_from_other_addresses_needs_a_key_or_option() {
    let closed = Server::start(&[]);
    let open = Server::start(&["--data-from-anywhere"]);
    let paced = ["-t", "0.3", "-b", "20m"];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (addr, _) = thief::start(closed.addr, RelayAttack::OtherAddress);
            // On a busy machine opening a connection may take a second.
            let connect = run(&addr.to_string(), &["-t", "3", "--rr", "--connect"]);
            assert!(
                connect.document.to_string().contains("not the address of the control connection"),
                "{connect:?}"
            );
        });
        run_concurrently([(&paced[..], "wrong-address"), (&["-t", "0.3", "-u"], "timeout")], |(test, code)| {
            let (addr, _) = thief::start(closed.addr, RelayAttack::OtherAddress);
            let refused = run(&addr.to_string(), test);
            refused.assert_failed(code);
            assert!(refused.ended.stderr.contains("--data-from-anywhere"), "{}", refused.ended.stderr);
            let (addr, _) = thief::start(open.addr, RelayAttack::OtherAddress);
            run(&addr.to_string(), test).assert_clean();
        });
    });
    let directory = scratch();
    let key = new_key(directory.path(), "key");
    let keyed = Server::start(&["--key-file", text(&key)]);
    run_concurrently(TESTS, |test| {
        let (addr, _) = thief::start(keyed.addr, RelayAttack::OtherAddress);
        run(&addr.to_string(), &[test, &["--key-file", text(&key)]].concat()).assert_clean();
    });
}

#[test]
fn configuration_file_can_allow_data_from_anywhere() {
    let directory = scratch();
    let path = directory.path().join("serve.toml");
    std::fs::write(&path, "data_from_anywhere = true\n").unwrap();
    let server = Server::start(&["--config", text(&path)]);
    let (addr, _) = thief::start(server.addr, RelayAttack::OtherAddress);
    run(&addr.to_string(), &["-t", "0.3"]).assert_clean();
}

#[test]
fn ipv4_mapped_data_addresses_are_compared_as_ipv4() {
    let server = Server::listening("[::]:0", &[]);
    let v4 = SocketAddr::from(([127, 0, 0, 1], server.addr.port()));
    let client = raw::ask(v4, Parameters::default()).expect("accepted");
    let purpose = Purpose::Data { stream: 0, token: client.token };
    let stolen = raw::introduce_on(raw::connect_from(ATTACKER_IP, v4), purpose);
    assert_eq!(stolen.1, Some(Status::WrongAddress));
    assert_eq!(client.data(0).1, Some(Status::Welcome));
}

/// Returns a client with the key, and the credentials of its data sockets.
fn keyed(server: &Server, path: &std::path::Path, parameters: Parameters) -> (Client, Credentials) {
    let key = Key::from_text(&std::fs::read_to_string(path).unwrap()).expect("a key");
    let client = raw::ask_with(server.addr, parameters, Some(&key)).expect("accepted");
    let credentials = Credentials::new(client.token, true);
    (client, credentials)
}

/// Sends a preface with a nonce and reads the server's challenge.
fn request_challenge(server: SocketAddr, stream: u32, credentials: &Credentials, nonce: Nonce) -> (TcpStream, Nonce) {
    let (mut tcp, status) = raw::run_handshake(server, Purpose::KeyedData { stream, test: credentials.id(), nonce });
    assert_eq!(status, Some(Status::Welcome));
    let mut challenge = [0; CHALLENGE_LEN];
    tcp.read_exact(&mut challenge).unwrap();
    let (servers, proof) = credentials::decode_challenge(&challenge);
    assert!(credentials.stream(stream).verifies(Step::TcpServer, &nonce, &servers, &proof));
    (tcp, servers)
}

#[test]
fn only_a_fresh_proof_opens_a_stream() {
    let directory = scratch();
    let path = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&path)]);
    let parameters = Parameters { streams: 2, ..Parameters::default() };
    let (mut client, credentials) = keyed(&server, &path, parameters.clone());
    let (other, others) = keyed(&server, &path, parameters);
    let nonce = [1; 16];
    let first = credentials.stream(0);
    // The plain token, as without a key, is refused.
    let (_, status) = raw::run_handshake(server.addr, Purpose::Data { stream: 0, token: client.token });
    assert_eq!(status, Some(Status::UnknownTest));
    // Proofs of another stream, of another test, of the server's side, for another nonce, and all zeros.
    let wrong: [&ProofFunction<'_>; 5] = [
        &|servers| credentials.stream(1).prove(Step::TcpClient, &nonce, servers),
        &|servers| others.stream(0).prove(Step::TcpClient, &nonce, servers),
        &|servers| first.prove(Step::TcpServer, &nonce, servers),
        &|_| first.prove(Step::TcpClient, &nonce, &[0; 16]),
        &|_| [0; 32],
    ];
    for proof in wrong {
        let (mut tcp, servers) = request_challenge(server.addr, 0, &credentials, nonce);
        tcp.write_all(&proof(&servers)).unwrap();
        assert!(raw::is_closed(tcp));
    }
    // A replayed exchange fails: the server's nonce differs.
    let (mut real, servers) = request_challenge(server.addr, 0, &credentials, nonce);
    let proof = first.prove(Step::TcpClient, &nonce, &servers);
    let (mut replayed, again) = request_challenge(server.addr, 0, &credentials, nonce);
    assert_ne!(again, servers);
    replayed.write_all(&proof).unwrap();
    assert!(raw::is_closed(replayed));
    // The genuine client is still accepted, even if its proof arrives byte by byte.
    for byte in proof {
        real.write_all(&[byte]).unwrap();
    }
    let (mut second, servers) = request_challenge(server.addr, 1, &credentials, nonce);
    second.write_all(&credentials.stream(1).prove(Step::TcpClient, &nonce, &servers)).unwrap();
    client.ready();
    drop(other);
}

/// A missing proof: the server waits five seconds, not less.
pub fn missing_proof() -> State {
    let hold = |most_s| {
        let directory = scratch();
        let path = new_key(directory.path(), "key");
        let server = Server::start(&["--key-file", text(&path)]);
        let (_client, credentials) = keyed(&server, &path, Parameters::default());
        let (mut tcp, _) = request_challenge(server.addr, 0, &credentials, [1; 16]);
        // One byte per second does not extend the deadline.
        let held_s = drip::drip(&mut tcp, &[0], Duration::from_secs(1), most_s);
        assert!(held_s > 4.0, "{held_s} s");
        held_s
    };
    ("the proof of a data connection", 5.0, Box::new(hold))
}

fn udp() -> Parameters {
    let udp = Some(UdpParameters::default());
    Parameters { protocol: Protocol::Udp, direction: Direction::Download, udp, ..Parameters::default() }
}

#[test]
fn only_a_fresh_proof_opens_a_udp_flow() {
    let directory = scratch();
    let path = new_key(directory.path(), "key");
    let server = Server::start(&["--key-file", text(&path)]);
    let (mut client, credentials) = keyed(&server, &path, udp());
    let socket = |from: &str| {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.connect(server.addr).unwrap();
        socket
    };
    let (mine, theirs) = (socket("127.0.0.1"), socket("127.0.0.9"));
    // The plain token, as without a key, gets no answer.
    mine.send(&hello::encode(0, hello::Step::Hello(client.token))).unwrap();
    assert!(thief::heard(&mine).is_empty());
    let (test, client_nonce) = (credentials.id(), [1; 16]);
    let ask = KeyedHello { kind: Kind::Hello, stream: 0, test, client_nonce, server_nonce: [0; 16], proof: [0; 32] };
    let challenge = |socket: &UdpSocket| {
        socket.send(&ask.encode()).unwrap();
        let heard = thief::heard(socket);
        assert_eq!(heard.iter().map(Vec::len).collect::<Vec<_>>(), [KEYED_HELLO_LEN], "one answer, no longer");
        KeyedHello::decode(&heard[0]).expect("a challenge")
    };
    let prove = |stream: u32, step: Step, server_nonce: Nonce| {
        let proof = credentials.stream(stream).prove(step, &client_nonce, &server_nonce);
        KeyedHello { kind: Kind::Proof, server_nonce, proof, ..ask }.encode()
    };
    let (to_me, to_them) = (challenge(&mine).server_nonce, challenge(&theirs).server_nonce);
    assert_ne!(to_me, to_them, "a nonce is for one address");
    // An overheard proof from another address, then wrong proofs from the right address.
    theirs.send(&prove(0, Step::UdpProof, to_me)).unwrap();
    assert!(thief::heard(&theirs).is_empty());
    for wrong in
        [prove(1, Step::UdpProof, to_me), prove(0, Step::UdpChallenge, to_me), prove(0, Step::UdpProof, [9; 16])]
    {
        mine.send(&wrong).unwrap();
    }
    assert!(thief::heard(&mine).is_empty());
    keyed_hello::run_handshake(&mine, 0, &credentials, 0, &raw::NOT_INTERRUPTED).expect("the flow is still open");
    client.ready();
    client.tx.queue(&ToServer::Stop).unwrap();
    assert!(thief::heard(&theirs).is_empty());
}
