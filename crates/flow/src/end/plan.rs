//! Plan of one side of a test: its streams with open sockets, and its parameters.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, mpsc};

use landspeed_model::{Direction, Parameters};

use super::connector::Connector;
use super::slots::RrSlot;
use crate::dialect::Dialect;
use crate::shared::Counters;
use crate::udp::Finish;

/// Side of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The host that requested the test.
    Client,
    /// The host that accepted the test.
    Server,
}

/// Everything one side needs to run its part of a test.
pub struct EndPlan {
    /// Role of this host in the test.
    pub side: Side,
    /// Framing and termination of the data.
    pub dialect: Dialect,
    /// Agreed parameters.
    pub parameters: Parameters,
    /// Agreed start time on this host's monotonic clock, nanoseconds.
    pub t0_ns: u64,
    /// Streams with their open sockets.
    pub streams: Vec<StreamPlan>,
    /// Interface whose counters are read.
    pub interface: Option<String>,
    /// Time at which a test without a time limit is stopped, nanoseconds after the start.
    pub limit_ns: u64,
    /// RTT of the control connection, nanoseconds; deadlines follow it.
    pub rtt_ns: u64,
    /// Read rate limit of each TCP stream, bits/s, independent of the sender.
    pub receive_cap_bps: Option<u64>,
}

/// Socket of a stream.
#[derive(Debug)]
pub enum DataSocket {
    /// TCP or MPTCP connection after the preface.
    Tcp(TcpStream),
    /// Connected UDP socket whose peer's address is validated.
    Udp(UdpSocket),
    /// Connect/request/response on the client: a new connection for each transaction.
    Connector(Connector),
    /// Connect/request/response on the server: accepts connections as they arrive.
    Acceptor(Mutex<mpsc::Receiver<TcpStream>>),
}

impl DataSocket {
    /// Returns the socket's file descriptor; `None` if there is no fixed socket.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            Self::Udp(socket) => Some(socket.as_fd()),
            Self::Connector(_) | Self::Acceptor(_) => None,
        }
    }

    /// Returns the local and the peer address.
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        match self {
            Self::Tcp(stream) => (stream.local_addr().ok(), stream.peer_addr().ok()),
            Self::Udp(socket) => (socket.local_addr().ok(), socket.peer_addr().ok()),
            Self::Connector(_) | Self::Acceptor(_) => (None, None),
        }
    }

    /// Whether it is a TCP connection.
    pub fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

/// Task of a stream's thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// Bulk sender.
    Send,
    /// Bulk receiver.
    Receive,
    /// Requester of one request/response measurement.
    Request(RrSlot),
    /// Responder of one request/response measurement.
    Respond(RrSlot),
    /// Latency probe next to bulk streams.
    Probe(RrSlot),
    /// Responder of the latency probe.
    Echo(RrSlot),
}

impl Job {
    /// Whether it is part of the bulk transfer (and so of the accounting).
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::Send | Self::Receive)
    }

    /// Whether it is a bulk sender.
    pub fn sends(self) -> bool {
        self == Self::Send
    }
}

/// A stream with its open socket.
#[derive(Debug)]
pub struct StreamPlan {
    /// Stream number within the test.
    pub id: u32,
    /// Position among the streams of its direction; determines its core.
    pub index: u32,
    /// Direction of its data.
    pub direction: Direction,
    /// Task of its thread.
    pub job: Job,
    /// Open socket.
    pub socket: DataSocket,
    /// Tag in its datagrams.
    pub tag: u32,
    /// Counters shared with the sampler.
    pub counters: Arc<Counters>,
    /// UDP: signals to the receiver that the sender is done.
    pub finish: Arc<Finish>,
    /// TCP: bytes acknowledged before the test (the preface), to be subtracted.
    pub acked_before: u64,
    /// UDP receiver: datagrams its socket had dropped before the test; `None` if unknown.
    pub drops_before: Option<u32>,
    /// Core of its thread, if this side chooses it (`--cpus auto`).
    pub core: Option<u32>,
}

impl StreamPlan {
    /// Creates a stream that has not started.
    pub fn new(id: u32, index: u32, direction: Direction, job: Job, socket: DataSocket, tag: u32) -> Self {
        let (counters, finish) = Default::default();
        Self {
            id,
            index,
            direction,
            job,
            socket,
            tag,
            counters,
            finish,
            acked_before: 0,
            drops_before: None,
            core: None,
        }
    }
}
