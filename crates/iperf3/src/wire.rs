//! Messages of an iperf3 control connection: cookies, states of one byte, and JSON texts with a length prefix.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_flow::control::deadline::Deadline;
use landspeed_flow::control::patient;
use landspeed_flow::error::FlowError;
use landspeed_sys::socket::{Readiness, wait};
use serde_json::Value;

/// Length of a cookie including its terminating zero, bytes.
pub const COOKIE_LEN: usize = 37;
/// Maximum size of a client's request, bytes. iperf3 itself accepts 8 KiB.
pub const MAX_REQUEST: usize = 64 * 1024;
/// Maximum size of a client's results, bytes; 256 streams need less than 100 KiB.
pub const MAX_CLIENT_RESULTS: usize = 1 << 20;
/// Maximum size of a server's results, bytes; they may include the server's output.
pub const MAX_SERVER_RESULTS: usize = 64 << 20;

/// Identifier of a test, sent on each of its connections.
pub type Cookie = [u8; COOKIE_LEN];

/// Returns a random cookie: 36 characters of iperf3's alphabet and a zero.
pub fn cookie() -> io::Result<Cookie> {
    const COOKIE_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let random: [u8; 36] = landspeed_sys::random::bytes()?;
    let mut cookie = [0; COOKIE_LEN];
    for (letter, byte) in cookie.iter_mut().zip(random) {
        *letter = COOKIE_ALPHABET[usize::from(byte % 32)];
    }
    Ok(cookie)
}

/// States: one-byte messages that control the peer's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// Server: the streams are open, prepare the test.
    TestStart = 1,
    /// Server: start the test.
    TestRunning = 2,
    /// Client: the test has ended.
    TestEnd = 4,
    /// Server: send the parameters.
    ParamExchange = 9,
    /// Server: open the streams.
    CreateStreams = 10,
    /// Server: terminated by its user.
    ServerTerminate = 11,
    /// Client: terminated by its user.
    ClientTerminate = 12,
    /// Server: exchange the results.
    ExchangeResults = 13,
    /// Server: the exchange is complete.
    DisplayResults = 14,
    /// Client: finished, closes the connection.
    IperfDone = 16,
    /// Server: busy with another test.
    AccessDenied = -1,
    /// Server: an error; two error numbers follow.
    ServerError = -2,
}

/// Reply of a server that accepts no further client: [`State::AccessDenied`].
pub const BUSY_REPLY: [u8; 1] = [State::AccessDenied as i8 as u8];

impl State {
    /// Decodes a state byte.
    pub fn decode(byte: u8) -> Option<Self> {
        use State::{
            AccessDenied, ClientTerminate, CreateStreams, DisplayResults, ExchangeResults, IperfDone, ParamExchange,
            ServerError, ServerTerminate, TestEnd, TestRunning, TestStart,
        };
        let all = [
            TestStart,
            TestRunning,
            TestEnd,
            ParamExchange,
            CreateStreams,
            ServerTerminate,
            ClientTerminate,
            ExchangeResults,
            DisplayResults,
            IperfDone,
            AccessDenied,
            ServerError,
        ];
        all.into_iter().find(|state| *state as i8 as u8 == byte)
    }
}

/// iperf3's error numbers with which a server refuses a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Refusal {
    /// `IENUMSTREAMS`: too many streams.
    Streams = 6,
    /// `IEBLOCKSIZE`: block size too large.
    BlockSize = 7,
    /// `IEBUFSIZE`: socket buffer too large.
    Window = 8,
    /// `IEMSS`: MSS too large.
    Mss = 10,
    /// `IEOMIT`: invalid omitted time.
    Omit = 12,
    /// `IEUDPBLOCKSIZE`: invalid UDP block size.
    Datagram = 20,
    /// `IETOTALRATE`: total rate exceeds the server's limit.
    Rate = 27,
    /// `IEMAXSERVERTESTDURATIONEXCEEDED`: duration exceeds the server's limit.
    Duration = 37,
    /// `IERECVPARAMS`: parameters cannot be read.
    Parameters = 114,
    /// `IEPROTOCOL`: protocol not supported.
    Protocol = 131,
    /// `IEAFFINITY`: CPU affinity cannot be set.
    Affinity = 132,
    /// `IESETCONGESTION`: congestion control cannot be set.
    Congestion = 134,
    /// `IEAUTHTEST`: authorization failed.
    Authorization = 142,
    /// `IENOMSG`: no data for too long.
    Silence = 144,
    /// `IESTREAMACCEPT`: a stream could not be accepted.
    Stream = 204,
}

/// Message for an error number of an iperf3 server.
pub fn server_error(number: i32) -> String {
    let words = match number {
        5 => "the test is too long for it",
        6 => "too many parallel streams",
        7 => "its block size does not allow this --len",
        8 => "its socket buffers do not allow this --window",
        10 => "the MSS is too large for it",
        12 => "it does not take this --omit",
        15 => "the burst is too large for it",
        20 => "it does not take this --len for UDP",
        27 => "the total rate is above its limit",
        37 => "the test is longer than it allows",
        114 => "it could not read the parameters",
        119 => "it says that this client gave up",
        120 => "it was stopped",
        122..=126 | 130 | 141 => "it could not set a socket up as asked",
        131 => "it does not know the protocol",
        132 => "it could not take the asked core",
        134 => "it has no such congestion control",
        140 => "it could not set the pacing rate",
        142 => "authorization failed",
        144 => "it received nothing for too long",
        160 => "the test took longer than it was announced to",
        200..=208 => "it had trouble with a data connection",
        _ => return format!("iperf3's error {number}"),
    };
    format!("{words} (iperf3's error {number})")
}

/// A control connection. Every wait has a deadline.
#[derive(Debug)]
pub struct ControlConnection {
    stream: TcpStream,
}

impl ControlConnection {
    /// Wraps a connection after its cookie was sent or received.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// The underlying TCP connection.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a state.
    pub fn send(&mut self, state: State, deadline: &Deadline<'_>) -> io::Result<()> {
        patient::write_all(&mut self.stream, &[state as i8 as u8], deadline)
    }

    /// Sends an error with two numbers; the second is `errno`, which landspeed leaves 0.
    pub fn refuse(&mut self, why: Refusal, deadline: &Deadline<'_>) -> io::Result<()> {
        let mut words = [0; 9];
        words[0] = State::ServerError as i8 as u8;
        words[1..5].copy_from_slice(&(why as i32).to_be_bytes());
        patient::write_all(&mut self.stream, &words, deadline)
    }

    /// Sends a JSON text with its length.
    pub fn send_json(&mut self, value: &Value, deadline: &Deadline<'_>) -> io::Result<()> {
        let text = value.to_string();
        let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        patient::write_all(&mut self.stream, &bytes, deadline)
    }

    /// Returns the next byte, if one arrives within `wait_ms`.
    pub fn poll(&mut self, wait_ms: u32) -> io::Result<Option<u8>> {
        if !wait(self.stream.as_fd(), Readiness::Readable, wait_ms)? {
            return Ok(None);
        }
        let mut byte = [0];
        patient::read_exact(&mut self.stream, &mut byte, &Deadline::after(Duration::from_millis(100)))?;
        Ok(Some(byte[0]))
    }

    /// Returns the next byte.
    pub fn receive(&mut self, deadline: &Deadline<'_>) -> io::Result<u8> {
        let mut byte = [0];
        patient::read_exact(&mut self.stream, &mut byte, deadline)?;
        Ok(byte[0])
    }

    /// Receives the two numbers after [`State::ServerError`]: iperf3's error number and `errno`; 0 if missing.
    /// After a failed authorization, servers send only the first.
    pub fn receive_error(&mut self, deadline: &Deadline<'_>) -> (i32, i32) {
        let mut number = || {
            let mut bytes = [0; 4];
            patient::read_exact(&mut self.stream, &mut bytes, deadline).map_or(0, |()| i32::from_be_bytes(bytes))
        };
        (number(), number())
    }

    /// Receives a JSON text of at most `most` bytes. Allocates memory only as data arrives.
    pub fn receive_json(&mut self, most: usize, deadline: &Deadline<'_>) -> Result<Value, TextReadError> {
        let mut length = [0; 4];
        patient::read_exact(&mut self.stream, &mut length, deadline)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > most {
            return Err(TextReadError::Text(format!("a text of {length} bytes, where {most} are the most")));
        }
        let mut text = Vec::new();
        while text.len() < length {
            let have = text.len();
            text.resize((have + 64 * 1024).min(length), 0);
            patient::read_exact(&mut self.stream, &mut text[have..], deadline)?;
        }
        // Servers before about 3.13 terminate their text with a zero byte.
        while text.last() == Some(&0) {
            text.pop();
        }
        serde_json::from_slice(&text).map_err(|error| TextReadError::Text(format!("invalid JSON: {error}")))
    }
}

/// Reason why a text could not be read.
#[derive(Debug)]
pub enum TextReadError {
    /// The connection failed.
    Lost(io::Error),
    /// The text is too long or invalid.
    Text(String),
}

impl From<io::Error> for TextReadError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl TextReadError {
    /// Converts to an error of the step `during`.
    pub fn during(self, during: &'static str) -> FlowError {
        match self {
            Self::Lost(source) => FlowError::PeerLost { during, source },
            Self::Text(message) => FlowError::Protocol { during, message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_and_other_bytes_are_rejected() {
        let known = (0..=255).filter_map(|byte| State::decode(byte).map(|state| (byte, state)));
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), 12);
        assert!(known.iter().all(|(byte, state)| *state as i8 as u8 == *byte));
        assert_eq!(State::decode(0xFE), Some(State::ServerError));
    }

    #[test]
    fn cookies_are_36_random_characters_and_a_zero() {
        let cookie = cookie().unwrap();
        assert!(cookie[..36].iter().all(|c| matches!(c, b'a'..=b'z' | b'2'..=b'7')));
        assert_eq!(cookie[36], 0);
        assert_ne!(cookie, super::cookie().unwrap());
    }
}
