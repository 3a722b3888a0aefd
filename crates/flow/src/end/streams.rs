//! The threads of one end: set up a socket, move its bytes, close the books.

use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use landspeed_model::{Direction, NumaPolicy, PaceScope, Parameters, StreamEnd, TcpInfo, UdpParameters};
use landspeed_sys::{clock, socket, thread};

use super::transactions::{self, Connector, RrSlot};
use super::{DRAIN_NS, Side, Watch};
use crate::control::message::SenderDone;
use crate::rr::RrOutcome;
use crate::shared::{Budget, Counters};
use crate::tcp;
use crate::udp::{self, Finish};

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
}

impl StreamPlan {
    /// A stream that has not started.
    pub fn new(id: u32, index: u32, direction: Direction, job: Job, socket: DataSocket, tag: u32) -> Self {
        let (counters, finish) = Default::default();
        Self { id, index, direction, job, socket, tag, counters, finish, acked_before: 0 }
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

/// Notes how much of each connection's acknowledgement count belongs to its preface.
pub(super) fn read_baselines(streams: &mut [StreamPlan]) {
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

fn read_info(fd: BorrowedFd<'_>) -> Option<TcpInfo> {
    socket::tcp_info(fd).ok().map(|raw| TcpInfo::decode(raw.as_bytes()))
}

/// The body of a stream's thread.
pub(super) fn run(
    stream: &StreamPlan,
    parameters: &Parameters,
    side: Side,
    t0_ns: u64,
    watch: &Watch,
    budget: &Budget,
    done: &mpsc::Sender<SenderDone>,
) -> Finished {
    let mut finished = Finished::default();
    stream.counters.adopt_thread();
    let meter = thread::ThreadMeter::open(thread::id()).ok();
    let cpu = place_thread(stream, parameters, side, &mut finished.notes);
    thread::set_timer_slack_ns(1);
    let before = thread::thread_time();
    let waited = meter.as_ref().and_then(thread::ThreadMeter::read).map(|s| s.wait_ns);
    match (&stream.socket, stream.job) {
        (DataSocket::Tcp(tcp), Job::Send) => {
            send_tcp(stream, tcp, parameters, t0_ns, watch, budget, done, &mut finished)
        }
        (DataSocket::Tcp(tcp), Job::Receive) => receive_tcp(stream, tcp, parameters, t0_ns, watch, &mut finished),
        (DataSocket::Udp(udp), Job::Send) => {
            send_udp(stream, udp, parameters, t0_ns, watch, budget, done, &mut finished)
        }
        (DataSocket::Udp(udp), Job::Receive) => receive_udp(stream, udp, parameters, watch, &mut finished),
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

/// Pacing rate of one stream, bytes/s.
fn pace(parameters: &Parameters) -> Option<u64> {
    let rate = parameters.pace_bps? / 8;
    Some(match parameters.pace_scope {
        PaceScope::Stream => rate,
        PaceScope::Total => rate / u64::from(parameters.streams.max(1)),
    })
}

fn send_tcp(
    stream: &StreamPlan,
    tcp: &TcpStream,
    parameters: &Parameters,
    t0_ns: u64,
    watch: &Watch,
    budget: &Budget,
    done: &mpsc::Sender<SenderDone>,
    finished: &mut Finished,
) {
    let fd = tcp.as_fd();
    let tick = Some(Duration::from_millis(tcp::TICK_MS));
    let _ = tcp.set_write_timeout(tick);
    if let Some(rate) = pace(parameters)
        && let Err(error) = socket::set_max_pacing_rate(fd, rate)
    {
        finished.notes.push(format!("stream {}: cannot set the pacing rate: {error}", stream.id));
    }
    let plan = tcp::SendPlan {
        mode: parameters.send,
        write_bytes: parameters.write_bytes as usize,
        start_ns: t0_ns,
        rate_bytes_per_s: parameters.rate_bps.map(|bps| bps / 8),
    };
    let outcome = tcp::send_stream(fd, &plan, &stream.counters, &watch.stop, budget);
    let stopped_ns = clock::monotonic_ns().saturating_sub(t0_ns);
    let _ = done.send(SenderDone { stream: stream.id, bytes: outcome.bytes, packets: 0, stopped_ns });
    drain(fd, watch);
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = outcome.syscalls;
    end.app_wait_ns = outcome.app_wait_ns;
    end.zerocopy = outcome.zerocopy;
    end.error = outcome.error.map(|e| format!("send: {e}"));
    describe_tcp(stream, fd, end);
    // Everything is read: now the end of file may go out.
    let _ = tcp.shutdown(Shutdown::Write);
}

/// Waits until the peer has acknowledged everything, or the drain time is over.
fn drain(fd: BorrowedFd<'_>, watch: &Watch) {
    let deadline = clock::monotonic_ns() + DRAIN_NS;
    let mut nap_ns = 50_000;
    while socket::send_queue(fd).is_ok_and(|n| n > 0) {
        let now = clock::monotonic_ns();
        if now >= deadline || watch.stop.receiving() || connection_is_gone(fd) {
            return;
        }
        clock::sleep_until(now + nap_ns);
        nap_ns = (nap_ns * 2).min(5_000_000);
    }
}

fn connection_is_gone(fd: BorrowedFd<'_>) -> bool {
    const TCP_CLOSE: u8 = 7;
    socket::tcp_info(fd).map_or(true, |raw| raw.as_bytes().first() == Some(&TCP_CLOSE))
}

fn describe_tcp(stream: &StreamPlan, fd: BorrowedFd<'_>, end: &mut StreamEnd) {
    end.send_queue_bytes = socket::send_queue(fd).ok().map(u64::from);
    end.receive_queue_bytes = socket::receive_queue(fd).ok().map(u64::from);
    end.congestion = socket::congestion(fd).ok();
    if let Ok(memory) = socket::mem_info(fd) {
        end.sndbuf_bytes = Some(u64::from(memory.sndbuf));
        end.rcvbuf_bytes = Some(u64::from(memory.rcvbuf));
    }
    if let Some(info) = read_info(fd) {
        end.mss_bytes = Some(info.snd_mss_bytes);
        if stream.job.sends() {
            end.bytes_acked = info.bytes_acked.map(|n| n.saturating_sub(stream.acked_before));
            end.retransmits = Some(u64::from(info.total_retrans));
            end.bytes_retrans = info.bytes_retrans;
        }
    }
}

fn receive_tcp(
    stream: &StreamPlan,
    tcp: &TcpStream,
    parameters: &Parameters,
    t0_ns: u64,
    watch: &Watch,
    finished: &mut Finished,
) {
    let fd = tcp.as_fd();
    let _ = tcp.set_read_timeout(Some(Duration::from_millis(tcp::TICK_MS)));
    let plan = tcp::ReceivePlan {
        mode: parameters.receive,
        read_bytes: read_bytes(parameters),
        rate_bytes_per_s: parameters.read_rate_bps.map(|bps| bps / 8),
        start_ns: t0_ns,
    };
    let outcome = tcp::receive_stream(fd, &plan, &stream.counters, &watch.stop);
    let end = &mut finished.end;
    describe_tcp(stream, fd, end);
    end.bytes = outcome.bytes;
    end.syscalls = outcome.syscalls;
    end.app_wait_ns = outcome.app_wait_ns;
    end.error = match outcome.error {
        Some(error) => Some(format!("receive: {error}")),
        None if !outcome.complete => Some("the sender's end of file did not arrive".to_owned()),
        None => None,
    };
}

/// Bytes per read: half a write keeps the buffer in the second-level cache, which was the fastest size measured
/// (docs/benchmarks.md); discarding reads touch no buffer and take as much as there is.
fn read_bytes(parameters: &Parameters) -> usize {
    match parameters.receive {
        landspeed_model::ReceiveMode::Copy => (parameters.write_bytes as usize).min(128 * 1024),
        landspeed_model::ReceiveMode::Discard => 4 << 20,
    }
}

fn send_udp(
    stream: &StreamPlan,
    udp: &UdpSocket,
    parameters: &Parameters,
    t0_ns: u64,
    watch: &Watch,
    budget: &Budget,
    done: &mpsc::Sender<SenderDone>,
    finished: &mut Finished,
) {
    let plan = udp_send_plan(parameters, stream.tag, t0_ns);
    let outcome = udp::send_stream(udp.as_fd(), &plan, &stream.counters, &watch.stop, budget);
    let stopped_ns = clock::monotonic_ns().saturating_sub(t0_ns);
    let packets = outcome.udp.sent_packets;
    let _ = done.send(SenderDone { stream: stream.id, bytes: outcome.bytes, packets, stopped_ns });
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = outcome.syscalls;
    end.app_wait_ns = outcome.app_wait_ns;
    end.udp = Some(outcome.udp);
    end.error = outcome.error.map(|e| e.to_string());
    finished.notes.extend(outcome.notes.into_iter().map(|note| format!("stream {}: {note}", stream.id)));
    if let Ok(memory) = socket::mem_info(udp.as_fd()) {
        end.sndbuf_bytes = Some(u64::from(memory.sndbuf));
    }
}

fn receive_udp(
    stream: &StreamPlan,
    udp: &UdpSocket,
    parameters: &Parameters,
    watch: &Watch,
    finished: &mut Finished,
) {
    let plan = udp_receive_plan(parameters, stream.tag);
    let outcome = udp::receive_stream(udp.as_fd(), &plan, &stream.counters, &watch.stop, &stream.finish);
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = outcome.syscalls;
    end.udp = Some(outcome.udp);
    end.error = outcome.error.map(|e| e.to_string());
    finished.notes.extend(outcome.notes.into_iter().map(|note| format!("stream {}: {note}", stream.id)));
    if let Ok(memory) = socket::mem_info(udp.as_fd()) {
        end.rcvbuf_bytes = Some(u64::from(memory.rcvbuf));
    }
}

/// After the sender's final count: how long nothing must arrive before what is missing counts as lost, nanoseconds.
const QUIET_NS: u64 = 200_000_000;

fn udp_send_plan(parameters: &Parameters, tag: u32, t0_ns: u64) -> udp::SendPlan {
    let wanted = parameters.udp.clone().unwrap_or_default();
    let pacing = parameters.rate_bps.and_then(NonZeroU64::new).map(|rate_bps| udp::Pacing {
        rate_bps,
        burst_packets: NonZeroU32::new(wanted.burst_packets).unwrap_or(NonZeroU32::MIN),
        grain_ns: if wanted.exact_departures { 0 } else { udp::Pacing::ECONOMICAL_GRAIN_NS },
    });
    let length = parameters.time_ns.map(|t| t + parameters.omit_ns);
    udp::SendPlan {
        start_ns: t0_ns,
        end_ns: length.map_or(u64::MAX, |t| t0_ns.saturating_add(t)),
        tag,
        payload: udp_payload(&wanted),
        pacing,
        gso: wanted.gso,
    }
}

fn udp_receive_plan(parameters: &Parameters, tag: u32) -> udp::ReceivePlan {
    let wanted = parameters.udp.clone().unwrap_or_default();
    udp::ReceivePlan {
        tag,
        payload: udp_payload(&wanted),
        rate_bps: parameters.rate_bps,
        gro: wanted.gro,
        quiet_ns: QUIET_NS,
    }
}

fn udp_payload(wanted: &UdpParameters) -> udp::Payload {
    udp::Payload::new(u64::from(wanted.payload_bytes)).expect("validate::check bounds the payload")
}
