//! One test, seen from the server: greeting, data sockets, the run, the report.
//!
//! Every wait has a deadline and every message a size limit; whatever the client does, the session ends and gives
//! back what it held.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use landspeed_model::{ErrorEntry, Parameters};
use landspeed_sys::clock;
use landspeed_units::{BitRate, Bytes, Nanos};

use super::handshakes::Place;
use super::occupancy::Occupancy;
use super::running::run_end;
use super::setting_up::{Doors, Test, prepare};
use super::tap::Capture;
use super::{ServerEvent, Shared};
use crate::address::client_host;
use crate::control::channel::{self, Receiver, Role, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::Deadline;
use crate::control::message::{Accepted, MAX_GREETING, MAX_MESSAGE, ToClient, ToServer, report_parts};
use crate::control::preface::{self, Status, Token};
use crate::control::printable;
use crate::dialect::Dialect;
use crate::end::{EndPlan, EndReport, Side};
use crate::error::FlowError;
use crate::layout;

/// How long a client may take for its greeting, and for each step until the start.
pub const STEP: Duration = Duration::from_secs(10);
/// How long a client may take for the key handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a report may take to leave, all parts together: this, and a second for each 64 KiB.
const REPORT: Duration = Duration::from_secs(20);
const REPORT_BYTES_PER_S: u64 = 64 * 1024;
/// How long a description may take to leave, all parts together.
const DESCRIPTION: Duration = Duration::from_secs(30);
/// How long the client may take to read why it is refused, and to say good-bye.
const LAST_WORDS: Duration = Duration::from_secs(2);
const FAREWELL: Duration = Duration::from_secs(10);
/// How long a test may still take to end when the server stops.
pub const STOP_GRACE: Duration = Duration::from_millis(800);

/// A step of a session: it ends in time, and soon when the server stops.
pub fn step(limit: Duration, stop: &AtomicBool) -> Deadline<'_> {
    Deadline::after(limit).or_stop_within(stop, STOP_GRACE)
}

/// Welcomes a control connection and serves it on its own thread; gives it back, unanswered, if there is no descriptor
/// or thread for that.
pub(super) fn spawn(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>) -> Result<(), TcpStream> {
    let Ok(place) = shared.handshakes.enter(client_host(peer), &stream) else { return Err(stream) };
    let shared = Arc::clone(shared);
    let session = Session { shared, peer, greeting: Some(place), occupancy: None, id: None };
    let (hand_over, handed) = mpsc::sync_channel::<TcpStream>(1);
    let thread = std::thread::Builder::new().name("session".to_owned());
    let started = thread.spawn(move || {
        if let Ok(stream) = handed.recv() {
            session.main(stream);
        }
    });
    if started.is_err() {
        return Err(stream);
    }
    let mut welcomed = stream;
    if welcomed.write_all(&preface::encode_answer(Status::Welcome)).is_ok() {
        let _ = hand_over.send(welcomed);
    }
    Ok(())
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
        let key = self.shared.config.key.as_ref();
        let (mut tx, mut rx) = channel::open(stream, Role::Server, key, MAX_GREETING, HANDSHAKE, &self.shared.stop)
            .map_err(|error| self.crowded_out(None).unwrap_or(error))?;
        let asked = rx.wait::<ToServer>("the client's greeting", STEP, &self.shared.stop);
        let asked = match asked.map_err(|error| self.crowded_out(Some(&mut tx)).unwrap_or(error))? {
            ToServer::Hello { parameters, .. } => *parameters,
            ToServer::Describe { .. } => return self.describe_host(&mut tx, &mut rx),
            other => return Err(unexpected("before the greeting", &other)),
        };
        let (granted, notes) = match self.grant(&asked) {
            Ok(granted) => granted,
            Err(entry) => return self.refuse(entry, &mut tx, &mut rx),
        };
        if self.greeting.as_ref().is_some_and(|place| !place.leave()) {
            self.occupancy = None;
            return Err(self.crowded_out(Some(&mut tx)).unwrap_or(FlowError::Interrupted));
        }
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
            let _ = tx.send(&ToClient::Error(told), &step(LAST_WORDS, &self.shared.stop));
        }
        result
    }

    /// Tells the client that it lost its place to others, if it did.
    fn crowded_out(&self, tx: Option<&mut Sender>) -> Option<FlowError> {
        let stream = self.greeting.as_ref()?.lost()?;
        let entry = ErrorEntry {
            code: "server-busy".to_owned(),
            message: "too many clients are asking for tests at once".to_owned(),
            advice: Some("try again in a moment".to_owned()),
        };
        let error = FlowError::Refused { code: entry.code.clone(), message: entry.message.clone(), advice: None };
        let words: &[u8] = match tx {
            Some(tx) => {
                let _ = tx.send(&ToClient::Refused(entry), &step(LAST_WORDS, &self.shared.stop));
                &[]
            }
            // In the key handshake there is no message yet.
            None => &channel::BUSY_HANDSHAKE,
        };
        self.shared.farewells.say_to_deaf(stream, words);
        Some(error)
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
            return self.refuse(refusal, tx, rx);
        }
        if let Err(wait_ns) = self.shared.descriptions.admit(client_host(self.peer), clock::monotonic_ns()) {
            let refusal = ErrorEntry {
                code: "server-busy".to_owned(),
                message: "this server has described its host too often in the last moments".to_owned(),
                advice: Some(format!("try again in {} s", wait_ns.div_ceil(1_000_000_000))),
            };
            return self.refuse(refusal, tx, rx);
        }
        let facts = self.shared.descriptions.facts();
        let parts = report_parts(&*facts)
            .map_err(|e| FlowError::Protocol { during: "writing the host's facts", message: e.to_string() })?;
        let deadline = step(DESCRIPTION, &self.shared.stop);
        for part in parts {
            tx.send(&part, &deadline)?;
        }
        self.shared.tell(ServerEvent::Described { peer: self.peer });
        // The client closes when it has everything.
        let _ = rx.wait::<ToServer>("the client to leave", LAST_WORDS, &self.shared.stop);
        Ok(())
    }

    /// Tells a client why it is refused, and lets it read that before the connection goes.
    fn refuse(&self, entry: ErrorEntry, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let (code, message) = (entry.code.clone(), entry.message.clone());
        tx.send(&ToClient::Refused(entry), &step(STEP, &self.shared.stop))?;
        let _ = rx.wait::<ToServer>("the client to leave", LAST_WORDS, &self.shared.stop);
        Err(FlowError::Refused { code, message, advice: None })
    }

    /// Takes a place among the running tests, or says why not.
    fn grant(&mut self, asked: &Parameters) -> Result<(Parameters, Vec<String>), ErrorEntry> {
        let (mut granted, mut notes) = self
            .shared
            .config
            .limits
            .apply(asked, Dialect::Landspeed)
            .map_err(|message| ErrorEntry { code: "not-permitted".to_owned(), message, advice: None })?;
        let occupancy = Occupancy::take(&self.shared, self.peer, &mut granted, &mut notes);
        self.occupancy = Some(occupancy.map_err(|full| full.entry())?);
        Ok((granted, notes))
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
        let credentials = Credentials::new(token, shared.config.key.is_some());
        let entry = shared.registry.enter(doors.slot(local, self.peer, credentials));
        self.shared.tell(ServerEvent::TestStarted { id: id.clone(), peer: self.peer, what: describe(&parameters) });
        let host = landspeed_host::snapshot(Some(crate::address::unmap(self.peer)));
        let interface = host.nic.as_ref().map(|nic| nic.name.clone());
        let accepted = Accepted {
            id: id.clone(),
            token: token.to_hex(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters: parameters.clone(),
            notes,
            host,
        };
        tx.send(&ToClient::Accepted(Box::new(accepted)), &step(STEP, &shared.stop))?;
        let test = Test { credentials: &credentials, specs: &specs, parameters: &parameters };
        let mut capture = Capture::new(shared.config.tap.as_ref(), (local, self.peer), &entry.slot);
        let Some((t0_ns, streams)) = prepare(tx, rx, doors, &test, &shared, &mut capture)? else {
            self.shared.tell(ServerEvent::TestEnded { id, outcome: "the client left before the start".to_owned() });
            return Ok(());
        };
        // A little above what the client was granted, so that only one that ignores it feels it.
        let streams_each_way = u64::from(parameters.streams.max(1));
        let cap = |most: u64| most.saturating_add(most / 20) / streams_each_way;
        let rate_limit_bps = self.occupancy.as_ref().and_then(Occupancy::rate_limit_bps);
        let receive_cap_bps = rate_limit_bps.map(cap);
        let limit_ns = shared.config.limits.max_duration_ns;
        let (side, dialect) = (Side::Server, Dialect::Landspeed);
        let plan = EndPlan { side, dialect, parameters, t0_ns, streams, interface, limit_ns, receive_cap_bps };
        let (report, answered) = run_end(plan, tx, rx, &shared, rate_limit_bps)?;
        let parts = report_parts(&report)
            .map_err(|e| FlowError::Protocol { during: "writing the report", message: e.to_string() })?;
        let bytes: usize = parts.iter().map(report_bytes).sum();
        let deadline = step(REPORT + Duration::from_secs(bytes as u64 / REPORT_BYTES_PER_S), &shared.stop);
        for part in parts {
            tx.send(&part, &deadline)?;
        }
        capture.deliver(tx, &shared.stop)?;
        // The client says good-bye; if it does not, nothing is lost any more.
        let farewell = Deadline::after(FAREWELL).or_stop(&shared.stop);
        while let Ok(slice) = farewell.slice() {
            match rx.poll::<ToServer>(slice) {
                Ok(Some(ToServer::Bye)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.shared.counts.completed.fetch_add(1, Ordering::Relaxed);
        self.shared.tell(ServerEvent::TestEnded { id, outcome: outcome(&report, answered) });
        Ok(())
    }
}

fn report_bytes(part: &ToClient) -> usize {
    if let ToClient::Report { text, .. } = part { text.len() } else { 0 }
}

/// What a test moved, in words: `complete: received 1.17 GiB at 9.41 Gb/s in 10.0 s`.
pub fn outcome(report: &EndReport, answered: u64) -> String {
    let (sent, received) = report.streams.iter().fold((0, 0), |(s, r), stream| {
        if stream.sends { (s + stream.end.bytes, r) } else { (s, r + stream.end.bytes) }
    });
    let time = Nanos::new(report.cuts.steady_end_ns.unwrap_or(0));
    let mut parts = Vec::new();
    for (what, bytes) in [("received", Bytes::new(received)), ("sent", Bytes::new(sent))] {
        if bytes > Bytes::ZERO {
            let rate = BitRate::mean(bytes, time).map(|rate| format!(" at {rate}")).unwrap_or_default();
            parts.push(format!("{what} {bytes}{rate}"));
        }
    }
    if answered > 0 {
        parts.push(format!("answered {answered} requests"));
    }
    if parts.is_empty() {
        parts.push("no data".to_owned());
    }
    format!("complete: {} in {time}", parts.join(", "))
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
        landspeed_model::Direction::Both => "both directions",
    };
    let way = if p.rr.is_some() { String::new() } else { format!(", {way}") };
    format!("{kind}, {} stream{}{way}", p.streams, if p.streams == 1 { "" } else { "s" })
}

pub fn unexpected(during: &'static str, message: &ToServer) -> FlowError {
    FlowError::Protocol { during, message: format!("unexpected message {}", printable(&format!("{message:?}"), 60)) }
}
