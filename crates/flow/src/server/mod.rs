//! The server: many tests on one port, and further protocols on other ports.
//!
//! At each [`door`] one thread accepts connections and reads what they open with, never blocking on one; a second one
//! answers datagrams on the same port. What they speak there is a [`Service`]. Who gets a test is the business of
//! [`admission`], and each test has its own session thread. What belongs to a test of landspeed's own protocol finds it
//! through the registry by the name that its data sockets show: the test's secret token or, with a key, its public
//! identifier.

pub mod admission;
mod changes;
mod descriptions;
pub mod door;
mod entrance;
mod events;
mod hellos;
mod proving;
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
use self::door::Door;
use self::entrance::Entrance;
use crate::control::channel::Key;
use crate::control::deadline::Deadline;
use crate::error::FlowError;

pub use admission::Limits;
pub use changes::{ChangeHook, HeldChanges, HostChanger};
pub use events::{ServerCounts, ServerEvent, describe_outcome, describe_test};
pub use service::{Datagram, Opening, Service, Visitor};
pub use tap::{FlowSink, RunningTap, TapHook, Tapper, TestFlow, TestTransport};
pub use third_party::ThirdPartyTargets;

/// How long a test may still take to end when the server stops.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen; port 0 takes any.
    pub listen: Vec<SocketAddr>,
    /// What a test may ask for.
    pub limits: Limits,
    /// Clients may come from these networks; empty means from anywhere.
    pub allow: Vec<IpNet>,
    /// Both ends must hold this key.
    pub key: Option<Key>,
    /// Without a key: take the data of a test from other addresses than its control connection's, too.
    pub data_from_anywhere: bool,
    /// Describe this host to clients that hold no key. With a key, its holders may ask; so may who may change the host.
    pub describe: bool,
    /// Captures at the server for clients that ask; without it none may.
    pub tap: Option<TapHook>,
    /// Changes this host for clients that ask, one at a time; without it none may.
    pub changes: Option<ChangeHook>,
    /// Runs tests against these servers for clients that ask; without it against none. With a key, the targets need the same.
    pub third_party: Option<ThirdPartyTargets>,
}

/// A further protocol, and where the server speaks it.
pub struct Port {
    /// Where to listen; nowhere if empty.
    pub listen: Vec<SocketAddr>,
    /// Whether it matters little if a port is taken: another program may serve the same protocol there.
    pub optional: bool,
    /// The protocol.
    pub service: Arc<dyn Service>,
}

/// What all threads of a server share.
pub struct Shared {
    pub(crate) config: ServerConfig,
    registry: registry::Registry,
    counts: Arc<ServerCounts>,
    /// Who may test.
    pub admission: Arc<Admission>,
    descriptions: descriptions::Descriptions,
    /// Whether a client may change the host now.
    changing: AtomicBool,
    stop: Arc<AtomicBool>,
    events: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl Shared {
    /// Reports an event to the owner of the server.
    pub fn report(&self, event: ServerEvent) {
        (self.events)(event);
    }

    /// Reports the end of a test that was completed, and counts it.
    pub fn report_completed(&self, id: String, outcome: String) {
        self.counts.completed.fetch_add(1, Ordering::Relaxed);
        self.report(ServerEvent::TestEnded { id, outcome });
    }

    /// Whether the server stops.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A step of a session: it ends in time, and soon when the server stops.
    pub fn step(&self, limit: Duration) -> Deadline<'_> {
        Deadline::after(limit).or_stop_within(&self.stop, STOP_GRACE)
    }

    /// Whether data may come from this address for a test whose control connection comes from `client`, unless it proves
    /// itself.
    pub fn is_data_address(&self, from: SocketAddr, client: std::net::IpAddr) -> bool {
        self.config.data_from_anywhere || crate::address::unmap(from).ip() == client
    }

    /// Whether a data socket may come from here: with a key it proves itself wherever it comes from.
    fn takes_data_from(&self, from: SocketAddr, slot: &registry::Slot) -> bool {
        slot.credentials.is_keyed() || self.is_data_address(from, slot.client_ip)
    }
}

/// A bound server, ready to run.
pub struct Server {
    shared: Arc<Shared>,
    doors: Vec<Door>,
}

impl Server {
    /// Binds every address of landspeed's protocol and of further protocols, TCP and UDP.
    ///
    /// # Errors
    /// When it cannot listen at an address that is not optional.
    pub fn bind(
        config: ServerConfig,
        further: &[Port],
        events: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<Self, FlowError> {
        let entrance: Arc<dyn Service> = Arc::new(Entrance::new()?);
        let own = config.listen.iter().map(|&addr| Door::bind(addr, Arc::clone(&entrance)));
        let mut doors = own.collect::<Result<Vec<_>, _>>()?;
        let mut without = Vec::new();
        for Port { listen, optional, service } in further {
            for &addr in listen {
                match Door::bind(addr, Arc::clone(service)) {
                    Ok(door) => doors.push(door),
                    Err(error) if *optional => {
                        let (protocol, why) = (service.name(), error.to_string());
                        without.push(ServerEvent::NotListening { protocol, addr, why });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let counts = Arc::<ServerCounts>::default();
        // Its descriptors are counted when everything that stays open is.
        let admission = Admission::new(config.limits, config.allow.clone(), doors.len(), Arc::clone(&counts));
        let shared = Arc::new(Shared {
            config,
            registry: registry::Registry::default(),
            counts,
            admission: Arc::new(admission),
            descriptions: descriptions::Descriptions::default(),
            changing: AtomicBool::new(false),
            stop: Arc::default(),
            events: Box::new(events),
        });
        for event in without {
            shared.report(event);
        }
        Ok(Self { shared, doors })
    }

    /// Where it listens for clients of landspeed.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own = self.doors.iter().filter(|door| door.protocol() == entrance::NAME);
        own.filter_map(|door| door.local_addr().ok()).collect()
    }

    /// Setting this ends [`Server::run`] and every test.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stop)
    }

    /// Its counts.
    pub fn counts(&self) -> Arc<ServerCounts> {
        Arc::clone(&self.shared.counts)
    }

    /// Serves until the stop flag is set.
    ///
    /// # Errors
    /// When a listening socket has lost its address.
    pub fn run(self) -> io::Result<()> {
        let Self { shared, doors } = self;
        std::thread::scope(|scope| {
            for door in &doors {
                shared.report(ServerEvent::Listening { protocol: door.protocol(), addr: door.local_addr()? });
                let shared = &shared;
                scope.spawn(move || door.accept(shared));
                scope.spawn(move || door.answer_datagrams(shared));
            }
            Ok(())
        })
    }
}
