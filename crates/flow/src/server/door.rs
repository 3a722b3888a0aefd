//! One listening address, TCP and UDP on the same port, for any [`Service`].
//!
//! One thread accepts connections and never blocks on a client: connections wait in a bounded list until their
//! opening bytes are complete, each with a deadline. When the list is full, the oldest connection of the client
//! host with most entries is refused as "busy". A second thread answers datagrams.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landspeed_sys::{clock, socket};
use socket2::{Domain, Protocol, Socket, Type};

use super::admission::{oldest_of_busiest_host, refuse_immediately};
use super::service::{Datagram, OpeningParser, PendingConnection, Service};
use super::{Refusal, Shared};
use crate::address::{client_host, unmap};
use crate::control::channel::min_rtt_ns;
use crate::control::deadline::timeout_ns;
use crate::error::FlowError;

/// Timeout for the opening bytes of a connection, in addition to four round trips, nanoseconds.
const OPENING_TIMEOUT_NS: u64 = 5_000_000_000;
/// Interval between checks of the stop flag.
const TICK_MS: u32 = 100;
/// Pause when no descriptor is free for a connection, nanoseconds.
const NO_DESCRIPTOR_PAUSE_NS: u64 = 50_000_000;
/// Minimum time for the opening bytes of a connection from a host with a running test, before the connection may
/// be refused as busy: data connections of a test arrive many at a time, nanoseconds.
const GRACE_NS: u64 = 20_000_000;
/// Pause while all waiting connections are within this minimum time, nanoseconds.
const GRACE_PAUSE_NS: u64 = 1_000_000;
/// Maximum number of bytes read from a datagram: more than the longest of any protocol.
pub const MAX_DATAGRAM: usize = 256;

/// Listening sockets of one address, and their protocol.
pub(super) struct Listener {
    listener: TcpListener,
    udp: UdpSocket,
    service: Arc<dyn Service>,
}

struct WaitingConnection {
    pending: PendingConnection,
    accepted_ns: u64,
    deadline_ns: u64,
    opening: Box<dyn OpeningParser>,
}

impl Listener {
    /// Binds TCP and UDP to the same port.
    pub fn bind(addr: SocketAddr, service: Arc<dyn Service>) -> Result<Self, FlowError> {
        let fail = |transport: &str, source| FlowError::Setup { what: service.listening(transport, addr), source };
        // With port 0, the port chosen for TCP may be in use for UDP: retry with another.
        let mut attempts = if addr.port() == 0 { 16 } else { 1 };
        let (listener, udp) = loop {
            attempts -= 1;
            let listener = listen(addr).map_err(|source| fail("TCP", source))?;
            let bound = listener.local_addr().map_err(|source| fail("TCP", source))?;
            match bind_udp(bound) {
                Ok(udp) => break (listener, udp),
                Err(_) if attempts > 0 => {}
                Err(source) => return Err(fail("UDP", source)),
            }
        };
        Ok(Self { listener, udp, service })
    }

    /// Returns the listening address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the name of its protocol.
    pub fn protocol(&self) -> &'static str {
        self.service.name()
    }

    /// Accepts connections until the server stops.
    pub fn accept(&self, shared: &Arc<Shared>) {
        let mut waiting: Vec<WaitingConnection> = Vec::new();
        let mut ready = Vec::new();
        let mut spare = SpareDescriptor::default();
        let mut accepted = 0;
        while !shared.stopping() {
            let fds: Vec<BorrowedFd<'_>> = std::iter::once(self.listener.as_fd())
                .chain(waiting.iter().map(|w| w.pending.stream.as_fd()))
                .collect();
            if socket::wait_any(&fds, &mut ready, TICK_MS).is_err() {
                continue;
            }
            let now = clock::monotonic_ns();
            read_waiting(&mut waiting, |at| ready.get(at + 1).copied().unwrap_or(false), shared, now);
            shared.admission.refusals.close_finished(now);
            shared.log.summarize(now);
            if ready.first().copied().unwrap_or(false) {
                self.accept_ready(&mut waiting, &mut accepted, &mut spare, shared, now);
            }
        }
    }

    fn accept_ready(
        &self,
        waiting: &mut Vec<WaitingConnection>,
        accepted: &mut u64,
        spare: &mut SpareDescriptor,
        shared: &Arc<Shared>,
        now: u64,
    ) {
        let most = shared.admission.max_waiting_per_address();
        // At most this many at a time, so that a flood of connections cannot starve those already waiting.
        for pending in 0..256 {
            if waiting.len() >= most {
                if pending == 0 {
                    // Connections with a complete preface no longer count as waiting.
                    read_waiting(waiting, |_| true, shared, now);
                }
                if waiting.len() >= most && !self.refuse_one_waiting(waiting, shared, now) {
                    clock::sleep_until(clock::monotonic_ns() + GRACE_PAUSE_NS);
                    return;
                }
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if !shared.admission.allows(peer) {
                        if let Some(words) = self.service.not_allowed() {
                            shared.admission.refusals.send(stream, &words);
                        }
                        let why = "its address is not allowed here".to_owned();
                        shared.report_refused(peer, Refusal::Address, why);
                        continue;
                    }
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    *accepted += 1;
                    let pending = PendingConnection { stream, peer, order: *accepted };
                    let deadline_ns = now + timeout_ns(OPENING_TIMEOUT_NS, min_rtt_ns(pending.stream.as_fd()));
                    let opening = self.service.opening();
                    waiting.push(WaitingConnection { pending, accepted_ns: now, deadline_ns, opening });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client has closed the connection already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors or memory, in spite of the limits: refuse connections that have sent
                    // nothing first. The listener stays readable, so without a pause this would spin.
                    let answered = spare.answer(&self.listener, &self.service.busy());
                    let roomier = self.refuse_one_waiting(waiting, shared, u64::MAX);
                    if !answered && !roomier {
                        clock::sleep_until(clock::monotonic_ns() + NO_DESCRIPTOR_PAUSE_NS);
                    }
                    return;
                }
            }
        }
    }

    /// Refuses one waiting connection as busy: the oldest of the client host with most entries. Returns false if
    /// none waits, or if that host has a running test and the connection is within its minimum time.
    fn refuse_one_waiting(&self, waiting: &mut Vec<WaitingConnection>, shared: &Shared, now: u64) -> bool {
        let oldest = oldest_of_busiest_host(waiting.iter().map(|w| (client_host(w.pending.peer), w.pending.order)));
        let Some(at) = waiting.iter().position(|w| Some(w.pending.order) == oldest) else { return false };
        let host = client_host(waiting[at].pending.peer);
        if now < waiting[at].accepted_ns + GRACE_NS && shared.admission.has_test(host) {
            return false;
        }
        shared.admission.refusals.send(waiting.swap_remove(at).pending.stream, &self.service.busy());
        shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Answers datagrams until the server stops.
    pub fn answer_datagrams(&self, shared: &Shared) {
        let Ok(bound) = self.udp.local_addr() else { return };
        let _ = self.udp.set_read_timeout(Some(Duration::from_millis(u64::from(TICK_MS))));
        let mut buffer = [0; MAX_DATAGRAM];
        while !shared.stopping() {
            let Ok((n, from)) = self.udp.recv_from(&mut buffer) else { continue };
            let from = unmap(from);
            if shared.admission.allows(from) {
                let datagram = Datagram { udp: &self.udp, bound, from, bytes: &buffer[..n] };
                self.service.answer(&datagram, shared);
            }
        }
    }
}

/// Reads connections that have data; admits those with a valid preface, and drops invalid and late ones.
fn read_waiting(
    waiting: &mut Vec<WaitingConnection>,
    is_ready: impl Fn(usize) -> bool,
    shared: &Arc<Shared>,
    now: u64,
) {
    for at in (0..waiting.len()).rev() {
        let WaitingConnection { pending, deadline_ns, opening, .. } = &mut waiting[at];
        let shown = if is_ready(at) { opening.read(&mut pending.stream) } else { Ok(false) };
        match shown {
            Ok(true) => {
                let WaitingConnection { pending, accepted_ns, deadline_ns, opening } = waiting.swap_remove(at);
                // The deadline covers all steps: slow clients gain no time by completing one.
                let more = opening.admit(pending, shared);
                waiting.extend(more.map(|(pending, opening)| WaitingConnection {
                    pending,
                    accepted_ns,
                    deadline_ns,
                    opening,
                }));
            }
            Ok(false) if now < *deadline_ns => {}
            Ok(false) | Err(_) => {
                waiting.swap_remove(at);
                shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reserved descriptor, freed to refuse a connection when no other descriptor is available.
#[derive(Debug)]
struct SpareDescriptor(Option<File>);

impl Default for SpareDescriptor {
    fn default() -> Self {
        Self(File::open("/dev/null").ok())
    }
}

impl SpareDescriptor {
    /// Frees the descriptor, accepts one connection, answers and closes it; false if there was none.
    fn answer(&mut self, listener: &TcpListener, words: &[u8]) -> bool {
        self.0 = None;
        let answered = listener.accept().map(|(stream, _)| refuse_immediately(stream, words)).is_ok();
        *self = Self::default();
        answered
    }
}

/// Opens a listener for MPTCP and TCP if the kernel supports MPTCP; plain TCP connections cost the same on it.
fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(addr);
    let multipath = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP)).and_then(|s| finish_listener(s, addr));
    let socket = match multipath {
        Ok(socket) => socket,
        Err(_) => finish_listener(Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?, addr)?,
    };
    Ok(socket.into())
}

fn finish_listener(socket: Socket, addr: SocketAddr) -> io::Result<Socket> {
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(1024)?;
    Ok(socket)
}

/// Opens the unconnected UDP socket of a listening address.
fn bind_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // Each stream has a connected socket on this port: the kernel prefers it to this unconnected one.
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Opens a UDP socket on the server's port that is connected to `peer`.
///
/// # Errors
/// When it cannot be opened, bound or connected.
pub fn connect_back(local: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    let mut local = local;
    if let (SocketAddr::V6(l), SocketAddr::V6(p)) = (&mut local, peer) {
        l.set_scope_id(p.scope_id());
    }
    socket.bind(&local.into())?;
    socket.connect(&peer.into())?;
    Ok(socket.into())
}
