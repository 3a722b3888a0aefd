//! The UDP doorman: answers hellos of expected streams, and nothing else.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use landspeed_sys::clock;
use socket2::{Domain, Protocol, Socket, Type};

use super::Shared;
use crate::address::unmap;
use crate::control::hello::{self, HELLO_LEN, Step};

const TICK: Duration = Duration::from_millis(100);

/// Answers until the server stops.
pub(super) fn answer(udp: &UdpSocket, shared: &Arc<Shared>) {
    let _ = udp.set_read_timeout(Some(TICK));
    let mut buffer = [0; HELLO_LEN + 1];
    while !shared.stopping() {
        let Ok((n, from)) = udp.recv_from(&mut buffer) else { continue };
        // Whoever does not know a token of ours gets no answer at all.
        let Some((stream, Step::Hello(token))) = hello::decode(&buffer[..n]) else { continue };
        let Some(slot) = shared.registry.find(&token) else { continue };
        if !shared.allows(from) || !slot.claim(stream) {
            continue;
        }
        let Ok(door) = udp.local_addr().map(unmap) else { continue };
        // A door on every address answers from the one the client speaks to, a door on one address from that one.
        let ip = if door.ip().is_unspecified() { slot.local_ip } else { door.ip() };
        if let Ok(connected) = connect_back(SocketAddr::new(ip, door.port()), unmap(from)) {
            slot.deliver_udp(stream, connected);
        }
    }
}

/// A socket on the server's own port that hears only `peer`.
pub fn connect_back(local: SocketAddr, peer: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    let mut local = local;
    if let (SocketAddr::V6(l), SocketAddr::V6(p)) = (&mut local, peer) {
        l.set_scope_id(p.scope_id());
    }
    socket.bind(&local.into())?;
    socket.connect(&peer.into())?;
    Ok(socket.into())
}

/// The server's side of proving an address, for one stream, while its test is being set up.
#[derive(Debug)]
pub struct Doubt {
    /// Stream number.
    pub stream: u32,
    socket: UdpSocket,
    nonce: [u8; 16],
    /// Whether the address has been proved.
    pub proved: bool,
    next_ns: u64,
}

impl Doubt {
    /// Sends the challenge.
    pub fn new(stream: u32, socket: UdpSocket) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let nonce = landspeed_sys::random::bytes()?;
        socket.send(&hello::encode(stream, Step::Challenge(nonce)))?;
        Ok(Self { stream, socket, nonce, proved: false, next_ns: clock::monotonic_ns() })
    }

    /// Answers what arrived. A repeated hello gets the challenge again, a repeated proof the welcome again.
    pub fn poll(&mut self, token: &crate::control::preface::Token) {
        let mut buffer = [0; HELLO_LEN + 1];
        while let Ok(n) = self.socket.recv(&mut buffer) {
            let answer = match hello::decode(&buffer[..n]) {
                Some((s, Step::Hello(t))) if s == self.stream && t == *token => Step::Challenge(self.nonce),
                Some((s, Step::Proof(t, nonce))) if s == self.stream && t == *token && nonce == self.nonce => {
                    self.proved = true;
                    Step::Welcome
                }
                _ => continue,
            };
            // At most one answer for each datagram of the same length, and not faster than one a millisecond.
            let now = clock::monotonic_ns();
            if now >= self.next_ns {
                let _ = self.socket.send(&hello::encode(self.stream, answer));
                self.next_ns = now + 1_000_000;
            }
        }
    }

    /// The socket, its address proved.
    pub fn into_socket(self) -> std::io::Result<UdpSocket> {
        self.socket.set_nonblocking(false)?;
        Ok(self.socket)
    }
}
