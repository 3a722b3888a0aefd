//! One test, seen from the server: greeting, data sockets, the run, the report.
//!
//! Every wait has a deadline and every message a size limit; whatever the client does, the session ends and gives
//! back what it held.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landspeed_model::{ErrorEntry, Parameters};
use landspeed_sys::clock;

use super::handshakes::Place;
use super::occupancy::{Full, Occupancy};
use super::running::run_end;
use super::setting_up::{Doors, Test, prepare};
use super::{ServerEvent, Shared, tap};
use crate::control::channel::{self, Receiver, Role, Sender};
use crate::control::message::{Accepted, MAX_GREETING, MAX_MESSAGE, ToClient, ToServer, report_parts};
use crate::control::preface::Token;
use crate::control::printable;
use crate::dialect::Dialect;
use crate::end::{EndPlan, Side};
use crate::error::FlowError;
use crate::layout;

/// How long a client may take for its greeting, and for each step until the start.
pub const STEP: Duration = Duration::from_secs(10);
/// How long a client may take for the key handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a report may take to leave, all parts together, nanoseconds.
const REPORT_NS: u64 = 600_000_000_000;
/// How long a description may take to leave, nanoseconds.
const DESCRIPTION_NS: u64 = 30_000_000_000;

/// Serves one control connection on a thread of its own.
pub(super) fn spawn(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>) {
    let Ok(place) = shared.handshakes.enter(crate::address::unmap(peer).ip(), &stream) else { return };
    let shared = Arc::clone(shared);
    let session = Session { shared, peer, greeting: Some(place), occupancy: None, id: None };
    // Where no thread can be had the connection closes, and its place is free again.
    let _ = std::thread::Builder::new().name("session".to_owned()).spawn(move || session.main(stream));
}

struct Session {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// Its place among the handshakes, until a test is granted.
    greeting: Option<Place>,
    /// Its place among the running tests.
    occupancy: Option<Occupancy>,
    id: Option<String>,
}

impl Session {
    fn main(mut self, stream: TcpStream) {
        if let Err(error) = self.serve(stream) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &FlowError) {
        let why = error.to_string();
        self.shared.tell(match &self.id {
            Some(id) => ServerEvent::TestEnded { id: id.clone(), outcome: why },
            None => ServerEvent::Refused { peer: self.peer, why },
        });
    }

    fn serve(&mut self, stream: TcpStream) -> Result<(), FlowError> {
        let local =
            stream.local_addr().map_err(|source| FlowError::Setup { what: "serve a client".into(), source })?;
        let (mut tx, mut rx) =
            channel::open(stream, Role::Server, self.shared.config.key.as_ref(), MAX_GREETING, HANDSHAKE)?;
        let asked = match rx.wait::<ToServer>("the client's greeting", STEP, &self.shared.stop)? {
            ToServer::Hello { parameters, .. } => *parameters,
            ToServer::Describe { .. } => return self.describe_host(&mut tx, &mut rx),
            other => return Err(unexpected("before the greeting", &other)),
        };
        let (granted, notes) = match self.grant(&asked) {
            Ok(granted) => granted,
            Err(entry) => {
                let why = entry.message.clone();
                tx.send(&ToClient::Refused(entry))?;
                // Let the client read it before the connection goes.
                let _ = rx.poll::<ToServer>(Duration::from_secs(2));
                return Err(FlowError::Refused { code: "refused".into(), message: why, advice: None });
            }
        };
        self.greeting = None;
        rx.set_limit(MAX_MESSAGE);
        let result = self.run_test(&mut tx, &mut rx, granted, notes, local);
        if let Err(error) = &result
            && !matches!(error, FlowError::PeerLost { .. })
        {
            // The client cannot know what went wrong here.
            let told = match error {
                FlowError::Refused { code, message, advice } => {
                    ErrorEntry { code: code.clone(), message: message.clone(), advice: advice.clone() }
                }
                other => other.entry(),
            };
            let _ = tx.send(&ToClient::Error(told));
        }
        result
    }

    /// Sends this host's facts to whoever may have them: they name its addresses and programs.
    fn describe_host(&mut self, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let config = &self.shared.config;
        if config.key.is_none() && !config.describe {
            let refusal = ErrorEntry {
                code: "not-permitted".to_owned(),
                message: "this server describes its host only to holders of a key".to_owned(),
                advice: Some("start it with --key-file FILE, or with --describe to let anyone ask".to_owned()),
            };
            let message = refusal.message.clone();
            tx.send(&ToClient::Refused(refusal))?;
            let _ = rx.poll::<ToServer>(Duration::from_secs(2));
            return Err(FlowError::Refused { code: "not-permitted".into(), message, advice: None });
        }
        let facts = landspeed_host::collect(&landspeed_host::LiveHost::new());
        let parts = report_parts(&facts)
            .map_err(|e| FlowError::Protocol { during: "writing the host's facts", message: e.to_string() })?;
        let deadline_ns = clock::monotonic_ns() + DESCRIPTION_NS;
        for part in parts {
            tx.send(&part)?;
            if clock::monotonic_ns() > deadline_ns || self.shared.stop.load(Ordering::Relaxed) {
                return Err(FlowError::Timeout {
                    what: "the client to take the host's facts",
                    seconds: DESCRIPTION_NS / 1_000_000_000,
                });
            }
        }
        self.shared.tell(ServerEvent::Described { peer: self.peer });
        // The client closes when it has everything.
        let _ = rx.poll::<ToServer>(Duration::from_secs(2));
        Ok(())
    }

    /// Takes a place among the running tests, or says why not.
    fn grant(&mut self, asked: &Parameters) -> Result<(Parameters, Vec<String>), ErrorEntry> {
        let refusal = |code: &str, message: String, advice: Option<&str>| ErrorEntry {
            code: code.to_owned(),
            message,
            advice: advice.map(str::to_owned),
        };
        let granted = self
            .shared
            .config
            .limits
            .apply(asked, Dialect::Landspeed)
            .map_err(|message| refusal("not-permitted", message, None))?;
        let occupancy = Occupancy::take(&self.shared, &granted.0).map_err(|full| match full {
            Full::Tests(most) => refusal(
                "server-busy",
                format!("{most} tests are running, which is all this server takes"),
                Some("try again in a moment, or raise --max-tests there"),
            ),
            Full::Share => refusal(
                "server-busy",
                "the tests that are running leave too little memory and threads for this one".to_owned(),
                Some("try again in a moment, or ask for less: --parallel, --len, a longer --interval"),
            ),
        })?;
        self.occupancy = Some(occupancy);
        Ok(granted)
    }

    fn run_test(
        &mut self,
        tx: &mut Sender,
        rx: &mut Receiver,
        parameters: Parameters,
        notes: Vec<String>,
        local: SocketAddr,
    ) -> Result<(), FlowError> {
        let random = |source| FlowError::Setup { what: "read random bytes".into(), source };
        let token = Token::random().map_err(random)?;
        let id: String = Token::random().map_err(random)?.to_hex().chars().take(32).collect();
        self.id = Some(id.clone());
        let specs = layout::streams(&parameters)
            .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
        let mut doors = Doors::new(&specs, parameters.probe_mtu);
        let shared = Arc::clone(&self.shared);
        let _entry = shared.registry.enter(token, doors.slot(local));
        self.shared.tell(ServerEvent::TestStarted { id: id.clone(), peer: self.peer, what: describe(&parameters) });
        let host = landspeed_host::snapshot(Some(crate::address::unmap(self.peer)));
        let interface = host.nic.as_ref().map(|nic| nic.name.clone());
        tx.send(&ToClient::Accepted(Box::new(Accepted {
            id: id.clone(),
            token: token.to_hex(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters: parameters.clone(),
            notes,
            host,
        })))?;
        let test = Test { token: &token, specs: &specs, parameters: &parameters };
        let mut tap = None;
        let mut begin_tap = |tx: &mut Sender| {
            if tap.is_none() {
                tap = tap::begin(shared.config.tap.as_ref(), local, self.peer, tx)?;
            }
            Ok(())
        };
        let Some((t0_ns, streams)) = prepare(tx, rx, doors, &test, &shared, &mut begin_tap)? else {
            self.shared.tell(ServerEvent::TestEnded { id, outcome: "the client left before the start".to_owned() });
            return Ok(());
        };
        // A little above what the client was granted, so that only one that ignores it feels it.
        let streams_each_way = u64::from(parameters.streams.max(1));
        let cap = |most: u64| most.saturating_add(most / 20) / streams_each_way;
        let receive_cap_bps = shared.config.limits.max_rate_bps.map(cap);
        let limit_ns = shared.config.limits.max_duration_ns;
        let (side, dialect) = (Side::Server, Dialect::Landspeed);
        let plan = EndPlan { side, dialect, parameters, t0_ns, streams, interface, limit_ns, receive_cap_bps };
        let report = run_end(plan, tx, rx, &shared)?;
        let sent_by = clock::monotonic_ns() + REPORT_NS;
        for part in report_parts(&report)
            .map_err(|e| FlowError::Protocol { during: "writing the report", message: e.to_string() })?
        {
            tx.send(&part)?;
            if clock::monotonic_ns() > sent_by {
                return Err(FlowError::Timeout { what: "sending the report", seconds: REPORT_NS / 1_000_000_000 });
            }
        }
        if let Some(tap) = tap {
            tap::deliver(tap, tx)?;
        }
        // The client says good-bye; if it does not, nothing is lost any more.
        let farewell = clock::monotonic_ns() + 10_000_000_000;
        while clock::monotonic_ns() < farewell && !shared.stopping() {
            match rx.poll::<ToServer>(Duration::from_millis(200)) {
                Ok(Some(ToServer::Bye)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.shared.counts.completed.fetch_add(1, Ordering::Relaxed);
        let (sent, received) = report.streams.iter().fold((0, 0), |(s, r), stream| {
            if stream.sends { (s + stream.end.bytes, r) } else { (s, r + stream.end.bytes) }
        });
        self.shared
            .tell(ServerEvent::TestEnded { id, outcome: format!("complete: {received} B received, {sent} B sent") });
        Ok(())
    }
}

/// A test in a few words.
pub fn describe(p: &Parameters) -> String {
    let kind = match p.protocol {
        landspeed_model::Protocol::Tcp => "TCP",
        landspeed_model::Protocol::Udp => "UDP",
        landspeed_model::Protocol::TcpRr => "TCP request/response",
        landspeed_model::Protocol::UdpRr => "UDP request/response",
    };
    let way = match p.direction {
        landspeed_model::Direction::Upload => "upload",
        landspeed_model::Direction::Download => "download",
        landspeed_model::Direction::Both => "both ways",
    };
    format!("{kind}, {} stream{} {way}", p.streams, if p.streams == 1 { "" } else { "s" })
}

pub fn unexpected(during: &'static str, message: &ToServer) -> FlowError {
    FlowError::Protocol { during, message: format!("unexpected message {}", printable(&format!("{message:?}"), 60)) }
}
