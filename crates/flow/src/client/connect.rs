//! Control and data connections of the client.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::Parameters;
use socket2::{Domain, Protocol, Socket, Type};

use crate::control::channel::{self, Key, Receiver, Role, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::Deadline;
use crate::control::entry;
use crate::control::message::MAX_MESSAGE;
use crate::control::preface::Purpose;
use crate::control::{hello, keyed_hello};
use crate::end::{Connector, DataSocket, Job, Side, StreamPlan};
use crate::error::FlowError;
use crate::layout::{self, Link};
use crate::sockets;

/// Timeout for the server's answer to a preface.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

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
    let deadline = Deadline::after(ANSWER_TIMEOUT).with_stop(stop);
    entry::run_handshake(&mut stream, server, Purpose::Control { keyed: key.is_some() }, &deadline)?;
    let (tx, rx) = channel::open(stream, Role::Client, key, MAX_MESSAGE, ANSWER_TIMEOUT, stop)?;
    Ok((tx, rx, local))
}

/// Opens the data sockets of a test.
pub fn data(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    parameters: &Parameters,
    credentials: Credentials,
    stop: &AtomicBool,
) -> Result<Vec<StreamPlan>, FlowError> {
    let specs = layout::streams(parameters)
        .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
    let open = |spec: &layout::StreamSpec| {
        let socket = match spec.link {
            Link::Tcp => {
                let mut tcp = sockets::connect_tcp(server, bind, parameters, spec.client_job != Job::Receive, stop)?;
                let nodelay = parameters.nodelay || !spec.client_job.is_bulk();
                entry::open_data_connection(
                    &mut tcp,
                    server,
                    spec.id,
                    &credentials,
                    &Deadline::after(ANSWER_TIMEOUT).with_stop(stop),
                )?;
                let _ = tcp.set_nodelay(nodelay);
                DataSocket::Tcp(tcp)
            }
            Link::Udp => DataSocket::Udp(open_udp_flow(server, bind, parameters, spec.id, &credentials, stop)?),
            Link::Connect => DataSocket::Connector(Connector { server, bind, stream: spec.id, credentials }),
        };
        let job = spec.job(Side::Client);
        let tag = credentials.datagram_tag(spec.id);
        Ok(StreamPlan::new(spec.id, spec.index, spec.direction, job, socket, tag))
    };
    // Each connection takes several round trips; open all in parallel so that many streams over a long path are
    // ready together.
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

/// Opens a UDP flow whose address the server has validated.
pub fn open_udp_flow(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    parameters: &Parameters,
    stream: u32,
    credentials: &Credentials,
    stop: &AtomicBool,
) -> Result<UdpSocket, FlowError> {
    let udp = sockets::connect_udp(server, bind, parameters)?;
    if credentials.is_keyed() {
        keyed_hello::run_handshake(&udp, stream, credentials, stop)?;
    } else {
        hello::run_handshake(&udp, stream, credentials.token(), stop)?;
    }
    Ok(udp)
}
