//! The TCP doorman: accepts, reads the preface, sends each connection to where it belongs.
//!
//! One thread, never blocked by a client: connections that have not shown their preface wait in a bounded list, each
//! with a deadline. When the list is full the oldest of the client host that holds most of it makes room, and is told that
//! the server is busy.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_sys::{clock, socket};
use socket2::{Domain, Protocol, Socket, Type};

use super::farewells::turn_away;
use super::handshakes::crowded_out;
use super::proving::Proving;
use super::{ServerEvent, Shared, session};
use crate::address::client_host;
use crate::control::credentials::TestName;
use crate::control::preface::{self, BadPreface, PREFACE_LEN, Purpose, Status};
use crate::error::FlowError;

/// How long a connection may take to show its preface and, with a key, its proof, nanoseconds.
const PREFACE_NS: u64 = 5_000_000_000;
/// How often the stop flag is looked at.
const TICK_MS: u32 = 100;
/// How long to leave the listener alone when there is no descriptor for a connection, nanoseconds.
const EXHAUSTED_NS: u64 = 50_000_000;
/// How long a connection of a host with a running test may take to show its preface before it has to make room: its data
/// connections arrive in numbers, nanoseconds.
pub const GRACE_NS: u64 = 20_000_000;
/// How long to leave the listener alone while all that wait have this grace, nanoseconds.
pub const GRACE_NAP_NS: u64 = 1_000_000;

/// One listening address, TCP and UDP on the same port.
pub struct Door {
    listener: TcpListener,
    /// The UDP side.
    pub udp: UdpSocket,
}

struct Waiting {
    stream: TcpStream,
    peer: SocketAddr,
    /// Connections accepted before it.
    order: u64,
    deadline_ns: u64,
    bytes: [u8; PREFACE_LEN],
    have: usize,
    /// Set on a data connection of a test with a key, once its preface has come.
    proving: Option<Proving>,
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
        let mut spare = Spare::default();
        let mut accepted = 0;
        while !shared.stopping() {
            let fds: Vec<BorrowedFd<'_>> =
                std::iter::once(self.listener.as_fd()).chain(waiting.iter().map(|w| w.stream.as_fd())).collect();
            if socket::wait_any(&fds, &mut ready, TICK_MS).is_err() {
                continue;
            }
            let now = clock::monotonic_ns();
            look_at(&mut waiting, |at| ready.get(at + 1).copied().unwrap_or(false), shared, now);
            shared.farewells.look_after(now);
            if ready.first().copied().unwrap_or(false) {
                self.accept_ready(&mut waiting, &mut accepted, &mut spare, shared, now);
            }
        }
    }

    fn accept_ready(
        &self,
        waiting: &mut Vec<Waiting>,
        accepted: &mut u64,
        spare: &mut Spare,
        shared: &Arc<Shared>,
        now: u64,
    ) {
        let busy = preface::encode_answer(Status::Busy);
        // A bounded number at a time, so that a flood of connections cannot starve those already waiting.
        for visitor in 0..256 {
            if waiting.len() >= shared.waiting_at_a_door() {
                if visitor == 0 {
                    // Whoever has shown a preface by now keeps nobody out.
                    look_at(waiting, |_| true, shared, now);
                }
                if waiting.len() >= shared.waiting_at_a_door() && !make_room(waiting, shared, now) {
                    clock::sleep_until(clock::monotonic_ns() + GRACE_NAP_NS);
                    return;
                }
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if !shared.allows(peer) {
                        refuse(stream, Status::NotAllowed, shared);
                        shared.tell(ServerEvent::Refused { peer, why: "its address is not allowed here".to_owned() });
                        continue;
                    }
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    *accepted += 1;
                    let (order, deadline_ns) = (*accepted, now + PREFACE_NS);
                    let (bytes, have, proving) = ([0; PREFACE_LEN], 0, None);
                    waiting.push(Waiting { stream, peer, order, deadline_ns, bytes, have, proving });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The visitor left again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors or memory, which the bounds should have prevented: visitors that say nothing
                    // leave first. The listener stays ready, so without a pause this would spin.
                    let (answered, roomier) =
                        (spare.answer(&self.listener, &busy), make_room(waiting, shared, u64::MAX));
                    if !answered && !roomier {
                        clock::sleep_until(clock::monotonic_ns() + EXHAUSTED_NS);
                    }
                    return;
                }
            }
        }
    }
}

/// A descriptor that is kept, so that there is one left to turn a client away with when there are no others.
#[derive(Debug)]
pub struct Spare(Option<File>);

impl Default for Spare {
    fn default() -> Self {
        Self(File::open("/dev/null").ok())
    }
}

impl Spare {
    /// Takes one connection off a listener in place of the spare, answers it and closes it; false if there was none.
    pub fn answer(&mut self, listener: &TcpListener, words: &[u8]) -> bool {
        self.0 = None;
        let answered = listener.accept().map(|(stream, _)| turn_away(stream, words)).is_ok();
        *self = Self::default();
        answered
    }
}

/// Reads those that have something to read; admits whoever has shown a preface, and drops junk and latecomers.
fn look_at(waiting: &mut Vec<Waiting>, is_ready: impl Fn(usize) -> bool, shared: &Arc<Shared>, now: u64) {
    for at in (0..waiting.len()).rev() {
        let shown = if is_ready(at) { waiting[at].read() } else { Ok(false) };
        match shown {
            Ok(true) => {
                let visitor = waiting.swap_remove(at);
                waiting.extend(admit(visitor, shared));
            }
            Ok(false) if now < waiting[at].deadline_ns => {}
            Ok(false) | Err(_) => {
                waiting.swap_remove(at);
                shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Tells one that waits that the server is busy: the oldest of the client host that has most waiting. False if nobody
/// waits, or that host has a test here and the connection is too young to have shown its preface.
fn make_room(waiting: &mut Vec<Waiting>, shared: &Shared, now: u64) -> bool {
    let oldest = crowded_out(waiting.iter().map(|w| (client_host(w.peer), w.order)));
    let Some(at) = waiting.iter().position(|w| Some(w.order) == oldest) else { return false };
    let host = client_host(waiting[at].peer);
    if now < waiting[at].deadline_ns - PREFACE_NS + GRACE_NS && shared.shares.has_test(host) {
        return false;
    }
    shared.farewells.say(waiting.swap_remove(at).stream, &preface::encode_answer(Status::Busy));
    shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
    true
}

impl Waiting {
    /// Reads what is there; true when the preface or the proof is whole.
    fn read(&mut self) -> io::Result<bool> {
        if let Some(proving) = &mut self.proving {
            return proving.read(&mut self.stream);
        }
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

/// Decides what a connection is for. Gives back one that has to prove itself first.
fn admit(visitor: Waiting, shared: &Arc<Shared>) -> Option<Waiting> {
    let Waiting { mut stream, peer, order, deadline_ns, bytes, proving, .. } = visitor;
    if let Some(proving) = proving {
        proving.deliver(stream);
        return None;
    }
    match preface::decode(&bytes) {
        Ok(Purpose::Data { stream: number, token }) => match shared.registry.find(TestName::Token(token)) {
            None => refuse(stream, Status::UnknownTest, shared),
            Some(slot) if !shared.takes_data_from(peer, &slot) => {
                refuse(stream, Status::WrongAddress, shared);
                let why = "data from another address than its control connection's".to_owned();
                shared.tell(ServerEvent::Refused { peer, why });
            }
            Some(slot) => {
                let _ = stream.set_nodelay(true);
                if stream.write_all(&preface::encode_answer(Status::Welcome)).is_ok() {
                    // An unexpected stream is closed: its client sees the end of file.
                    drop(slot.deliver_tcp(number, stream));
                }
            }
        },
        Ok(Purpose::KeyedData { stream: number, test, nonce }) => match shared.registry.find(TestName::Id(test)) {
            None => refuse(stream, Status::UnknownTest, shared),
            Some(slot) => {
                let proving = Proving::begin(&mut stream, slot, number, nonce).ok()?;
                // The deadline is that of the whole: what drips gains nothing by getting this far.
                let (bytes, have, proving) = ([0; PREFACE_LEN], 0, Some(proving));
                return Some(Waiting { stream, peer, order, deadline_ns, bytes, have, proving });
            }
        },
        Ok(Purpose::Control { keyed }) => {
            let status = match (keyed, shared.config.key.is_some()) {
                (false, true) => Status::KeyRequired,
                (true, false) => Status::KeyUnexpected,
                _ => Status::Welcome,
            };
            if status != Status::Welcome {
                refuse(stream, status, shared);
                shared.tell(ServerEvent::Refused { peer, why: format!("{status:?}") });
            } else if stream.set_nonblocking(false).is_ok()
                && let Err(stream) = session::spawn(stream, peer, shared)
            {
                refuse(stream, Status::Busy, shared);
                shared.tell(ServerEvent::Refused { peer, why: "no descriptor or thread is free".to_owned() });
            }
        }
        Err(BadPreface::Version(theirs)) => {
            refuse(stream, Status::Version, shared);
            shared.tell(ServerEvent::Refused { peer, why: format!("it speaks protocol {theirs}") });
        }
        Err(BadPreface::NotLandspeed | BadPreface::Kind(_)) => {
            shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
    None
}

fn refuse(stream: TcpStream, status: Status, shared: &Shared) {
    shared.farewells.say(stream, &preface::encode_answer(status));
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
