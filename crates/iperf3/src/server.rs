//! iperf3's protocol at a port of a landspeed server.
//!
//! Every connection begins with a cookie. An unknown cookie is a new client; the cookie of a test that is
//! waiting for its streams is one of these streams. UDP hellos contain no identification, so they are assigned
//! to the test of that address that is opening its streams, and an address can open the streams of only one UDP
//! test at a time.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use landspeed_flow::server::door::connect_back;
use landspeed_flow::server::{Datagram, OpeningParser, PendingConnection, Refusal, Service, Shared};

use crate::KeepAlive;
use crate::auth::Users;
use crate::document::Document;
use crate::session;
use crate::wire::{BUSY_REPLY, COOKIE_LEN, Cookie};

/// Protocol name in the server's events.
pub const NAME: &str = "iperf3";

/// The iperf3 service of a landspeed server.
#[derive(Debug, Default)]
pub struct Iperf3Service {
    tests: Arc<Tests>,
}

impl Iperf3Service {
    /// Creates the service for these users; `None` serves everyone.
    pub fn new(users: Option<Users>) -> Self {
        Self::configured(users, None, None)
    }

    /// Creates the service for these users, with this keepalive of control connections, and an output for
    /// the documents of its tests.
    pub fn configured(users: Option<Users>, keep_alive: Option<KeepAlive>, output: Option<ServerOutput>) -> Self {
        Self { tests: Arc::new(Tests { users, keep_alive, output, ..Tests::default() }) }
    }
}

impl Service for Iperf3Service {
    fn name(&self) -> &'static str {
        NAME
    }

    fn listening(&self, _: &str, addr: SocketAddr) -> String {
        format!("listen for iperf3 on {addr}")
    }

    fn opening(&self) -> Box<dyn OpeningParser> {
        Box::new(CookieOpening { tests: Arc::clone(&self.tests), cookie: [0; COOKIE_LEN], received_bytes: 0 })
    }

    fn busy(&self) -> Vec<u8> {
        BUSY_REPLY.to_vec()
    }

    fn not_allowed(&self) -> Option<Vec<u8>> {
        None
    }

    fn answer(&self, datagram: &Datagram<'_>, _: &Shared) {
        let Datagram { bound, from, .. } = *datagram;
        // A client without a test that waits for streams is ignored.
        let Some(test) = lock(&self.tests.udp).get(&from.ip()).cloned() else { return };
        if let Ok(connected) = connect_back(SocketAddr::new(test.local, bound.port()), from) {
            let _ = test.deliver.try_send(connected);
        }
    }
}

/// State of a connection whose cookie is being received.
struct CookieOpening {
    tests: Arc<Tests>,
    cookie: Cookie,
    received_bytes: usize,
}

impl OpeningParser for CookieOpening {
    fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        match stream.read(&mut self.cookie[self.received_bytes..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.received_bytes += n;
                // Old clients include their host name; no client sends control characters.
                if self.cookie[..self.received_bytes.min(COOKIE_LEN - 1)]
                    .iter()
                    .any(|c| c.is_ascii_control() && *c != 0)
                {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(self.received_bytes == COOKIE_LEN)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn admit(
        self: Box<Self>,
        pending: PendingConnection,
        shared: &Arc<Shared>,
    ) -> Option<(PendingConnection, Box<dyn OpeningParser>)> {
        let PendingConnection { stream, peer, order } = pending;
        stream.set_nonblocking(false).ok()?;
        match self.tests.awaiting(&self.cookie) {
            Some(test) if !shared.is_data_address(peer, test.client) => {
                let why = "data from another address than its control connection's".to_owned();
                shared.report_refused(peer, Refusal::Address, why);
            }
            // A surplus stream is closed; its client sees the end of file.
            Some(test) => drop(test.deliver.try_send(AcceptedStream { order, stream })),
            None => {
                if let Err(stream) = session::spawn(stream, peer, self.cookie, &self.tests, shared) {
                    shared.admission.refuse(stream, &BUSY_REPLY);
                    let why = "iperf3: no descriptor or thread is free".to_owned();
                    shared.report_refused(peer, Refusal::Busy, why);
                }
            }
        }
        None
    }
}

/// Tests that are waiting for their streams.
#[derive(Debug, Default)]
pub struct Tests {
    tcp: Mutex<HashMap<Cookie, Streams>>,
    udp: Mutex<HashMap<IpAddr, UdpWaiter>>,
    users: Option<Users>,
    keep_alive: Option<KeepAlive>,
    output: Option<ServerOutput>,
}

/// Output for the documents of completed tests.
pub struct ServerOutput {
    /// Report interval, nanoseconds.
    pub interval_ns: u64,
    /// Takes the document of each test.
    pub take: Box<dyn Fn(&Document) + Send + Sync>,
}

impl ServerOutput {
    /// Passes on the document of a completed test.
    pub(crate) fn completed(&self, document: &Document) {
        (self.take)(document);
    }
}

impl std::fmt::Debug for ServerOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOutput").field("interval_ns", &self.interval_ns).finish_non_exhaustive()
    }
}

/// Test that is waiting for TCP connections with its cookie.
#[derive(Debug, Clone)]
struct Streams {
    deliver: mpsc::SyncSender<AcceptedStream>,
    /// Address of the test's control connection. Checked because the cookie is sent in clear text.
    client: IpAddr,
}

/// Test that is waiting for UDP hellos from its address.
#[derive(Debug, Clone)]
struct UdpWaiter {
    deliver: mpsc::SyncSender<UdpSocket>,
    /// Local address of the control connection; the streams use the same one.
    local: IpAddr,
}

/// A data connection and its position in the order of arrival, which identifies the streams of a test.
#[derive(Debug)]
pub struct AcceptedStream {
    /// Number of connections accepted before this one.
    pub order: u64,
    /// The accepted connection.
    pub stream: TcpStream,
}

/// Locks a mutex; a poisoned one is used too, because it protects plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tests {
    /// Users who may run tests; everyone if `None`.
    pub fn users(&self) -> Option<&Users> {
        self.users.as_ref()
    }

    /// Keepalive of control connections, if it is configured.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive
    }

    /// Output for the documents of completed tests, if there is one.
    pub(crate) fn output(&self) -> Option<&ServerOutput> {
        self.output.as_ref()
    }

    fn awaiting(&self, cookie: &Cookie) -> Option<Streams> {
        lock(&self.tcp).get(cookie).cloned()
    }

    /// Registers a test for TCP connections with this cookie from `client`; `None` if another test has the same
    /// cookie.
    pub fn register_tcp(
        self: &Arc<Self>,
        cookie: Cookie,
        client: IpAddr,
        most: usize,
    ) -> Option<(mpsc::Receiver<AcceptedStream>, Registration)> {
        let mut tests = lock(&self.tcp);
        if tests.contains_key(&cookie) {
            return None;
        }
        let (deliver, rx) = mpsc::sync_channel(most);
        tests.insert(cookie, Streams { deliver, client });
        Some((rx, Registration { tests: Arc::clone(self), key: Key::Tcp(cookie) }))
    }

    /// Registers a test for UDP hellos from this address, which arrive as connected sockets; `None` while another
    /// test of the same address waits. `local` is the local address of the control connection.
    pub fn register_udp(
        self: &Arc<Self>,
        peer: IpAddr,
        local: IpAddr,
        most: usize,
    ) -> Option<(mpsc::Receiver<UdpSocket>, Registration)> {
        let mut tests = lock(&self.udp);
        if tests.contains_key(&peer) {
            return None;
        }
        let (tx, rx) = mpsc::sync_channel(most);
        tests.insert(peer, UdpWaiter { deliver: tx, local });
        Some((rx, Registration { tests: Arc::clone(self), key: Key::Udp(peer) }))
    }
}

/// Registration of a waiting test; removed when dropped.
#[derive(Debug)]
pub struct Registration {
    tests: Arc<Tests>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Tcp(Cookie),
    Udp(IpAddr),
}

impl Drop for Registration {
    fn drop(&mut self) {
        match self.key {
            Key::Tcp(cookie) => drop(lock(&self.tests.tcp).remove(&cookie)),
            Key::Udp(peer) => drop(lock(&self.tests.udp).remove(&peer)),
        }
    }
}
