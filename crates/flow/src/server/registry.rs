//! Matches data sockets to tests.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use landspeed_sys::clock;

use super::hellos::ValidatedFlow;
use super::tap::{FlowSink, TestFlow, TestTransport};
use crate::control::credentials::{Credentials, TestName};

/// A data socket that was matched to its test.
#[derive(Debug)]
pub enum Arrival {
    /// TCP data connection with its stream number: answered and, with a key, authenticated.
    Tcp(u32, TcpStream),
    /// UDP flow with a validated client address and, with a key, a proved stream secret.
    Udp(ValidatedFlow),
}

/// A test that accepts data sockets.
#[derive(Debug)]
pub struct Slot {
    /// Server address that the client uses; data sockets answer from it.
    pub local_ip: IpAddr,
    /// Client address of the control connection.
    pub client_ip: IpAddr,
    /// Authenticates the test's data sockets.
    pub credentials: Credentials,
    arrivals: mpsc::SyncSender<Arrival>,
    /// Queues of connect/request/response streams, which have many connections each.
    acceptors: HashMap<u32, mpsc::SyncSender<TcpStream>>,
    /// Stream numbers that have not arrived by TCP or UDP yet.
    expected: Mutex<Vec<u32>>,
    flows: Mutex<Flows>,
}

/// Data sockets that have arrived, for the test's capture.
#[derive(Default)]
struct Flows {
    /// Arrivals before a sink was set.
    past: Vec<TestFlow>,
    sink: Option<Arc<FlowSink>>,
}

impl std::fmt::Debug for Flows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Flows")
    }
}

/// Maximum number of arrivals stored until a capture begins.
const MAX_PAST_FLOWS: usize = 1024;

impl Slot {
    /// Creates the entry of a test that expects these streams.
    pub fn new(
        (local_ip, client_ip): (IpAddr, IpAddr),
        credentials: Credentials,
        arrivals: mpsc::SyncSender<Arrival>,
        acceptors: HashMap<u32, mpsc::SyncSender<TcpStream>>,
        expected: Vec<u32>,
    ) -> Self {
        let (expected, flows) = (Mutex::new(expected), Mutex::default());
        Self { local_ip, client_ip, credentials, arrivals, acceptors, expected, flows }
    }

    /// Reports all past and future data sockets to `sink`.
    pub fn report_flows(&self, sink: Arc<FlowSink>) {
        let mut flows = lock(&self.flows);
        flows.past.drain(..).for_each(|flow| sink(flow));
        flows.sink = Some(sink);
    }

    fn arrived(&self, transport: TestTransport, client: Option<SocketAddr>) {
        let Some(client) = client.map(crate::address::unmap) else { return };
        let flow = TestFlow { transport, client, arrived_unix_ns: clock::realtime_ns() };
        let mut flows = lock(&self.flows);
        match &flows.sink {
            Some(sink) => sink(flow),
            None if flows.past.len() < MAX_PAST_FLOWS => flows.past.push(flow),
            None => {}
        }
    }

    /// Delivers a TCP connection to the test; returns it if the stream is not expected.
    pub fn deliver_tcp(&self, stream: u32, tcp: TcpStream) -> Result<(), TcpStream> {
        if tcp.set_nonblocking(false).is_err() {
            return Err(tcp);
        }
        let client = tcp.peer_addr().ok();
        self.queue_connection(stream, tcp)?;
        self.arrived(TestTransport::Tcp, client);
        Ok(())
    }

    fn queue_connection(&self, stream: u32, tcp: TcpStream) -> Result<(), TcpStream> {
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
            Arrival::Udp(_) => Ok(()),
        }
    }

    /// Whether this stream is expected and has not arrived.
    pub fn expects(&self, stream: u32) -> bool {
        lock(&self.expected).contains(&stream)
    }

    /// Claims an expected stream; false if it is not expected or already claimed.
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

    /// Delivers a UDP flow to the test.
    pub fn deliver_udp(&self, flow: ValidatedFlow) {
        let client = flow.client();
        if self.arrivals.try_send(Arrival::Udp(flow)).is_ok() {
            self.arrived(TestTransport::Udp, client);
        }
    }
}

/// Running tests of a server, by the name that their data sockets send.
#[derive(Debug, Default)]
pub struct Registry {
    slots: Mutex<HashMap<TestName, Arc<Slot>>>,
}

impl Registry {
    /// Returns the test that a data socket names.
    pub fn find(&self, name: TestName) -> Option<Arc<Slot>> {
        lock(&self.slots).get(&name).cloned()
    }

    /// Adds a test; it is removed when the entry is dropped.
    pub fn enter(&self, slot: Slot) -> Entry<'_> {
        let (name, slot) = (slot.credentials.name(), Arc::new(slot));
        lock(&self.slots).insert(name, Arc::clone(&slot));
        Entry { registry: self, name, slot }
    }
}

/// Registry entry of a test; removes the test when dropped.
#[derive(Debug)]
pub struct Entry<'a> {
    registry: &'a Registry,
    name: TestName,
    /// Test as seen by the accepting threads.
    pub slot: Arc<Slot>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        lock(&self.registry.slots).remove(&self.name);
    }
}

/// Locks a mutex, ignoring poison: the data is plain, so a panic elsewhere cannot leave it inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
