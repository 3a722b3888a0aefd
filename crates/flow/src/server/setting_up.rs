//! Set-up of a test between acceptance and start: its data sockets arrive and are authenticated.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use landspeed_model::Parameters;
use landspeed_sys::clock;
use landspeed_units::Nanos;

use super::Shared;
use super::hellos::ValidatedFlow;
use super::registry::{Arrival, Slot};
use super::session::{STEP_TIMEOUT, unexpected};
use super::tap::Capture;
use crate::control::channel::{Receiver, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::timeout_ns;
use crate::control::message::{ToClient, ToServer};
use crate::end::{DataSocket, Side, StreamPlan};
use crate::error::FlowError;
use crate::layout::{self, Link, MTU_STREAM, StreamSpec};
use crate::sockets;

/// Maximum time to the start that a client may request, nanoseconds.
const MAX_LEAD_NS: u64 = 10_000_000_000;
/// Smallest error of a requested start that is noted, nanoseconds.
const NOTED_ERROR_NS: u64 = 100_000_000;
/// Timeout for the whole set-up, including the path MTU probe, in addition to 40 round trips, nanoseconds.
const SETUP_NS: u64 = 60_000_000_000;
/// Connections of one connect/request/response stream that may be queued.
const MAX_QUEUED_CONNECTIONS: usize = 8;

/// Receiver of a test's data sockets.
pub struct SocketArrivals {
    arrivals: mpsc::Receiver<Arrival>,
    deliver: mpsc::SyncSender<Arrival>,
    acceptors: HashMap<u32, mpsc::Receiver<TcpStream>>,
    connects: Vec<u32>,
    expected: Vec<u32>,
    tcp: HashMap<u32, TcpStream>,
    flows: Vec<ValidatedFlow>,
}

impl SocketArrivals {
    /// Creates the receiver for the streams of a test.
    pub fn new(specs: &[StreamSpec], probe_mtu: bool) -> Self {
        let ids = |connects: bool| specs.iter().filter(move |s| (s.link == Link::Connect) == connects).map(|s| s.id);
        let mut expected: Vec<u32> = ids(false).collect();
        if probe_mtu {
            expected.push(MTU_STREAM);
        }
        let (deliver, arrivals) = mpsc::sync_channel(expected.len() + 1);
        Self {
            arrivals,
            deliver,
            acceptors: HashMap::new(),
            connects: ids(true).collect(),
            expected,
            tcp: HashMap::new(),
            flows: Vec::new(),
        }
    }

    /// Creates the registry entry to which data sockets are delivered.
    pub fn slot(&mut self, local: SocketAddr, peer: SocketAddr, credentials: Credentials) -> Slot {
        let mut senders = HashMap::new();
        for &id in &self.connects {
            let (tx, rx) = mpsc::sync_channel(MAX_QUEUED_CONNECTIONS);
            senders.insert(id, tx);
            self.acceptors.insert(id, rx);
        }
        let ips = (crate::address::unmap(local).ip(), crate::address::unmap(peer).ip());
        Slot::new(ips, credentials, self.deliver.clone(), senders, self.expected.clone())
    }

    /// Receives delivered sockets and retransmits lost welcomes.
    fn poll(&mut self) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            match arrival {
                Arrival::Tcp(stream, tcp) => {
                    self.tcp.insert(stream, tcp);
                }
                Arrival::Udp(flow) => self.flows.push(flow),
            }
        }
        self.flows.iter_mut().for_each(ValidatedFlow::poll);
    }

    /// Whether every stream of the test has arrived; the MTU probe does not count.
    fn complete(&self) -> bool {
        let wanted = self.expected.iter().filter(|&&id| id != MTU_STREAM).count();
        let flows = self.flows.iter().filter(|flow| flow.stream != MTU_STREAM).count();
        self.tcp.len() + flows >= wanted
    }

    /// Returns the MTU probe's socket once it has arrived.
    fn take_mtu(&mut self) -> Option<UdpSocket> {
        let at = self.flows.iter().position(|flow| flow.stream == MTU_STREAM)?;
        self.flows.swap_remove(at).into_socket().ok()
    }

    /// Returns every stream with its socket, configured as requested.
    fn take_streams(&mut self, test: &Test<'_>) -> Result<Vec<StreamPlan>, FlowError> {
        let Test { credentials, specs, parameters } = *test;
        let mut udp = HashMap::new();
        for flow in std::mem::take(&mut self.flows) {
            let stream = flow.stream;
            if let Ok(socket) = flow.into_socket() {
                udp.insert(stream, socket);
            }
        }
        specs
            .iter()
            .map(|spec| {
                let socket = match spec.link {
                    Link::Tcp => self.tcp.remove(&spec.id).map(DataSocket::Tcp),
                    Link::Udp => udp.remove(&spec.id).map(DataSocket::Udp),
                    Link::Connect => self.acceptors.remove(&spec.id).map(|rx| DataSocket::Acceptor(Mutex::new(rx))),
                }
                .ok_or_else(|| FlowError::Protocol {
                    during: "at the start",
                    message: format!("stream {} never arrived", spec.id),
                })?;
                sockets::configure_accepted(
                    &socket,
                    &layout::of_stream(parameters, spec),
                    spec.job(Side::Server).sends(),
                )?;
                let job = spec.job(Side::Server);
                Ok(StreamPlan::new(
                    spec.id,
                    spec.index,
                    spec.direction,
                    job,
                    socket,
                    credentials.datagram_tag(spec.id),
                ))
            })
            .collect()
    }
}

/// Test that is being set up.
pub struct Test<'a> {
    /// Authenticates its data sockets.
    pub credentials: &'a Credentials,
    /// Specifications of its streams.
    pub specs: &'a [StreamSpec],
    /// Effective parameters.
    pub parameters: &'a Parameters,
}

/// Agreed start of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Time on this host's monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// Difference from the client's request, if it is noticeable.
    pub note: Option<String>,
}

impl Start {
    /// The start that a message which arrived at `now_ns` asks for. The client knows this host's clock by an estimate
    /// only; the start cannot be further away than it was when the client sent the message.
    fn agree(at_ns: u64, lead_ns: Option<u64>, now_ns: u64) -> Self {
        let latest_ns = now_ns.saturating_add(lead_ns.map_or(MAX_LEAD_NS, |lead_ns| lead_ns.min(MAX_LEAD_NS)));
        let agreed_ns = at_ns.clamp(now_ns, latest_ns);
        let wrong_ns = at_ns.abs_diff(agreed_ns);
        let note = (lead_ns.is_some() && wrong_ns > NOTED_ERROR_NS).then(|| {
            let (by, side) = (Nanos::new(wrong_ns), if at_ns > agreed_ns { "after" } else { "before" });
            format!(
                "the client's start time was {by} {side} any possible one: its estimate of the server's clock is wrong, or its \
                 message was late"
            )
        });
        Self { at_ns: agreed_ns, note }
    }
}

/// Sets up a test. Returns its start and all streams, configured as requested; `None` if the client ended
/// the test first. `capture` serves clients that request a capture on the server.
pub fn prepare(
    tx: &mut Sender,
    rx: &mut Receiver,
    mut listeners: SocketArrivals,
    test: &Test<'_>,
    shared: &Shared,
    capture: &mut Capture<'_>,
) -> Result<Option<(Start, Vec<StreamPlan>)>, FlowError> {
    let credentials = test.credentials;
    let begun = clock::monotonic_ns();
    let step_ns = timeout_ns(STEP_TIMEOUT.as_nanos() as u64, tx.min_rtt_ns());
    let last_ns = begun + SETUP_NS + 40 * tx.min_rtt_ns();
    let mut deadline = begun + step_ns;
    let mut opened = false;
    let mut streams = None;
    loop {
        listeners.poll();
        if let Some(socket) = listeners.take_mtu() {
            // The client drives the probe and continues when it has its answers; serving it has its own time limit.
            crate::mtu::serve(&socket, credentials.datagram_tag(MTU_STREAM), tx.min_rtt_ns(), &shared.stop);
            deadline = clock::monotonic_ns() + step_ns;
        }
        // A slot must not be held by set-up forever, even by an active client.
        let deadline_now = deadline.min(last_ns);
        if opened && streams.is_none() && listeners.complete() {
            streams = Some(listeners.take_streams(test)?);
            capture.all_arrived(test.specs);
            tx.queue(&ToClient::Ready)?;
        }
        let now = clock::monotonic_ns();
        if now > deadline_now {
            return Err(FlowError::Timeout { what: "setting up the test", seconds: (now - begun) / 1_000_000_000 });
        }
        if shared.stopping() {
            return Ok(None);
        }
        tx.flush()?;
        if tx.is_blocked() {
            // Do not read from a client that does not read its answers.
            clock::sleep_until(now + 2_000_000);
            continue;
        }
        match rx.poll::<ToServer>(Duration::from_millis(2))? {
            None => continue,
            Some(ToServer::Ping { n }) => tx.queue(&ToClient::Pong { n, now_ns: clock::monotonic_ns() })?,
            Some(ToServer::Opened) => opened = true,
            Some(ToServer::Start { at_ns, lead_ns }) if streams.is_some() => {
                let start = Start::agree(at_ns, lead_ns, clock::monotonic_ns());
                return Ok(streams.map(|streams| (start, streams)));
            }
            Some(ToServer::Tap) => capture.begin(tx)?,
            Some(ToServer::Alive) => {}
            Some(ToServer::Stop | ToServer::Bye) => return Ok(None),
            Some(other) => return Err(unexpected("while setting up the test", &other)),
        }
        deadline = now + step_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn wrong_clock_offset_does_not_move_the_start() {
        let now_ns = 50_000 * MS;
        let agree = |at_ns| Start::agree(at_ns, Some(40 * MS), now_ns);
        assert_eq!(agree(now_ns + 39 * MS), Start { at_ns: now_ns + 39 * MS, note: None });
        for (at_ns, agreed_ns) in [
            (now_ns + 8_040 * MS, now_ns + 40 * MS),
            (u64::MAX, now_ns + 40 * MS),
            (now_ns - 8_000 * MS, now_ns),
            (0, now_ns),
        ] {
            let start = agree(at_ns);
            assert_eq!(start.at_ns, agreed_ns, "{at_ns}");
            assert!(start.note.is_some(), "{at_ns}");
        }
        // Clients of earlier versions do not send the lead.
        assert_eq!(Start::agree(now_ns + 8_000 * MS, None, now_ns).at_ns, now_ns + 8_000 * MS);
    }
}
