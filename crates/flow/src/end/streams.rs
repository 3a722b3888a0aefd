//! The threads of one end: set up a socket, move its bytes, report its totals.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, mpsc};

use landspeed_model::{Direction, NumaPolicy, Parameters, StreamEnd, TcpInfo};
use landspeed_sys::{clock, socket, thread};

use super::transactions::{self, Connector, RrSlot};
use super::{Side, Watch, bulk};
use crate::control::message::SenderDone;
use crate::dialect::Dialect;
use crate::rr::RrOutcome;
use crate::shared::{Budget, Counters};
use crate::udp::Finish;

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
}

impl StreamPlan {
    /// A stream that has not started.
    pub fn new(id: u32, index: u32, direction: Direction, job: Job, socket: DataSocket, tag: u32) -> Self {
        let (counters, finish) = Default::default();
        Self { id, index, direction, job, socket, tag, counters, finish, acked_before: 0, drops_before: None }
    }
}

/// What a thread leaves behind.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub end: StreamEnd,
    pub rr: Option<RrOutcome>,
    pub notes: Vec<String>,
}

impl Finished {
    pub fn failed(message: &str) -> Self {
        let end = StreamEnd { error: Some(message.to_owned()), ..StreamEnd::default() };
        Self { end, ..Self::default() }
    }
}

/// Notes how much of each connection's acknowledgement count belongs to its preface, and what each receiving UDP socket has
/// dropped so far. A receiving thread may get its first core only after the first packets were dropped: it is too late then.
pub(super) fn read_baselines(streams: &mut [StreamPlan]) {
    for stream in streams.iter_mut().filter(|s| !s.socket.is_tcp() && !s.job.sends()) {
        stream.drops_before = stream.socket.fd().and_then(|fd| socket::mem_info(fd).ok()).map(|memory| memory.drops);
    }
    for stream in streams.iter_mut().filter(|s| s.socket.is_tcp() && s.job.sends()) {
        let Some(fd) = stream.socket.fd() else { continue };
        // What is unacknowledged now will be counted later: wait for the queue to empty, then read.
        let deadline = clock::monotonic_ns() + 500_000_000;
        while socket::send_queue(fd).is_ok_and(|n| n > 0) && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        stream.acked_before = read_info(fd).and_then(|info| info.bytes_acked).unwrap_or(0);
    }
}

pub(super) fn read_info(fd: BorrowedFd<'_>) -> Option<TcpInfo> {
    socket::tcp_info(fd).ok().map(|raw| TcpInfo::decode(raw.as_bytes()))
}

/// Everything a stream's thread works with.
#[derive(Clone)]
pub(super) struct Task<'a> {
    pub stream: &'a StreamPlan,
    pub parameters: &'a Parameters,
    pub side: Side,
    pub dialect: Dialect,
    pub t0_ns: u64,
    pub watch: &'a Watch,
    pub budget: &'a Budget,
    pub done: mpsc::Sender<SenderDone>,
    pub receive_cap_bps: Option<u64>,
}

/// The body of a stream's thread.
pub(super) fn run(task: &Task<'_>) -> Finished {
    let Task { stream, parameters, side, t0_ns, watch, .. } = *task;
    let mut finished = Finished::default();
    stream.counters.adopt_thread();
    let meter = thread::ThreadMeter::open(thread::id()).ok();
    let cpu = place_thread(stream, parameters, side, &mut finished.notes);
    thread::set_timer_slack_ns(1);
    let before = thread::thread_time();
    let waited = meter.as_ref().and_then(thread::ThreadMeter::read).map(|s| s.wait_ns);
    match (&stream.socket, stream.job) {
        (DataSocket::Tcp(tcp), Job::Send) => bulk::send_tcp(task, tcp, &mut finished),
        (DataSocket::Tcp(tcp), Job::Receive) => bulk::receive_tcp(task, tcp, &mut finished),
        (DataSocket::Udp(udp), Job::Send) => bulk::send_udp(task, udp, &mut finished),
        (DataSocket::Udp(udp), Job::Receive) => bulk::receive_udp(task, udp, &mut finished),
        _ => transactions::run(stream, t0_ns, watch, &mut finished.end, &mut finished.rr),
    }
    let after = thread::thread_time();
    let end = &mut finished.end;
    end.cpu = cpu;
    let waits = meter.as_ref().and_then(thread::ThreadMeter::read).map(|s| s.wait_ns);
    end.thread_wait_ns = waits.zip(waited).map(|(after, before)| after.saturating_sub(before));
    end.thread_user_ns = after.user_ns.saturating_sub(before.user_ns);
    end.thread_system_ns = after.system_ns.saturating_sub(before.system_ns);
    end.thread_cpu_ns = after.total_ns.saturating_sub(before.total_ns);
    let since_start = |t: u64| t.saturating_sub(t0_ns);
    end.first_byte_ns = stream.counters.first_ns().map(since_start);
    end.last_byte_ns = stream.counters.last_ns().map(since_start);
    finished
}

fn place_thread(stream: &StreamPlan, parameters: &Parameters, side: Side, notes: &mut Vec<String>) -> Option<u32> {
    let (cpus, numa) = match side {
        Side::Client => (&parameters.client_cpus, parameters.client_numa),
        Side::Server => (&parameters.server_cpus, parameters.server_numa),
    };
    if let Some(policy) = numa {
        let policy = match policy {
            NumaPolicy::Local => thread::MemoryPolicy::Local,
            NumaPolicy::Bind(node) => thread::MemoryPolicy::Bind(node),
            NumaPolicy::Preferred(node) => thread::MemoryPolicy::Preferred(node),
        };
        if let Err(error) = thread::set_memory_policy(policy) {
            notes.push(format!("stream {}: cannot set the memory policy: {error}", stream.id));
        }
    }
    if cpus.is_empty() {
        return None;
    }
    // With --bidir the second direction takes the next cores of the list, not the first direction's again.
    let offset = if stream.direction == Direction::Download && parameters.direction == Direction::Both {
        parameters.streams
    } else {
        0
    };
    let core = cpus[(stream.index + offset) as usize % cpus.len()];
    match thread::pin_to_core(core) {
        Ok(()) => Some(core),
        Err(error) => {
            notes.push(format!("stream {}: cannot run on core {core}: {error}", stream.id));
            None
        }
    }
}
