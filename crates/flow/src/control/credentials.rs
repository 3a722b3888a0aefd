//! Authentication of a test's data sockets: without a key by the test's token, with a key by a proof for each
//! stream.
//!
//! With a key the token travels inside the Noise session and never appears on a data socket. Both sides derive
//! from it (HMAC-SHA256) a public identifier of the test and a secret for each stream. A data socket names the
//! test by its identifier; both sides then prove over fresh nonces that they have the stream's secret:
//!
//! ```text
//! secret(stream) = HMAC(token, "landspeed stream" || stream)
//! proof(step)    = HMAC(secret(stream), label(step) || client's nonce || server's nonce)
//! ```
//!
//! TCP data connection: the client's preface contains identifier and nonce; the server answers it and sends its
//! nonce and its proof (48 bytes); the client sends its own proof (32 bytes). UDP does the same in four
//! datagrams ([`super::keyed_hello`]).

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::preface::{Nonce, TestId, Token};

/// Keyed HMAC-SHA256 state.
pub type HmacSha256 = Hmac<Sha256>;
/// HMAC-SHA256 tag.
pub type Proof = [u8; 32];
/// Length of the server's nonce and proof on a TCP data connection, bytes.
pub const CHALLENGE_LEN: usize = 48;
/// Length of a proof, bytes.
pub const PROOF_LEN: usize = 32;

/// Identifier of the test that a data socket sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestName {
    /// Without a key: the secret token.
    Token(Token),
    /// With a key: the public identifier.
    Id(TestId),
}

/// Message that a proof belongs to: a proof for one step is invalid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// TCP: the server's challenge.
    TcpServer,
    /// TCP: the client's proof.
    TcpClient,
    /// UDP: the server's challenge.
    UdpChallenge,
    /// UDP: the client's proof.
    UdpProof,
    /// UDP: the server's welcome.
    UdpWelcome,
}

impl Step {
    fn label(self) -> &'static [u8] {
        match self {
            Self::TcpServer => b"landspeed tcp server",
            Self::TcpClient => b"landspeed tcp client",
            Self::UdpChallenge => b"landspeed udp challenge",
            Self::UdpProof => b"landspeed udp proof",
            Self::UdpWelcome => b"landspeed udp welcome",
        }
    }
}

/// Credentials of an accepted test for its data sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    token: Token,
    keyed: bool,
}

impl Credentials {
    /// Creates the credentials of a test from its token; `keyed` is true if the control connection runs inside a
    /// Noise session.
    pub fn new(token: Token, keyed: bool) -> Self {
        Self { token, keyed }
    }

    /// Whether each stream must be authenticated by proofs.
    pub fn is_keyed(&self) -> bool {
        self.keyed
    }

    /// Returns the identifier that data sockets send.
    pub fn name(&self) -> TestName {
        if self.keyed { TestName::Id(self.id()) } else { TestName::Token(self.token) }
    }

    /// Returns the token, which data sockets without a key send.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns the public identifier, which data sockets with a key send.
    pub fn id(&self) -> TestId {
        TestId(first(&sign(&self.key(), &[b"landspeed test id"])))
    }

    /// Returns the secret of one stream.
    pub fn stream(&self, stream: u32) -> StreamSecret {
        StreamSecret(with_key(&sign(&self.key(), &[b"landspeed stream", &stream.to_be_bytes()])))
    }

    /// Returns the 32-bit tag in a stream's datagrams, which distinguishes them from stray datagrams. Visible on
    /// the path: with a key it reveals nothing about the stream's secret.
    pub fn datagram_tag(&self, stream: u32) -> u32 {
        if !self.keyed {
            return self.token.datagram_tag(stream);
        }
        u32::from_be_bytes(first(&sign(&self.stream(stream).0, &[b"landspeed datagram tag"])))
    }

    fn key(&self) -> HmacSha256 {
        with_key(&self.token.0)
    }
}

/// Secret of one stream of a test with a key.
pub struct StreamSecret(HmacSha256);

impl StreamSecret {
    /// Computes the proof of a step over both nonces.
    pub fn prove(&self, step: Step, client: &Nonce, server: &Nonce) -> Proof {
        sign(&self.0, &[step.label(), client, server])
    }

    /// Whether `proof` is valid for the step and both nonces; compared in constant time.
    pub fn verifies(&self, step: Step, client: &Nonce, server: &Nonce, proof: &Proof) -> bool {
        mac(&self.0, &[step.label(), client, server]).verify_slice(proof).is_ok()
    }
}

impl std::fmt::Debug for StreamSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamSecret(…)")
    }
}

/// Creates an HMAC-SHA256 with this key.
pub fn with_key(key: &[u8; 32]) -> HmacSha256 {
    HmacSha256::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Computes the HMAC of the concatenated parts.
pub fn sign(key: &HmacSha256, parts: &[&[u8]]) -> Proof {
    mac(key, parts).finalize().into_bytes().into()
}

fn mac(key: &HmacSha256, parts: &[&[u8]]) -> HmacSha256 {
    key.clone().chain_update(parts.concat())
}

/// Returns the first `N` bytes of an HMAC.
pub fn first<const N: usize>(mac: &[u8]) -> [u8; N] {
    mac.first_chunk().copied().unwrap_or([0; N])
}

/// Encodes the server's nonce and proof.
pub fn encode_challenge(nonce: &Nonce, proof: &Proof) -> [u8; CHALLENGE_LEN] {
    let mut bytes = [0; CHALLENGE_LEN];
    bytes[..16].copy_from_slice(nonce);
    bytes[16..].copy_from_slice(proof);
    bytes
}

/// Decodes the server's nonce and proof.
pub fn decode_challenge(bytes: &[u8; CHALLENGE_LEN]) -> (Nonce, Proof) {
    (first(bytes), first(bytes.get(16..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Nonce = [1; 16];
    const SERVER: Nonce = [2; 16];

    fn keyed(byte: u8) -> Credentials {
        Credentials::new(Token([byte; 32]), true)
    }

    #[test]
    fn a_proof_is_valid_for_one_step_of_one_stream() {
        let secret = keyed(7).stream(3);
        let proof = secret.prove(Step::TcpClient, &CLIENT, &SERVER);
        assert!(secret.verifies(Step::TcpClient, &CLIENT, &SERVER, &proof));
        for step in [Step::TcpServer, Step::UdpChallenge, Step::UdpProof, Step::UdpWelcome] {
            assert!(!secret.verifies(step, &CLIENT, &SERVER, &proof), "{step:?}");
        }
        assert!(!secret.verifies(Step::TcpClient, &SERVER, &CLIENT, &proof), "the nonces change places");
        assert!(!secret.verifies(Step::TcpClient, &CLIENT, &[3; 16], &proof), "another nonce of the server");
        assert!(!keyed(7).stream(4).verifies(Step::TcpClient, &CLIENT, &SERVER, &proof), "another stream");
        assert!(!keyed(8).stream(3).verifies(Step::TcpClient, &CLIENT, &SERVER, &proof), "another test");
        for bit in 0..256 {
            let mut damaged = proof;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!secret.verifies(Step::TcpClient, &CLIENT, &SERVER, &damaged), "bit {bit}");
        }
    }

    #[test]
    fn ids_and_tags_do_not_reveal_the_token() {
        let token = Token(std::array::from_fn(|i| i as u8));
        let credentials = Credentials::new(token, true);
        assert_eq!(credentials.name(), TestName::Id(credentials.id()));
        assert!(!token.0.windows(4).any(|part| credentials.id().0.windows(4).any(|id| id == part)));
        assert_ne!(credentials.datagram_tag(0), token.datagram_tag(0));
        let difference = |n: u32| credentials.datagram_tag(n + 1).wrapping_sub(credentials.datagram_tag(n));
        assert_ne!(difference(0), difference(1), "one stream's tag does not give away the next one's");
        assert!(!format!("{credentials:?} {:?}", credentials.stream(0)).contains("01"));
    }

    #[test]
    fn without_a_key_the_wire_format_is_version_1() {
        let credentials = Credentials::new(Token([7; 32]), false);
        assert_eq!(credentials.name(), TestName::Token(Token([7; 32])));
        assert_eq!(credentials.datagram_tag(1), 0x0707_0707_u32.wrapping_add(0x9E37_79B9));
    }

    #[test]
    fn challenges_round_trip() {
        assert_eq!(decode_challenge(&encode_challenge(&[5; 16], &[6; 32])), ([5; 16], [6; 32]));
    }
}
