//! Opens UDP flows: answers hellos of expected streams only.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use landspeed_sys::{clock, udp};

use super::Shared;
use super::door::{MAX_DATAGRAM, connect_back};
use super::registry::Slot;
use super::service::Datagram;
use crate::address::unmap;
use crate::control::credentials::{self, HmacSha256, Proof, TestName};
use crate::control::hello::{self, KEYED_HELLO_LEN};
use crate::control::keyed_hello::{KeyedHello, Kind};
use crate::control::preface::{Nonce, TestId};

/// Minimum lifetime of a cookie, seconds; at most twice as long. Longer than a client tries over a path of 10 s.
const COOKIE_LIFETIME_S: u64 = 45;

// A datagram longer than a hello must be detectable.
const _: () = assert!(KEYED_HELLO_LEN < MAX_DATAGRAM);

/// Answers a datagram.
pub fn answer(cookies: &Cookies, datagram: &Datagram<'_>, shared: &Shared) {
    let Datagram { udp, bound, from, bytes } = *datagram;
    // Datagrams that do not identify a test are not answered.
    let Some(asked) = HelloRequest::decode(bytes) else { return };
    let Some(slot) = shared.registry.find(asked.name) else { return };
    if !shared.takes_data_from(from, &slot) || !slot.expects(asked.stream) {
        return;
    }
    // A wildcard socket answers from the address that the client uses, others from their own.
    let here = unmap(bound);
    let local = SocketAddr::new(if here.ip().is_unspecified() { slot.local_ip } else { here.ip() }, here.port());
    match asked.hello_step {
        HelloStep::Hello => {
            let nonce = cookies.make(from, &asked);
            let _ = udp::send_from(udp.as_fd(), bound.is_ipv6(), &asked.challenge(&slot, nonce), local.ip(), from);
        }
        HelloStep::Proof { nonce, .. } if cookies.made(from, &asked, &nonce) && asked.proves(&slot) => {
            // Claim the stream only now: a replayed hello cannot lock out a client.
            if slot.claim(asked.stream)
                && let Ok(socket) = connect_back(local, from)
                && let Ok(flow) = ValidatedFlow::new(socket, asked, &slot)
            {
                slot.deliver_udp(flow);
            }
        }
        HelloStep::Proof { .. } => {}
    }
}

/// A client's datagram, with a key or without.
#[derive(Debug, Clone, Copy)]
struct HelloRequest {
    stream: u32,
    name: TestName,
    /// All zero without a key.
    client_nonce: Nonce,
    hello_step: HelloStep,
}

#[derive(Debug, Clone, Copy)]
enum HelloStep {
    Hello,
    Proof {
        /// Nonce of the server.
        nonce: Nonce,
        /// All zero without a key: the token suffices.
        proof: Proof,
    },
}

impl HelloRequest {
    fn decode(datagram: &[u8]) -> Option<Self> {
        if let Some(keyed) = KeyedHello::decode(datagram) {
            let KeyedHello { stream, test, client_nonce, server_nonce, proof, .. } = keyed;
            let hello_step = match keyed.kind {
                Kind::Hello => HelloStep::Hello,
                Kind::Proof => HelloStep::Proof { nonce: server_nonce, proof },
                Kind::Challenge | Kind::Welcome => return None,
            };
            return Some(Self { stream, name: TestName::Id(test), client_nonce, hello_step });
        }
        let (stream, token, hello_step) = match hello::decode(datagram)? {
            (stream, hello::Step::Hello(token)) => (stream, token, HelloStep::Hello),
            (stream, hello::Step::Proof(token, nonce)) => {
                (stream, token, HelloStep::Proof { nonce, proof: Proof::default() })
            }
            (_, hello::Step::Challenge(_) | hello::Step::Welcome) => return None,
        };
        Some(Self { stream, name: TestName::Token(token), client_nonce: Nonce::default(), hello_step })
    }

    /// Whether the datagram proves the stream's secret; without a key the token suffices.
    fn proves(&self, slot: &Slot) -> bool {
        match (self.hello_step, self.name) {
            (HelloStep::Hello, _) => false,
            (HelloStep::Proof { .. }, TestName::Token(_)) => true,
            (HelloStep::Proof { nonce, proof }, TestName::Id(_)) => slot.credentials.stream(self.stream).verifies(
                credentials::Step::UdpProof,
                &self.client_nonce,
                &nonce,
                &proof,
            ),
        }
    }

    fn challenge(&self, slot: &Slot, nonce: Nonce) -> Vec<u8> {
        match self.name {
            TestName::Token(_) => hello::encode(self.stream, hello::Step::Challenge(nonce)).to_vec(),
            TestName::Id(test) => self.keyed(Kind::Challenge, test, nonce, slot),
        }
    }

    /// Returns the welcome; as long as the proof that it answers.
    fn welcome(&self, slot: &Slot) -> Vec<u8> {
        match (self.name, self.hello_step) {
            (TestName::Id(test), HelloStep::Proof { nonce, .. }) => self.keyed(Kind::Welcome, test, nonce, slot),
            _ => hello::encode(self.stream, hello::Step::Welcome).to_vec(),
        }
    }

    fn keyed(&self, kind: Kind, test: TestId, server_nonce: Nonce, slot: &Slot) -> Vec<u8> {
        let step =
            if kind == Kind::Welcome { credentials::Step::UdpWelcome } else { credentials::Step::UdpChallenge };
        let secret = slot.credentials.stream(self.stream);
        let (stream, client_nonce) = (self.stream, self.client_nonce);
        let proof = secret.prove(step, &client_nonce, &server_nonce);
        KeyedHello { kind, stream, test, client_nonce, server_nonce, proof }.encode().to_vec()
    }
}

/// Nonces that only this server can make, each valid for one client address and one stream, so that no state is
/// kept for a hello.
pub struct Cookies(HmacSha256);

impl Cookies {
    /// Creates cookies with a random secret.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(credentials::with_key(&landspeed_sys::random::bytes()?)))
    }

    fn make(&self, from: SocketAddr, asked: &HelloRequest) -> Nonce {
        self.at(clock::monotonic_ns() / (COOKIE_LIFETIME_S * 1_000_000_000), from, asked)
    }

    /// Whether a nonce was made for this client address and stream recently.
    fn made(&self, from: SocketAddr, asked: &HelloRequest, nonce: &Nonce) -> bool {
        let now = clock::monotonic_ns() / (COOKIE_LIFETIME_S * 1_000_000_000);
        // No constant-time comparison needed: nonces have 128 bits and a guess costs a datagram, so a timing leak is
        // useless.
        [now, now.saturating_sub(1)].into_iter().any(|epoch| self.at(epoch, from, asked) == *nonce)
    }

    fn at(&self, epoch: u64, from: SocketAddr, asked: &HelloRequest) -> Nonce {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let name: &[u8] = match &asked.name {
            TestName::Token(token) => &token.0,
            TestName::Id(id) => &id.0,
        };
        let (epoch, port, stream) = (epoch.to_be_bytes(), from.port().to_be_bytes(), asked.stream.to_be_bytes());
        let parts: [&[u8]; 6] = [&epoch, &ip.octets(), &port, &stream, &asked.client_nonce, name];
        credentials::first(&credentials::sign(&self.0, &parts))
    }
}

/// A UDP flow whose client has proved its address (and with a key the secret), until its test starts.
#[derive(Debug)]
pub struct ValidatedFlow {
    /// Stream number within the test.
    pub stream: u32,
    socket: UdpSocket,
    asked: HelloRequest,
    welcome: Vec<u8>,
    next_ns: u64,
}

impl ValidatedFlow {
    /// Wraps the socket and sends the welcome.
    fn new(socket: UdpSocket, asked: HelloRequest, slot: &Slot) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let welcome = asked.welcome(slot);
        socket.send(&welcome)?;
        Ok(Self { stream: asked.stream, socket, asked, welcome, next_ns: clock::monotonic_ns() })
    }

    /// Returns the client's address.
    pub fn client(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }

    /// Handles datagrams: retransmits the welcome for a retransmitted proof.
    pub fn poll(&mut self) {
        let mut buffer = [0; KEYED_HELLO_LEN + 1];
        while let Ok(n) = self.socket.recv(&mut buffer) {
            let again = HelloRequest::decode(&buffer[..n]).is_some_and(|asked| {
                matches!(asked.hello_step, HelloStep::Proof { .. })
                    && (asked.stream, asked.name) == (self.asked.stream, self.asked.name)
                    && asked.client_nonce == self.asked.client_nonce
            });
            // At most one answer per datagram, of the same length, and at most one per millisecond.
            let now = clock::monotonic_ns();
            if again && now >= self.next_ns {
                let _ = self.socket.send(&self.welcome);
                self.next_ns = now + 1_000_000;
            }
        }
    }

    /// Returns the socket, in blocking mode.
    pub fn into_socket(self) -> std::io::Result<UdpSocket> {
        self.socket.set_nonblocking(false)?;
        Ok(self.socket)
    }
}
