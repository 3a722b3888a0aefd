//! Which test a token belongs to.

use std::collections::HashMap;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use crate::control::preface::Token;

/// A data socket that found its test.
#[derive(Debug)]
pub enum Arrival {
    /// A TCP data connection, answered.
    Tcp(u32, TcpStream),
    /// A UDP socket connected to where a hello came from; the address is not proved yet.
    Udp(u32, UdpSocket),
}

/// A test that waits for, or runs on, its data sockets.
#[derive(Debug)]
pub struct Slot {
    /// Server address the client talks to: data sockets answer from it.
    pub local_ip: IpAddr,
    arrivals: mpsc::SyncSender<Arrival>,
    /// Streams of connect/request/response: each takes many connections.
    acceptors: HashMap<u32, mpsc::SyncSender<TcpStream>>,
    /// Streams that may still arrive by TCP or UDP.
    expected: Mutex<Vec<u32>>,
}

impl Slot {
    /// For a test that expects these streams.
    pub fn new(
        local_ip: IpAddr,
        arrivals: mpsc::SyncSender<Arrival>,
        acceptors: HashMap<u32, mpsc::SyncSender<TcpStream>>,
        expected: Vec<u32>,
    ) -> Self {
        Self { local_ip, arrivals, acceptors, expected: Mutex::new(expected) }
    }

    /// Hands over a TCP connection; gives it back if nobody expects it.
    pub fn deliver_tcp(&self, stream: u32, tcp: TcpStream) -> Result<(), TcpStream> {
        if let Some(acceptor) = self.acceptors.get(&stream) {
            return acceptor.try_send(tcp).map_err(|error| match error {
                mpsc::TrySendError::Full(tcp) | mpsc::TrySendError::Disconnected(tcp) => tcp,
            });
        }
        if !self.claim(stream) {
            return Err(tcp);
        }
        let refused = match self.arrivals.try_send(Arrival::Tcp(stream, tcp)) {
            Ok(()) => return Ok(()),
            Err(mpsc::TrySendError::Full(arrival) | mpsc::TrySendError::Disconnected(arrival)) => arrival,
        };
        match refused {
            Arrival::Tcp(_, tcp) => Err(tcp),
            Arrival::Udp(..) => Ok(()),
        }
    }

    /// Whether this UDP stream is expected and has not arrived; it is from now on taken.
    pub fn claim(&self, stream: u32) -> bool {
        let mut expected = lock(&self.expected);
        match expected.iter().position(|&s| s == stream) {
            Some(at) => {
                expected.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Hands over a UDP socket.
    pub fn deliver_udp(&self, stream: u32, udp: UdpSocket) {
        let _ = self.arrivals.try_send(Arrival::Udp(stream, udp));
    }
}

/// All tests of a server.
#[derive(Debug, Default)]
pub struct Registry {
    slots: Mutex<HashMap<Token, Arc<Slot>>>,
}

impl Registry {
    /// The test of a token.
    pub fn find(&self, token: &Token) -> Option<Arc<Slot>> {
        lock(&self.slots).get(token).cloned()
    }

    /// Enters a test; it leaves when the entry is dropped.
    pub fn enter(self: &Registry, token: Token, slot: Slot) -> Entry<'_> {
        lock(&self.slots).insert(token, Arc::new(slot));
        Entry { registry: self, token }
    }
}

/// A test's place in the registry.
#[derive(Debug)]
pub struct Entry<'a> {
    registry: &'a Registry,
    token: Token,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        lock(&self.registry.slots).remove(&self.token);
    }
}

/// A poisoned lock only means that some thread panicked while it held plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
