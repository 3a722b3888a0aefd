//! Data connections of a client.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::control::deadline::{Deadline, timeout, timeout_ns};
use landspeed_flow::control::patient;
use landspeed_flow::end::{DataSocket, Job, Side, StreamPlan};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::StreamSpec;
use landspeed_flow::shared::Counters;
use landspeed_flow::sockets;
use landspeed_model::{Parameters, Protocol, Sample, TcpInfo};
use landspeed_sys::{clock, socket};

use super::{STEP_TIMEOUT, conversation};
use crate::wire::Cookie;

/// Timeout for the answer to a UDP hello, in addition to four round trips, and interval at which the hello is repeated,
/// nanoseconds.
const HELLO_TIMEOUT_NS: u64 = 10_000_000_000;
const HELLO_INTERVAL_NS: u64 = 500_000_000;
/// Time for opening TCP connections one after the other, nanoseconds. If it takes longer, each begins a fraction of the
/// RTT after the one before: the server identifies connections by their order of arrival, and flows may take paths
/// whose delays differ a little.
const SEQUENTIAL_NS: u64 = 1_000_000_000;
const RTT_PER_GAP: u64 = 20;

/// Opens the data connections in their order, those of each direction after the other's. `rtt_ns` is that of the control
/// connection.
pub fn open_streams(
    specs: &[StreamSpec],
    (server, rtt_ns): (SocketAddr, u64),
    bind: Option<SocketAddr>,
    p: &Parameters,
    local_port: Option<u16>,
    cookie: &Cookie,
    stop: &AtomicBool,
) -> Result<Vec<StreamPlan>, FlowError> {
    let open = |index: usize, spec: &StreamSpec| {
        let bind = sockets::data_address(bind, server, local_port, index);
        let socket = if p.protocol == Protocol::Udp {
            let udp = sockets::connect_udp(server, bind, p)?;
            hello(&udp, rtt_ns, stop)?;
            DataSocket::Udp(udp)
        } else {
            let mut tcp = sockets::connect_tcp(server, bind, p, spec.client_job == Job::Send, stop)?;
            patient::write_all(&mut tcp, cookie, &Deadline::after(timeout(STEP_TIMEOUT, rtt_ns)).with_stop(stop))
                .map_err(|source| FlowError::PeerLost { during: "opening a stream", source })?;
            DataSocket::Tcp(tcp)
        };
        Ok(StreamPlan::new(spec.id, spec.index, spec.direction, spec.job(Side::Client), socket, 0))
    };
    // UDP: an iperf3 server takes the next hello only after it has answered the one before.
    if p.protocol == Protocol::Udp || rtt_ns * (specs.len() as u64) < SEQUENTIAL_NS {
        return specs.iter().enumerate().map(|(index, spec)| open(index, spec)).collect();
    }
    let gap_ns = rtt_ns / RTT_PER_GAP;
    let mut streams = Vec::with_capacity(specs.len());
    for same_direction in specs.chunk_by(|a, b| a.direction == b.direction) {
        let first = streams.len();
        streams.extend(open_spaced(same_direction, gap_ns, |at, spec| open(first + at, spec))?);
    }
    Ok(streams)
}

/// Opens connections on threads, each `gap_ns` after the one before.
fn open_spaced(
    specs: &[StreamSpec],
    gap_ns: u64,
    open: impl Fn(usize, &StreamSpec) -> Result<StreamPlan, FlowError> + Sync,
) -> Result<Vec<StreamPlan>, FlowError> {
    let what = || "start a thread for a data connection".to_owned();
    let failed = |source| FlowError::Setup { what: what(), source };
    std::thread::scope(|scope| {
        let begun_ns = clock::monotonic_ns();
        let mut opening = Vec::with_capacity(specs.len());
        for (at, spec) in specs.iter().enumerate() {
            clock::sleep_until(begun_ns + at as u64 * gap_ns);
            let open = &open;
            opening.push(std::thread::Builder::new().spawn_scoped(scope, move || open(at, spec)).map_err(failed)?);
        }
        opening
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(failed(io::Error::other("it panicked")))))
            .collect()
    })
}

/// Opens a UDP stream: the server takes the sender of any datagram as its peer, and answers it.
fn hello(udp: &UdpSocket, rtt_ns: u64, stop: &AtomicBool) -> Result<(), FlowError> {
    const UDP_HELLO: &[u8; 4] = b"9876";
    const UDP_REPLIES: [[u8; 4]; 2] = [*b"6789", 987_654_321_u32.to_le_bytes()];
    let failed = |source| FlowError::PeerLost { during: "opening a UDP stream", source };
    let timeout_ns = timeout_ns(HELLO_TIMEOUT_NS, rtt_ns);
    let deadline_ns = clock::monotonic_ns() + timeout_ns;
    let mut again_ns = 0;
    let mut buffer = [0; 16];
    loop {
        let now = clock::monotonic_ns();
        if now >= deadline_ns || stop.load(Ordering::Relaxed) {
            let timeout =
                FlowError::Timeout { what: "the answer to a UDP hello", seconds: timeout_ns / 1_000_000_000 };
            return Err(FlowError::or_interrupted(stop, timeout));
        }
        if now >= again_ns {
            // If the stream is already open, the server ignores the repeated hello: it is too short to be counted.
            udp.send(UDP_HELLO).map_err(failed)?;
            again_ns = now + HELLO_INTERVAL_NS;
        }
        if socket::wait(udp.as_fd(), socket::Readiness::Readable, 50).map_err(failed)? {
            match udp.recv(&mut buffer) {
                Ok(4) if UDP_REPLIES.iter().any(|answer| buffer.starts_with(answer)) => return Ok(()),
                Ok(_) => {}
                // The port is not open yet: iperf3 opens it when it requests the streams.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    again_ns = now + HELLO_INTERVAL_NS / 10;
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// Duplicates the descriptors of the connections. The threads close theirs when they finish, but the server
/// must see the connections open until it has received the end of the test.
pub fn hold(streams: &[StreamPlan]) -> Result<Vec<DuplicatedStream>, FlowError> {
    streams
        .iter()
        .map(|stream| {
            let fd = stream.socket.fd().map(|fd| fd.try_clone_to_owned()).transpose();
            let fd = fd.map_err(|source| FlowError::Setup { what: "hold a data connection".into(), source })?;
            Ok(DuplicatedStream { fd, stream: stream.id, sends: stream.job.sends(), tcp: stream.socket.is_tcp() })
        })
        .collect()
}

/// A duplicate of a data connection's descriptor.
pub struct DuplicatedStream {
    fd: Option<OwnedFd>,
    /// Id of the stream.
    pub stream: u32,
    /// Whether the client sends on it.
    pub sends: bool,
    tcp: bool,
}

impl DuplicatedStream {
    /// Receive window offered by the peer (`snd_wnd`), bytes; TCP senders only, otherwise 0. It grows while the
    /// server reads.
    pub fn window(&self) -> u64 {
        self.tcp_info().filter(|_| self.sends).and_then(|info| info.snd_wnd_bytes).map_or(0, u64::from)
    }

    /// Returns `tcp_info` of the connection.
    fn tcp_info(&self) -> Option<TcpInfo> {
        let fd = self.fd.as_ref().filter(|_| self.tcp).map(AsFd::as_fd);
        fd.and_then(|fd| socket::tcp_info(fd).ok()).map(|raw| TcpInfo::decode(raw.as_bytes()))
    }

    /// Time without an ACK although data is outstanding, nanoseconds; 0 if none is, and for UDP.
    pub fn silent_ns(&self) -> u64 {
        let fd = self.fd.as_ref().filter(|_| self.tcp).map(AsFd::as_fd);
        fd.map_or(0, |fd| conversation::silent_ns(fd, 0))
    }

    /// Returns a sample of the stream's counters.
    pub fn reading(&self, counters: &Counters, t0_ns: u64) -> Sample {
        Sample {
            t_ns: clock::monotonic_ns().saturating_sub(t0_ns),
            bytes: counters.bytes(),
            packets: (!self.tcp).then(|| counters.packets()),
            tcp: self.tcp_info().map(Box::new),
            ..Sample::default()
        }
    }

    /// Bytes not acknowledged (TCP), or not yet sent by the device (UDP).
    pub fn queued(&self) -> u64 {
        let fd = self.fd.as_ref().filter(|_| self.sends).map(AsFd::as_fd);
        fd.and_then(|fd: BorrowedFd<'_>| socket::send_queue(fd).ok()).map_or(0, u64::from)
    }
}
