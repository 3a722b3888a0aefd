//! What one end of a test is to do: its streams with their open sockets, and the rules they follow.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, mpsc};

use landspeed_model::{Direction, Parameters};

use super::connector::Connector;
use super::slots::RrSlot;
use crate::dialect::Dialect;
use crate::shared::Counters;
use crate::udp::Finish;

/// Which end of the control connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that asked for the test.
    Client,
    /// The one that answered.
    Server,
}

/// Everything one end needs to run its part.
pub struct EndPlan {
    /// Which end.
    pub side: Side,
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// What was agreed.
    pub parameters: Parameters,
    /// The agreed start on this host's monotonic clock, nanoseconds.
    pub t0_ns: u64,
    /// Streams with their open sockets.
    pub streams: Vec<StreamPlan>,
    /// Interface whose counters to read.
    pub interface: Option<String>,
    /// No test lasts longer than this, nanoseconds after the start, whatever bounds it.
    pub limit_ns: u64,
    /// Read each TCP stream no faster than this, bits/s, whatever its sender does.
    pub receive_cap_bps: Option<u64>,
}

/// The socket of a stream.
#[derive(Debug)]
pub enum DataSocket {
    /// A TCP (or MPTCP) connection, preface done.
    Tcp(TcpStream),
    /// A connected UDP socket whose peer proved its address.
    Udp(UdpSocket),
    /// Connect/request/response at the client: a new connection each time.
    Connector(Connector),
    /// Connect/request/response at the server: connections as they arrive.
    Acceptor(Mutex<mpsc::Receiver<TcpStream>>),
}

impl DataSocket {
    /// Its descriptor.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            Self::Udp(socket) => Some(socket.as_fd()),
            Self::Connector(_) | Self::Acceptor(_) => None,
        }
    }

    /// Local and peer address.
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

/// What a stream's thread does.
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
    /// Latency probe beside bulk streams.
    Probe(RrSlot),
    /// Responder of the probe.
    Echo(RrSlot),
}

impl Job {
    /// Whether it is part of the bulk transfer (and so of the ledger).
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
    /// Number within the test.
    pub id: u32,
    /// Position among the streams of its direction, which chooses its core.
    pub index: u32,
    /// Which way its data moves.
    pub direction: Direction,
    /// What its thread does.
    pub job: Job,
    /// The socket.
    pub socket: DataSocket,
    /// Tag of its datagrams.
    pub tag: u32,
    /// Its counters.
    pub counters: Arc<Counters>,
    /// UDP: how the receiver learns that the sender is done.
    pub finish: Arc<Finish>,
    /// TCP: bytes acknowledged before the test's first (the preface), to be taken off.
    pub acked_before: u64,
    /// UDP receiver: what its socket had dropped before the test; `None` if it is not visible.
    pub drops_before: Option<u32>,
    /// Core of its thread, where the parameters leave the choice to this end.
    pub core: Option<u32>,
}

impl StreamPlan {
    /// A stream that has not started.
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
