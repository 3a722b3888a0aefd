//! Opening of a UDP flow in a test with a key: both sides prove the stream's secret, and the client its
//! address.
//!
//! The same four steps as without a key ([`super::hello`]), in datagrams of 96 bytes, so that the server never
//! sends more than it received. The server's nonce is a cookie that only it can make for that client: it keeps
//! no state before the proof.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `LNDSUDP1` |
//! | 8 | 1 | kind: 1 hello, 2 challenge, 3 proof, 4 welcome |
//! | 9 | 1 | 1: with a key |
//! | 10 | 2 | zero |
//! | 12 | 4 | stream number, big-endian |
//! | 16 | 16 | public identifier of the test |
//! | 32 | 16 | client's nonce |
//! | 48 | 16 | server's nonce; zero in a hello |
//! | 64 | 32 | proof of the sender ([`super::credentials`]); zero in a hello |

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;

use super::credentials::{Credentials, Proof, Step};
use super::hello::{HelloAction, KEYED_HELLO_LEN, exchange};
use super::preface::{Nonce, TestId};
use crate::error::FlowError;

const MAGIC: &[u8; 8] = b"LNDSUDP1";
const KEYED: u8 = 1;

/// Type of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client's first datagram.
    Hello,
    /// Server's nonce and proof.
    Challenge,
    /// Client's proof.
    Proof,
    /// Server's proof that it accepted the flow.
    Welcome,
}

/// A datagram of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedHello {
    /// Step of the exchange.
    pub kind: Kind,
    /// Stream number within the test.
    pub stream: u32,
    /// Public identifier of the test.
    pub test: TestId,
    /// Random number chosen by the client.
    pub client_nonce: Nonce,
    /// Server's cookie; zero in a hello.
    pub server_nonce: Nonce,
    /// Proof of the sender over both nonces; zero in a hello.
    pub proof: Proof,
}

impl KeyedHello {
    /// Encodes the datagram.
    pub fn encode(&self) -> [u8; KEYED_HELLO_LEN] {
        let mut bytes = [0; KEYED_HELLO_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = match self.kind {
            Kind::Hello => 1,
            Kind::Challenge => 2,
            Kind::Proof => 3,
            Kind::Welcome => 4,
        };
        bytes[9] = KEYED;
        bytes[12..16].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.test.0);
        bytes[32..48].copy_from_slice(&self.client_nonce);
        bytes[48..64].copy_from_slice(&self.server_nonce);
        bytes[64..].copy_from_slice(&self.proof);
        bytes
    }

    /// Decodes a datagram; `None` if it is not part of the exchange.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; KEYED_HELLO_LEN] = datagram.try_into().ok()?;
        if &bytes[..8] != MAGIC || bytes[9..12] != [KEYED, 0, 0] {
            return None;
        }
        let kind = match bytes[8] {
            1 => Kind::Hello,
            2 => Kind::Challenge,
            3 => Kind::Proof,
            4 => Kind::Welcome,
            _ => return None,
        };
        Some(Self {
            kind,
            stream: u32::from_be_bytes(*bytes[12..].first_chunk()?),
            test: TestId(*bytes[16..].first_chunk()?),
            client_nonce: *bytes[32..].first_chunk()?,
            server_nonce: *bytes[48..].first_chunk()?,
            proof: *bytes[64..].first_chunk()?,
        })
    }
}

/// Runs the client's side on a socket connected to the server.
///
/// # Errors
/// [`FlowError::UnauthenticatedServer`] when answers arrive but none proves the stream's secret.
pub fn run_handshake(
    socket: &UdpSocket,
    stream: u32,
    credentials: &Credentials,
    rtt_ns: u64,
    stop: &AtomicBool,
) -> Result<(), FlowError> {
    let client_nonce: Nonce = landspeed_sys::random::bytes()
        .map_err(|source| FlowError::Setup { what: "read random bytes".into(), source })?;
    let (secret, test) = (credentials.stream(stream), credentials.id());
    let hello = KeyedHello {
        kind: Kind::Hello,
        stream,
        test,
        client_nonce,
        server_nonce: Nonce::default(),
        proof: Proof::default(),
    };
    exchange(socket, &hello.encode(), rtt_ns, stop, |datagram| {
        let Some(heard) = KeyedHello::decode(datagram) else { return HelloAction::Nothing };
        let step = match heard.kind {
            Kind::Challenge => Step::UdpChallenge,
            Kind::Welcome => Step::UdpWelcome,
            Kind::Hello | Kind::Proof => return HelloAction::Nothing,
        };
        if (heard.stream, heard.test, heard.client_nonce) != (stream, test, client_nonce) {
            return HelloAction::Nothing;
        }
        let server_nonce = heard.server_nonce;
        if !secret.verifies(step, &client_nonce, &server_nonce, &heard.proof) {
            return HelloAction::Forged;
        }
        if step == Step::UdpWelcome {
            return HelloAction::Welcome;
        }
        let proof = secret.prove(Step::UdpProof, &client_nonce, &server_nonce);
        HelloAction::Reply(KeyedHello { kind: Kind::Proof, server_nonce, proof, ..hello }.encode().to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_round_trips() {
        for kind in [Kind::Hello, Kind::Challenge, Kind::Proof, Kind::Welcome] {
            let hello = KeyedHello {
                kind,
                stream: 0xDEAD_BEEF,
                test: TestId([4; 16]),
                client_nonce: [1; 16],
                server_nonce: [2; 16],
                proof: [3; 32],
            };
            assert_eq!(KeyedHello::decode(&hello.encode()), Some(hello));
        }
    }

    #[test]
    fn keyed_and_unkeyed_hellos_are_distinct() {
        use crate::control::hello;
        use crate::control::preface::Token;
        let plain = hello::encode(1, hello::Step::Hello(Token([9; 32])));
        assert_eq!(KeyedHello::decode(&plain), None);
        let mut longer = [0; KEYED_HELLO_LEN];
        longer[..plain.len()].copy_from_slice(&plain);
        assert_eq!(KeyedHello::decode(&longer), None);
        assert_eq!(KeyedHello::decode(&[0; KEYED_HELLO_LEN]), None);
    }
}
