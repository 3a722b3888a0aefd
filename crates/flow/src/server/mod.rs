//! The server: many tests on one port, and other protocols on other ports.
//!
//! For each listening address ([`door`]) one thread accepts connections and reads their opening bytes without
//! blocking; a second one answers datagrams on the same port. The protocol of an address is a [`Service`].
//! [`admission`] decides which tests run, and each test has a session thread. Data sockets of landspeed's own
//! protocol are matched to their test in the registry, by the secret token or, with a key, by the public
//! identifier that they send.

pub mod admission;
mod changes;
mod counts;
mod descriptions;
pub mod door;
mod entrance;
mod event_log;
mod events;
mod hellos;
mod proving;
mod queueing;
mod rate_limit;
mod registry;
mod running;
mod service;
mod session;
mod setting_up;
mod tap;
mod third_party;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipnet::IpNet;

use self::admission::Admission;
use self::door::Listener;
use self::entrance::LandspeedService;
use self::event_log::EventLog;
use self::rate_limit::RateLimiter;
use crate::control::channel::Key;
use crate::control::deadline::Deadline;
use crate::error::FlowError;

pub use admission::Limits;
pub use changes::{ChangeHook, HeldChanges, HostChanger};
pub use counts::{ClientKind, Refusal, ServerCounts, TestKind, TestTotals};
pub use events::{ServerEvent, describe_outcome, describe_test};
pub use service::{Datagram, OpeningParser, PendingConnection, Service};
pub use tap::{FlowSink, RunningTap, TapHook, Tapper, TestFlow, TestTransport};
pub use third_party::ThirdPartyTargets;

/// Time for a running test to end when the server stops.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Listening addresses; port 0 lets the kernel choose.
    pub listen: Vec<SocketAddr>,
    /// Limits of every test.
    pub limits: Limits,
    /// Networks from which clients may connect; empty means any.
    pub allow: Vec<IpNet>,
    /// Pre-shared key, which clients need as well; `None` for no authentication.
    pub key: Option<Key>,
    /// Without a key: accept data from other addresses than that of the control connection.
    pub data_from_anywhere: bool,
    /// Describe this host to clients without a key. Clients with the server's key may always ask, and all clients
    /// if host changes are permitted.
    pub describe: bool,
    /// Captures packets for clients; `None` permits no captures.
    pub tap: Option<TapHook>,
    /// Changes this host for clients, one at a time; `None` permits no changes.
    pub changes: Option<ChangeHook>,
    /// Servers against which clients may have this one run tests; `None` permits none. With a key, the targets need
    /// the same.
    pub third_party: Option<ThirdPartyTargets>,
}

/// An additional protocol and its listening addresses.
pub struct Port {
    /// Listening addresses; may be empty.
    pub listen: Vec<SocketAddr>,
    /// Whether an address in use is not an error: another program may serve the same protocol there.
    pub optional: bool,
    /// Implementation of the protocol.
    pub service: Arc<dyn Service>,
}

/// State shared by all threads of a server.
pub struct Shared {
    pub(crate) config: ServerConfig,
    registry: registry::Registry,
    counts: Arc<ServerCounts>,
    /// Admission control for all tests.
    pub admission: Arc<Admission>,
    descriptions: descriptions::Descriptions,
    /// Whether a client currently may change the host.
    changing: AtomicBool,
    /// Limits how often clients change the host.
    changes: RateLimiter,
    stop: Arc<AtomicBool>,
    log: EventLog,
}

impl Shared {
    /// Reports an event to the server's owner, unless clients cause too many.
    fn report(&self, event: ServerEvent) {
        self.log.report(event);
    }

    /// Counts and reports a client that gets no test.
    pub fn report_refused(&self, peer: SocketAddr, reason: Refusal, why: String) {
        self.counts.count_refusal(reason);
        self.report(ServerEvent::Refused { peer, why });
    }

    /// Counts and reports an accepted test.
    pub fn report_started(&self, id: String, peer: SocketAddr, kind: TestKind, what: String) {
        self.counts.count_start(kind);
        self.report(ServerEvent::TestStarted { id, peer, what });
    }

    /// Counts and reports the end of a test that did not complete.
    pub fn report_failed(&self, id: String, peer: SocketAddr, kind: TestKind, outcome: String) {
        self.counts.count_end(kind, false);
        self.report_ended(id, peer, outcome);
    }

    /// Counts a completed test and reports its end.
    pub fn report_completed(&self, id: String, peer: SocketAddr, kind: TestKind, outcome: String) {
        self.counts.count_end(kind, true);
        self.report_ended(id, peer, outcome);
    }

    fn report_ended(&self, id: String, peer: SocketAddr, outcome: String) {
        self.report(ServerEvent::TestEnded { id, peer, outcome });
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters of tests, bytes and refusals since the start.
    pub fn counts(&self) -> &ServerCounts {
        &self.counts
    }

    /// Whether the server is stopping.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the deadline of a session's step, which is shortened when the server stops.
    pub fn step(&self, limit: Duration) -> Deadline<'_> {
        Deadline::after(limit).with_stop_grace(&self.stop, STOP_GRACE)
    }

    /// Whether an unauthenticated data socket from this address is accepted for a test whose control connection
    /// comes from `client`.
    pub fn is_data_address(&self, from: SocketAddr, client: std::net::IpAddr) -> bool {
        self.config.data_from_anywhere || crate::address::unmap(from).ip() == client
    }

    /// Whether a data socket from this address is accepted: with a key it proves itself, from any address.
    fn takes_data_from(&self, from: SocketAddr, slot: &registry::Slot) -> bool {
        slot.credentials.is_keyed() || self.is_data_address(from, slot.client_ip)
    }
}

/// A bound server, ready to run.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
}

impl Server {
    /// Binds every address of landspeed's protocol and of additional protocols, TCP and UDP.
    ///
    /// # Errors
    /// When an address that is not optional cannot be bound.
    pub fn bind(
        config: ServerConfig,
        further: &[Port],
        events: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<Self, FlowError> {
        let entrance: Arc<dyn Service> = Arc::new(LandspeedService::new()?);
        let own = config.listen.iter().map(|&addr| Listener::bind(addr, Arc::clone(&entrance)));
        let mut listeners = own.collect::<Result<Vec<_>, _>>()?;
        let mut without = Vec::new();
        for Port { listen, optional, service } in further {
            for &addr in listen {
                match Listener::bind(addr, Arc::clone(service)) {
                    Ok(door) => listeners.push(door),
                    Err(error) if *optional => {
                        let (protocol, why) = (service.name(), error.to_string());
                        without.push(ServerEvent::NotListening { protocol, addr, why });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let counts = Arc::<ServerCounts>::default();
        // Must follow the binding: it counts the open descriptors.
        let admission = Admission::new(config.limits, config.allow.clone(), listeners.len(), Arc::clone(&counts));
        let shared = Arc::new(Shared {
            config,
            registry: registry::Registry::default(),
            counts,
            admission: Arc::new(admission),
            descriptions: descriptions::Descriptions::default(),
            changing: AtomicBool::new(false),
            changes: changes::rate_limiter(),
            stop: Arc::default(),
            log: EventLog::new(events),
        });
        for event in without {
            shared.report(event);
        }
        Ok(Self { shared, listeners })
    }

    /// Returns the listening addresses for landspeed clients.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own = self.listeners.iter().filter(|door| door.protocol() == entrance::NAME);
        own.filter_map(|door| door.local_addr().ok()).collect()
    }

    /// Returns the flag that ends [`Server::run`] and every test when set.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stop)
    }

    /// Returns the counters of tests, bytes and refusals since the start.
    pub fn counts(&self) -> Arc<ServerCounts> {
        Arc::clone(&self.shared.counts)
    }

    /// Serves until the stop flag is set.
    ///
    /// # Errors
    /// When the address of a listening socket cannot be read.
    pub fn run(self) -> io::Result<()> {
        let Self { shared, listeners } = self;
        std::thread::scope(|scope| -> io::Result<()> {
            for door in &listeners {
                shared.report(ServerEvent::Listening { protocol: door.protocol(), addr: door.local_addr()? });
                let shared = &shared;
                scope.spawn(move || door.accept(shared));
                scope.spawn(move || door.answer_datagrams(shared));
            }
            Ok(())
        })?;
        shared.log.finish();
        Ok(())
    }
}
