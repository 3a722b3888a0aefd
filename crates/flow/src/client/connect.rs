//! The client's connections.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::Parameters;
use landspeed_sys::clock;
use socket2::{Domain, Protocol, Socket, Type};

use crate::control::channel::{self, Key, Receiver, Role, Sender};
use crate::control::hello;
use crate::control::message::MAX_MESSAGE;
use crate::control::patient;
use crate::control::preface::{self, ANSWER_LEN, PROTOCOL_VERSION, Purpose, Status, Token};
use crate::end::{Connector, DataSocket, Job, Side, StreamPlan};
use crate::error::FlowError;
use crate::layout::{self, Link};
use crate::sockets;

/// How long the server may take to answer a preface.
const ANSWER: Duration = Duration::from_secs(10);

/// Opens the control connection; also returns its local address.
pub fn control(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    key: Option<&Key>,
    stop: &AtomicBool,
) -> Result<(Sender, Receiver, SocketAddr), FlowError> {
    let setup = |source| FlowError::Setup { what: "open the control connection".into(), source };
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP)).map_err(setup)?;
    sockets::connect(&socket, server, bind, stop)?;
    let mut stream: TcpStream = socket.into();
    let local = stream.local_addr().map_err(setup)?;
    introduce(&mut stream, server, Purpose::Control { keyed: key.is_some() }, stop)?;
    let (tx, rx) = channel::open(stream, Role::Client, key, MAX_MESSAGE, ANSWER)?;
    Ok((tx, rx, local))
}

/// Sends a preface and reads the answer.
fn introduce(
    stream: &mut TcpStream,
    server: SocketAddr,
    purpose: Purpose,
    stop: &AtomicBool,
) -> Result<(), FlowError> {
    let during = "while introducing a connection";
    let lost = |source| FlowError::PeerLost { during, source };
    stream.set_nodelay(true).map_err(lost)?;
    let deadline_ns = clock::monotonic_ns() + ANSWER.as_nanos() as u64;
    patient::write_all(stream, &preface::encode(purpose), deadline_ns).map_err(lost)?;
    let mut answer = [0; ANSWER_LEN];
    patient::read_exact(stream, &mut answer, deadline_ns, Some(stop)).map_err(|error| {
        FlowError::or_interrupted(
            stop,
            match error.kind() {
                io::ErrorKind::TimedOut => {
                    FlowError::Timeout { what: "the server's first answer", seconds: ANSWER.as_secs() }
                }
                // Whoever hangs up on a preface does not know it.
                _ => FlowError::NotLandspeed { addr: server },
            },
        )
    })?;
    let (theirs, status) = preface::decode_answer(&answer).ok_or(FlowError::NotLandspeed { addr: server })?;
    let refused = |code: &str, message: &str, advice: Option<&str>| FlowError::Refused {
        code: code.to_owned(),
        message: message.to_owned(),
        advice: advice.map(str::to_owned),
    };
    match status {
        Status::Welcome => Ok(()),
        Status::Version => Err(FlowError::Version { ours: PROTOCOL_VERSION, theirs }),
        Status::Busy => Err(refused("server-busy", "it is busy", Some("try again in a moment"))),
        Status::KeyRequired => Err(FlowError::KeyRequired),
        Status::KeyUnexpected => Err(FlowError::KeyUnexpected),
        Status::NotAllowed => Err(refused(
            "not-allowed",
            "this host's address is not in its --allow list",
            Some("ask its operator, or choose another source address with --bind"),
        )),
        Status::UnknownTest => Err(refused("unknown-test", "it no longer knows this test", Some("run it again"))),
    }
}

/// Opens the data sockets of a test.
pub fn data(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    parameters: &Parameters,
    token: Token,
    stop: &AtomicBool,
) -> Result<Vec<StreamPlan>, FlowError> {
    let specs = layout::streams(parameters)
        .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
    let open = |spec: &layout::StreamSpec| {
        let purpose = Purpose::Data { stream: spec.id, token };
        let socket = match spec.link {
            Link::Tcp => {
                let mut tcp = sockets::connect_tcp(server, bind, parameters, spec.client_job != Job::Receive, stop)?;
                let nodelay = parameters.nodelay || !spec.client_job.is_bulk();
                introduce(&mut tcp, server, purpose, stop)?;
                let _ = tcp.set_nodelay(nodelay);
                DataSocket::Tcp(tcp)
            }
            Link::Udp => DataSocket::Udp(introduced(server, bind, parameters, spec.id, token)?),
            Link::Connect => DataSocket::Connector(Connector { server, bind, preface: preface::encode(purpose) }),
        };
        let job = spec.job(Side::Client);
        Ok(StreamPlan::new(spec.id, spec.index, spec.direction, job, socket, token.datagram_tag(spec.id)))
    };
    // Each takes some round trips: all at once, so that many streams over a long path are ready together.
    std::thread::scope(|scope| {
        let opening: Vec<_> =
            specs.iter().map(|spec| std::thread::Builder::new().spawn_scoped(scope, move || open(spec))).collect();
        opening
            .into_iter()
            .map(|thread| {
                let what = || "start a thread for a data connection".to_owned();
                let thread = thread.map_err(|source| FlowError::Setup { what: what(), source })?;
                thread.join().unwrap_or_else(|_| {
                    Err(FlowError::Setup { what: what(), source: io::Error::other("it panicked") })
                })
            })
            .collect()
    })
}

/// A UDP flow whose address the server has accepted.
pub fn introduced(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    parameters: &Parameters,
    stream: u32,
    token: Token,
) -> Result<UdpSocket, FlowError> {
    let udp = sockets::connect_udp(server, bind, parameters)?;
    hello::introduce(&udp, stream, token)?;
    Ok(udp)
}
