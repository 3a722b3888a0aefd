//! One test of an iperf3 client, seen from the server: cookie, request, streams, traffic, results.
//!
//! Every wait has a deadline and every text a size limit; whatever the client does, the session ends and gives back what
//! it held.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use landspeed_flow::address::unmap;
use landspeed_flow::control::deadline::Deadline;
use landspeed_flow::control::message::SenderDone;
use landspeed_flow::control::preface::Token;
use landspeed_flow::end::{self, DataSocket, EndPlan, EndReport, Job, Side, StreamPlan, Watch};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::{self, StreamSpec};
use landspeed_flow::server::admission::{Exceeded, NotGranted, RateGuard, Visit};
use landspeed_flow::server::{ServerEvent, Shared, describe_outcome, describe_test};
use landspeed_flow::sockets;
use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_sys::{clock, socket};
use serde_json::{Value, json};
use socket2::{SockRef, TcpKeepalive};

use crate::request::{self, TestRequest};
use crate::results::{Known, Omitted, Results};
use crate::server::{Arrival, Tests};
use crate::wire::{BUSY, Cookie, Line, MAX_CLIENT_RESULTS, MAX_REQUEST, Refusal, State, Unheard};
use crate::{identity, server_output};

/// How long a client may take over each step.
const STEP: Duration = Duration::from_secs(10);
/// How long a client may take to read its last words.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the word that the server stops may take to leave.
const STOPPING: Duration = Duration::from_millis(100);
/// How long it may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a client may hold the turn of its address to open UDP streams, and how long another waits for it, nanoseconds.
const TURN_NS: u64 = 10_000_000_000;
/// A client whose host acknowledges nothing on the control connection for this long is gone, seconds.
const VANISHED_S: u64 = 15;
/// A client that moves nothing and says nothing for this long during a test is gone, nanoseconds. iperf3's own is 120 s.
const SILENCE_NS: u64 = 120_000_000_000;
/// How long beyond its time a test may last before it is ended, nanoseconds: its client's clock began later than ours.
const GRACE_NS: u64 = 10_000_000_000;
/// What is under way at the end may take this long after the last of it came, nanoseconds, and this long in all.
const QUIET_NS: u64 = 300_000_000;
const TAIL_NS: u64 = 10_000_000_000;

/// Serves a control connection on a thread of its own; gives it back if there is no descriptor or thread for that.
pub(super) fn spawn(
    stream: TcpStream,
    peer: SocketAddr,
    cookie: Cookie,
    tests: &Arc<Tests>,
    shared: &Arc<Shared>,
) -> Result<(), TcpStream> {
    keep_alive(&stream);
    let (tests, server) = (Arc::clone(tests), Arc::clone(shared));
    shared.admission.greet(stream, peer, "iperf3", move |visit, stream| {
        let Ok(line) = Line::new(stream) else { return };
        Session { shared: server, tests, peer, cookie, line, visit, id: None }.main();
    })
}

/// Lets the kernel notice within [`VANISHED_S`] that the client's host is gone: iperf3's clients say nothing during a test,
/// and UDP is not acknowledged.
fn keep_alive(stream: &TcpStream) {
    let probes = 3;
    let each = Duration::from_secs(VANISHED_S / u64::from(probes));
    let keepalive = TcpKeepalive::new().with_time(each).with_interval(each).with_retries(probes - 1);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
    let _ = socket::set_user_timeout_ms(stream.as_fd(), VANISHED_S as u32 * 1000);
}

struct Session {
    shared: Arc<Shared>,
    tests: Arc<Tests>,
    peer: SocketAddr,
    cookie: Cookie,
    line: Line,
    visit: Visit,
    id: Option<String>,
}

/// Why a session ends early.
enum Ended {
    /// The client is told a number of iperf3's.
    Refused(Refusal, String),
    /// The client is told that it is not its turn.
    Busy(String),
    /// There is nobody to tell, or nothing to say.
    Lost(String),
}

impl From<FlowError> for Ended {
    fn from(error: FlowError) -> Self {
        Self::Lost(error.to_string())
    }
}

fn lost(during: &'static str) -> impl FnOnce(io::Error) -> Ended {
    move |source| FlowError::PeerLost { during, source }.into()
}

impl Session {
    fn main(mut self) {
        let Err(ended) = self.serve() else { return };
        let lost_place = self.visit.lost();
        let why = match ended {
            _ if lost_place.is_some() => "too many clients are asking for tests at once".to_owned(),
            Ended::Refused(number, why) => {
                let _ = self.line.refuse(number, &Deadline::after(LAST_WORDS));
                why
            }
            Ended::Busy(why) => {
                let _ = self.line.say(State::AccessDenied, &Deadline::after(LAST_WORDS));
                why
            }
            Ended::Lost(why) => why,
        };
        self.shared.report(match &self.id {
            Some(id) => ServerEvent::TestEnded { id: id.clone(), outcome: why },
            None => ServerEvent::Refused { peer: self.peer, why: format!("iperf3: {why}") },
        });
        if let Some(stream) = lost_place {
            self.visit.refuse_lost(stream, &BUSY);
            return;
        }
        // Let the client read why before the connection goes.
        let _ = self.line.poll(500);
    }

    fn serve(&mut self) -> Result<(), Ended> {
        self.line.say(State::ParamExchange, &self.shared.step(STEP)).map_err(lost("greeting an iperf3 client"))?;
        let text = self.line.hear_json(MAX_REQUEST, &self.shared.step(STEP)).map_err(|unheard| match unheard {
            Unheard::Text(message) => Ended::Refused(Refusal::Parameters, message),
            lost @ Unheard::Lost(_) => lost.during("in an iperf3 client's request").into(),
        })?;
        let wanted = request::decode(&text).map_err(|(number, why)| Ended::Refused(number, why))?;
        let user = self.authorize(&wanted)?;
        let granted = self.grant(&wanted)?;
        let specs = layout::streams(&granted).map_err(|e| Ended::Refused(Refusal::Parameters, e.to_string()))?;
        let id: String = Token::random().map_err(lost("naming a test"))?.to_hex().chars().take(32).collect();
        self.id = Some(id.clone());
        let user = user.map_or_else(String::new, |user| format!(", for {user}"));
        let what = format!("iperf3: {}{user}", describe_test(&granted));
        self.shared.report(ServerEvent::TestStarted { id: id.clone(), peer: self.peer, what });
        let streams = self.streams(&specs, &granted)?;
        let report = self.test(&wanted, &granted, &specs, streams)?;
        self.shared.report_completed(id, describe_outcome(&report, 0));
        Ok(())
    }

    /// The user's name, where users are asked for.
    fn authorize(&self, wanted: &TestRequest) -> Result<Option<String>, Ended> {
        let Some(users) = self.tests.users() else { return Ok(None) };
        let checked = match &wanted.authtoken {
            Some(token) => users.check(token),
            None => Err("it gave no credentials".to_owned()),
        };
        checked.map(Some).map_err(|why| Ended::Refused(Refusal::Authorization, why))
    }

    /// Takes a place among the running tests, or says why not. iperf3 has no field for a rate that is lowered: who asked for
    /// one gets it, or nothing.
    fn grant(&mut self, wanted: &TestRequest) -> Result<Parameters, Ended> {
        let limits = &self.shared.admission.limits;
        let asked = &wanted.parameters;
        let all = asked.rate_bps.map(|rate| rate.saturating_mul(u64::from(asked.streams)));
        if let (Some(all), Some(most)) = (all, limits.max_rate_bps)
            && all > most
        {
            return Err(Ended::Refused(Refusal::Rate, format!("it asked for {all} bit/s, and {most} are allowed")));
        }
        // A test without an end ends at the server's limit, or by the client's word.
        let endless_ns = limits.max_duration_ns.saturating_sub(asked.omit_ns);
        let bounded = Parameters {
            time_ns: asked.time_ns.or_else(|| asked.bytes.is_none().then_some(endless_ns)),
            ..asked.clone()
        };
        let (granted, _) = self.visit.grant(&bounded, wanted.dialect(&bounded)).map_err(|why| {
            let words = why.entry().message;
            let number = match why {
                NotGranted::CrowdedOut => return Ended::Busy(words),
                NotGranted::Full(full) if full.is_temporary() => return Ended::Busy(words),
                NotGranted::Full(_) => Refusal::Streams,
                NotGranted::Exceeded(Exceeded::Duration { .. }) => Refusal::Duration,
                NotGranted::Exceeded(Exceeded::Core(_)) => Refusal::Affinity,
                NotGranted::Exceeded(Exceeded::Parameters(why)) if why.contains("--congestion") => {
                    Refusal::Congestion
                }
                NotGranted::Exceeded(Exceeded::Parameters(why)) if why.contains("--len") => Refusal::BlockSize,
                NotGranted::Exceeded(_) => Refusal::Parameters,
            };
            Ended::Refused(number, words)
        })?;
        if asked.rate_bps.is_some() && granted.rate_bps != asked.rate_bps {
            return Err(Ended::Refused(Refusal::Rate, "the tests that are running leave too little rate".to_owned()));
        }
        Ok(granted)
    }

    /// Has the streams opened, and sets them up as asked.
    fn streams(&mut self, specs: &[StreamSpec], p: &Parameters) -> Result<Vec<StreamPlan>, Ended> {
        let sockets = match p.protocol {
            Protocol::Udp => self.udp_sockets(specs.len())?,
            _ => self.tcp_sockets(specs.len())?,
        };
        specs
            .iter()
            .zip(sockets)
            .map(|(spec, socket)| {
                let job = spec.job(Side::Server);
                sockets::configure_accepted(&socket, p, job.sends()).map_err(|error| {
                    let number = match &error {
                        FlowError::Setup { what, .. } if what.starts_with("use congestion") => Refusal::Congestion,
                        _ => Refusal::Stream,
                    };
                    Ended::Refused(number, error.to_string())
                })?;
                Ok(StreamPlan::new(spec.id, spec.index, spec.direction, job, socket, 0))
            })
            .collect()
    }

    fn tcp_sockets(&mut self, wanted: usize) -> Result<Vec<DataSocket>, Ended> {
        let client = unmap(self.peer).ip();
        let Some((arrivals, _awaited)) = self.tests.await_tcp(self.cookie, client, wanted) else {
            return Err(Ended::Busy("another test has the same cookie".to_owned()));
        };
        self.line.say(State::CreateStreams, &self.shared.step(STEP)).map_err(lost("asking for the streams"))?;
        let deadline_ns = clock::monotonic_ns() + STEP.as_nanos() as u64;
        let mut found: Vec<Arrival> = Vec::new();
        while found.len() < wanted {
            found.extend(arrivals.try_iter());
            self.still_there(deadline_ns)?;
        }
        found.sort_by_key(|arrival| arrival.order);
        Ok(found.into_iter().map(|arrival| DataSocket::Tcp(arrival.stream)).collect())
    }

    fn udp_sockets(&mut self, wanted: usize) -> Result<Vec<DataSocket>, Ended> {
        const ANSWER: &[u8; 4] = b"6789";
        let turn_by_ns = clock::monotonic_ns() + TURN_NS;
        let local = unmap(self.line.stream().local_addr().map_err(lost("opening a UDP stream"))?).ip();
        let (arrivals, _awaited) = loop {
            if let Some(turn) = self.tests.await_udp(unmap(self.peer).ip(), local, wanted) {
                break turn;
            }
            if clock::monotonic_ns() > turn_by_ns {
                return Err(Ended::Busy("another UDP test of its address is taking too long to begin".to_owned()));
            }
            self.still_there(turn_by_ns)?;
        };
        self.line.say(State::CreateStreams, &self.shared.step(STEP)).map_err(lost("asking for the streams"))?;
        let deadline_ns = clock::monotonic_ns() + TURN_NS;
        let mut found: Vec<UdpSocket> = Vec::new();
        while found.len() < wanted {
            for socket in arrivals.try_iter() {
                socket.set_nonblocking(true).map_err(lost("opening a UDP stream"))?;
                let _ = socket.send(ANSWER);
                found.push(socket);
            }
            // An answer may be lost: a hello that comes again is answered again.
            let mut hello = [0; 64];
            for socket in &found {
                if matches!(socket.recv(&mut hello), Ok(4..=8)) {
                    let _ = socket.send(ANSWER);
                }
            }
            self.still_there(deadline_ns)?;
        }
        found.iter().try_for_each(|socket| socket.set_nonblocking(false)).map_err(lost("opening a UDP stream"))?;
        Ok(found.into_iter().map(DataSocket::Udp).collect())
    }

    /// A short wait for the client to do its part; the end of it when it left, or takes too long.
    fn still_there(&mut self, deadline_ns: u64) -> Result<(), Ended> {
        if self.shared.stopping() {
            let _ = self.line.say(State::ServerTerminate, &Deadline::after(STOPPING));
            return Err(Ended::Lost("the server stops".to_owned()));
        }
        if clock::monotonic_ns() > deadline_ns {
            return Err(Ended::Refused(Refusal::Stream, "its streams did not arrive".to_owned()));
        }
        match self.line.poll(2).map_err(lost("waiting for the streams"))? {
            None => Ok(()),
            Some(byte) => Err(Ended::Lost(format!("it said {} while opening its streams", byte as i8))),
        }
    }

    fn test(
        &mut self,
        wanted: &TestRequest,
        granted: &Parameters,
        specs: &[StreamSpec],
        streams: Vec<StreamPlan>,
    ) -> Result<EndReport, Ended> {
        let limits = self.shared.admission.limits;
        // The client says when it is over; its clock began later than ours.
        let limit_ns = granted.time_ns.map_or(limits.max_duration_ns, |t| {
            (t + granted.omit_ns).min(limits.max_duration_ns).saturating_add(GRACE_NS)
        });
        let interface = landspeed_host::snapshot(Some(unmap(self.peer))).nic.map(|nic| nic.name);
        self.line.say(State::TestStart, &self.shared.step(STEP)).map_err(lost("starting"))?;
        self.line.say(State::TestRunning, &self.shared.step(STEP)).map_err(lost("starting"))?;
        let plan = EndPlan {
            side: Side::Server,
            dialect: wanted.dialect(granted),
            parameters: Parameters { time_ns: None, bytes: None, ..granted.clone() },
            t0_ns: clock::monotonic_ns(),
            streams,
            interface,
            limit_ns,
            receive_cap_bps: self.visit.receive_cap_bps(granted),
        };
        let watch = Watch::new(&plan);
        let (done_tx, done_rx) = mpsc::channel::<SenderDone>();
        let sending = Sending { held: hold(&plan.streams), done: done_rx };
        let mut known = Known { omit_ns: granted.omit_ns, ..Known::default() };
        let t0_ns = plan.t0_ns;
        let (report, known) = std::thread::scope(|scope| {
            let watch = &watch;
            let worker = scope.spawn(move || end::run(plan, watch, &done_tx));
            let told = self
                .traffic(watch, t0_ns, granted, &mut known)
                .and_then(|()| self.tail(watch, t0_ns, specs, &sending, &mut known, &|| worker.is_finished()));
            watch.stop.stop_sending();
            watch.stop.stop_receiving();
            let report = worker.join().map_err(|_| Ended::Lost("a thread of the test panicked".to_owned()))?;
            told.map(|()| (report, known))
        })?;
        let results = Results::of_end(&report, specs, &known);
        let mut text = results.encode();
        if wanted.server_output {
            text.insert("server_output_text".to_owned(), json!(server_output::output(&report, granted, &known)));
        }
        self.line.say_json(&Value::Object(text), &self.shared.step(STEP)).map_err(lost("sending the results"))?;
        self.line.say(State::DisplayResults, &self.shared.step(STEP)).map_err(lost("saying good-bye"))?;
        // It says good-bye; if it does not, nothing is lost any more.
        let _ = self.line.hear(&self.shared.step(FAREWELL));
        Ok(report)
    }

    /// Watches until the client says that it is over.
    fn traffic(&mut self, watch: &Watch, t0_ns: u64, granted: &Parameters, known: &mut Known) -> Result<(), Ended> {
        let guard = self.visit.rate_limit_bps().map(|rate| RateGuard::new(rate, t0_ns));
        let signs = signs_of_life(granted);
        let (mut moved, mut moved_ns) = (None, t0_ns);
        let mut omitting = known.omit_ns > 0;
        loop {
            let now = clock::monotonic_ns();
            if omitting && now >= t0_ns + known.omit_ns {
                omitting = false;
                known.omitted = watch
                    .counters()
                    .map(|(id, c)| (id, Omitted { bytes: c.bytes(), packets: c.packets(), highest: c.highest() }))
                    .collect();
            }
            let moves = signs(watch.bytes());
            if moves.is_none() || moves != moved {
                (moved, moved_ns) = (moves, now);
            }
            if self.shared.stopping() {
                let _ = self.line.say(State::ServerTerminate, &Deadline::after(STOPPING));
                return Err(Ended::Lost("the server stops".to_owned()));
            }
            if guard.as_ref().is_some_and(|guard| guard.is_exceeded(now, watch)) {
                let why = "the client moved more than this server's --max-rate or --max-total-rate allows".to_owned();
                return Err(Ended::Refused(Refusal::Rate, why));
            }
            if watch.stop.sending() {
                return Err(Ended::Refused(Refusal::Duration, "it did not end in its time".to_owned()));
            }
            if now > moved_ns + SILENCE_NS {
                return Err(Ended::Refused(Refusal::Silence, "nothing moved for two minutes".to_owned()));
            }
            let wait_ms = if omitting { 1 } else { 20 };
            match self.line.poll(wait_ms).map_err(lost("running the test"))? {
                None => {}
                Some(byte) if byte == State::TestEnd as i8 as u8 => return Ok(()),
                Some(byte) if byte == State::ClientTerminate as i8 as u8 => {
                    return Err(Ended::Lost("the client gave up".to_owned()));
                }
                Some(byte) => return Err(Ended::Lost(format!("it said {} during the test", byte as i8))),
            }
        }
    }

    /// From the client's word to the end of the last stream: what it sent is read to the last byte it tells of.
    fn tail(
        &mut self,
        watch: &Watch,
        t0_ns: u64,
        specs: &[StreamSpec],
        sending: &Sending,
        known: &mut Known,
        finished: &dyn Fn() -> bool,
    ) -> Result<(), Ended> {
        let told_ns = clock::monotonic_ns();
        watch.stop.stop_sending();
        known.end_ns = Some(told_ns - t0_ns);
        sending.let_out(&self.shared);
        self.line.say(State::ExchangeResults, &self.shared.step(STEP)).map_err(lost("ending the test"))?;
        let text = self.line.hear_json(MAX_CLIENT_RESULTS, &self.shared.step(STEP));
        let text = text.map_err(|unheard| Ended::from(unheard.during("in the client's results")))?;
        let theirs = Results::decode(&text).map_err(Ended::Lost)?;
        let mut expected = 0;
        for (index, spec) in specs.iter().enumerate().filter(|(_, spec)| spec.server_job == Job::Receive) {
            let Some(said) = theirs.stream(identity::number(index)) else { continue };
            expected += said.bytes + known.omitted.get(&spec.id).map_or(0, |omitted| omitted.bytes);
            if said.packets > 0 {
                known.sent.insert(spec.id, said.packets);
                let (stream, packets, bytes) = (spec.id, said.packets, said.bytes);
                watch.peer_sender_done(&SenderDone { stream, bytes, packets, stopped_ns: told_ns - t0_ns }, t0_ns);
            }
        }
        let (mut received, mut since_ns) = (0, clock::monotonic_ns());
        while !finished() {
            let now = clock::monotonic_ns();
            let bytes = watch.bytes().1;
            if bytes != received {
                (received, since_ns) = (bytes, now);
            }
            // What was omitted is not told to the byte, so only silence ends such a test.
            let stopping = self.shared.stopping();
            let all_here = known.omit_ns == 0 && received >= expected && known.sent.is_empty();
            if all_here || stopping || now > since_ns + QUIET_NS || now > told_ns + TAIL_NS {
                watch.stop.stop_receiving();
            }
            clock::sleep_until(now + 500_000);
        }
        Ok(())
    }
}

/// What of (sent, received) bytes shows that the client is there. What TCP sends is acknowledged, what UDP sends is not:
/// where that is all, only the control connection's keepalive is left.
fn signs_of_life(granted: &Parameters) -> impl Fn((u64, u64)) -> Option<u64> {
    let (udp, receives) = (granted.protocol == Protocol::Udp, granted.direction != Direction::Download);
    move |(sent, received)| if udp { receives.then_some(received) } else { Some(sent + received) }
}

/// The connections that this end sends on, and the word of their threads that they have stopped.
struct Sending {
    held: Vec<OwnedFd>,
    done: mpsc::Receiver<SenderDone>,
}

impl Sending {
    /// Once the threads have stopped: waits until what they sent is acknowledged, then closes this direction. Some clients
    /// read on until the end of file, others do not read at all, and then nothing moves any more.
    fn let_out(&self, shared: &Shared) {
        let queued =
            || self.held.iter().filter_map(|fd| socket::send_queue(fd.as_fd()).ok()).map(u64::from).sum::<u64>();
        let (mut left, mut since_ns) = (queued(), clock::monotonic_ns());
        let mut writing = self.held.len();
        let deadline_ns = since_ns + TAIL_NS;
        while (left > 0 || writing > 0)
            && clock::monotonic_ns() < deadline_ns.min(since_ns + QUIET_NS)
            && !shared.stopping()
        {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
            writing = writing.saturating_sub(self.done.try_iter().count());
            let now_left = queued();
            if now_left != left {
                (left, since_ns) = (now_left, clock::monotonic_ns());
            }
        }
        for fd in &self.held {
            let _ = SockRef::from(fd).shutdown(Shutdown::Write);
        }
    }
}

/// Second handles on the sending TCP connections, to see what they still hold, and to keep them open until the results
/// are out.
fn hold(streams: &[StreamPlan]) -> Vec<OwnedFd> {
    let sending = streams.iter().filter(|s| s.job.sends() && s.socket.is_tcp());
    sending.filter_map(|s| s.socket.fd()?.try_clone_to_owned().ok()).collect()
}
