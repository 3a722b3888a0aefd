//! Admission control for all protocols of a server: access, and each test's share of the host's resources.
//!
//! A client passes three limited stages. Its connection waits until its preface is complete
//! (`Admission::max_waiting_per_address`). Then a handshake thread reads its request ([`AdmittedClient`]). Then its test is
//! accepted, with a share of the host's resources until it ends ([`AdmittedClient::grant`]). When a stage is full, the
//! client host with most entries loses one.

mod descriptors;
mod handshakes;
mod limits;
mod occupancy;
mod queue;
mod rate_guard;
mod refusals;
mod shares;
mod traffic;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};

use ipnet::IpNet;
use landspeed_model::{ErrorEntry, Parameters};

use self::descriptors::Descriptors;
use self::handshakes::{HandshakeSlot, Handshakes};
use self::occupancy::Occupancy;
use self::queue::{ExpectedEnds, Queue, Ticket};
use self::refusals::Refusals;
use self::shares::{Resource, Share, Shares};
use self::traffic::Traffic;
use super::counts::ServerCounts;
use crate::address::{client_host, unmap};
use crate::dialect::Dialect;
use crate::layout::duration_ns;

pub use limits::{Exceeded, Limits};
pub use occupancy::ResourcesExhausted;
pub use queue::QueuePosition;
pub use rate_guard::RateGuard;
pub use traffic::TrafficGuard;

pub(super) use handshakes::oldest_of_busiest_host;
pub(super) use refusals::refuse_immediately;

/// Limits and state of all clients of a server.
pub struct Admission {
    /// Limits of every test.
    pub limits: Limits,
    allow: Vec<IpNet>,
    shares: Arc<Shares>,
    handshakes: Arc<Handshakes>,
    queue: Arc<Queue>,
    ends: ExpectedEnds,
    traffic: Arc<Traffic>,
    /// Refused connections that have not read the answer.
    pub(super) refusals: Refusals,
    max_waiting_per_address: usize,
    counts: Arc<ServerCounts>,
}

impl Admission {
    /// Creates the state for a process with `listeners` listening addresses already open: the remaining descriptors are
    /// divided here.
    pub(super) fn new(limits: Limits, allow: Vec<IpNet>, listeners: usize, counts: Arc<ServerCounts>) -> Self {
        let descriptors = Descriptors::of_process();
        let rate = limits.max_total_rate_bps.unwrap_or(u64::MAX);
        let whole = Share::new(&[
            (Resource::Tests, limits.max_tests as u64),
            (Resource::Memory, shares::MEMORY_BYTES),
            (Resource::Threads, shares::THREADS),
            (Resource::Descriptors, descriptors.tests),
            (Resource::Upload, rate),
            (Resource::Download, rate),
        ]);
        Self {
            limits,
            allow,
            shares: Arc::new(Shares::new(whole, limits.max_tests_per_host.map(|most| most as u64))),
            handshakes: Arc::new(Handshakes::new(descriptors.handshaking)),
            queue: Arc::new(Queue::new(limits.max_waiting)),
            ends: ExpectedEnds::default(),
            traffic: Arc::default(),
            refusals: Refusals::new(descriptors.lingering),
            max_waiting_per_address: (descriptors.waiting / listeners.max(1)).max(2),
            counts,
        }
    }

    /// Whether the address is in the list of permitted networks.
    pub fn allows(&self, peer: SocketAddr) -> bool {
        let ip = unmap(peer).ip();
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&ip))
    }

    /// Returns the maximum number of connections waiting for their preface per listening address.
    pub(super) fn max_waiting_per_address(&self) -> usize {
        self.max_waiting_per_address
    }

    /// Begins the traffic of a test: it and the others that send or receive count each other.
    pub fn begin_traffic(&self) -> TrafficGuard {
        self.traffic.begin()
    }

    /// Whether clients wait in the queue for a test.
    pub(super) fn has_waiting(&self) -> bool {
        !self.queue.is_turn(None)
    }

    /// Whether a test of the client host is running.
    pub(super) fn has_test(&self, host: IpAddr) -> bool {
        self.shares.has_test(host)
    }

    /// Refuses a connection without blocking: sends the answer, and closes when it has been read.
    pub fn refuse(&self, stream: TcpStream, answer: &[u8]) {
        self.refusals.send(stream, answer);
    }

    /// Serves the connection of a client on a new thread.
    ///
    /// # Errors
    /// Returns the connection if no descriptor or thread is free.
    pub fn spawn_session(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        thread: &str,
        serve: impl FnOnce(AdmittedClient, TcpStream) + Send + 'static,
    ) -> Result<(), TcpStream> {
        let Ok(place) = self.handshakes.enter(client_host(peer), &stream) else { return Err(stream) };
        let admitted = AdmittedClient {
            admission: Arc::clone(self),
            peer,
            handshaking: Some(place),
            occupancy: None,
            ticket: None,
        };
        let (hand_over, handed) = mpsc::sync_channel::<TcpStream>(1);
        let started = std::thread::Builder::new().name(thread.to_owned()).spawn(move || {
            if let Ok(stream) = handed.recv() {
                serve(admitted, stream);
            }
        });
        match started {
            Ok(_) => {
                let _ = hand_over.send(stream);
                Ok(())
            }
            Err(_) => Err(stream),
        }
    }
}

/// A client in its handshake, and then during its test. Releases its resources when dropped.
pub struct AdmittedClient {
    admission: Arc<Admission>,
    peer: SocketAddr,
    /// Handshake slot, until the test is accepted.
    handshaking: Option<HandshakeSlot>,
    /// Resources of the running test.
    occupancy: Option<Occupancy>,
    /// Place in the queue, until the test is accepted.
    ticket: Option<Ticket>,
}

impl AdmittedClient {
    /// Accepts a test if its resources are available. Returns the effective parameters, and notes on where they are
    /// below the requested ones.
    ///
    /// # Errors
    /// The reason why the test is refused. A refused test holds no resources.
    pub fn grant(&mut self, asked: &Parameters, dialect: Dialect) -> Result<(Parameters, Vec<String>), NotGranted> {
        let (mut granted, mut notes) = self.admission.limits.apply(asked, dialect).map_err(NotGranted::Exceeded)?;
        if !self.admission.queue.is_turn(self.ticket.as_ref()) {
            return Err(NotGranted::BehindOthers);
        }
        let occupancy = Occupancy::take(&self.admission, self.peer, &mut granted, &mut notes);
        if let (Err(full), Some(ticket)) = (&occupancy, &self.ticket) {
            ticket.hold_back(full.is_of_own_host());
        }
        let occupancy = occupancy.map_err(NotGranted::Full)?;
        if !self.release_handshake_slot() {
            return Err(NotGranted::SlotLost);
        }
        self.occupancy = Some(occupancy);
        if let Some(ticket) = self.ticket.take() {
            ticket.granted();
        }
        Ok((granted, notes))
    }

    /// Puts the client into the queue; false if the server has none, or it is full.
    pub(super) fn enter_queue(&mut self, asked: &Parameters) -> bool {
        self.ticket = self.admission.queue.enter(client_host(self.peer), duration_ns(asked));
        self.ticket.is_some()
    }

    /// Returns the client's position in the queue.
    pub(super) fn queue_position(&self, now_ns: u64) -> Option<QueuePosition> {
        Some(self.ticket.as_ref()?.position(now_ns, &self.admission.ends.list()))
    }

    /// Frees the handshake slot because the client stays; false if the slot was lost before.
    pub(super) fn release_handshake_slot(&mut self) -> bool {
        let left = self.handshaking.as_ref().is_none_or(HandshakeSlot::leave);
        if left {
            self.handshaking = None;
        }
        left
    }

    /// Returns the connection if it lost its handshake slot. Its read side is shut down.
    pub fn lost(&self) -> Option<TcpStream> {
        self.handshaking.as_ref().and_then(HandshakeSlot::lost)
    }

    /// Sends an answer on a connection that lost its slot ([`AdmittedClient::lost`]), and closes it when that has been read.
    pub fn refuse_lost(&self, stream: TcpStream, answer: &[u8]) {
        self.admission.refusals.send_after_shutdown(stream, answer);
    }

    /// Returns the rate limit of the test per direction over all streams, bits/s.
    pub fn rate_limit_bps(&self) -> Option<u64> {
        self.occupancy.as_ref().and_then(Occupancy::rate_limit_bps)
    }

    /// Returns the read rate limit of each TCP stream, bits/s: slightly above the granted rate, so that it affects
    /// only clients that ignore the grant.
    pub fn receive_cap_bps(&self, granted: &Parameters) -> Option<u64> {
        let streams_each_way = u64::from(granted.streams.max(1));
        self.rate_limit_bps().map(|most| most.saturating_add(most / 20) / streams_each_way)
    }
}

/// Reasons why a test is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum NotGranted {
    /// The test exceeds the server's limits.
    Exceeded(Exceeded),
    /// Running tests use too much of a resource.
    Full(ResourcesExhausted),
    /// The client lost its handshake slot to other clients.
    SlotLost,
    /// Other clients wait in the queue.
    BehindOthers,
    /// The client's turn in the queue did not come in time.
    WaitedTooLong {
        /// Longest wait, seconds.
        seconds: u64,
    },
}

impl NotGranted {
    /// Whether the client may get the test later, if it waits for others to end.
    pub fn may_wait(&self) -> bool {
        match self {
            Self::Full(full) => full.is_temporary(),
            Self::BehindOthers => true,
            Self::Exceeded(_) | Self::SlotLost | Self::WaitedTooLong { .. } => false,
        }
    }

    /// Returns the server's answer.
    pub fn entry(&self) -> ErrorEntry {
        match self {
            Self::Exceeded(why) => {
                ErrorEntry { code: "not-permitted".to_owned(), message: why.to_string(), advice: None }
            }
            Self::Full(full) => full.entry(),
            Self::BehindOthers => queue::behind_others(),
            Self::WaitedTooLong { seconds } => queue::waited_too_long(*seconds),
            Self::SlotLost => ErrorEntry {
                code: "server-busy".to_owned(),
                message: "too many clients are asking for tests at once".to_owned(),
                advice: Some("try again in a moment".to_owned()),
            },
        }
    }
}
