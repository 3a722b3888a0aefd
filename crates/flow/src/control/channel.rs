//! Framed messages over a TCP connection, in the clear or inside a Noise session.
//!
//! In the clear a frame is a 32-bit big-endian length and that many bytes of JSON. With a key the connection first
//! runs `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (crate `snow`): both ends prove they hold the key, and every frame
//! is then one or more transport messages, each behind a 16-bit length, numbered by the session, so that a changed,
//! repeated, dropped or reordered message ends the test.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::preface::PROTOCOL_VERSION;
use crate::error::FlowError;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Plaintext of one Noise message: 65535 less the 16-byte tag.
const NOISE_CHUNK: usize = 65_519;
const TAG: usize = 16;
/// How long one write to the control connection may block.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A 256-bit pre-shared key.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// A fresh key.
    pub fn generate() -> io::Result<Self> {
        landspeed_sys::random::bytes().map(Self)
    }

    /// From the text of a key file: 64 hex digits, white space around them ignored.
    pub fn from_text(text: &str) -> Option<Self> {
        super::preface::Token::from_hex(text.trim()).map(|token| Self(token.0))
    }

    /// The text of a key file.
    pub fn to_text(&self) -> String {
        super::preface::Token(self.0).to_hex() + "\n"
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The writing half of a control connection.
pub struct Sender {
    stream: TcpStream,
    session: Option<Arc<snow::StatelessTransportState>>,
    nonce: u64,
    scratch: Vec<u8>,
}

/// The reading half. Partial frames survive a timeout, so it can be polled.
pub struct Receiver {
    stream: TcpStream,
    session: Option<Arc<snow::StatelessTransportState>>,
    nonce: u64,
    /// Ciphertext (or plaintext, without a key) not yet consumed.
    pending: Vec<u8>,
    /// Plaintext of the frame being put together.
    plain: Vec<u8>,
    limit: usize,
}

/// Which end of the handshake we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Speaks first.
    Client,
    /// Answers.
    Server,
}

/// Runs the handshake if there is a key and splits the connection.
///
/// # Errors
/// [`FlowError::WrongKey`] when the peer does not hold the same key, [`FlowError::Timeout`] and
/// [`FlowError::PeerLost`] when it goes silent or away.
pub fn open(
    mut stream: TcpStream,
    role: Role,
    key: Option<&Key>,
    limit: usize,
    patience: Duration,
) -> Result<(Sender, Receiver), FlowError> {
    let during = "in the key handshake";
    let lost = |source| FlowError::PeerLost { during, source };
    stream.set_nodelay(true).map_err(lost)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(lost)?;
    let session = match key {
        None => None,
        Some(key) => {
            stream.set_read_timeout(Some(patience)).map_err(lost)?;
            Some(Arc::new(handshake(&mut stream, role, key)?))
        }
    };
    let twin = stream.try_clone().map_err(lost)?;
    Ok((
        Sender { stream: twin, session: session.clone(), nonce: 0, scratch: Vec::new() },
        Receiver { stream, session, nonce: 0, pending: Vec::new(), plain: Vec::new(), limit },
    ))
}

fn handshake(stream: &mut TcpStream, role: Role, key: &Key) -> Result<snow::StatelessTransportState, FlowError> {
    let during = "in the key handshake";
    let broken = |e: snow::Error| FlowError::Protocol { during, message: e.to_string() };
    let prologue = [b"landspeed control ".as_slice(), &PROTOCOL_VERSION.to_be_bytes()].concat();
    let builder = PATTERN
        .parse()
        .map(snow::Builder::new)
        .and_then(|b| b.psk(0, &key.0))
        .and_then(|b| b.prologue(&prologue))
        .map_err(broken)?;
    let mut buffer = [0u8; 256];
    let mut message = [0u8; 256];
    let mut state = match role {
        Role::Client => builder.build_initiator(),
        Role::Server => builder.build_responder(),
    }
    .map_err(broken)?;
    let say = |stream: &mut TcpStream, state: &mut snow::HandshakeState, buffer: &mut [u8]| {
        let n = state.write_message(&[], buffer).map_err(broken)?;
        let mut frame = (n as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(&buffer[..n]);
        stream.write_all(&frame).map_err(|source| FlowError::PeerLost { during, source })
    };
    let mut hear = |stream: &mut TcpStream, state: &mut snow::HandshakeState| {
        let mut len = [0; 2];
        // An end that cannot decrypt our first message hangs up: to us that is the wrong key.
        stream.read_exact(&mut len).map_err(|e| handshake_read_error(&e))?;
        let n = usize::from(u16::from_be_bytes(len));
        let body = message.get_mut(..n).ok_or(FlowError::WrongKey)?;
        stream.read_exact(body).map_err(|e| handshake_read_error(&e))?;
        let mut none = [0u8; 256];
        state.read_message(body, &mut none).map_err(|_| FlowError::WrongKey)?;
        Ok(())
    };
    match role {
        Role::Client => {
            say(stream, &mut state, &mut buffer)?;
            hear(stream, &mut state)?;
        }
        Role::Server => {
            hear(stream, &mut state)?;
            say(stream, &mut state, &mut buffer)?;
        }
    }
    state.into_stateless_transport_mode().map_err(broken)
}

fn handshake_read_error(error: &io::Error) -> FlowError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            FlowError::Timeout { what: "the key handshake", seconds: 5 }
        }
        _ => FlowError::WrongKey,
    }
}

impl Sender {
    /// Sends one message.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), FlowError> {
        let during = "while sending a control message";
        let body = serde_json::to_vec(message)
            .map_err(|e| FlowError::Protocol { during, message: format!("cannot encode: {e}") })?;
        let mut plain = Vec::with_capacity(body.len() + 4);
        plain.extend_from_slice(&(body.len() as u32).to_be_bytes());
        plain.extend_from_slice(&body);
        let result = match &self.session {
            None => self.stream.write_all(&plain),
            Some(session) => {
                self.scratch.clear();
                for chunk in plain.chunks(NOISE_CHUNK) {
                    let start = self.scratch.len();
                    self.scratch.resize(start + 2 + chunk.len() + TAG, 0);
                    let n = session
                        .write_message(self.nonce, chunk, &mut self.scratch[start + 2..])
                        .map_err(|e| FlowError::Protocol { during, message: e.to_string() })?;
                    self.scratch[start..start + 2].copy_from_slice(&(n as u16).to_be_bytes());
                    self.nonce += 1;
                }
                self.stream.write_all(&self.scratch)
            }
        };
        result.map_err(|source| FlowError::PeerLost { during, source })
    }

    /// Closes the connection in both directions.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Receiver {
    /// Allows larger messages from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The next message, or `None` if none was complete within `patience`.
    pub fn poll<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<T>, FlowError> {
        let during = "while waiting for a control message";
        loop {
            if let Some(body) = self.take_frame()? {
                return serde_json::from_slice(&body)
                    .map(Some)
                    .map_err(|e| FlowError::Protocol { during, message: format!("not a message we know: {e}") });
            }
            self.stream
                .set_read_timeout(Some(patience.max(Duration::from_millis(1))))
                .map_err(|source| FlowError::PeerLost { during, source })?;
            let mut chunk = [0u8; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    let source = io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed");
                    return Err(FlowError::PeerLost { during, source });
                }
                Ok(n) => self.pending.extend_from_slice(&chunk[..n]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(source) => return Err(FlowError::PeerLost { during, source }),
            }
        }
    }

    /// The next message; `what` names it in the error when it does not come in time.
    pub fn wait<T: DeserializeOwned>(&mut self, what: &'static str, patience: Duration) -> Result<T, FlowError> {
        let deadline = landspeed_sys::clock::monotonic_ns() + patience.as_nanos() as u64;
        loop {
            let now = landspeed_sys::clock::monotonic_ns();
            if now >= deadline {
                return Err(FlowError::Timeout { what, seconds: patience.as_secs() });
            }
            if let Some(message) = self.poll(Duration::from_nanos(deadline - now))? {
                return Ok(message);
            }
        }
    }

    /// Moves what has arrived into `plain` and takes a whole frame off it.
    fn take_frame(&mut self) -> Result<Option<Vec<u8>>, FlowError> {
        match &self.session {
            None => self.plain.append(&mut self.pending),
            Some(session) => {
                let mut used = 0;
                while let Some(header) = self.pending.get(used..used + 2) {
                    let n = usize::from(u16::from_be_bytes([header[0], header[1]]));
                    let Some(cipher) = self.pending.get(used + 2..used + 2 + n) else { break };
                    let start = self.plain.len();
                    self.plain.resize(start + n, 0);
                    let len = session.read_message(self.nonce, cipher, &mut self.plain[start..]).map_err(|_| {
                        FlowError::Protocol {
                            during: "on the authenticated control connection",
                            message: "a message was changed, repeated or lost on the way".to_owned(),
                        }
                    })?;
                    self.plain.truncate(start + len);
                    self.nonce += 1;
                    used += 2 + n;
                }
                self.pending.drain(..used);
            }
        }
        let Some(header) = self.plain.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*header) as usize;
        if len > self.limit {
            return Err(FlowError::Protocol {
                during: "while waiting for a control message",
                message: format!("a message of {len} bytes is over the limit of {}", self.limit),
            });
        }
        if self.plain.len() < 4 + len {
            return Ok(None);
        }
        let rest = self.plain.split_off(4 + len);
        let mut frame = std::mem::replace(&mut self.plain, rest);
        frame.drain(..4);
        Ok(Some(frame))
    }
}
