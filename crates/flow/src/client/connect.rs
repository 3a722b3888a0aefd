//! Control and data connections of the client.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::{Family, Parameters};
use serde::Serialize;

use super::target::Target;
use crate::control::channel::{self, Key, Receiver, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::{Deadline, timeout};
use crate::control::entry;
use crate::control::message::MAX_MESSAGE;
use crate::control::preface::Purpose;
use crate::control::{hello, keyed_hello};
use crate::end::{Connector, DataSocket, Job, Side, StreamPlan};
use crate::error::FlowError;
use crate::layout::{self, Link};
use crate::sockets;

/// Timeout for each step of the server before the start, in addition to four round trips once the RTT is known.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for the server's answer to a preface.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Data sockets that are opened at the same time: the server's queue of new connections holds them all.
const MAX_OPENING: usize = 256;

/// Opens a control connection to the first address of a server that answers, and sends the client's first message; also
/// returns its local address.
pub fn control_of<T: Serialize>(
    target: &Target,
    family: Family,
    key: Option<&Key>,
    first: &T,
    stop: &AtomicBool,
) -> Result<(Sender, Receiver, SocketAddr), FlowError> {
    let servers: Vec<_> = target.addresses(family, stop)?.into_iter().map(|server| (server, None)).collect();
    let (stream, server) = sockets::connect_first(&servers, stop)?;
    control(stream, server, key, first, stop)
}

/// Opens the control protocol on a connection and sends the client's first message, in one round trip; two with a key.
/// Also returns the connection's local address.
pub fn control<T: Serialize>(
    mut stream: TcpStream,
    server: SocketAddr,
    key: Option<&Key>,
    first: &T,
    stop: &AtomicBool,
) -> Result<(Sender, Receiver, SocketAddr), FlowError> {
    let setup = |source| FlowError::Setup { what: "open the control connection".into(), source };
    let local = stream.local_addr().map_err(setup)?;
    let deadline = Deadline::after(timeout(ANSWER_TIMEOUT, channel::min_rtt_ns(stream.as_fd()))).with_stop(stop);
    entry::send_preface(&mut stream, Purpose::Control { keyed: key.is_some() }, &deadline)?;
    let answer = |stream: &mut TcpStream| entry::read_answer(stream, server, &deadline);
    let (tx, rx) = channel::open_client(stream, key, first, MAX_MESSAGE, &deadline, answer)?;
    Ok((tx, rx, local))
}

/// Opens the data sockets of a test with a server at this RTT, nanoseconds, from a local address and port.
pub fn data(
    (server, rtt_ns): (SocketAddr, u64),
    (bind, first_port): (Option<SocketAddr>, Option<u16>),
    parameters: &Parameters,
    credentials: Credentials,
    stop: &AtomicBool,
) -> Result<Vec<StreamPlan>, FlowError> {
    let specs = layout::streams(parameters)
        .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
    let open = |index: usize, spec: &layout::StreamSpec| {
        let bind = sockets::data_address(bind, server, first_port, index);
        let parameters = &*layout::of_stream(parameters, spec);
        let socket = match spec.link {
            Link::Tcp => {
                let mut tcp = sockets::connect_tcp(server, bind, parameters, spec.client_job != Job::Receive, stop)?;
                let nodelay = parameters.nodelay || !spec.client_job.is_bulk();
                entry::open_data_connection(
                    &mut tcp,
                    server,
                    spec.id,
                    &credentials,
                    &Deadline::after(timeout(ANSWER_TIMEOUT, rtt_ns)).with_stop(stop),
                )?;
                let _ = tcp.set_nodelay(nodelay);
                DataSocket::Tcp(tcp)
            }
            Link::Udp => {
                DataSocket::Udp(open_udp_flow((server, rtt_ns), bind, parameters, spec.id, &credentials, stop)?)
            }
            Link::Connect => DataSocket::Connector(Connector { server, bind, stream: spec.id, credentials }),
        };
        let job = spec.job(Side::Client);
        let tag = credentials.datagram_tag(spec.id);
        Ok(StreamPlan::new(spec.id, spec.index, spec.direction, job, socket, tag))
    };
    if specs.len() > MAX_OPENING {
        landspeed_sys::process::raise_open_files_limit();
    }
    // Each connection takes several round trips; open many in parallel so that streams over a long path are ready
    // together.
    let mut streams = Vec::with_capacity(specs.len());
    for together in specs.chunks(MAX_OPENING) {
        let first = streams.len();
        streams.extend(open_together(together, |at, spec| open(first + at, spec))?);
    }
    Ok(streams)
}

fn open_together(
    specs: &[layout::StreamSpec],
    open: impl Fn(usize, &layout::StreamSpec) -> Result<StreamPlan, FlowError> + Sync,
) -> Result<Vec<StreamPlan>, FlowError> {
    std::thread::scope(|scope| {
        let open = &open;
        let spawn = |(at, spec)| std::thread::Builder::new().spawn_scoped(scope, move || open(at, spec));
        let opening: Vec<_> = specs.iter().enumerate().map(spawn).collect();
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

/// Opens a UDP flow whose address the server, at this RTT in nanoseconds, has validated.
pub fn open_udp_flow(
    (server, rtt_ns): (SocketAddr, u64),
    bind: Option<SocketAddr>,
    parameters: &Parameters,
    stream: u32,
    credentials: &Credentials,
    stop: &AtomicBool,
) -> Result<UdpSocket, FlowError> {
    let udp = sockets::connect_udp(server, bind, parameters)?;
    if credentials.is_keyed() {
        keyed_hello::run_handshake(&udp, stream, credentials, rtt_ns, stop)?;
    } else {
        hello::run_handshake(&udp, stream, credentials.token(), rtt_ns, stop)?;
    }
    Ok(udp)
}
