//! The doormen of a server for iperf3's clients: one for connections, one for UDP hellos, on iperf3's port.
//!
//! Every connection opens with a cookie. One that no test has is a new client; one that a test waits with is a stream of
//! it. UDP hellos say nothing at all, so they are taken for the test of that address that is opening its streams, and one
//! address may open the streams of one UDP test at a time.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use landspeed_sys::{clock, socket};

use super::session;
use super::words::{BUSY, COOKIE_LEN, Cookie};
use crate::address::{client_host, unmap};
use crate::error::FlowError;
use crate::server::handshakes::crowded_out;
use crate::server::{ServerEvent, Shared, door, udp_door};

/// How long a connection may take to show its cookie, nanoseconds.
const COOKIE_NS: u64 = 5_000_000_000;
/// How often the stop flag is looked at.
const TICK_MS: u32 = 100;
/// How long to leave the listener alone when there is no descriptor for a connection, nanoseconds.
const EXHAUSTED_NS: u64 = 50_000_000;
/// Longest hello: whatever else comes from elsewhere is not looked at.
const MAX_HELLO: usize = 64;

/// One listening address.
pub struct Door {
    listener: TcpListener,
    udp: UdpSocket,
    tests: Arc<Tests>,
}

/// Tests that wait for their streams.
#[derive(Debug, Default)]
pub struct Tests {
    tcp: Mutex<HashMap<Cookie, Streams>>,
    udp: Mutex<HashMap<IpAddr, Hellos>>,
}

/// Where the connections with a cookie go.
#[derive(Debug, Clone)]
struct Streams {
    deliver: mpsc::SyncSender<Arrival>,
    /// Address of the test's control connection. The cookie is in the clear on each connection: it proves little.
    client: IpAddr,
}

/// Where the hellos of an address go.
#[derive(Debug, Clone)]
struct Hellos {
    deliver: mpsc::SyncSender<UdpSocket>,
    /// The address that the client talks to: its streams are answered from it.
    local: IpAddr,
}

/// A data connection and its place in the order of arrival, which tells the streams of a test apart.
#[derive(Debug)]
pub struct Arrival {
    /// Connections accepted before it.
    pub order: u64,
    /// The connection.
    pub stream: TcpStream,
}

struct Waiting {
    stream: TcpStream,
    peer: SocketAddr,
    order: u64,
    deadline_ns: u64,
    cookie: Cookie,
    have: usize,
}

impl Door {
    /// Binds TCP and UDP.
    pub fn bind(addr: SocketAddr) -> Result<Self, FlowError> {
        let fail = |source: io::Error| FlowError::Setup { what: format!("listen for iperf3 on {addr}"), source };
        // With port 0 the port TCP got may be taken for UDP: try again with another.
        let mut attempts = if addr.port() == 0 { 16 } else { 1 };
        loop {
            attempts -= 1;
            let listener = door::listen(addr).map_err(fail)?;
            let bound = listener.local_addr().map_err(fail)?;
            match door::bind_udp(bound) {
                Ok(udp) => return Ok(Self { listener, udp, tests: Arc::default() }),
                Err(_) if attempts > 0 => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts until the server stops.
    pub(crate) fn accept(&self, shared: &Arc<Shared>) {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut ready = Vec::new();
        let mut accepted = 0;
        let mut spare = door::Spare::default();
        while !shared.stopping() {
            let fds: Vec<BorrowedFd<'_>> =
                std::iter::once(self.listener.as_fd()).chain(waiting.iter().map(|w| w.stream.as_fd())).collect();
            if socket::wait_any(&fds, &mut ready, TICK_MS).is_err() {
                continue;
            }
            let now = clock::monotonic_ns();
            self.look_at(&mut waiting, |at| ready.get(at + 1).copied().unwrap_or(false), shared, now);
            shared.farewells.look_after(now);
            if ready.first().copied().unwrap_or(false) {
                self.accept_ready(&mut waiting, &mut accepted, &mut spare, shared, now);
            }
        }
    }

    /// Reads those that have something to read; admits whoever has shown a cookie, and drops junk and latecomers.
    fn look_at(&self, waiting: &mut Vec<Waiting>, is_ready: impl Fn(usize) -> bool, shared: &Arc<Shared>, now: u64) {
        for at in (0..waiting.len()).rev() {
            let shown = if is_ready(at) { waiting[at].read() } else { Ok(false) };
            match shown {
                Ok(true) => self.admit(waiting.swap_remove(at), shared),
                Ok(false) if now < waiting[at].deadline_ns => {}
                Ok(false) | Err(_) => {
                    waiting.swap_remove(at);
                    shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn accept_ready(
        &self,
        waiting: &mut Vec<Waiting>,
        accepted: &mut u64,
        spare: &mut door::Spare,
        shared: &Arc<Shared>,
        now: u64,
    ) {
        // A bounded number at a time, so that a flood of connections cannot starve those already waiting.
        for visitor in 0..256 {
            if waiting.len() >= shared.waiting_at_a_door() {
                if visitor == 0 {
                    self.look_at(waiting, |_| true, shared, now);
                }
                if waiting.len() >= shared.waiting_at_a_door() && !make_room(waiting, shared, now) {
                    clock::sleep_until(clock::monotonic_ns() + door::GRACE_NAP_NS);
                    return;
                }
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if !shared.allows(peer) {
                        shared.tell(ServerEvent::Refused { peer, why: "its address is not allowed here".to_owned() });
                        continue;
                    }
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    *accepted += 1;
                    let (order, deadline_ns) = (*accepted, now + COOKIE_NS);
                    waiting.push(Waiting { stream, peer, order, deadline_ns, cookie: [0; COOKIE_LEN], have: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The visitor left again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // As at the other door.
                    let (answered, roomier) =
                        (spare.answer(&self.listener, &BUSY), make_room(waiting, shared, u64::MAX));
                    if !answered && !roomier {
                        clock::sleep_until(clock::monotonic_ns() + EXHAUSTED_NS);
                    }
                    return;
                }
            }
        }
    }

    /// Decides what a connection is for.
    fn admit(&self, visitor: Waiting, shared: &Arc<Shared>) {
        let Waiting { stream, peer, order, cookie, .. } = visitor;
        if stream.set_nonblocking(false).is_err() {
            return;
        }
        match self.tests.awaiting(&cookie) {
            Some(test) if !shared.config.data_from_anywhere && unmap(peer).ip() != test.client => {
                let why = "data from another address than its control connection's".to_owned();
                shared.tell(ServerEvent::Refused { peer, why });
            }
            // One stream too many is closed: its client sees the end of file.
            Some(test) => drop(test.deliver.try_send(Arrival { order, stream })),
            None => {
                if let Err(stream) = session::spawn(stream, peer, cookie, &self.tests, shared) {
                    shared.farewells.say(stream, &BUSY);
                    let why = "iperf3: no descriptor or thread is free".to_owned();
                    shared.tell(ServerEvent::Refused { peer, why });
                }
            }
        }
    }

    /// Answers UDP hellos until the server stops.
    pub(crate) fn hear_datagrams(&self, shared: &Arc<Shared>) {
        let _ = self.udp.set_read_timeout(Some(Duration::from_millis(u64::from(TICK_MS))));
        let mut buffer = [0; MAX_HELLO];
        while !shared.stopping() {
            let Ok((_, from)) = self.udp.recv_from(&mut buffer) else { continue };
            let from = unmap(from);
            // Whoever has no test that waits for streams gets no answer at all.
            let Some(test) = lock(&self.tests.udp).get(&from.ip()).cloned() else { continue };
            let Ok(port) = self.udp.local_addr().map(|addr| addr.port()) else { continue };
            if let Ok(connected) = udp_door::connect_back(SocketAddr::new(test.local, port), from) {
                let _ = test.deliver.try_send(connected);
            }
        }
    }
}

impl Waiting {
    /// Reads what is there; true when the cookie is whole.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.cookie[self.have..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.have += n;
                // Old clients put their host's name in, but nobody a control character.
                if self.cookie[..self.have.min(COOKIE_LEN - 1)].iter().any(|c| c.is_ascii_control() && *c != 0) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(self.have == COOKIE_LEN)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Tells one that waits that the server is busy, chosen as at the other door; false if there is none to choose.
fn make_room(waiting: &mut Vec<Waiting>, shared: &Shared, now: u64) -> bool {
    let oldest = crowded_out(waiting.iter().map(|w| (client_host(w.peer), w.order)));
    let Some(at) = waiting.iter().position(|w| Some(w.order) == oldest) else { return false };
    let host = client_host(waiting[at].peer);
    if now < waiting[at].deadline_ns - COOKIE_NS + door::GRACE_NS && shared.shares.has_test(host) {
        return false;
    }
    shared.farewells.say(waiting.swap_remove(at).stream, &BUSY);
    shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
    true
}

/// A poisoned lock only means that some thread panicked while it held plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tests {
    fn awaiting(&self, cookie: &Cookie) -> Option<Streams> {
        lock(&self.tcp).get(cookie).cloned()
    }

    /// Has the connections with this cookie delivered; `None` if another test has the same. They come from `client`.
    pub fn await_tcp(
        self: &Arc<Self>,
        cookie: Cookie,
        client: IpAddr,
        most: usize,
    ) -> Option<(mpsc::Receiver<Arrival>, Awaited)> {
        let mut tests = lock(&self.tcp);
        if tests.contains_key(&cookie) {
            return None;
        }
        let (deliver, rx) = mpsc::sync_channel(most);
        tests.insert(cookie, Streams { deliver, client });
        Some((rx, Awaited { tests: Arc::clone(self), key: Key::Tcp(cookie) }))
    }

    /// Has the hellos from this address delivered as connected sockets; `None` while another test of it does.
    /// `local` is the address that the client talks to.
    pub fn await_udp(
        self: &Arc<Self>,
        peer: IpAddr,
        local: IpAddr,
        most: usize,
    ) -> Option<(mpsc::Receiver<UdpSocket>, Awaited)> {
        let mut tests = lock(&self.udp);
        if tests.contains_key(&peer) {
            return None;
        }
        let (tx, rx) = mpsc::sync_channel(most);
        tests.insert(peer, Hellos { deliver: tx, local });
        Some((rx, Awaited { tests: Arc::clone(self), key: Key::Udp(peer) }))
    }
}

/// That streams are delivered, until it is dropped.
#[derive(Debug)]
pub struct Awaited {
    tests: Arc<Tests>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Tcp(Cookie),
    Udp(IpAddr),
}

impl Drop for Awaited {
    fn drop(&mut self) {
        match self.key {
            Key::Tcp(cookie) => drop(lock(&self.tests.tcp).remove(&cookie)),
            Key::Udp(peer) => drop(lock(&self.tests.udp).remove(&peer)),
        }
    }
}
