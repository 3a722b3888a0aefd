//! One test, seen from the server: greeting, data sockets, the run, the report.
//!
//! Every wait has a deadline and every message a size limit; whatever the client does, the session ends and gives
//! back what it held.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use landspeed_model::{ErrorEntry, Parameters};
use landspeed_sys::clock;

use super::registry::{Arrival, Slot};
use super::udp_door::Doubt;
use super::{ServerEvent, Shared};
use crate::control::channel::{self, Receiver, Role, Sender};
use crate::control::message::{Accepted, MAX_GREETING, MAX_MESSAGE, SenderDone, ToClient, ToServer, report_parts};
use crate::control::preface::Token;
use crate::end::{self, DataSocket, EndPlan, EndReport, Side, StreamPlan, Watch};
use crate::error::FlowError;
use crate::layout::{self, Link, MTU_STREAM, StreamSpec};
use crate::sockets;

/// How long a client may take for its greeting, and for each step until the start.
const STEP: Duration = Duration::from_secs(10);
/// A client that says nothing for this long during a test is gone.
const SILENCE_NS: u64 = 15_000_000_000;
/// How far ahead a client may put the start.
const MAX_LEAD_NS: u64 = 60_000_000_000;
/// How often the live figures are sent.
const PROGRESS_NS: u64 = 100_000_000;

/// Serves one control connection on a thread of its own.
pub(super) fn spawn(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    shared.handshakes.fetch_add(1, Ordering::Relaxed);
    let twin = Arc::clone(&shared);
    let spawned = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
        let mut session = Session { shared: Arc::clone(&shared), peer, greeting: true, running: false, id: None };
        if let Err(error) = session.serve(stream) {
            session.failed(&error);
        }
    });
    if spawned.is_err() {
        twin.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Session {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// Still counted among the handshakes.
    greeting: bool,
    /// Counted among the running tests.
    running: bool,
    id: Option<String>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_greeting();
        if self.running {
            self.shared.counts.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Session {
    fn end_greeting(&mut self) {
        if std::mem::take(&mut self.greeting) {
            self.shared.handshakes.fetch_sub(1, Ordering::Relaxed);
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
        let (mut tx, mut rx) = channel::open(
            stream,
            Role::Server,
            self.shared.config.key.as_ref(),
            MAX_GREETING,
            Duration::from_secs(5),
        )?;
        let asked = match rx.wait::<ToServer>("the client's greeting", STEP)? {
            ToServer::Hello { parameters, .. } => *parameters,
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
        self.end_greeting();
        rx.set_limit(MAX_MESSAGE);
        self.run_test(&mut tx, &mut rx, granted, notes, local)
    }

    /// Takes a place among the running tests, or says why not.
    fn grant(&mut self, asked: &Parameters) -> Result<(Parameters, Vec<String>), ErrorEntry> {
        let refusal = |code: &str, message: String, advice: Option<&str>| ErrorEntry {
            code: code.to_owned(),
            message,
            advice: advice.map(str::to_owned),
        };
        let granted =
            self.shared.config.limits.apply(asked).map_err(|message| refusal("not-permitted", message, None))?;
        let most = self.shared.config.limits.max_tests;
        let running = &self.shared.counts.running;
        if running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1)).is_err() {
            return Err(refusal(
                "server-busy",
                format!("{most} tests are running, which is all this server takes"),
                Some("try again in a moment, or raise --max-tests there"),
            ));
        }
        self.running = true;
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
        let Some(t0_ns) = prepare(tx, rx, &mut doors, &token, &shared)? else {
            self.shared.tell(ServerEvent::TestEnded { id, outcome: "the client left before the start".to_owned() });
            return Ok(());
        };
        let streams = doors.into_streams(&specs, &token, &parameters)?;
        let limit_ns = shared.config.limits.max_duration_ns;
        let plan = EndPlan { side: Side::Server, parameters, t0_ns, streams, interface, limit_ns };
        let report = run_end(plan, tx, rx, &shared)?;
        for part in report_parts(&report)
            .map_err(|e| FlowError::Protocol { during: "writing the report", message: e.to_string() })?
        {
            tx.send(&part)?;
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

fn describe(p: &Parameters) -> String {
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

/// Where the data sockets of a test arrive.
struct Doors {
    arrivals: mpsc::Receiver<Arrival>,
    deliver: mpsc::SyncSender<Arrival>,
    acceptors: HashMap<u32, mpsc::Receiver<TcpStream>>,
    connects: Vec<u32>,
    expected: Vec<u32>,
    tcp: HashMap<u32, TcpStream>,
    doubts: Vec<Doubt>,
}

impl Doors {
    fn new(specs: &[StreamSpec], probe_mtu: bool) -> Self {
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
            doubts: Vec::new(),
        }
    }

    fn slot(&mut self, local: SocketAddr) -> Slot {
        let mut senders = HashMap::new();
        for &id in &self.connects {
            let (tx, rx) = mpsc::sync_channel(64);
            senders.insert(id, tx);
            self.acceptors.insert(id, rx);
        }
        let ip = crate::address::unmap(local).ip();
        Slot::new(ip, self.deliver.clone(), senders, self.expected.clone())
    }

    /// Takes in what has arrived and answers UDP introductions.
    fn poll(&mut self, token: &Token) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            match arrival {
                Arrival::Tcp(stream, tcp) => {
                    self.tcp.insert(stream, tcp);
                }
                Arrival::Udp(stream, udp) => self.doubts.extend(Doubt::new(stream, udp)),
            }
        }
        for doubt in &mut self.doubts {
            doubt.poll(token);
        }
    }

    /// Whether every stream of the test proper is here.
    fn complete(&self) -> bool {
        let wanted = self.expected.iter().filter(|&&id| id != MTU_STREAM).count();
        let proved = self.doubts.iter().filter(|d| d.proved && d.stream != MTU_STREAM).count();
        self.tcp.len() + proved >= wanted
    }

    /// Takes the MTU probe's socket once its address is proved.
    fn take_mtu(&mut self) -> Option<UdpSocket> {
        let at = self.doubts.iter().position(|d| d.stream == MTU_STREAM && d.proved)?;
        self.doubts.swap_remove(at).into_socket().ok()
    }

    fn into_streams(
        mut self,
        specs: &[StreamSpec],
        token: &Token,
        parameters: &Parameters,
    ) -> Result<Vec<StreamPlan>, FlowError> {
        let mut udp = HashMap::new();
        for doubt in self.doubts {
            let (stream, proved) = (doubt.stream, doubt.proved);
            if proved && let Ok(socket) = doubt.into_socket() {
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
                sockets::configure_accepted(&socket, parameters, spec.job(Side::Server).sends())?;
                let job = spec.job(Side::Server);
                Ok(StreamPlan::new(spec.id, spec.index, spec.direction, job, socket, token.datagram_tag(spec.id)))
            })
            .collect()
    }
}

/// From acceptance to start. `None` when the client changed its mind.
fn prepare(
    tx: &mut Sender,
    rx: &mut Receiver,
    doors: &mut Doors,
    token: &Token,
    shared: &Shared,
) -> Result<Option<u64>, FlowError> {
    let mut deadline = clock::monotonic_ns() + STEP.as_nanos() as u64;
    let mut opened = false;
    loop {
        doors.poll(token);
        if let Some(socket) = doors.take_mtu() {
            // The client drives the probe and goes on when it has its answers; serving it has its own bound in time.
            crate::mtu::serve(&socket, token.datagram_tag(MTU_STREAM));
            deadline = clock::monotonic_ns() + STEP.as_nanos() as u64;
        }
        if opened && doors.complete() {
            tx.send(&ToClient::Ready)?;
            opened = false;
        }
        let now = clock::monotonic_ns();
        if now > deadline {
            return Err(FlowError::Timeout { what: "setting up the test", seconds: STEP.as_secs() });
        }
        if shared.stopping() {
            return Ok(None);
        }
        match rx.poll::<ToServer>(Duration::from_millis(2))? {
            None => continue,
            Some(ToServer::Ping { n }) => tx.send(&ToClient::Pong { n, now_ns: clock::monotonic_ns() })?,
            Some(ToServer::Opened) => opened = true,
            Some(ToServer::Start { at_ns }) if doors.complete() => {
                return Ok(Some(at_ns.clamp(now, now + MAX_LEAD_NS)));
            }
            Some(ToServer::Alive) => {}
            Some(ToServer::Stop | ToServer::Bye) => return Ok(None),
            Some(other) => return Err(unexpected("while setting up the test", &other)),
        }
        deadline = now + STEP.as_nanos() as u64;
    }
}

fn unexpected(during: &'static str, message: &ToServer) -> FlowError {
    let text = format!("{message:?}");
    FlowError::Protocol {
        during,
        message: format!("unexpected message {}", text.chars().take(60).collect::<String>()),
    }
}

/// The run: traffic on its own threads, the control connection on this one.
fn run_end(plan: EndPlan, tx: &mut Sender, rx: &mut Receiver, shared: &Shared) -> Result<EndReport, FlowError> {
    let watch = Watch::new(&plan);
    let t0_ns = plan.t0_ns;
    let (done_tx, done_rx) = mpsc::channel::<SenderDone>();
    std::thread::scope(|scope| {
        let (plan, watch_ref) = (plan, &watch);
        let worker = scope.spawn(move || end::run(plan, watch_ref, &done_tx));
        let mut lost = None;
        let mut heard_ns = clock::monotonic_ns();
        let mut progress_ns = heard_ns;
        let give_up = || {
            watch.stop.stop_sending();
            watch.stop.stop_receiving();
        };
        while !worker.is_finished() {
            let now = clock::monotonic_ns();
            while let Ok(done) = done_rx.try_recv() {
                if lost.is_none() {
                    lost = tx.send(&ToClient::SenderDone(done)).err();
                }
            }
            if shared.stopping() || now > heard_ns.max(t0_ns) + SILENCE_NS {
                give_up();
            }
            if lost.is_some() {
                give_up();
                clock::sleep_until(now + 5_000_000);
                continue;
            }
            if now > progress_ns && now > t0_ns {
                progress_ns = now + PROGRESS_NS;
                let (sent, received) = watch.bytes();
                lost = tx.send(&ToClient::Progress { t_ns: now - t0_ns, received, sent }).err();
            }
            match rx.poll::<ToServer>(Duration::from_millis(20)) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    heard_ns = clock::monotonic_ns();
                    match message {
                        ToServer::SenderDone(done) => watch.peer_sender_done(&done, t0_ns),
                        ToServer::Stop => watch.stop.stop_sending(),
                        ToServer::Bye => give_up(),
                        _ => {}
                    }
                }
                Err(error) => lost = Some(error),
            }
        }
        while let Ok(done) = done_rx.try_recv() {
            if lost.is_none() {
                lost = tx.send(&ToClient::SenderDone(done)).err();
            }
        }
        let report = worker.join().map_err(|_| FlowError::Protocol {
            during: "running the test",
            message: "a thread of the test panicked".to_owned(),
        })?;
        match lost {
            Some(error) => Err(error),
            None => Ok(report),
        }
    })
}
