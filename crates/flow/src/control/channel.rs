//! Framed messages over a TCP connection, in plaintext or inside a Noise session.
//!
//! A plaintext frame is a 32-bit big-endian length and that many bytes of JSON. With a key the connection first
//! runs `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (crate `snow`): both sides prove that they have the key. Each
//! frame is then one or more transport messages, each with a 16-bit length prefix and numbered by the session,
//! so that a modified, replayed, dropped or reordered message ends the test.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::TcpInfo;
use landspeed_sys::{clock, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::deadline::Deadline;
use super::frames::Frames;
use super::preface::PROTOCOL_VERSION;
use super::{patient, printable};
use crate::error::FlowError;

const NOISE_PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Plaintext of one Noise message: 65535 less the 16-byte tag.
const NOISE_CHUNK: usize = 65_519;
const TAG: usize = 16;
const SEND_OPERATION: &str = "while sending a control message";
/// Timeout for sending a queued message, nanoseconds: limits how long a peer that does not read can occupy
/// resources.
const SEND_TIMEOUT_NS: u64 = 10_000_000_000;

/// Empty handshake message: the server has no free slot for the client.
pub const BUSY_HANDSHAKE: [u8; 2] = [0, 0];

/// A 256-bit pre-shared key.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Generates a random key.
    pub fn generate() -> io::Result<Self> {
        landspeed_sys::random::bytes().map(Self)
    }

    /// Parses a key file: 64 hex digits, optionally surrounded by white space.
    pub fn from_text(text: &str) -> Option<Self> {
        super::preface::Token::from_hex(text.trim()).map(|token| Self(token.0))
    }

    /// Formats the key as the content of a key file.
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
    /// Encoded messages not yet accepted by the kernel.
    outbox: Vec<u8>,
    /// Time since which the send buffer is full, monotonic nanoseconds.
    blocked_ns: Option<u64>,
}

/// The reading half. Partial frames survive a timeout, so it can be polled.
pub struct Receiver {
    stream: TcpStream,
    frames: Frames,
}

/// Longest RTT that deadlines follow, nanoseconds.
const MAX_RTT_NS: u64 = 10_000_000_000;

/// Returns a TCP connection's minimum RTT from `tcp_info`, nanoseconds, at most 10 s; 0 if unknown. Deadlines follow it:
/// the peer could delay its ACKs to extend them.
pub fn min_rtt_ns(fd: BorrowedFd<'_>) -> u64 {
    let info = socket::tcp_info(fd).ok().map(|raw| TcpInfo::decode(raw.as_bytes()));
    // The kernel's minimum is 2^32 - 1 before the first measurement.
    let measured = |us: &u32| *us < u32::MAX;
    let rtt_us = info.and_then(|info| info.min_rtt_us.filter(measured).or(Some(info.rtt_us)));
    rtt_us.map_or(0, |us| u64::from(us) * 1000).min(MAX_RTT_NS)
}

/// Role in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends the first message.
    Client,
    /// Sends the second message.
    Server,
}

/// Runs the handshake within `patience` if there is a key, and splits the connection.
///
/// # Errors
/// [`FlowError::WrongKey`] when the peer has a different key, [`FlowError::Timeout`] when it does not respond,
/// [`FlowError::PeerLost`] when the connection breaks, [`FlowError::Interrupted`] when `stop` is set.
pub fn open(
    mut stream: TcpStream,
    role: Role,
    key: Option<&Key>,
    limit: usize,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(Sender, Receiver), FlowError> {
    let deadline = Deadline::after(patience).with_stop(stop);
    let Some(key) = key else { return split(stream, None, limit) };
    let mut handshake = Handshake::new(role, key)?;
    match role {
        Role::Client => {
            handshake.write(&mut stream, &deadline)?;
            handshake.read(&mut stream, &deadline)?;
        }
        Role::Server => {
            handshake.read(&mut stream, &deadline)?;
            handshake.write(&mut stream, &deadline)?;
        }
    }
    split(stream, Some(handshake.finish()?), limit)
}

/// As [`open`] for a client that has sent its preface, and sends `first`. What needs no answer is sent before
/// `read_answer` waits for the server's answer to the preface: the first message, or with a key that of the handshake.
///
/// # Errors
/// Those of [`open`] and of `read_answer`.
pub fn open_client<T: Serialize>(
    mut stream: TcpStream,
    key: Option<&Key>,
    first: &T,
    limit: usize,
    deadline: &Deadline<'_>,
    read_answer: impl FnOnce(&mut TcpStream) -> Result<(), FlowError>,
) -> Result<(Sender, Receiver), FlowError> {
    let Some(key) = key else {
        let mut twin = stream.try_clone().map_err(lost_in_handshake)?;
        let (mut tx, rx) = split(stream, None, limit)?;
        let sent = tx.send(first, deadline);
        // A server that refuses closes the connection: its answer says more than the failed write.
        read_answer(&mut twin)?;
        return sent.map(|()| (tx, rx));
    };
    let mut handshake = Handshake::new(Role::Client, key)?;
    let sent = handshake.write(&mut stream, deadline);
    read_answer(&mut stream)?;
    sent?;
    handshake.read(&mut stream, deadline)?;
    let (mut tx, rx) = split(stream, Some(handshake.finish()?), limit)?;
    tx.send(first, deadline)?;
    Ok((tx, rx))
}

const HANDSHAKE_OPERATION: &str = "in the key handshake";

fn lost_in_handshake(source: io::Error) -> FlowError {
    FlowError::PeerLost { during: HANDSHAKE_OPERATION, source }
}

/// Splits a connection into its two halves.
fn split(
    stream: TcpStream,
    session: Option<snow::StatelessTransportState>,
    limit: usize,
) -> Result<(Sender, Receiver), FlowError> {
    stream.set_nodelay(true).map_err(lost_in_handshake)?;
    let twin = stream.try_clone().map_err(lost_in_handshake)?;
    let session = session.map(Arc::new);
    Ok((
        Sender { stream: twin, session: session.clone(), nonce: 0, outbox: Vec::new(), blocked_ns: None },
        Receiver { stream, frames: Frames::sealed(session, limit) },
    ))
}

/// Key handshake of a connection. Each step ends by its deadline, even if the peer sends single bytes slowly.
struct Handshake {
    state: snow::HandshakeState,
    role: Role,
}

impl Handshake {
    fn new(role: Role, key: &Key) -> Result<Self, FlowError> {
        let prologue = [b"landspeed control ".as_slice(), &PROTOCOL_VERSION.to_be_bytes()].concat();
        let builder = NOISE_PATTERN
            .parse()
            .map(snow::Builder::new)
            .and_then(|b| b.psk(0, &key.0))
            .and_then(|b| b.prologue(&prologue))
            .map_err(|error| Self::broken(&error))?;
        let state = match role {
            Role::Client => builder.build_initiator(),
            Role::Server => builder.build_responder(),
        };
        Ok(Self { state: state.map_err(|error| Self::broken(&error))?, role })
    }

    fn broken(error: &snow::Error) -> FlowError {
        FlowError::Protocol { during: HANDSHAKE_OPERATION, message: error.to_string() }
    }

    /// Sends this side's message.
    fn write(&mut self, stream: &mut TcpStream, deadline: &Deadline<'_>) -> Result<(), FlowError> {
        stream.set_nodelay(true).map_err(lost_in_handshake)?;
        let mut buffer = [0u8; 256];
        let n = self.state.write_message(&[], &mut buffer).map_err(|error| Self::broken(&error))?;
        let mut frame = (n as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(&buffer[..n]);
        patient::write_all(stream, &frame, deadline)
            .map_err(|source| deadline.write_error(HANDSHAKE_OPERATION, source))
    }

    /// Reads the message of the peer.
    fn read(&mut self, stream: &mut TcpStream, deadline: &Deadline<'_>) -> Result<(), FlowError> {
        let unread = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut => deadline.missed("the key handshake"),
            // A peer that cannot decrypt the first message closes the connection: report a wrong key.
            _ => FlowError::WrongKey,
        };
        let mut len = [0; 2];
        patient::read_exact(stream, &mut len, deadline).map_err(unread)?;
        let n = usize::from(u16::from_be_bytes(len));
        if len == BUSY_HANDSHAKE && self.role == Role::Client {
            return Err(FlowError::busy());
        }
        let mut message = [0u8; 256];
        let body = message.get_mut(..n).ok_or(FlowError::WrongKey)?;
        patient::read_exact(stream, body, deadline).map_err(unread)?;
        self.state.read_message(body, &mut [0u8; 256]).map_err(|_| FlowError::WrongKey)?;
        Ok(())
    }

    fn finish(self) -> Result<snow::StatelessTransportState, FlowError> {
        self.state.into_stateless_transport_mode().map_err(|error| Self::broken(&error))
    }
}

impl Sender {
    /// Sends one message and waits until the kernel has accepted it.
    ///
    /// # Errors
    /// [`FlowError::PeerLost`] when the connection breaks or the deadline passes, [`FlowError::Interrupted`] when a
    /// stop ended the wait.
    pub fn send<T: Serialize>(&mut self, message: &T, deadline: &Deadline<'_>) -> Result<(), FlowError> {
        self.encode(message)?;
        let result = patient::write_all(&mut self.stream, &self.outbox, deadline);
        self.outbox.clear();
        result.map_err(|source| deadline.write_error(SEND_OPERATION, source))
    }

    /// Queues one message and passes as much as possible to the kernel; [`Sender::flush`] sends the rest. Never
    /// blocks.
    ///
    /// # Errors
    /// Same as [`Sender::flush`].
    pub fn queue<T: Serialize>(&mut self, message: &T) -> Result<(), FlowError> {
        self.encode(message)?;
        self.flush()
    }

    /// Passes queued messages to the kernel without blocking.
    ///
    /// # Errors
    /// [`FlowError::PeerLost`] when the connection is broken, or when the peer has not read for 10 s.
    pub fn flush(&mut self) -> Result<(), FlowError> {
        let lost = |source| FlowError::PeerLost { during: SEND_OPERATION, source };
        while !self.outbox.is_empty() {
            match socket::send_nonblocking(self.stream.as_fd(), &self.outbox) {
                Ok(n) => {
                    self.outbox.drain(..n);
                    self.blocked_ns = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now_ns = clock::monotonic_ns();
                    let since_ns = *self.blocked_ns.get_or_insert(now_ns);
                    let unread = now_ns.saturating_sub(since_ns) > SEND_TIMEOUT_NS;
                    return if unread { Err(lost(io::ErrorKind::TimedOut.into())) } else { Ok(()) };
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Whether queued messages wait for the peer to read.
    pub fn is_blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Encodes a message in wire format and appends it to the outbox.
    fn encode<T: Serialize>(&mut self, message: &T) -> Result<(), FlowError> {
        let broken = |message| FlowError::Protocol { during: SEND_OPERATION, message };
        let body = serde_json::to_vec(message).map_err(|e| broken(format!("cannot encode: {e}")))?;
        let length = (body.len() as u32).to_be_bytes();
        let Some(session) = &self.session else {
            self.outbox.extend_from_slice(&length);
            self.outbox.extend_from_slice(&body);
            return Ok(());
        };
        for chunk in [length.as_slice(), &body].concat().chunks(NOISE_CHUNK) {
            let start = self.outbox.len();
            self.outbox.resize(start + 2 + chunk.len() + TAG, 0);
            let n = session
                .write_message(self.nonce, chunk, &mut self.outbox[start + 2..])
                .map_err(|e| broken(e.to_string()))?;
            self.outbox[start..start + 2].copy_from_slice(&(n as u16).to_be_bytes());
            self.nonce += 1;
        }
        Ok(())
    }

    /// Returns the connection's minimum RTT, nanoseconds, at most 10 s.
    pub fn min_rtt_ns(&self) -> u64 {
        min_rtt_ns(self.stream.as_fd())
    }

    /// Returns the time since the peer's host last acknowledged anything although data of this connection is
    /// outstanding, nanoseconds; `None` if nothing is. A kernel acknowledges also for a process that does not run.
    pub fn silent_ns(&self) -> Option<u64> {
        let info = socket::tcp_info(self.stream.as_fd()).ok().map(|raw| TcpInfo::decode(raw.as_bytes()))?;
        (info.unacked > 0).then(|| u64::from(info.last_ack_recv_ms) * 1_000_000)
    }

    /// Closes the connection in both directions.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Receiver {
    /// Raises the message size limit from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.frames.set_limit(limit);
    }

    /// Returns the next message, or `None` if no data arrives within `patience`, or if the message is still
    /// incomplete another `patience` later. Reads at least once.
    pub fn poll<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<T>, FlowError> {
        let during = "while waiting for a control message";
        let lost = |source| FlowError::PeerLost { during, source };
        // Reading the clock takes time in the lab, so it is not read until a message arrives in pieces.
        let mut deadline_ns = None;
        let mut wait = patience.max(Duration::from_millis(1));
        let mut chunk = [0u8; 16 * 1024];
        loop {
            if let Some(body) = self.frames.take()? {
                // The decoder's error quotes the peer's text.
                let unknown = |e: serde_json::Error| FlowError::Protocol {
                    during,
                    message: format!("unknown message: {}", printable(&e.to_string(), 200)),
                };
                return serde_json::from_slice(&body).map(Some).map_err(unknown);
            }
            if let Some(deadline_ns) = deadline_ns {
                let left_ns = u64::saturating_sub(deadline_ns, clock::monotonic_ns());
                if left_ns == 0 {
                    return Ok(None);
                }
                wait = Duration::from_nanos(left_ns.max(1_000_000));
            }
            self.stream.set_read_timeout(Some(wait)).map_err(lost)?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(lost(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed"))),
                Ok(n) => self.frames.push(&chunk[..n])?,
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(lost(source)),
            }
            if !self.frames.has_message() {
                deadline_ns.get_or_insert_with(|| clock::monotonic_ns() + patience.as_nanos() as u64);
            }
        }
    }

    /// Waits up to `limit` for the next message; `what` names it in the timeout error.
    ///
    /// # Errors
    /// [`FlowError::Interrupted`] soon after `stop` is set, [`FlowError::Timeout`] after `limit`.
    pub fn wait<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<T, FlowError> {
        let deadline = Deadline::after(limit).with_stop(stop);
        while let Ok(slice) = deadline.slice() {
            if let Some(message) = self.poll(slice)? {
                return Ok(message);
            }
        }
        Err(deadline.missed(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_before_the_first_write_is_an_interrupt() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (key, stop) = (Key([7; 32]), AtomicBool::new(true));
        let opened = open(stream, Role::Client, Some(&key), 1024, Duration::from_secs(5), &stop);
        assert!(matches!(opened, Err(FlowError::Interrupted)), "the peer is not lost");
    }
}
