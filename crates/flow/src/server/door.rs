//! The TCP doorman: accepts, reads the preface, sends each connection to where it belongs.
//!
//! One thread, never blocked by a client: connections that have not shown their preface wait in a bounded list, each
//! with a deadline, and the oldest makes room when the list is full.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_sys::{clock, socket};
use socket2::{Domain, Protocol, Socket, Type};

use super::handshakes::crowded_out;
use super::{ServerEvent, Shared, session};
use crate::control::preface::{self, BadPreface, PREFACE_LEN, Purpose, Status};
use crate::error::FlowError;

/// Connections that may wait at the door.
const MAX_WAITING: usize = 2048;
/// How long a connection may take to show its preface, nanoseconds.
const PREFACE_NS: u64 = 5_000_000_000;
/// How often the stop flag is looked at.
const TICK_MS: u32 = 100;
/// How long to leave the listener alone when there is no descriptor for a connection, nanoseconds.
const EXHAUSTED_NS: u64 = 50_000_000;

/// One listening address, TCP and UDP on the same port.
pub struct Door {
    listener: TcpListener,
    /// The UDP side.
    pub udp: UdpSocket,
}

struct Waiting {
    stream: TcpStream,
    peer: SocketAddr,
    deadline_ns: u64,
    bytes: [u8; PREFACE_LEN],
    have: usize,
}

impl Door {
    /// Binds TCP and UDP to one port.
    pub fn bind(addr: SocketAddr) -> Result<Self, FlowError> {
        let fail = |what: &str| {
            let what = format!("{what} {addr}");
            move |source: io::Error| FlowError::Setup { what, source }
        };
        // With port 0 the port TCP got may be taken for UDP: try again with another.
        let mut attempts = if addr.port() == 0 { 16 } else { 1 };
        loop {
            attempts -= 1;
            let listener = listen(addr).map_err(fail("listen on TCP"))?;
            let bound = listener.local_addr().map_err(fail("listen on TCP"))?;
            match bind_udp(bound) {
                Ok(udp) => return Ok(Self { listener, udp }),
                Err(_) if attempts > 0 => {}
                Err(error) => return Err(fail("listen on UDP")(error)),
            }
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts until the server stops.
    pub(super) fn accept(&self, shared: &Arc<Shared>) {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut ready = Vec::new();
        while !shared.stopping() {
            let fds: Vec<BorrowedFd<'_>> =
                std::iter::once(self.listener.as_fd()).chain(waiting.iter().map(|w| w.stream.as_fd())).collect();
            if socket::wait_any(&fds, &mut ready, TICK_MS).is_err() {
                continue;
            }
            let now = clock::monotonic_ns();
            for at in (0..waiting.len()).rev() {
                if ready.get(at + 1).copied().unwrap_or(false) {
                    match waiting[at].read() {
                        Ok(false) => {}
                        Ok(true) => {
                            let visitor = waiting.swap_remove(at);
                            admit(visitor, shared);
                            continue;
                        }
                        Err(_) => {
                            waiting.swap_remove(at);
                            shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                    }
                }
                if now >= waiting[at].deadline_ns {
                    waiting.swap_remove(at);
                    shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            if ready.first().copied().unwrap_or(false) {
                self.accept_ready(&mut waiting, shared, now);
            }
        }
    }

    fn accept_ready(&self, waiting: &mut Vec<Waiting>, shared: &Arc<Shared>, now: u64) {
        // A bounded number at a time, so that a flood of connections cannot starve those already waiting.
        for _ in 0..256 {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if !shared.allows(peer) {
                        refuse(stream, Status::NotAllowed);
                        shared.tell(ServerEvent::Refused { peer, why: "its address is not allowed here".to_owned() });
                        continue;
                    }
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if waiting.len() >= MAX_WAITING {
                        make_room(waiting, shared);
                    }
                    let deadline_ns = now + PREFACE_NS;
                    waiting.push(Waiting { stream, peer, deadline_ns, bytes: [0; PREFACE_LEN], have: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The visitor left again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors or memory: visitors that say nothing leave first. The listener stays ready, so
                    // without a pause this would spin.
                    if !make_room(waiting, shared) {
                        clock::sleep_until(clock::monotonic_ns() + EXHAUSTED_NS);
                    }
                    return;
                }
            }
        }
    }
}

/// Sends away the oldest of the address that has most connections waiting; false if there is none.
fn make_room(waiting: &mut Vec<Waiting>, shared: &Shared) -> bool {
    let held = waiting.iter().map(|w| (crate::address::unmap(w.peer).ip(), w.deadline_ns));
    let Some(oldest) = crowded_out(held) else { return false };
    if let Some(at) = waiting.iter().position(|w| w.deadline_ns == oldest) {
        waiting.swap_remove(at);
        shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }
    true
}

impl Waiting {
    /// Reads what is there; true when the preface is whole.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.bytes[self.have..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.have += n;
                // Junk is told by its first bytes: no need to wait for 48 of them.
                let magic = self.have.min(8);
                if self.bytes[..magic] != preface::encode(Purpose::Control { keyed: false })[..magic] {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(self.have == PREFACE_LEN)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Decides what a connection is for.
fn admit(visitor: Waiting, shared: &Arc<Shared>) {
    let Waiting { stream, peer, bytes, .. } = visitor;
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    match preface::decode(&bytes) {
        Ok(Purpose::Data { stream: number, token }) => match shared.registry.find(&token) {
            None => refuse(stream, Status::UnknownTest),
            Some(slot) => {
                let _ = stream.set_nodelay(true);
                let mut answered = stream;
                if answered.write_all(&preface::encode_answer(Status::Welcome)).is_err() {
                    return;
                }
                // An unexpected stream is closed: its client sees the end of file.
                drop(slot.deliver_tcp(number, answered));
            }
        },
        Ok(Purpose::Control { keyed }) => {
            let status = match (keyed, shared.config.key.is_some()) {
                (false, true) => Status::KeyRequired,
                (true, false) => Status::KeyUnexpected,
                _ => Status::Welcome,
            };
            if status != Status::Welcome {
                refuse(stream, status);
                shared.tell(ServerEvent::Refused { peer, why: format!("{status:?}") });
                return;
            }
            let mut welcomed = stream;
            if welcomed.write_all(&preface::encode_answer(Status::Welcome)).is_ok() {
                session::spawn(welcomed, peer, shared);
            }
        }
        Err(BadPreface::Version(theirs)) => {
            refuse(stream, Status::Version);
            shared.tell(ServerEvent::Refused { peer, why: format!("it speaks protocol {theirs}") });
        }
        Err(BadPreface::NotLandspeed | BadPreface::Kind(_)) => {
            shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn refuse(mut stream: TcpStream, status: Status) {
    let _ = stream.set_nonblocking(true);
    let _ = stream.write_all(&preface::encode_answer(status));
}

/// A listener that also takes multipath connections where the kernel can; plain ones cost the same there.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
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

/// The unconnected UDP socket of a door.
pub fn bind_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // Streams get sockets of their own on this port, connected to their client: the kernel prefers those.
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}
