//! What goes over an iperf3 control connection: cookies, states of one byte, JSON texts with their length.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_flow::control::deadline::Deadline;
use landspeed_flow::control::patient;
use landspeed_flow::error::FlowError;
use landspeed_sys::socket::{Readiness, wait};
use serde_json::Value;

/// Length of a cookie with its closing zero.
pub const COOKIE_LEN: usize = 37;
/// Longest text of a client before it is accepted, bytes. iperf3 itself takes 8 KiB.
pub const MAX_REQUEST: usize = 64 * 1024;
/// Longest results of a client, bytes: 256 streams take less than 100 KiB.
pub const MAX_CLIENT_RESULTS: usize = 1 << 20;
/// Longest results of a server, bytes: they may hold all that it printed.
pub const MAX_SERVER_RESULTS: usize = 64 << 20;

/// Names a test on all its connections.
pub type Cookie = [u8; COOKIE_LEN];

/// A fresh cookie: 36 letters of iperf3's alphabet and a zero.
pub fn cookie() -> io::Result<Cookie> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let random: [u8; 36] = landspeed_sys::random::bytes()?;
    let mut cookie = [0; COOKIE_LEN];
    for (letter, byte) in cookie.iter_mut().zip(random) {
        *letter = LETTERS[usize::from(byte % 32)];
    }
    Ok(cookie)
}

/// What one end sends the other to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// Server: the streams are open, make ready.
    TestStart = 1,
    /// Server: go.
    TestRunning = 2,
    /// Client: it is over.
    TestEnd = 4,
    /// Server: say what is wanted.
    ParamExchange = 9,
    /// Server: open the streams.
    CreateStreams = 10,
    /// The server's user gave up.
    ServerTerminate = 11,
    /// The client's user gave up.
    ClientTerminate = 12,
    /// Server: say what came of it.
    ExchangeResults = 13,
    /// Server: good-bye.
    DisplayResults = 14,
    /// Client: good-bye.
    IperfDone = 16,
    /// Server: busy with another test.
    AccessDenied = -1,
    /// Server: something is wrong; two numbers say what.
    ServerError = -2,
}

/// What a server says that has no place for a client: [`State::AccessDenied`].
pub const BUSY: [u8; 1] = [State::AccessDenied as i8 as u8];

impl State {
    /// Reads a state.
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

/// Why a server sends a client away: iperf3's own numbers, which its clients put into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Refusal {
    /// `IENUMSTREAMS`.
    Streams = 6,
    /// `IEBLOCKSIZE`.
    BlockSize = 7,
    /// `IEBUFSIZE`.
    Window = 8,
    /// `IEMSS`.
    Mss = 10,
    /// `IEOMIT`.
    Omit = 12,
    /// `IEUDPBLOCKSIZE`.
    Datagram = 20,
    /// `IETOTALRATE`.
    Rate = 27,
    /// `IEMAXSERVERTESTDURATIONEXCEEDED`.
    Duration = 37,
    /// `IERECVPARAMS`.
    Parameters = 114,
    /// `IEPROTOCOL`.
    Protocol = 131,
    /// `IEAFFINITY`.
    Affinity = 132,
    /// `IESETCONGESTION`.
    Congestion = 134,
    /// `IEAUTHTEST`.
    Authorization = 142,
    /// `IENOMSG`.
    Silence = 144,
    /// `IESTREAMACCEPT`.
    Stream = 204,
}

/// An error number of an iperf3 server in words.
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

/// A control connection. Every wait ends by a deadline.
#[derive(Debug)]
pub struct Line {
    stream: TcpStream,
}

impl Line {
    /// Takes a connection whose cookie has gone over.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a state.
    pub fn send(&mut self, state: State, deadline: &Deadline<'_>) -> io::Result<()> {
        patient::write_all(&mut self.stream, &[state as i8 as u8], deadline)
    }

    /// Sends an error with its two numbers; the second is the `errno`, which landspeed does not set.
    pub fn refuse(&mut self, why: Refusal, deadline: &Deadline<'_>) -> io::Result<()> {
        let mut words = [0; 9];
        words[0] = State::ServerError as i8 as u8;
        words[1..5].copy_from_slice(&(why as i32).to_be_bytes());
        patient::write_all(&mut self.stream, &words, deadline)
    }

    /// Sends a text.
    pub fn send_json(&mut self, value: &Value, deadline: &Deadline<'_>) -> io::Result<()> {
        let text = value.to_string();
        let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        patient::write_all(&mut self.stream, &bytes, deadline)
    }

    /// The next byte if one comes within `wait_ms`, whatever it means.
    pub fn poll(&mut self, wait_ms: u32) -> io::Result<Option<u8>> {
        if !wait(self.stream.as_fd(), Readiness::Readable, wait_ms)? {
            return Ok(None);
        }
        let mut byte = [0];
        patient::read_exact(&mut self.stream, &mut byte, &Deadline::after(Duration::from_millis(100)))?;
        Ok(Some(byte[0]))
    }

    /// The next byte.
    pub fn receive(&mut self, deadline: &Deadline<'_>) -> io::Result<u8> {
        let mut byte = [0];
        patient::read_exact(&mut self.stream, &mut byte, deadline)?;
        Ok(byte[0])
    }

    /// The two numbers after [`State::ServerError`]: iperf3's and the system's, zero where they do not come. Of a failed
    /// authorization, servers say only the first.
    pub fn receive_error(&mut self, deadline: &Deadline<'_>) -> (i32, i32) {
        let mut number = || {
            let mut bytes = [0; 4];
            patient::read_exact(&mut self.stream, &mut bytes, deadline).map_or(0, |()| i32::from_be_bytes(bytes))
        };
        (number(), number())
    }

    /// A text of at most `most` bytes. Takes no more memory than has arrived.
    pub fn receive_json(&mut self, most: usize, deadline: &Deadline<'_>) -> Result<Value, Unread> {
        let mut length = [0; 4];
        patient::read_exact(&mut self.stream, &mut length, deadline)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > most {
            return Err(Unread::Text(format!("a text of {length} bytes, where {most} are the most")));
        }
        let mut text = Vec::new();
        while text.len() < length {
            let have = text.len();
            text.resize((have + 64 * 1024).min(length), 0);
            patient::read_exact(&mut self.stream, &mut text[have..], deadline)?;
        }
        // Servers before 3.13 or so close their text with a zero byte.
        while text.last() == Some(&0) {
            text.pop();
        }
        serde_json::from_slice(&text).map_err(|error| Unread::Text(format!("invalid JSON: {error}")))
    }
}

/// Why no text came.
#[derive(Debug)]
pub enum Unread {
    /// The connection.
    Lost(io::Error),
    /// What came.
    Text(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl Unread {
    /// As an error of this step.
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
    fn states_survive_the_wire_and_nothing_else_is_one() {
        let known = (0..=255).filter_map(|byte| State::decode(byte).map(|state| (byte, state)));
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), 12);
        assert!(known.iter().all(|(byte, state)| *state as i8 as u8 == *byte));
        assert_eq!(State::decode(0xFE), Some(State::ServerError));
    }

    #[test]
    fn a_cookie_is_36_letters_and_a_zero() {
        let cookie = cookie().unwrap();
        assert!(cookie[..36].iter().all(|c| matches!(c, b'a'..=b'z' | b'2'..=b'7')));
        assert_eq!(cookie[36], 0);
        assert_ne!(cookie, super::cookie().unwrap());
    }
}
