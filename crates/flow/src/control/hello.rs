//! Opening of a UDP flow: the client's address is validated before the server sends anything larger to it.
//!
//! Four datagrams of 64 bytes each: the client's hello contains the test's token; the server answers with a
//! challenge (a nonce, no token); the client's proof repeats nonce and token; the server's welcome completes
//! the exchange. No answer of the server is longer than the datagram it answers, and nothing follows until the
//! address has returned the nonce. The nonce is a cookie that only the server can make for that client: until
//! the proof arrives, the server keeps no state and the stream stays open to other addresses. With a key:
//! [`super::keyed_hello`].
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `LNDSUDP1` |
//! | 8 | 1 | kind: 1 hello, 2 challenge, 3 proof, 4 welcome |
//! | 9 | 3 | zero |
//! | 12 | 4 | stream number, big-endian |
//! | 16 | 32 | token (hello, proof), else zero |
//! | 48 | 16 | nonce (challenge, proof), else zero |

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_sys::clock;

use super::deadline::{Deadline, timeout};
use super::preface::Token;
use crate::error::FlowError;

/// Length of every datagram of the exchange, bytes.
pub const HELLO_LEN: usize = 64;
/// The same with a key ([`super::keyed_hello`]).
pub const KEYED_HELLO_LEN: usize = 96;

const MAGIC: &[u8; 8] = b"LNDSUDP1";
const RETRANSMIT_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of the client for the whole exchange, in addition to four round trips.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A step of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Client's first datagram, with the token.
    Hello(Token),
    /// Server's nonce for the client's address.
    Challenge([u8; 16]),
    /// Client's token and the nonce returned.
    Proof(Token, [u8; 16]),
    /// Server has accepted the flow.
    Welcome,
}

/// Encodes a datagram.
pub fn encode(stream: u32, step: Step) -> [u8; HELLO_LEN] {
    let mut bytes = [0; HELLO_LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[12..16].copy_from_slice(&stream.to_be_bytes());
    let (kind, token, nonce) = match step {
        Step::Hello(token) => (1, Some(token), None),
        Step::Challenge(nonce) => (2, None, Some(nonce)),
        Step::Proof(token, nonce) => (3, Some(token), Some(nonce)),
        Step::Welcome => (4, None, None),
    };
    bytes[8] = kind;
    if let Some(token) = token {
        bytes[16..48].copy_from_slice(&token.0);
    }
    if let Some(nonce) = nonce {
        bytes[48..].copy_from_slice(&nonce);
    }
    bytes
}

/// Decodes a datagram; `None` if it is not part of the exchange.
pub fn decode(datagram: &[u8]) -> Option<(u32, Step)> {
    let bytes: &[u8; HELLO_LEN] = datagram.try_into().ok()?;
    if &bytes[..8] != MAGIC {
        return None;
    }
    let stream = u32::from_be_bytes(*bytes[12..].first_chunk()?);
    let token = Token(*bytes[16..].first_chunk()?);
    let nonce = *bytes[48..].first_chunk()?;
    let step = match bytes[8] {
        1 => Step::Hello(token),
        2 => Step::Challenge(nonce),
        3 => Step::Proof(token, nonce),
        4 => Step::Welcome,
        _ => return None,
    };
    Some((stream, step))
}

/// Runs the client's side on a socket connected to the server.
pub fn run_handshake(
    socket: &UdpSocket,
    stream: u32,
    token: Token,
    rtt_ns: u64,
    stop: &AtomicBool,
) -> Result<(), FlowError> {
    exchange(socket, &encode(stream, Step::Hello(token)), rtt_ns, stop, |datagram| match decode(datagram) {
        Some((s, Step::Challenge(nonce))) if s == stream => {
            HelloAction::Reply(encode(stream, Step::Proof(token, nonce)).to_vec())
        }
        Some((s, Step::Welcome)) if s == stream => HelloAction::Welcome,
        _ => HelloAction::Nothing,
    })
}

/// Client's reaction to a datagram.
pub(super) enum HelloAction {
    /// Ignore it: it does not belong to this exchange.
    Nothing,
    /// Send this datagram, and retransmit it until answered.
    Reply(Vec<u8>),
    /// The exchange is complete.
    Welcome,
    /// Its proof is invalid: it is not from the test's server.
    Forged,
}

/// Sends `first` and then the datagrams that `on_datagram` returns, until the exchange is complete; retransmits
/// unanswered datagrams.
pub(super) fn exchange(
    socket: &UdpSocket,
    first: &[u8],
    rtt_ns: u64,
    stop: &AtomicBool,
    mut on_datagram: impl FnMut(&[u8]) -> HelloAction,
) -> Result<(), FlowError> {
    let setup = |source| FlowError::Setup { what: "open a UDP flow".to_owned(), source };
    let addr = socket.peer_addr().map_err(setup)?;
    let deadline = Deadline::after(timeout(EXCHANGE_TIMEOUT, rtt_ns)).with_stop(stop);
    let mut say = first.to_vec();
    let mut forged = false;
    let mut buffer = [0; KEYED_HELLO_LEN + 1];
    let mut next_ns = 0;
    loop {
        let now = clock::monotonic_ns();
        let Ok(slice) = deadline.slice() else {
            return Err(match deadline.missed("opening a UDP flow") {
                FlowError::Timeout { .. } if forged => FlowError::UnauthenticatedServer { addr },
                FlowError::Timeout { seconds, .. } => FlowError::UdpUnanswered { addr, seconds },
                interrupted => interrupted,
            });
        };
        if now >= next_ns {
            next_ns = now + RETRANSMIT_INTERVAL.as_nanos() as u64;
            match socket.send(&say) {
                Ok(_) => {}
                // ICMP error caused by an earlier datagram; retry.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(source) => return Err(setup(source)),
            }
        }
        // Wait until the next retransmission is due: a foreign datagram does not trigger one.
        let left = Duration::from_nanos(next_ns.saturating_sub(now).max(1_000_000));
        socket.set_read_timeout(Some(left.min(slice))).map_err(setup)?;
        match socket.recv(&mut buffer).map(|n| on_datagram(&buffer[..n])) {
            Ok(HelloAction::Reply(datagram)) => {
                // Respond only once to a duplicate answer.
                if datagram != say {
                    say = datagram;
                    next_ns = 0;
                }
            }
            Ok(HelloAction::Welcome) => return Ok(()),
            Ok(HelloAction::Forged) => forged = true,
            Ok(HelloAction::Nothing) => {}
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                std::thread::park_timeout(RETRANSMIT_INTERVAL);
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(source) => return Err(setup(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_round_trips_with_the_same_size() {
        let (token, nonce) = (Token([9; 32]), [3; 16]);
        for step in [Step::Hello(token), Step::Challenge(nonce), Step::Proof(token, nonce), Step::Welcome] {
            assert_eq!(decode(&encode(7, step)), Some((7, step)));
        }
        assert_eq!(decode(&[0; HELLO_LEN]), None);
        assert_eq!(decode(b"LNDSUDP1"), None);
    }
}
