//! The data connections of a client.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::address;
use landspeed_flow::control::deadline::Deadline;
use landspeed_flow::control::patient;
use landspeed_flow::end::{DataSocket, Job, Side, StreamPlan};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::StreamSpec;
use landspeed_flow::shared::Counters;
use landspeed_flow::sockets;
use landspeed_model::{Parameters, Protocol, Sample, TcpInfo};
use landspeed_sys::{clock, socket};

use super::STEP;
use crate::Extras;
use crate::wire::Cookie;

/// How long the server may take to answer a UDP hello, and after how long it is said again, nanoseconds.
const HELLO_NS: u64 = 10_000_000_000;
const HELLO_AGAIN_NS: u64 = 500_000_000;

/// Opens the data connections one after the other: the server identifies them by their order of arrival.
pub fn open_streams(
    specs: &[StreamSpec],
    server: SocketAddr,
    bind: Option<SocketAddr>,
    p: &Parameters,
    extras: &Extras,
    cookie: &Cookie,
    stop: &AtomicBool,
) -> Result<Vec<StreamPlan>, FlowError> {
    let open = |(index, spec): (usize, &StreamSpec)| {
        let bind = match extras.local_port {
            None => bind,
            Some(first) => {
                let any = SocketAddr::new(address::any_like(server), 0);
                let mut local = bind.unwrap_or(any);
                local.set_port(first.wrapping_add(index as u16));
                Some(local)
            }
        };
        let socket = if p.protocol == Protocol::Udp {
            let udp = sockets::connect_udp(server, bind, p)?;
            hello(&udp, stop)?;
            DataSocket::Udp(udp)
        } else {
            let mut tcp = sockets::connect_tcp(server, bind, p, spec.client_job == Job::Send, stop)?;
            patient::write_all(&mut tcp, cookie, &Deadline::after(STEP).or_stop(stop))
                .map_err(|source| FlowError::PeerLost { during: "opening a stream", source })?;
            DataSocket::Tcp(tcp)
        };
        Ok(StreamPlan::new(spec.id, spec.index, spec.direction, spec.job(Side::Client), socket, 0))
    };
    specs.iter().enumerate().map(open).collect()
}

/// Introduces a UDP stream: the server takes the sender of any datagram for its peer, and answers.
fn hello(udp: &UdpSocket, stop: &AtomicBool) -> Result<(), FlowError> {
    const HELLO: &[u8; 4] = b"9876";
    const ANSWERS: [[u8; 4]; 2] = [*b"6789", 987_654_321_u32.to_le_bytes()];
    let failed = |source| FlowError::PeerLost { during: "opening a UDP stream", source };
    let deadline_ns = clock::monotonic_ns() + HELLO_NS;
    let mut again_ns = 0;
    let mut buffer = [0; 16];
    loop {
        let now = clock::monotonic_ns();
        if now >= deadline_ns || stop.load(Ordering::Relaxed) {
            let timeout = FlowError::Timeout { what: "the answer to a UDP hello", seconds: HELLO_NS / 1_000_000_000 };
            return Err(FlowError::or_interrupted(stop, timeout));
        }
        if now >= again_ns {
            // A second hello of a stream the server has is a datagram too short to be counted.
            udp.send(HELLO).map_err(failed)?;
            again_ns = now + HELLO_AGAIN_NS;
        }
        if socket::wait(udp.as_fd(), socket::Readiness::Readable, 50).map_err(failed)? {
            match udp.recv(&mut buffer) {
                Ok(4) if ANSWERS.iter().any(|answer| buffer.starts_with(answer)) => return Ok(()),
                Ok(_) => {}
                // The port was closed a moment ago: iperf3 opens it when it asks for streams.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    again_ns = now + HELLO_AGAIN_NS / 10;
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// A second handle on each sending connection: the threads drop theirs when they are done, and the server must see the
/// connections open until it knows of the end.
pub fn hold(streams: &[StreamPlan]) -> Result<Vec<Held>, FlowError> {
    streams
        .iter()
        .map(|stream| {
            let fd = stream.socket.fd().map(|fd| fd.try_clone_to_owned()).transpose();
            let fd = fd.map_err(|source| FlowError::Setup { what: "hold a data connection".into(), source })?;
            Ok(Held { fd, stream: stream.id, sends: stream.job.sends(), tcp: stream.socket.is_tcp() })
        })
        .collect()
}

/// A connection held open.
pub struct Held {
    fd: Option<OwnedFd>,
    /// Number of its stream.
    pub stream: u32,
    /// Whether the client sends on it.
    pub sends: bool,
    tcp: bool,
}

impl Held {
    /// What the peer's socket says it can still take, bytes (TCP). It grows while its application reads what has come.
    pub fn window(&self) -> u64 {
        self.tcp_info().filter(|_| self.sends).and_then(|info| info.snd_wnd_bytes).map_or(0, u64::from)
    }

    /// What the kernel says of the connection.
    fn tcp_info(&self) -> Option<TcpInfo> {
        let fd = self.fd.as_ref().filter(|_| self.tcp).map(AsFd::as_fd);
        fd.and_then(|fd| socket::tcp_info(fd).ok()).map(|raw| TcpInfo::decode(raw.as_bytes()))
    }

    /// The stream as it is now.
    pub fn reading(&self, counters: &Counters, t0_ns: u64) -> Sample {
        Sample {
            t_ns: clock::monotonic_ns().saturating_sub(t0_ns),
            bytes: counters.bytes(),
            packets: (!self.tcp).then(|| counters.packets()),
            tcp: self.tcp_info().map(Box::new),
            ..Sample::default()
        }
    }

    /// Bytes that are not acknowledged, or (UDP) not yet handed to the device.
    pub fn queued(&self) -> u64 {
        let fd = self.fd.as_ref().filter(|_| self.sends).map(AsFd::as_fd);
        fd.and_then(|fd: BorrowedFd<'_>| socket::send_queue(fd).ok()).map_or(0, u64::from)
    }
}
