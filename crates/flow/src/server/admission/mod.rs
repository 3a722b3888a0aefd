//! Who may test, and how much of the host each test gets: one module for every protocol of a server.
//!
//! A client passes three bounded stages. Its connection waits at a door until it has shown what it is for
//! (`Admission::waiting_at_a_door`). Then it is greeted: a thread hears what it asks for ([`Visit`]). Then it is granted
//! its test, which holds a share of the host until it ends ([`Visit::grant`]). In each stage the client host that holds most
//! makes room when all places are taken.

mod descriptors;
mod handshakes;
mod limits;
mod occupancy;
mod rate_guard;
mod refusals;
mod shares;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};

use ipnet::IpNet;
use landspeed_model::{ErrorEntry, Parameters};

use self::descriptors::Descriptors;
use self::handshakes::{HandshakeSlot, Handshakes};
use self::occupancy::Occupancy;
use self::refusals::Refusals;
use self::shares::{Resource, Share, Shares};
use super::events::ServerCounts;
use crate::address::{client_host, unmap};
use crate::dialect::Dialect;

pub use limits::{Exceeded, Limits};
pub use occupancy::NoPlace;
pub use rate_guard::RateGuard;

pub(super) use handshakes::oldest_of_busiest_host;
pub(super) use refusals::turn_away;

/// Everything that bounds the clients of a server.
pub struct Admission {
    /// What a test may ask for.
    pub limits: Limits,
    allow: Vec<IpNet>,
    shares: Arc<Shares>,
    handshakes: Arc<Handshakes>,
    /// Connections that are refused, until they have read why.
    pub(super) refusals: Refusals,
    waiting_at_a_door: usize,
    counts: Arc<ServerCounts>,
}

impl Admission {
    /// For a process whose `doors` are open: what is left of its descriptors is divided here.
    pub(super) fn new(limits: Limits, allow: Vec<IpNet>, doors: usize, counts: Arc<ServerCounts>) -> Self {
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
            handshakes: Arc::new(Handshakes::new(descriptors.greeting)),
            refusals: Refusals::new(descriptors.leaving),
            waiting_at_a_door: (descriptors.waiting / doors.max(1)).max(2),
            counts,
        }
    }

    /// Whether the networks that clients may come from have this address.
    pub fn allows(&self, peer: SocketAddr) -> bool {
        let ip = unmap(peer).ip();
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&ip))
    }

    /// Connections that may wait at each door.
    pub(super) fn waiting_at_a_door(&self) -> usize {
        self.waiting_at_a_door
    }

    /// Whether a client host has a test here.
    pub(super) fn has_test(&self, host: IpAddr) -> bool {
        self.shares.has_test(host)
    }

    /// Refuses a connection without waiting: sends the answer, and closes once it has been read.
    pub fn refuse(&self, stream: TcpStream, answer: &[u8]) {
        self.refusals.send(stream, answer);
    }

    /// Greets a client: serves its connection on a new thread.
    ///
    /// # Errors
    /// Gives the connection back if no descriptor or thread is free for it.
    pub fn greet(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        thread: &str,
        serve: impl FnOnce(Visit, TcpStream) + Send + 'static,
    ) -> Result<(), TcpStream> {
        let Ok(place) = self.handshakes.enter(client_host(peer), &stream) else { return Err(stream) };
        let visit = Visit { admission: Arc::clone(self), peer, greeting: Some(place), occupancy: None };
        let (hand_over, handed) = mpsc::sync_channel::<TcpStream>(1);
        let started = std::thread::Builder::new().name(thread.to_owned()).spawn(move || {
            if let Ok(stream) = handed.recv() {
                serve(visit, stream);
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

/// A client in its greeting, and then with its test. Dropping it gives everything back.
pub struct Visit {
    admission: Arc<Admission>,
    peer: SocketAddr,
    /// Its place among the handshakes, until a test is granted.
    greeting: Option<HandshakeSlot>,
    /// Its place among the running tests.
    occupancy: Option<Occupancy>,
}

impl Visit {
    /// Takes a place among the running tests: what is in force, and notes on where that is less than was asked for.
    ///
    /// # Errors
    /// Why there is no place. A test without one has taken nothing.
    pub fn grant(&mut self, asked: &Parameters, dialect: Dialect) -> Result<(Parameters, Vec<String>), NotGranted> {
        let (mut granted, mut notes) = self.admission.limits.apply(asked, dialect).map_err(NotGranted::Exceeded)?;
        let occupancy = Occupancy::take(&self.admission, self.peer, &mut granted, &mut notes);
        let occupancy = occupancy.map_err(NotGranted::Full)?;
        if !self.leave_greeting() {
            return Err(NotGranted::CrowdedOut);
        }
        self.occupancy = Some(occupancy);
        Ok((granted, notes))
    }

    /// Leaves the handshakes to stay; false if its place there was lost to others before.
    pub(super) fn leave_greeting(&mut self) -> bool {
        let left = self.greeting.as_ref().is_none_or(HandshakeSlot::leave);
        if left {
            self.greeting = None;
        }
        left
    }

    /// The connection, if it lost its place among the handshakes to others. Its reading side has been shut down.
    pub fn lost(&self) -> Option<TcpStream> {
        self.greeting.as_ref().and_then(HandshakeSlot::lost)
    }

    /// Sends an answer on a connection that lost its place ([`Visit::lost`]), and closes it once that has been read.
    pub fn refuse_lost(&self, stream: TcpStream, answer: &[u8]) {
        self.admission.refusals.send_after_shutdown(stream, answer);
    }

    /// What the test may move in each direction, all its streams together, bits/s.
    pub fn rate_limit_bps(&self) -> Option<u64> {
        self.occupancy.as_ref().and_then(Occupancy::rate_limit_bps)
    }

    /// How fast each TCP stream is read at most, bits/s: a little above what the client was granted, so that only one that
    /// ignores it feels it.
    pub fn receive_cap_bps(&self, granted: &Parameters) -> Option<u64> {
        let streams_each_way = u64::from(granted.streams.max(1));
        self.rate_limit_bps().map(|most| most.saturating_add(most / 20) / streams_each_way)
    }
}

/// Why a client gets no test.
#[derive(Debug, Clone, PartialEq)]
pub enum NotGranted {
    /// No test here may be like that.
    Exceeded(Exceeded),
    /// Other tests hold too much.
    Full(NoPlace),
    /// The client lost its place among the handshakes to others.
    CrowdedOut,
}

impl NotGranted {
    /// As the server's answer.
    pub fn entry(&self) -> ErrorEntry {
        match self {
            Self::Exceeded(why) => {
                ErrorEntry { code: "not-permitted".to_owned(), message: why.to_string(), advice: None }
            }
            Self::Full(full) => full.entry(),
            Self::CrowdedOut => ErrorEntry {
                code: "server-busy".to_owned(),
                message: "too many clients are asking for tests at once".to_owned(),
                advice: Some("try again in a moment".to_owned()),
            },
        }
    }
}
