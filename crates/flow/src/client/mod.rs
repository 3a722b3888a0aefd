//! The client: requests a test, runs its side, and combines both reports into one document.

mod alignment;
mod changes;
mod connect;
mod conversation;
mod describe;
mod opening;
mod queueing;
mod request;
mod server_tap;
mod target;
mod third_party;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_model::{ErrorEntry, MtuProbe, Parameters, PathInfo, RunDocument, Sample};
use landspeed_sys::{clock, thread};

use alignment::Alignment;
pub use changes::RemoteChanges;
use connect::STEP_TIMEOUT;
use conversation::{Conversation, unexpected};
pub use describe::facts;
use opening::{Opening, Readiness};
pub use request::Request;
pub use server_tap::ServerTap;
pub use target::{DEFAULT_PORT, Target, TargetError, local_address};
pub use third_party::third_party;

pub use crate::control::{deserialize_value, make_printable};

use crate::address;
use crate::assemble::{self, CollectedRun};
use crate::control::channel::{Receiver, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::{timeout, timeout_ns};
use crate::control::message::{Accepted, ToClient, ToServer};
use crate::control::preface::Token;
use crate::dialect::Dialect;
use crate::end::{self, EndPlan, IDLE_NS, Peer, Side, Watch};
use crate::error::FlowError;
use crate::layout;
use crate::progress::SenderDone;
pub use crate::progress::{DirectionProgress, Progress, TcpState, UdpState};
pub use crate::server::admission::QueuePosition;
use crate::server::admission::RateGuard;
use crate::sockets;
use crate::validate;

/// Timeout without a message from the server during a test, in addition to four round trips, nanoseconds.
const SILENCE_TIMEOUT_NS: u64 = 15_000_000_000;
/// Time after the planned end of a test that a path without any packet from the server's host gets to recover,
/// nanoseconds, in addition to four round trips.
pub const DOWN_TIMEOUT_NS: u64 = 3_000_000_000;

/// Events during a run.
#[derive(Debug, Clone)]
pub enum RunEvent<'a> {
    /// The server accepted the test.
    Accepted {
        /// Identifier of the test.
        id: &'a str,
        /// Effective parameters.
        parameters: &'a Parameters,
        /// Differences from the requested parameters.
        notes: &'a [String],
        /// Path, as far as it is known.
        path: &'a PathInfo,
    },
    /// The server is busy, and the client waits in its queue. Every second.
    Queued(QueuePosition),
    /// Live figures while traffic flows.
    Progress(Progress),
    /// Result of a path MTU probe.
    Mtu(&'a MtuProbe),
    /// All connections are open and no data has been sent: the document so far. Only if samples were requested.
    Opened(&'a RunDocument),
    /// Samples of the client's streams at a reporting time. Only if requested.
    Readings {
        /// Reporting time, nanoseconds after the start.
        due_ns: u64,
        /// Stream number and the sample nearest to the reporting time.
        streams: &'a [(u32, Sample)],
    },
}

/// Runs a test and returns the run document, failures included.
pub fn run(request: &Request, interrupted: &AtomicBool, observe: &mut dyn FnMut(RunEvent<'_>)) -> RunDocument {
    run_tapped(request, interrupted, observe, None)
}

/// Same as [`run`]; with a [`ServerTap`] the server also captures packets. The caller captures on the client:
/// from the acceptance ([`RunEvent::Accepted`]) on, before any data is sent.
pub fn run_tapped(
    request: &Request,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    far: Option<&mut ServerTap<'_>>,
) -> RunDocument {
    assemble::document(measure(request, None, interrupted, observe, far))
}

/// Limits of a test that a server runs for another host.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Permitted addresses, at least one: the name is not resolved again.
    pub servers: Vec<SocketAddr>,
    /// Rate limit per direction over all streams, bits/s.
    pub rate_limit_bps: Option<u64>,
    /// Read rate limit of each TCP stream, bits/s.
    pub receive_cap_bps: Option<u64>,
    /// Longest test, nanoseconds.
    pub longest_ns: u64,
    /// Whether it may wait in the server's queue.
    pub queue: bool,
}

/// Runs a test. Errors are in the result.
pub(crate) fn measure(
    request: &Request,
    bounds: Option<&Bounds>,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    far: Option<&mut ServerTap<'_>>,
) -> CollectedRun {
    let mut found = CollectedRun::new(request);
    let sound = validate::check(&request.parameters).and_then(|()| request.check_ports().map_err(Into::into));
    if let Err(invalid) = sound {
        found.errors.push(bad_parameters(&invalid));
    } else if let Err(error) = attempt(request, bounds, interrupted, observe, &mut found, far) {
        found.errors.push(error.entry());
    }
    found
}

fn bad_parameters(invalid: &validate::Invalid) -> ErrorEntry {
    ErrorEntry { code: "bad-parameters".to_owned(), message: invalid.to_string(), advice: None }
}

/// Returns the document of a test that did not start, for example because of a bad option or an unreadable key.
pub fn not_started_document(request: &Request, why: ErrorEntry) -> RunDocument {
    let mut found = CollectedRun::new(request);
    found.errors.push(why);
    assemble::document(found)
}

fn attempt(
    request: &Request,
    bounds: Option<&Bounds>,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    found: &mut CollectedRun,
    mut server_tap: Option<&mut ServerTap<'_>>,
) -> Result<(), FlowError> {
    let parameters = &request.parameters;
    check_cores(parameters)?;
    let servers = match bounds {
        Some(bounds) => bounds.servers.clone(),
        None => request.target.addresses(parameters.family, interrupted)?,
    };
    // Control and data may take different paths; the path of the data is measured.
    let far_of = |server: SocketAddr| request.data.map_or(server, |ip| SocketAddr::new(ip, server.port()));
    let bind_of = |server| local_address(parameters.bind.as_deref(), far_of(server));
    let candidates =
        sockets::bound(&servers, |server| if request.data.is_some() { Ok(None) } else { bind_of(server) })?;
    // Before the connection: a server's handshake timeout is short.
    found.client_host = Some(landspeed_host::snapshot(Some(far_of(candidates[0].0))));
    let (stream, server) = sockets::connect_first(&candidates, interrupted)?;
    let (far, bind) = (far_of(server), bind_of(server)?);
    if server != candidates[0].0 {
        found.client_host = Some(landspeed_host::snapshot(Some(far)));
    }
    let interface = found.client_interface();
    let hello = ToServer::Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        parameters: Box::new(parameters.clone()),
        queue: bounds.is_none_or(|bounds| bounds.queue),
        deflate: true,
    };
    let (mut tx, mut rx, local) = connect::control(stream, server, request.key.as_ref(), &hello, interrupted)?;
    let path_ns = tx.min_rtt_ns();
    let mut queued = |at| observe(RunEvent::Queued(at));
    let limit = timeout(STEP_TIMEOUT, path_ns);
    let accepted = match queueing::await_answer(&mut tx, &mut rx, limit, interrupted, &mut queued)? {
        ToClient::Accepted(accepted) => accepted.printable(),
        other => return Err(unexpected("before the acceptance", other)),
    };
    validate::granted(parameters, &accepted.parameters)
        .map_err(|message| FlowError::Protocol { during: "in the acceptance", message })?;
    let token = Token::from_hex(&accepted.token).ok_or_else(|| FlowError::Protocol {
        during: "in the acceptance",
        message: "the token is not 64 hex digits".to_owned(),
    })?;
    let credentials = Credentials::new(token, request.key.is_some());
    let Accepted { id, parameters: effective, notes, host, version, .. } = accepted;
    let opening =
        Opening { far, local: (bind, request.local_port), parameters: &effective, credentials, stop: interrupted };
    let mut readiness = Readiness::default();
    let (streams, clock, rtt_ns) = std::thread::scope(|scope| {
        // A capture begins after the acceptance, before the data connections.
        let under_way = if server_tap.is_some() { None } else { opening.begin(scope, path_ns)? };
        let together = under_way.is_some();
        if together && opening.may_announce() {
            readiness.announce(&mut tx)?;
        }
        let ends = (&mut tx, &mut rx);
        let Alignment { clock, rtt_ns, note } = readiness.align_clocks(ends, path_ns, together, interrupted)?;
        validate::check_distance(parameters, rtt_ns)?;
        let mut path = PathInfo {
            target: request.target.to_string(),
            client_addr: address::display(local),
            server_addr: address::display(far),
            loopback: far.ip().is_loopback() || far.ip() == local.ip(),
            control_rtt_ns: rtt_ns,
            clock,
            mtu: Vec::new(),
            authenticated: request.key.is_some(),
        };
        observe(RunEvent::Accepted { id: &id, parameters: &effective, notes: &notes, path: &path });
        if let Some(tap) = &mut server_tap {
            tap.ask(&mut tx, &mut rx, interrupted)?;
        }
        found.accept(id, effective.clone(), notes, host, version);
        found.notes.extend(note);
        path.mtu = opening.probe_mtu(rtt_ns)?;
        path.mtu.iter().for_each(|probe| observe(RunEvent::Mtu(probe)));
        found.path = Some(path);
        let streams = opening.finish(under_way, rtt_ns)?;
        Ok::<_, FlowError>((streams, clock, rtt_ns))
    })?;
    readiness.announce(&mut tx)?;
    readiness.wait(&mut rx, rtt_ns, interrupted)?;
    // Far enough ahead for the message to arrive and for the threads of both sides to be waiting.
    let idle = if effective.probe_rate_per_s.is_some() { IDLE_NS } else { 0 };
    let soonest_ns = clock::monotonic_ns() + idle + (20_000_000 + rtt_ns).max(40_000_000);
    let t0_ns = request.start_ns.map_or(soonest_ns, |wanted| wanted.max(soonest_ns));
    let lead_ns = Some(t0_ns.saturating_sub(clock::monotonic_ns()));
    tx.queue(&ToServer::Start { at_ns: t0_ns.saturating_add_signed(clock.offset_ns), lead_ns })?;
    let longest_ns = bounds.map_or(landspeed_settings::MAX_TIME_NS, |bounds| bounds.longest_ns);
    let limit_ns = layout::duration_ns(&effective).unwrap_or(longest_ns);
    let guard = bounds.and_then(|bounds| bounds.rate_limit_bps).map(|rate| RateGuard::new(rate, t0_ns));
    let plan = EndPlan {
        side: Side::Client,
        dialect: Dialect::LANDSPEED,
        parameters: effective,
        t0_ns,
        streams,
        interface,
        limit_ns,
        rtt_ns,
        receive_cap_bps: bounds.and_then(|bounds| bounds.receive_cap_bps),
    };
    run_end((plan, guard), (&mut tx, &mut rx), interrupted, observe, found, server_tap)
}

/// Checks that the requested CPUs are in the affinity mask of this process.
pub fn check_cores(parameters: &Parameters) -> Result<(), FlowError> {
    let allowed = thread::allowed_cores();
    let Some(core) = parameters.client_cpus.iter().find(|core| !allowed.contains(core)) else { return Ok(()) };
    let source = io::Error::new(io::ErrorKind::InvalidInput, format!("this host lets it use {}", list(&allowed)));
    Err(FlowError::Setup { what: format!("run on core {core} (--cpus)"), source })
}

fn list(cores: &[u32]) -> String {
    let shown: Vec<String> = cores.iter().take(16).map(ToString::to_string).collect();
    let more = if cores.len() > 16 { ", …" } else { "" };
    format!("cores {}{more}", shown.join(", "))
}

/// Runs the test: traffic on its own threads, control connection and interval output on this one.
///
/// Does not block on the server: deadlines and interrupts are checked every 20 ms, whatever the server sends or
/// leaves unread.
fn run_end(
    (plan, guard): (EndPlan, Option<RateGuard>),
    (tx, rx): (&mut Sender, &mut Receiver),
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    found: &mut CollectedRun,
    server_tap: Option<&mut ServerTap<'_>>,
) -> Result<(), FlowError> {
    let watch = Watch::new(&plan);
    let t0_ns = plan.t0_ns;
    let specs = layout::streams(&plan.parameters).unwrap_or_default();
    found.started_unix_ns = clock::realtime_ns() + t0_ns.saturating_sub(clock::monotonic_ns());
    let state = Conversation::new(t0_ns, specs, tx.min_rtt_ns());
    let planned = &plan.parameters;
    let end_ns = planned.time_ns.map(|time_ns| t0_ns.saturating_add(time_ns).saturating_add(planned.omit_ns));
    let mut server = Server { t0_ns, end_ns, state, guard, tx, rx, interrupted, observe };
    let (report, _) = end::drive(plan, &watch, &mut server);
    server.show(clock::monotonic_ns().saturating_sub(t0_ns), &watch);
    found.client = Some(report?);
    server.state.await_report();
    while server.state.lost.is_none() && server.state.server.is_none() {
        server.state.check_interrupt(interrupted, server.tx);
        server.state.listen(server.tx, server.rx, &watch, Duration::from_millis(50));
        server.check_path(clock::monotonic_ns());
    }
    let Server { mut state, tx, rx, .. } = server;
    if let Some(tap) = server_tap.filter(|_| state.server.is_some()) {
        tap.fetch(rx, interrupted);
    }
    let _ = tx.queue(&ToServer::Bye);
    tx.close();
    if state.is_closing() {
        found.errors.push(FlowError::Interrupted.entry());
    }
    found.server = state.server.take();
    found.report_ns = state.report_ns;
    match state.lost.take() {
        // An exchange that the interrupt cut short is not a second error.
        Some(FlowError::Timeout { .. }) if state.is_closing() => Ok(()),
        Some(error) if found.server.is_none() => Err(error),
        _ => Ok(()),
    }
}

/// Control connection to the server during a test.
struct Server<'a> {
    t0_ns: u64,
    /// Planned end of the senders, monotonic nanoseconds; `None` without a time limit.
    end_ns: Option<u64>,
    state: Conversation,
    guard: Option<RateGuard>,
    tx: &'a mut Sender,
    rx: &'a mut Receiver,
    interrupted: &'a AtomicBool,
    observe: &'a mut dyn FnMut(RunEvent<'_>),
}

/// The connection to the server is lost; the conversation has the error.
struct ConnectionLost;

impl Server<'_> {
    /// Gives the test up if its planned end has passed and the path is down: waiting for a drain and a report is in vain.
    fn check_path(&mut self, now_ns: u64) {
        let patience_ns = DOWN_TIMEOUT_NS + 4 * self.tx.min_rtt_ns();
        if self.state.lost.is_some() || self.end_ns.is_none_or(|end_ns| now_ns < end_ns.saturating_add(patience_ns)) {
            return;
        }
        if let Some(silent_ns) = self.tx.silent_ns().filter(|&silent_ns| silent_ns >= patience_ns) {
            self.state.lost = Some(FlowError::PathDown { seconds: silent_ns / 1_000_000_000 });
        }
    }

    fn show(&mut self, t_ns: u64, watch: &Watch) {
        (self.observe)(RunEvent::Progress(Progress::of(t_ns, &watch.live(), &self.state.remote)));
    }
}

impl Peer for Server<'_> {
    type Error = ConnectionLost;

    fn report_done(&mut self, done: SenderDone) -> Result<(), ConnectionLost> {
        self.state.queue_message(self.tx, &ToServer::SenderDone(done));
        Ok(())
    }

    fn serve_peer(&mut self, watch: &Watch) -> Result<(), ConnectionLost> {
        let now = clock::monotonic_ns();
        self.check_path(now);
        let Self { state, tx, rx, .. } = self;
        if self.guard.as_ref().is_some_and(|guard| guard.is_exceeded(now, watch)) {
            state.lost.get_or_insert_with(FlowError::rate_exceeded);
        }
        if state.check_interrupt(self.interrupted, tx) {
            watch.stop.stop_sending();
        }
        if state.has_close_timed_out(now) {
            watch.stop.stop_receiving();
        }
        if now > state.next_heartbeat_ns && !tx.is_blocked() {
            state.next_heartbeat_ns = now + 1_000_000_000;
            state.queue_message(tx, &ToServer::Alive);
        }
        state.listen(tx, rx, watch, Duration::from_millis(20));
        let limit_ns = timeout_ns(SILENCE_TIMEOUT_NS, tx.min_rtt_ns());
        let due_ns = state.last_message_ns.max(self.t0_ns) + limit_ns;
        state.check_timeout(now, due_ns, "a message from the server", limit_ns);
        let lost = state.lost.is_some();
        if now >= self.t0_ns {
            self.show(now - self.t0_ns, watch);
        }
        if lost { Err(ConnectionLost) } else { Ok(()) }
    }
}
