//! The far end: one port, many tests.
//!
//! A doorman thread accepts connections and reads their prefaces without ever blocking on one; a second one answers
//! UDP hellos on the same port. Each test has a session thread of its own. What belongs to a test finds it through
//! the registry by the name that its data sockets show: the test's secret token or, with a key, its public identifier.

mod descriptions;
mod descriptors;
pub(crate) mod door;
pub(crate) mod farewells;
pub(crate) mod handshakes;
mod limits;
pub(crate) mod occupancy;
mod proving;
mod registry;
pub(crate) mod running;
pub(crate) mod session;
mod setting_up;
mod shares;
mod tap;
pub(crate) mod udp_door;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use ipnet::IpNet;

use self::shares::{Resource, Share, Shares};
use crate::control::channel::Key;
use crate::error::FlowError;
use crate::iperf3::auth::Users;
use crate::iperf3::door as iperf3;

pub use limits::Limits;
pub use tap::{FlowSink, RunningTap, TapHook, Tapper, TestFlow, TestTransport};

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
    /// Describe this host to clients that hold no key. With a key, its holders may ask.
    pub describe: bool,
    /// Where iperf3's clients are answered, and who of them.
    pub iperf3: Iperf3Config,
    /// What captures this end of tests for clients that ask; nobody may if there is none.
    pub tap: Option<TapHook>,
}

/// How iperf3's clients are answered.
#[derive(Debug, Clone, Default)]
pub struct Iperf3Config {
    /// Where to listen; nowhere if empty.
    pub listen: Vec<SocketAddr>,
    /// Whether it matters little if a port is taken: an `iperf3 -s` may run there already.
    pub optional: bool,
    /// Only these may test; anyone if `None`.
    pub users: Option<Users>,
}

/// What a server says of its life.
#[derive(Debug, Clone)]
pub enum ServerEvent {
    /// It listens.
    Listening(SocketAddr),
    /// It listens for iperf3's clients.
    ListeningIperf3(SocketAddr),
    /// It does not, though it might have.
    NoIperf3 {
        /// Where it would have.
        addr: SocketAddr,
        /// Why not.
        why: String,
    },
    /// A test was accepted.
    TestStarted {
        /// Its identifier.
        id: String,
        /// Its client.
        peer: SocketAddr,
        /// In words.
        what: String,
    },
    /// A client was told what this host is.
    Described {
        /// Who asked.
        peer: SocketAddr,
    },
    /// A test is over.
    TestEnded {
        /// Its identifier.
        id: String,
        /// How.
        outcome: String,
    },
    /// A client was turned away.
    Refused {
        /// The client.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
}

/// Counts of a server, for its log and its tests.
#[derive(Debug, Default)]
pub struct ServerCounts {
    /// Tests running.
    pub running: AtomicUsize,
    /// Tests completed.
    pub completed: AtomicU64,
    /// Connections dropped for a bad or late preface.
    pub dropped: AtomicU64,
}

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    registry: registry::Registry,
    pub(crate) counts: Arc<ServerCounts>,
    pub(crate) handshakes: Arc<handshakes::Handshakes>,
    pub(crate) farewells: farewells::Farewells,
    pub(crate) descriptors: descriptors::Descriptors,
    pub(crate) shares: Arc<Shares>,
    descriptions: descriptions::Descriptions,
    pub(crate) stop: Arc<AtomicBool>,
    events: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl Shared {
    pub(crate) fn tell(&self, event: ServerEvent) {
        (self.events)(event);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Connections that may wait at each door.
    pub(crate) fn waiting_at_a_door(&self) -> usize {
        (self.descriptors.waiting / (self.config.listen.len() + self.config.iperf3.listen.len()).max(1)).max(2)
    }

    pub(crate) fn allows(&self, peer: SocketAddr) -> bool {
        let ip = crate::address::unmap(peer).ip();
        self.config.allow.is_empty() || self.config.allow.iter().any(|net| net.contains(&ip))
    }

    /// Whether a data socket may come from here: with a key it proves itself wherever it comes from.
    fn takes_data_from(&self, from: SocketAddr, slot: &registry::Slot) -> bool {
        slot.credentials.is_keyed()
            || self.config.data_from_anywhere
            || crate::address::unmap(from).ip() == slot.client_ip
    }
}

/// A bound server, ready to run.
pub struct Server {
    shared: Arc<Shared>,
    doors: Vec<door::Door>,
    iperf3: Vec<iperf3::Door>,
}

impl Server {
    /// Binds every address, TCP and UDP.
    pub fn bind(
        config: ServerConfig,
        events: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<Self, FlowError> {
        let listen = config.listen.clone();
        let doors = listen.iter().map(|&addr| door::Door::bind(addr)).collect::<Result<Vec<_>, _>>()?;
        let mut iperf3 = Vec::new();
        let mut without_iperf3 = Vec::new();
        for &addr in &config.iperf3.listen {
            match iperf3::Door::bind(addr) {
                Ok(door) => iperf3.push(door),
                Err(error) if config.iperf3.optional => {
                    without_iperf3.push(ServerEvent::NoIperf3 { addr, why: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        // Counted when everything that stays open is.
        let descriptors = descriptors::Descriptors::of_process();
        let limits = config.limits;
        let rate = limits.max_total_rate_bps.unwrap_or(u64::MAX);
        let whole = Share::new(&[
            (Resource::Tests, limits.max_tests as u64),
            (Resource::Memory, shares::MEMORY_BYTES),
            (Resource::Threads, shares::THREADS),
            (Resource::Descriptors, descriptors.tests),
            (Resource::Upload, rate),
            (Resource::Download, rate),
        ]);
        let shares = Shares::new(whole, limits.max_tests_per_host.map(|most| most as u64));
        let shared = Arc::new(Shared {
            config,
            registry: registry::Registry::default(),
            counts: Arc::default(),
            handshakes: Arc::new(handshakes::Handshakes::new(descriptors.greeting)),
            farewells: farewells::Farewells::new(descriptors.leaving),
            descriptors,
            shares: Arc::new(shares),
            descriptions: descriptions::Descriptions::default(),
            stop: Arc::default(),
            events: Box::new(events),
        });
        for event in without_iperf3 {
            shared.tell(event);
        }
        Ok(Self { shared, doors, iperf3 })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.doors.iter().filter_map(|door| door.local_addr().ok()).collect()
    }

    /// Where it listens for iperf3's clients.
    pub fn iperf3_addresses(&self) -> Vec<SocketAddr> {
        self.iperf3.iter().filter_map(|door| door.local_addr().ok()).collect()
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
    pub fn run(self) -> io::Result<()> {
        let Self { shared, doors, iperf3 } = self;
        std::thread::scope(|scope| {
            for door in &doors {
                let (tcp, udp) = (Arc::clone(&shared), Arc::clone(&shared));
                shared.tell(ServerEvent::Listening(door.local_addr()?));
                scope.spawn(move || door.accept(&tcp));
                scope.spawn(move || udp_door::answer(&door.udp, &udp));
            }
            for door in &iperf3 {
                let (tcp, udp) = (Arc::clone(&shared), Arc::clone(&shared));
                shared.tell(ServerEvent::ListeningIperf3(door.local_addr()?));
                scope.spawn(move || door.accept(&tcp));
                scope.spawn(move || door.hear_datagrams(&udp));
            }
            Ok(())
        })
    }
}
