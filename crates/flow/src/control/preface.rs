//! Preface (the first bytes of every TCP connection) and the server's answer.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `LNDSPEED` |
//! | 8 | 2 | protocol version, big-endian |
//! | 10 | 1 | kind: 1 control, 2 data |
//! | 11 | 1 | flags: bit 0 = the client has a key |
//! | 12 | 4 | stream number (data), big-endian |
//! | 16 | 32 | data without a key: token of the test; data with a key: public identifier (16), client's nonce
//! (16); else zero |
//!
//! The answer is 16 bytes: `LNDSPEED`, version, status, five zero bytes. On a data connection with a key the
//! proofs of both sides follow ([`super::credentials`]).

/// Protocol version; must be equal on both sides.
pub const PROTOCOL_VERSION: u16 = 1;
/// Length of a preface, bytes.
pub const PREFACE_LEN: usize = 48;
/// Length of an answer, bytes.
pub const ANSWER_LEN: usize = 16;

const MAGIC: &[u8; 8] = b"LNDSPEED";

/// Random number, used once.
pub type Nonce = [u8; 16];

/// Identifies a test on its data sockets if the test has a key. Public: it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TestId(pub [u8; 16]);

/// Secret of one test. Data connections without a key send it; with a key it is sent only inside the control
/// connection's Noise session, and stream secrets are derived from it ([`super::credentials::Credentials`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; 32]);

impl Token {
    /// Generates a random token.
    pub fn random() -> std::io::Result<Self> {
        Ok(Self(landspeed_sys::random::bytes()?))
    }

    /// Returns the 32-bit tag of UDP datagrams in a test without a key.
    pub fn datagram_tag(&self, stream: u32) -> u32 {
        let word = u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]);
        word.wrapping_add(stream.wrapping_mul(0x9E37_79B9))
    }

    /// Formats the token as 64 hex digits.
    pub fn to_hex(&self) -> String {
        use std::fmt::Write;
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Parses 64 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Control messages follow.
    Control {
        /// Whether a Noise handshake comes first.
        keyed: bool,
    },
    /// Payload of a stream follows; the test has no key.
    Data {
        /// Stream number within the test.
        stream: u32,
        /// Token of the test.
        token: Token,
    },
    /// The proofs of both ends follow, then payload of a stream; the test has a key.
    KeyedData {
        /// Stream number within the test.
        stream: u32,
        /// Public identifier of the test.
        test: TestId,
        /// Client's nonce for the proofs.
        nonce: Nonce,
    },
}

/// Errors in a preface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefaceError {
    /// The magic bytes are wrong.
    NotLandspeed,
    /// Different protocol version.
    Version(u16),
    /// Unknown kind of connection.
    Kind(u8),
}

/// Encodes a preface.
pub fn encode(purpose: Purpose) -> [u8; PREFACE_LEN] {
    let mut bytes = [0; PREFACE_LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&PROTOCOL_VERSION.to_be_bytes());
    match purpose {
        Purpose::Control { keyed } => {
            bytes[10] = 1;
            bytes[11] = u8::from(keyed);
        }
        Purpose::Data { stream, token } => {
            bytes[10] = 2;
            bytes[12..16].copy_from_slice(&stream.to_be_bytes());
            bytes[16..48].copy_from_slice(&token.0);
        }
        Purpose::KeyedData { stream, test, nonce } => {
            bytes[10] = 2;
            bytes[11] = 1;
            bytes[12..16].copy_from_slice(&stream.to_be_bytes());
            bytes[16..32].copy_from_slice(&test.0);
            bytes[32..48].copy_from_slice(&nonce);
        }
    }
    bytes
}

/// Decodes a preface.
pub fn decode(bytes: &[u8; PREFACE_LEN]) -> Result<Purpose, PrefaceError> {
    if &bytes[..8] != MAGIC {
        return Err(PrefaceError::NotLandspeed);
    }
    let version = u16::from_be_bytes([bytes[8], bytes[9]]);
    if version != PROTOCOL_VERSION {
        return Err(PrefaceError::Version(version));
    }
    match bytes[10] {
        1 => Ok(Purpose::Control { keyed: bytes[11] & 1 == 1 }),
        2 => {
            let stream = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
            let (mut first, mut second) = ([0; 16], [0; 16]);
            first.copy_from_slice(&bytes[16..32]);
            second.copy_from_slice(&bytes[32..48]);
            if bytes[11] & 1 == 1 {
                return Ok(Purpose::KeyedData { stream, test: TestId(first), nonce: second });
            }
            let mut token = [0; 32];
            token.copy_from_slice(&bytes[16..48]);
            Ok(Purpose::Data { stream, token: Token(token) })
        }
        kind => Err(PrefaceError::Kind(kind)),
    }
}

/// The server's answer to a preface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The connection is accepted.
    Welcome,
    /// The protocol versions differ.
    Version,
    /// No free slot; the client may retry later.
    Busy,
    /// A key is required.
    KeyRequired,
    /// The server has no key.
    KeyUnexpected,
    /// The client's address is not allowed.
    NotAllowed,
    /// No test has this token, or the stream is not expected.
    UnknownTest,
    /// A data connection without a key from a different address than the control connection.
    WrongAddress,
}

impl Status {
    const ALL: [Self; 8] = [
        Self::Welcome,
        Self::Version,
        Self::Busy,
        Self::KeyRequired,
        Self::KeyUnexpected,
        Self::NotAllowed,
        Self::UnknownTest,
        Self::WrongAddress,
    ];
}

/// Encodes an answer.
pub fn encode_answer(status: Status) -> [u8; ANSWER_LEN] {
    let mut bytes = [0; ANSWER_LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&PROTOCOL_VERSION.to_be_bytes());
    bytes[10] = Status::ALL.iter().position(|&s| s == status).unwrap_or_default() as u8;
    bytes
}

/// Decodes an answer: the server's version and status; `None` if it is not an answer.
pub fn decode_answer(bytes: &[u8; ANSWER_LEN]) -> Option<(u16, Status)> {
    if &bytes[..8] != MAGIC {
        return None;
    }
    Some((u16::from_be_bytes([bytes[8], bytes[9]]), *Status::ALL.get(usize::from(bytes[10]))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefaces_round_trip() {
        let token = Token([7; 32]);
        for purpose in [
            Purpose::Control { keyed: true },
            Purpose::Control { keyed: false },
            Purpose::Data { stream: 0xDEAD_BEEF, token },
            Purpose::KeyedData { stream: 0xDEAD_BEEF, test: TestId([5; 16]), nonce: [6; 16] },
        ] {
            assert_eq!(decode(&encode(purpose)), Ok(purpose));
        }
        assert_eq!(Token::from_hex(&token.to_hex()), Some(token));
    }

    #[test]
    fn other_protocols_are_distinguished_from_other_versions() {
        assert_eq!(decode(&[0x16; PREFACE_LEN]), Err(PrefaceError::NotLandspeed));
        let mut newer = encode(Purpose::Control { keyed: false });
        newer[9] = 9;
        assert_eq!(decode(&newer), Err(PrefaceError::Version(9)));
        assert_eq!(decode_answer(b"HTTP/1.1 400 Bad"), None);
    }
}
