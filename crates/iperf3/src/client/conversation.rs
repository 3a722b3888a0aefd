//! The control connection of a client.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::DOWN_TIMEOUT_NS;
use landspeed_flow::control::channel::min_rtt_ns;
use landspeed_flow::control::deadline::{Deadline, timeout, timeout_ns};
use landspeed_flow::control::patient;
use landspeed_flow::error::FlowError;
use landspeed_flow::sockets;
use landspeed_model::TcpInfo;
use landspeed_sys::{clock, socket};
use serde_json::Value;

use super::STEP_TIMEOUT;
use crate::wire::{ControlConnection, Cookie, State, server_error};

/// Time left after an interrupt for the current step and for the message that the client terminates.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(300);

/// Returns the time without an ACK although data is outstanding, from `since_ns` (monotonic) at the earliest,
/// nanoseconds; 0 if nothing is outstanding.
pub fn silent_ns(fd: BorrowedFd<'_>, since_ns: u64) -> u64 {
    let info = socket::tcp_info(fd).ok().map(|raw| TcpInfo::decode(raw.as_bytes())).filter(|info| info.unacked > 0);
    let waited_ns = clock::monotonic_ns().saturating_sub(since_ns);
    info.map_or(0, |info| waited_ns.min(u64::from(info.last_ack_recv_ms) * 1_000_000))
}

/// Gives a test up that has ended, if its path is down: waiting for a drain and results is in vain.
pub fn check_path(silent_ns: u64, rtt_ns: u64) -> Result<(), FlowError> {
    if silent_ns < timeout_ns(DOWN_TIMEOUT_NS, rtt_ns) {
        return Ok(());
    }
    Err(FlowError::PathDown { seconds: silent_ns / 1_000_000_000 })
}

/// The control connection of a client.
pub struct Conversation<'a> {
    /// Connection that sends and receives states and JSON texts.
    pub line: ControlConnection,
    /// Address of the server.
    pub server: SocketAddr,
    /// Set by an interrupt.
    pub interrupted: &'a AtomicBool,
}

impl<'a> Conversation<'a> {
    /// Connects to the first address that answers, from its local address, and sends the cookie of the test.
    pub fn open(
        candidates: &[(SocketAddr, Option<SocketAddr>)],
        cookie: &Cookie,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, FlowError> {
        let setup = |source| FlowError::Setup { what: "open the control connection".into(), source };
        let (mut stream, server) = sockets::connect_first(candidates, interrupted)?;
        stream.set_nodelay(true).map_err(setup)?;
        patient::write_all(&mut stream, cookie, &Deadline::after(STEP_TIMEOUT).with_stop(interrupted))
            .map_err(|source| FlowError::PeerLost { during: "introducing the connection", source })?;
        let line = ControlConnection::new(stream).map_err(setup)?;
        Ok(Self { line, server, interrupted })
    }

    /// Minimum RTT of the connection, nanoseconds; 0 if unknown.
    pub fn round_trip_ns(&self) -> u64 {
        min_rtt_ns(self.line.stream().as_fd())
    }

    /// Deadline of the next step. An interrupt shortens it to 300 ms.
    pub fn step(&self) -> Deadline<'a> {
        Deadline::after(timeout(STEP_TIMEOUT, self.round_trip_ns())).with_stop_grace(self.interrupted, CANCEL_TIMEOUT)
    }

    /// Sends a state.
    pub fn send(&mut self, state: State, during: &'static str) -> Result<(), FlowError> {
        self.line.send(state, &self.step()).map_err(|source| FlowError::PeerLost { during, source })
    }

    /// Sends a JSON text.
    pub fn send_json(&mut self, text: &Value, during: &'static str) -> Result<(), FlowError> {
        let step = self.step();
        self.line.send_json(text, &step).map_err(|source| FlowError::PeerLost { during, source })
    }

    /// Waits for a state; any other one is an error.
    pub fn expect(&mut self, wanted: State, during: &'static str) -> Result<(), FlowError> {
        let step = self.step();
        let byte = self.line.receive(&step);
        self.interpret(byte, &step, wanted, during)
    }

    /// As [`Self::expect`], after a message was sent; gives up when the path is down.
    pub fn expect_answer(&mut self, wanted: State, during: &'static str) -> Result<(), FlowError> {
        let (step, asked_ns) = (self.step(), clock::monotonic_ns());
        let byte = loop {
            let slice_ms = match step.slice() {
                Ok(slice) => slice.as_millis() as u32,
                Err(missed) => break Err(missed),
            };
            match self.line.poll(slice_ms) {
                Ok(Some(byte)) => break Ok(byte),
                Ok(None) => check_path(silent_ns(self.line.stream().as_fd(), asked_ns), self.round_trip_ns())?,
                Err(lost) => break Err(lost),
            }
        };
        self.interpret(byte, &step, wanted, during)
    }

    /// Returns the error of anything but the state waited for.
    fn interpret(
        &mut self,
        byte: io::Result<u8>,
        step: &Deadline<'_>,
        wanted: State,
        during: &'static str,
    ) -> Result<(), FlowError> {
        let byte = byte.map_err(|source| {
            let error = match source.kind() {
                io::ErrorKind::TimedOut => step.missed("the server's next message"),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset if wanted == State::CreateStreams => {
                    FlowError::Refused {
                        code: "iperf3-error".to_owned(),
                        message: "it hung up when it heard what is wanted".to_owned(),
                        advice: Some(
                            "a current iperf3 does so when it does not know the user or the password (authorization), \
                             and at options it does not have; its own log says which"
                                .to_owned(),
                        ),
                    }
                }
                _ => FlowError::PeerLost { during, source },
            };
            FlowError::or_interrupted(self.interrupted, error)
        })?;
        match State::decode(byte) {
            Some(state) if state == wanted => Ok(()),
            _ if wanted == State::ParamExchange && State::decode(byte) != Some(State::AccessDenied) => {
                Err(self.unexpected_state_error(byte, during).only_if_known().unwrap_or(not_iperf3(self.server)))
            }
            _ => Err(self.unexpected_state_error(byte, during).error),
        }
    }

    /// The error for an unexpected state byte.
    pub fn unexpected_state_error(&mut self, byte: u8, during: &'static str) -> InterpretedError {
        let refused = |code: &str, message: String, advice: Option<&str>| FlowError::Refused {
            code: code.to_owned(),
            message,
            advice: advice.map(str::to_owned),
        };
        let known = |error| InterpretedError { error, known: true };
        match State::decode(byte) {
            Some(State::AccessDenied) => known(refused(
                "server-busy",
                "it is busy with another test (an iperf3 server runs one at a time)".to_owned(),
                Some("try again in a moment; `landspeed serve` there runs many"),
            )),
            Some(State::ServerTerminate) => known(refused("server-stopped", "it was stopped".to_owned(), None)),
            Some(State::ServerError) => {
                let (number, errno) =
                    self.line.receive_error(&Deadline::after(Duration::from_secs(1)).with_stop(self.interrupted));
                let system =
                    if errno > 0 { format!(": {}", io::Error::from_raw_os_error(errno)) } else { String::new() };
                let advice = (number == 142).then_some(
                    "give --username, --rsa-public-key-path and the password in IPERF3_PASSWORD; an iperf3 before 3.17 \
                     needs --use-pkcs1-padding",
                );
                known(refused("iperf3-error", format!("{}{system}", server_error(number)), advice))
            }
            Some(state) => {
                let message = format!("the server said {state:?} out of turn");
                InterpretedError { error: FlowError::Protocol { during, message }, known: false }
            }
            None => {
                let message = format!("the server sent {}, which is not a state of iperf3's protocol", byte as i8);
                InterpretedError { error: FlowError::Protocol { during, message }, known: false }
            }
        }
    }
}

/// Meaning of an unexpected state byte, and whether it is one of iperf3's refusals.
pub struct InterpretedError {
    /// The corresponding error.
    pub error: FlowError,
    known: bool,
}

impl InterpretedError {
    fn only_if_known(self) -> Option<FlowError> {
        self.known.then_some(self.error)
    }
}

/// Error for a server that does not speak iperf3's protocol.
pub fn not_iperf3(addr: SocketAddr) -> FlowError {
    FlowError::Other {
        code: "not-iperf3",
        message: format!("{addr} is not an iperf3 server"),
        advice: "check the port: another service listens there (iperf3's default is 5201)",
    }
}
