//! Framed messages over a TCP connection, in the clear or inside a Noise session.
//!
//! In the clear a frame is a 32-bit big-endian length and that many bytes of JSON. With a key the connection first
//! runs `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (crate `snow`): both ends prove they hold the key, and every frame
//! is then one or more transport messages, each behind a 16-bit length, numbered by the session, so that a changed,
//! repeated, dropped or reordered message ends the test.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frames::Frames;
use super::preface::PROTOCOL_VERSION;
use super::{patient, printable};
use crate::error::FlowError;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Plaintext of one Noise message: 65535 less the 16-byte tag.
const NOISE_CHUNK: usize = 65_519;
const TAG: usize = 16;
/// How long one message may take to leave: a peer that reads a byte now and then holds nothing for long.
const WRITE_PATIENCE: Duration = Duration::from_secs(20);
/// How often a wait looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(100);

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
    frames: Frames,
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
    let session = match key {
        None => None,
        Some(key) => Some(Arc::new(handshake(&mut stream, role, key, patience)?)),
    };
    let twin = stream.try_clone().map_err(lost)?;
    Ok((
        Sender { stream: twin, session: session.clone(), nonce: 0, scratch: Vec::new() },
        Receiver { stream, frames: Frames::sealed(session, limit) },
    ))
}

/// All of it within `patience`, however slowly the peer drips its bytes.
fn handshake(
    stream: &mut TcpStream,
    role: Role,
    key: &Key,
    patience: Duration,
) -> Result<snow::StatelessTransportState, FlowError> {
    let during = "in the key handshake";
    let deadline_ns = clock::monotonic_ns() + patience.as_nanos() as u64;
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => FlowError::Timeout { what: "the key handshake", seconds: patience.as_secs() },
        // An end that cannot decrypt our first message hangs up: to us that is the wrong key.
        _ => FlowError::WrongKey,
    };
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
        patient::write_all(stream, &frame, deadline_ns).map_err(|source| FlowError::PeerLost { during, source })
    };
    let mut hear = |stream: &mut TcpStream, state: &mut snow::HandshakeState| {
        let mut len = [0; 2];
        patient::read_exact(stream, &mut len, deadline_ns, None).map_err(unread)?;
        let n = usize::from(u16::from_be_bytes(len));
        let body = message.get_mut(..n).ok_or(FlowError::WrongKey)?;
        patient::read_exact(stream, body, deadline_ns, None).map_err(unread)?;
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

impl Sender {
    /// Sends one message.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), FlowError> {
        let during = "while sending a control message";
        let body = serde_json::to_vec(message)
            .map_err(|e| FlowError::Protocol { during, message: format!("cannot encode: {e}") })?;
        let mut plain = Vec::with_capacity(body.len() + 4);
        plain.extend_from_slice(&(body.len() as u32).to_be_bytes());
        plain.extend_from_slice(&body);
        let deadline_ns = clock::monotonic_ns() + WRITE_PATIENCE.as_nanos() as u64;
        let result = match &self.session {
            None => patient::write_all(&mut self.stream, &plain, deadline_ns),
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
                patient::write_all(&mut self.stream, &self.scratch, deadline_ns)
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
        self.frames.set_limit(limit);
    }

    /// The next message, or `None` if none was complete within `patience`.
    pub fn poll<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<T>, FlowError> {
        let during = "while waiting for a control message";
        let lost = |source| FlowError::PeerLost { during, source };
        loop {
            if let Some(body) = self.frames.take()? {
                // The decoder quotes what it does not know, and that is the peer's text.
                let unknown = |e: serde_json::Error| FlowError::Protocol {
                    during,
                    message: format!("not a message we know: {}", printable(&e.to_string(), 200)),
                };
                return serde_json::from_slice(&body).map(Some).map_err(unknown);
            }
            self.stream.set_read_timeout(Some(patience.max(Duration::from_millis(1)))).map_err(lost)?;
            let mut chunk = [0u8; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(lost(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed"))),
                Ok(n) => self.frames.push(&chunk[..n])?,
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(source) => return Err(lost(source)),
            }
        }
    }

    /// The next message; `what` names it in the error when it does not come in time.
    ///
    /// # Errors
    /// [`FlowError::Interrupted`] soon after `stop` is set, [`FlowError::Timeout`] after `patience`.
    pub fn wait<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<T, FlowError> {
        let deadline = clock::monotonic_ns() + patience.as_nanos() as u64;
        loop {
            let now = clock::monotonic_ns();
            if now >= deadline {
                return Err(FlowError::Timeout { what, seconds: patience.as_secs() });
            }
            if stop.load(Ordering::Relaxed) {
                return Err(FlowError::Interrupted);
            }
            if let Some(message) = self.poll(TICK.min(Duration::from_nanos(deadline - now)))? {
                return Ok(message);
            }
        }
    }
}
