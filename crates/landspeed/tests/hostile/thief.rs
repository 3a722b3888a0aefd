//! An attacker on the path: a relay of TCP and UDP that sends copies of the messages that open data sockets
//! before the client's own are forwarded.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landspeed_flow::control::preface::{self, ANSWER_LEN, PREFACE_LEN, Status};

use crate::hostile::raw;

/// Source address of the attacker.
pub const ATTACKER_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));

/// Attack of the relay, besides forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayAttack {
    /// None, but data sockets reach the server from [`ATTACKER_IP`].
    OtherAddress,
    /// Sends a copy of each data preface, hello and proof first, and tries to send and receive data.
    ReplayMessages,
    /// Answers data sockets itself, as the server would.
    Impersonate,
}

/// Results of the attack.
#[derive(Debug, Default)]
pub struct AttackCounts {
    /// Copies sent to the server.
    pub copies: AtomicUsize,
    /// Bytes received beyond the opening exchange of a data socket.
    pub bytes: AtomicUsize,
    /// Copies that the server accepted.
    pub accepted_copies: AtomicUsize,
}

/// Starts a relay to `server` on a free port. Its threads end with the test program.
pub fn start(server: SocketAddr, attack: RelayAttack) -> (SocketAddr, Arc<AttackCounts>) {
    let (listener, udp) = ports();
    let addr = listener.local_addr().unwrap();
    let attack_counts = Arc::<AttackCounts>::default();
    let shared = Arc::clone(&attack_counts);
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let attack_counts = Arc::clone(&shared);
            std::thread::spawn(move || relay(near, server, attack, &attack_counts));
        }
    });
    let shared = Arc::clone(&attack_counts);
    std::thread::spawn(move || relay_datagrams(&udp, server, attack, &shared));
    (addr, attack_counts)
}

/// Binds TCP and UDP to the same port.
fn ports() -> (TcpListener, UdpSocket) {
    for _ in 0..64 {
        let (listener, addr) = raw::listener();
        if let Ok(udp) = UdpSocket::bind(addr) {
            return (listener, udp);
        }
    }
    panic!("no port is free for both");
}

fn relay(mut near: TcpStream, server: SocketAddr, attack: RelayAttack, attack_counts: &Arc<AttackCounts>) {
    let mut shown = [0; PREFACE_LEN];
    if near.read_exact(&mut shown).is_err() {
        return;
    }
    let is_data = shown[10] == 2;
    if is_data && attack == RelayAttack::Impersonate {
        // A welcome with an invalid proof, as from a server without the key.
        let _ = near.write_all(&[&preface::encode_answer(Status::Welcome)[..], &[7; 48]].concat());
        let _ = near.read(&mut shown);
        return;
    }
    // Kept open: the copied connection must not carry the stream.
    let _copy =
        (is_data && attack == RelayAttack::ReplayMessages).then(|| replay_preface(&shown, server, attack_counts));
    let far = if is_data && attack == RelayAttack::OtherAddress {
        raw::connect_from(ATTACKER_IP, server)
    } else {
        TcpStream::connect(server).expect("the server accepts")
    };
    let (mut far, mut far_twin, mut near_twin) = (far.try_clone().unwrap(), far, near.try_clone().unwrap());
    if far.write_all(&shown).is_err() {
        return;
    }
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut far_twin, &mut near_twin);
        let _ = near_twin.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut near, &mut far);
    let _ = far.shutdown(Shutdown::Write);
    let _ = back.join();
}

/// Sends a copied preface from the attacker's address, and every second time an invalid proof.
fn replay_preface(shown: &[u8; PREFACE_LEN], server: SocketAddr, attack_counts: &Arc<AttackCounts>) -> TcpStream {
    let mut thief = raw::connect_from(ATTACKER_IP, server);
    thief.write_all(shown).unwrap();
    let mut answer = [0; ANSWER_LEN];
    let answered = thief.read_exact(&mut answer).ok().and_then(|()| preface::decode_answer(&answer));
    let number = attack_counts.copies.fetch_add(1, Ordering::SeqCst);
    let refused = !matches!(answered, Some((_, Status::Welcome)));
    let mut challenge = [0; 48];
    if !refused {
        thief.read_exact(&mut challenge).expect("the server's nonce and proof");
    }
    if number.is_multiple_of(2) {
        // The server's own proof, reflected, and a megabyte of data.
        let _ = thief.write_all(&[&challenge[16..], &vec![0; 1 << 20]].concat());
    }
    let (mut twin, attack_counts) = (thief.try_clone().unwrap(), Arc::clone(attack_counts));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(n @ 1..) = twin.read(&mut buffer) {
            attack_counts.bytes.fetch_add(n, Ordering::SeqCst);
        }
    });
    thief
}

fn relay_datagrams(near: &UdpSocket, server: SocketAddr, attack: RelayAttack, attack_counts: &Arc<AttackCounts>) {
    let mut flows: HashMap<SocketAddr, (Arc<UdpSocket>, Arc<UdpSocket>)> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    while let Ok((n, client)) = near.recv_from(&mut buffer) {
        let datagram = &buffer[..n];
        let opens = datagram.starts_with(b"LNDSUDP1");
        if attack == RelayAttack::Impersonate && opens {
            let mut forged = datagram.to_vec();
            forged[8] += 1;
            forged[48..].fill(7);
            let _ = near.send_to(&forged, client);
            continue;
        }
        let (far, thief) = flows.entry(client).or_insert_with(|| {
            let home = if attack == RelayAttack::OtherAddress { ATTACKER_IP } else { server.ip() };
            let far = Arc::new(UdpSocket::bind((home, 0)).expect("loopback"));
            far.connect(server).unwrap();
            let thief = Arc::new(UdpSocket::bind((ATTACKER_IP, 0)).expect("loopback"));
            thief.connect(server).unwrap();
            let (twin, back) = (Arc::clone(&far), near.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(n) = twin.recv(&mut buffer) {
                    let _ = back.send_to(&buffer[..n], client);
                }
            });
            (far, thief)
        });
        if attack == RelayAttack::ReplayMessages && opens {
            replay_datagram(thief, datagram, attack_counts);
        }
        let _ = far.send(datagram);
    }
}

/// Sends a copied hello or proof, counts the answer, and keeps listening.
fn replay_datagram(thief: &Arc<UdpSocket>, datagram: &[u8], attack_counts: &Arc<AttackCounts>) {
    attack_counts.copies.fetch_add(1, Ordering::SeqCst);
    thief.send(datagram).unwrap();
    thief.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut buffer = vec![0; 65_536];
    let mut back = 0;
    let mut welcomes = 0;
    while let Ok(n) = thief.recv(&mut buffer) {
        back += n;
        welcomes += usize::from(buffer[8] == 4);
    }
    attack_counts.bytes.fetch_add(back.saturating_sub(datagram.len()), Ordering::SeqCst);
    attack_counts.accepted_copies.fetch_add(welcomes, Ordering::SeqCst);
    if datagram[8] == 3 {
        // A copied proof: listen for data of the test.
        let (thief, attack_counts) = (Arc::clone(thief), Arc::clone(attack_counts));
        std::thread::spawn(move || {
            thief.set_read_timeout(Some(raw::IO_TIMEOUT)).unwrap();
            while let Ok(n) = thief.recv(&mut buffer) {
                attack_counts.bytes.fetch_add(n, Ordering::SeqCst);
            }
        });
    }
}

/// Receives datagrams until half a second passes without one.
pub fn heard(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut found = Vec::new();
    let mut buffer = vec![0; 65_536];
    while let Ok(n) = socket.recv(&mut buffer) {
        found.push(buffer[..n].to_vec());
    }
    found
}
