//! Which test a data socket belongs to.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use landspeed_sys::clock;

use super::hellos::ProvedFlow;
use super::tap::{FlowSink, TestFlow, TestTransport};
use crate::control::credentials::{Credentials, TestName};

/// A data socket that found its test.
#[derive(Debug)]
pub enum Arrival {
    /// A TCP data connection: answered and, with a key, proved.
    Tcp(u32, TcpStream),
    /// A UDP flow whose client proved its address and, with a key, the stream's secret.
    Udp(ProvedFlow),
}

/// A test that waits for, or runs on, its data sockets.
#[derive(Debug)]
pub struct Slot {
    /// Server address the client talks to: data sockets answer from it.
    pub local_ip: IpAddr,
    /// Address of the client's end of the control connection.
    pub client_ip: IpAddr,
    /// What data sockets of the test have to show.
    pub credentials: Credentials,
    arrivals: mpsc::SyncSender<Arrival>,
    /// Streams of connect/request/response: each takes many connections.
    acceptors: HashMap<u32, mpsc::SyncSender<TcpStream>>,
    /// Streams that may still arrive by TCP or UDP.
    expected: Mutex<Vec<u32>>,
    flows: Mutex<Flows>,
}

/// Data sockets that have arrived, for the test's capture.
#[derive(Default)]
struct Flows {
    /// Before a sink was set.
    past: Vec<TestFlow>,
    sink: Option<Arc<FlowSink>>,
}

impl std::fmt::Debug for Flows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Flows")
    }
}

/// Arrivals remembered for a capture that begins after them.
const PAST_FLOWS: usize = 1024;

impl Slot {
    /// For a test that expects these streams.
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

    /// Reports to `sink` every data socket that has arrived or arrives later.
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
            None if flows.past.len() < PAST_FLOWS => flows.past.push(flow),
            None => {}
        }
    }

    /// Hands over a TCP connection; returns it if no test expects it.
    pub fn deliver_tcp(&self, stream: u32, tcp: TcpStream) -> Result<(), TcpStream> {
        if tcp.set_nonblocking(false).is_err() {
            return Err(tcp);
        }
        let client = tcp.peer_addr().ok();
        self.hand_over(stream, tcp)?;
        self.arrived(TestTransport::Tcp, client);
        Ok(())
    }

    fn hand_over(&self, stream: u32, tcp: TcpStream) -> Result<(), TcpStream> {
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

    /// The same; it is from now on taken.
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

    /// Hands over a UDP flow.
    pub fn deliver_udp(&self, flow: ProvedFlow) {
        let client = flow.client();
        if self.arrivals.try_send(Arrival::Udp(flow)).is_ok() {
            self.arrived(TestTransport::Udp, client);
        }
    }
}

/// All tests of a server.
#[derive(Debug, Default)]
pub struct Registry {
    slots: Mutex<HashMap<TestName, Arc<Slot>>>,
}

impl Registry {
    /// The test that a data socket names.
    pub fn find(&self, name: TestName) -> Option<Arc<Slot>> {
        lock(&self.slots).get(&name).cloned()
    }

    /// Enters a test; it leaves when the entry is dropped.
    pub fn enter(&self, slot: Slot) -> Entry<'_> {
        let (name, slot) = (slot.credentials.name(), Arc::new(slot));
        lock(&self.slots).insert(name, Arc::clone(&slot));
        Entry { registry: self, name, slot }
    }
}

/// A test's place in the registry.
#[derive(Debug)]
pub struct Entry<'a> {
    registry: &'a Registry,
    name: TestName,
    /// What the doormen know about the test.
    pub slot: Arc<Slot>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        lock(&self.registry.slots).remove(&self.name);
    }
}

/// A poisoned lock only means that some thread panicked while it held plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
