//! Opening of a client's TCP connections: preface, the server's answer and, on data connections of a test with
//! a key, the proofs of both sides.

use std::io;
use std::net::{SocketAddr, TcpStream};

use super::credentials::{CHALLENGE_LEN, Credentials, Step, decode_challenge};
use super::deadline::Deadline;
use super::patient;
use super::preface::{self, ANSWER_LEN, Nonce, PROTOCOL_VERSION, Purpose, Status};
use crate::error::FlowError;

/// First byte of an iperf3 server, which takes the preface for a cookie: `PARAM_EXCHANGE`, or `ACCESS_DENIED` if it is busy.
const IPERF3_ANSWERS: [u8; 2] = [9, 0xff];

/// Opens a data connection: sends the preface and, with a key, exchanges proofs.
///
/// # Errors
/// [`FlowError::UnauthenticatedServer`] when the test has a key and the peer does not prove that it is the test's
/// server.
pub fn open_data_connection(
    stream: &mut TcpStream,
    server: SocketAddr,
    number: u32,
    credentials: &Credentials,
    deadline: &Deadline<'_>,
) -> Result<(), FlowError> {
    if !credentials.is_keyed() {
        return run_handshake(stream, server, Purpose::Data { stream: number, token: credentials.token() }, deadline);
    }
    let during = "while proving a data connection";
    let lost = |source| FlowError::PeerLost { during, source };
    let nonce: Nonce = landspeed_sys::random::bytes()
        .map_err(|source| FlowError::Setup { what: "read random bytes".into(), source })?;
    run_handshake(stream, server, Purpose::KeyedData { stream: number, test: credentials.id(), nonce }, deadline)?;
    let mut challenge = [0; CHALLENGE_LEN];
    patient::read_exact(stream, &mut challenge, deadline).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => deadline.missed("the server's proof on a data connection"),
        io::ErrorKind::UnexpectedEof => FlowError::UnauthenticatedServer { addr: server },
        _ => lost(error),
    })?;
    let secret = credentials.stream(number);
    let (servers, proof) = decode_challenge(&challenge);
    if !secret.verifies(Step::TcpServer, &nonce, &servers, &proof) {
        return Err(FlowError::UnauthenticatedServer { addr: server });
    }
    let proof = secret.prove(Step::TcpClient, &nonce, &servers);
    patient::write_all(stream, &proof, deadline).map_err(|source| deadline.write_error(during, source))
}

/// Sends a preface and reads the server's answer.
fn run_handshake(
    stream: &mut TcpStream,
    server: SocketAddr,
    purpose: Purpose,
    deadline: &Deadline<'_>,
) -> Result<(), FlowError> {
    send_preface(stream, purpose, deadline)?;
    read_answer(stream, server, deadline)
}

/// Sends a preface.
pub fn send_preface(stream: &mut TcpStream, purpose: Purpose, deadline: &Deadline<'_>) -> Result<(), FlowError> {
    let during = "while introducing a connection";
    stream.set_nodelay(true).map_err(|source| FlowError::PeerLost { during, source })?;
    patient::write_all(stream, &preface::encode(purpose), deadline)
        .map_err(|source| deadline.write_error(during, source))
}

/// Reads the server's answer to a preface.
pub fn read_answer(stream: &mut TcpStream, server: SocketAddr, deadline: &Deadline<'_>) -> Result<(), FlowError> {
    let mut answer = [0; ANSWER_LEN];
    let read = patient::read_exact(stream, &mut answer, deadline);
    let other = || FlowError::NotLandspeed { addr: server, iperf3: IPERF3_ANSWERS.contains(&answer[0]) };
    match read.map_err(|error| error.kind()) {
        Ok(()) => {}
        Err(io::ErrorKind::TimedOut) if !IPERF3_ANSWERS.contains(&answer[0]) => {
            return Err(deadline.missed("the server's first answer"));
        }
        // A peer that closes after the preface does not know the protocol.
        Err(_) => return Err(other()),
    }
    let (theirs, status) = preface::decode_answer(&answer).ok_or_else(other)?;
    check_status(status, theirs, stream)
}

/// Maps the server's status to a result.
fn check_status(status: Status, theirs: u16, stream: &TcpStream) -> Result<(), FlowError> {
    let refused = |code: &str, message: &str, advice: Option<&str>| FlowError::Refused {
        code: code.to_owned(),
        message: message.to_owned(),
        advice: advice.map(str::to_owned),
    };
    match status {
        Status::Welcome => Ok(()),
        Status::Version => Err(FlowError::Version { ours: PROTOCOL_VERSION, theirs }),
        Status::Busy => Err(FlowError::busy()),
        Status::KeyRequired => Err(FlowError::KeyRequired),
        Status::KeyUnexpected => Err(FlowError::KeyUnexpected),
        Status::NotAllowed => Err(refused(
            "not-allowed",
            "this host's address is not in its --allow list",
            Some("ask its operator, or choose another source address with --bind"),
        )),
        Status::UnknownTest => Err(refused(
            "unknown-test",
            "it does not know the test of a data connection",
            Some("run it again; with a key, both ends need the same version of landspeed"),
        )),
        Status::WrongAddress => {
            let from = stream.local_addr().map_or_else(|_| "here".to_owned(), |addr| addr.ip().to_string());
            Err(refused(
                "wrong-address",
                &format!("a data connection from {from}: not the address of the control connection"),
                Some(
                    "choose one source address with --bind; behind a NAT with several addresses, use a key, or start \
                     the server with --data-from-anywhere",
                ),
            ))
        }
    }
}
