//! Server side of a test with an iperf3 client: cookie, request, streams, traffic, results.
//!
//! Every wait has a deadline and every text a size limit, so the session ends and releases its resources
//! whatever the client does.

mod served;
mod traffic;

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use landspeed_flow::address::unmap;
use landspeed_flow::control::channel::min_rtt_ns;
use landspeed_flow::control::deadline::{Deadline, timeout};
use landspeed_flow::control::preface::Token;
use landspeed_flow::end::{self, DataSocket, EndPlan, EndReport, Side, StreamPlan, Watch};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::{self, StreamSpec};
use landspeed_flow::server::admission::{AdmittedClient, Exceeded, NotGranted};
use landspeed_flow::server::{
    ClientKind, Refusal as RefusalReason, Shared, TestKind, describe_outcome, describe_test,
};
use landspeed_flow::sockets;
use landspeed_model::{Parameters, Protocol};
use landspeed_sys::{clock, socket};
use serde_json::{Value, json};

use self::served::ServedTest;
use self::traffic::{Client, Sending};
use crate::KeepAlive;
use crate::request::{self, TestRequest};
use crate::results::Results;
use crate::server::{AcceptedStream, Tests};
use crate::server_output;
use crate::wire::{BUSY_REPLY, ControlConnection, Cookie, MAX_REQUEST, Refusal, State, TextReadError};

/// Timeout for a step of the client, in addition to four round trips.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for sending a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for sending the message that the server stops.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);
/// Timeout for the client's final state.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for which a client may block its address while opening UDP streams, in addition to the round trips of its
/// streams, and for which another one waits, nanoseconds.
const UDP_OPEN_TIMEOUT_NS: u64 = 10_000_000_000;
/// Round trips that a client needs to open a stream: iperf3 opens one after the other. They are limited to this time in
/// all, nanoseconds.
const ROUND_TRIPS_PER_STREAM: u64 = 2;
const MAX_ROUND_TRIPS_NS: u64 = 120_000_000_000;
/// Time without acknowledgements on the control connection after which the client's host is considered gone,
/// seconds.
const KEEPALIVE_TIMEOUT_S: u32 = 15;
/// Time after its limit at which a test is ended, nanoseconds: the client's clock starts later than the
/// server's.
const GRACE_NS: u64 = 10_000_000_000;

/// Serves a control connection on a new thread; returns the connection if no descriptor or thread is available.
pub(super) fn spawn(
    stream: TcpStream,
    peer: SocketAddr,
    cookie: Cookie,
    tests: &Arc<Tests>,
    shared: &Arc<Shared>,
) -> Result<(), TcpStream> {
    keep_alive(&stream, tests.keep_alive());
    let (tests, server) = (Arc::clone(tests), Arc::clone(shared));
    shared.admission.spawn_session(stream, peer, "iperf3", move |admitted, stream| {
        let Ok(line) = ControlConnection::new(stream) else { return };
        Session { shared: server, tests, peer, cookie, line, admitted, test: None }.main();
    })
}

/// Enables keepalive as configured, or so that the kernel detects a vanished client within [`KEEPALIVE_TIMEOUT_S`]: iperf3's clients send
/// nothing on this connection during a test, and UDP is not acknowledged.
fn keep_alive(stream: &TcpStream, configured: Option<KeepAlive>) {
    if let Some(configured) = configured {
        configured.apply(stream);
        return;
    }
    let probes = 3;
    let each_s = Some(KEEPALIVE_TIMEOUT_S / probes);
    KeepAlive { idle_s: each_s, interval_s: each_s, probes: Some(probes - 1) }.apply(stream);
    let _ = socket::set_user_timeout_ms(stream.as_fd(), KEEPALIVE_TIMEOUT_S * 1000);
}

/// Number of bytes after which the server stops sending; `None` to send until the client ends the test: it waits for
/// lost datagrams, and does not count omitted bytes.
fn bytes_to_send(granted: &Parameters) -> Option<u64> {
    granted.bytes.filter(|_| granted.protocol == Protocol::Tcp && granted.omit_ns == 0)
}

struct Session {
    shared: Arc<Shared>,
    tests: Arc<Tests>,
    peer: SocketAddr,
    cookie: Cookie,
    line: ControlConnection,
    admitted: AdmittedClient,
    /// Identifier and kind of the accepted test.
    test: Option<(String, TestKind)>,
}

/// Reason for a session's early end.
enum Ended {
    /// Refused with one of iperf3's error numbers, which the client receives.
    Refused(Refusal, String),
    /// Refused as busy, which the client receives.
    Busy(String),
    /// The connection is lost, or there is nothing to send to the client.
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
        let lost_place = self.admitted.lost();
        let reason = match &ended {
            _ if lost_place.is_some() => RefusalReason::Busy,
            Ended::Refused(Refusal::Authorization, _) => RefusalReason::Key,
            Ended::Refused(..) => RefusalReason::NotPermitted,
            Ended::Busy(_) => RefusalReason::Busy,
            Ended::Lost(_) => RefusalReason::Incomplete,
        };
        let why = match ended {
            _ if lost_place.is_some() => "too many clients are asking for tests at once".to_owned(),
            Ended::Refused(number, why) => {
                let _ = self.line.refuse(number, &Deadline::after(REFUSAL_TIMEOUT));
                why
            }
            Ended::Busy(why) => {
                let _ = self.line.send(State::AccessDenied, &Deadline::after(REFUSAL_TIMEOUT));
                why
            }
            Ended::Lost(why) => why,
        };
        match &self.test {
            Some((id, kind)) => self.shared.report_failed(id.clone(), self.peer, *kind, why),
            None => self.shared.report_refused(self.peer, reason, format!("iperf3: {why}")),
        }
        if let Some(stream) = lost_place {
            self.admitted.refuse_lost(stream, &BUSY_REPLY);
            return;
        }
        // Gives the client time to read the reason before the connection closes.
        let _ = self.line.poll(500);
    }

    fn serve(&mut self) -> Result<(), Ended> {
        self.line
            .send(State::ParamExchange, &self.shared.step(STEP_TIMEOUT))
            .map_err(lost("greeting an iperf3 client"))?;
        let step = self.shared.step(timeout(STEP_TIMEOUT, self.round_trip_ns()));
        let text = self.line.receive_json(MAX_REQUEST, &step).map_err(|unread| match unread {
            TextReadError::Text(message) => Ended::Refused(Refusal::Parameters, message),
            lost @ TextReadError::Lost(_) => lost.during("in an iperf3 client's request").into(),
        })?;
        let wanted = request::decode(&text).map_err(|(number, why)| Ended::Refused(number, why))?;
        let user = self.authorize(&wanted)?;
        let granted = self.grant(&wanted)?;
        let specs = layout::streams(&granted).map_err(|e| Ended::Refused(Refusal::Parameters, e.to_string()))?;
        let id: String = Token::random().map_err(lost("naming a test"))?.to_hex().chars().take(32).collect();
        let kind = TestKind::of(ClientKind::Iperf3, &granted);
        self.test = Some((id.clone(), kind));
        let user = user.map_or_else(String::new, |user| format!(", for {user}"));
        let what = format!("iperf3: {}{user}", describe_test(&granted));
        self.shared.report_started(id.clone(), self.peer, kind, what);
        let streams = self.streams(&specs, &granted)?;
        let report = self.test(&wanted, (&granted, kind), &specs, streams)?;
        self.shared.counts().record_goodput(kind, &report);
        self.shared.report_completed(id, self.peer, kind, describe_outcome(&report, 0));
        Ok(())
    }

    /// Checks the user if the server requires authorization; returns the name.
    fn authorize(&self, wanted: &TestRequest) -> Result<Option<String>, Ended> {
        let Some(users) = self.tests.users() else { return Ok(None) };
        let checked = match &wanted.authtoken {
            Some(token) => users.check(token),
            None => Err("it gave no credentials".to_owned()),
        };
        checked.map(Some).map_err(|why| Ended::Refused(Refusal::Authorization, why))
    }

    /// Admits the test or refuses it. iperf3 has no field for a reduced rate, so a client gets the requested rate
    /// or a refusal.
    fn grant(&mut self, wanted: &TestRequest) -> Result<Parameters, Ended> {
        let limits = &self.shared.admission.limits;
        let asked = &wanted.parameters;
        let all = asked.rate_bps.map(|rate| rate.saturating_mul(u64::from(asked.streams)));
        if let (Some(all), Some(most)) = (all, limits.max_rate_bps)
            && all > most
        {
            return Err(Ended::Refused(Refusal::Rate, format!("it asked for {all} bit/s, and {most} are allowed")));
        }
        // A test without a limit ends at the server's maximum duration, or when the client ends it.
        let endless_ns = limits.max_duration_ns.saturating_sub(asked.omit_ns);
        let bounded = Parameters {
            time_ns: asked.time_ns.or_else(|| asked.bytes.is_none().then_some(endless_ns)),
            ..asked.clone()
        };
        let (granted, _) = self.admitted.grant(&bounded, wanted.dialect(&bounded)).map_err(|why| {
            let words = why.entry().message;
            let number = match why {
                NotGranted::SlotLost | NotGranted::BehindOthers | NotGranted::WaitedTooLong { .. } => {
                    return Ended::Busy(words);
                }
                NotGranted::Full(full) if full.is_temporary() => return Ended::Busy(words),
                NotGranted::Full(_) => Refusal::Streams,
                NotGranted::Exceeded(Exceeded::Duration { .. }) => Refusal::Duration,
                NotGranted::Exceeded(Exceeded::Core(_)) => Refusal::Affinity,
                NotGranted::Exceeded(Exceeded::Parameters(invalid)) => match invalid.setting {
                    Some("congestion") => Refusal::Congestion,
                    Some("len") => Refusal::BlockSize,
                    _ => Refusal::Parameters,
                },
                NotGranted::Exceeded(_) => Refusal::Parameters,
            };
            Ended::Refused(number, words)
        })?;
        if asked.rate_bps.is_some() && granted.rate_bps != asked.rate_bps {
            return Err(Ended::Refused(Refusal::Rate, "the tests that are running leave too little rate".to_owned()));
        }
        Ok(granted)
    }

    /// Waits for the client to open its streams, and configures them as requested.
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
                        FlowError::Congestion { .. } => Refusal::Congestion,
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
        let Some((arrivals, _awaited)) = self.tests.register_tcp(self.cookie, client, wanted) else {
            return Err(Ended::Busy("another test has the same cookie".to_owned()));
        };
        self.line
            .send(State::CreateStreams, &self.shared.step(STEP_TIMEOUT))
            .map_err(lost("asking for the streams"))?;
        let deadline_ns = clock::monotonic_ns() + STEP_TIMEOUT.as_nanos() as u64 + self.opening_ns(wanted);
        let mut found: Vec<AcceptedStream> = Vec::new();
        while found.len() < wanted {
            found.extend(arrivals.try_iter());
            self.check_client(deadline_ns)?;
        }
        found.sort_by_key(|arrival| arrival.order);
        Ok(found.into_iter().map(|arrival| DataSocket::Tcp(arrival.stream)).collect())
    }

    /// Time for the round trips of opening this many streams, nanoseconds.
    fn opening_ns(&self, streams: usize) -> u64 {
        let round_trips = ROUND_TRIPS_PER_STREAM * (streams as u64 + 2);
        self.round_trip_ns().saturating_mul(round_trips).min(MAX_ROUND_TRIPS_NS)
    }

    fn round_trip_ns(&self) -> u64 {
        min_rtt_ns(self.line.stream().as_fd())
    }

    fn udp_sockets(&mut self, wanted: usize) -> Result<Vec<DataSocket>, Ended> {
        const UDP_REPLY: &[u8; 4] = b"6789";
        let turn_by_ns = clock::monotonic_ns() + UDP_OPEN_TIMEOUT_NS;
        let local = unmap(self.line.stream().local_addr().map_err(lost("opening a UDP stream"))?).ip();
        let (arrivals, _awaited) = loop {
            if let Some(turn) = self.tests.register_udp(unmap(self.peer).ip(), local, wanted) {
                break turn;
            }
            if clock::monotonic_ns() > turn_by_ns {
                return Err(Ended::Busy("another UDP test of its address is taking too long to begin".to_owned()));
            }
            self.check_client(turn_by_ns)?;
        };
        self.line
            .send(State::CreateStreams, &self.shared.step(STEP_TIMEOUT))
            .map_err(lost("asking for the streams"))?;
        let deadline_ns = clock::monotonic_ns() + UDP_OPEN_TIMEOUT_NS + self.opening_ns(wanted);
        let mut found: Vec<UdpSocket> = Vec::new();
        while found.len() < wanted {
            for socket in arrivals.try_iter() {
                socket.set_nonblocking(true).map_err(lost("opening a UDP stream"))?;
                let _ = socket.send(UDP_REPLY);
                found.push(socket);
            }
            // Answers may be lost, so a repeated hello is answered again.
            let mut hello = [0; 64];
            for socket in &found {
                if matches!(socket.recv(&mut hello), Ok(4..=8)) {
                    let _ = socket.send(UDP_REPLY);
                }
            }
            self.check_client(deadline_ns)?;
        }
        found.iter().try_for_each(|socket| socket.set_nonblocking(false)).map_err(lost("opening a UDP stream"))?;
        Ok(found.into_iter().map(DataSocket::Udp).collect())
    }

    /// Waits briefly for the client; fails if it has left or the deadline has passed.
    fn check_client(&mut self, deadline_ns: u64) -> Result<(), Ended> {
        if self.shared.stopping() {
            let _ = self.line.send(State::ServerTerminate, &Deadline::after(STOP_TIMEOUT));
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
        (granted, kind): (&Parameters, TestKind),
        specs: &[StreamSpec],
        streams: Vec<StreamPlan>,
    ) -> Result<EndReport, Ended> {
        let limits = self.shared.admission.limits;
        // The client ends the test; its clock starts later than the server's.
        let limit_ns = granted.time_ns.map_or(limits.max_duration_ns, |t| {
            (t + granted.omit_ns).min(limits.max_duration_ns).saturating_add(GRACE_NS)
        });
        let host = landspeed_host::snapshot(Some(unmap(self.peer)));
        let interface = host.nic.as_ref().map(|nic| nic.name.clone());
        self.line.send(State::TestStart, &self.shared.step(STEP_TIMEOUT)).map_err(lost("starting"))?;
        self.line.send(State::TestRunning, &self.shared.step(STEP_TIMEOUT)).map_err(lost("starting"))?;
        let plan = EndPlan {
            side: Side::Server,
            dialect: wanted.dialect(granted),
            parameters: Parameters { time_ns: None, bytes: bytes_to_send(granted), ..granted.clone() },
            t0_ns: clock::monotonic_ns(),
            streams,
            interface,
            limit_ns,
            rtt_ns: self.round_trip_ns(),
            receive_cap_bps: self.admitted.receive_cap_bps(granted),
        };
        let started_unix_ns = clock::realtime_ns();
        let watch = Watch::new(&plan);
        let sending = Sending::duplicate(&plan.streams);
        let rate_limit_bps = self.admitted.rate_limit_bps();
        let ends = (&*self.shared, &mut self.line);
        let mut client = Client::new(ends, specs, granted, sending, rate_limit_bps, plan.t0_ns);
        let traffic = self.shared.admission.begin_traffic();
        let (report, conversation) = end::drive(plan, &watch, &mut client);
        drop(traffic);
        let known = client.known;
        watch.stop_all();
        let report = report.map_err(|_| Ended::Lost("a thread of the test panicked".to_owned()))?;
        self.shared.counts().count_traffic(kind, &report, 0);
        conversation?;
        let results = Results::from_report(&report, specs, &known);
        let mut text = results.encode();
        if wanted.server_output {
            text.insert("server_output_text".to_owned(), json!(server_output::output(&report, granted, &known)));
        }
        self.line
            .send_json(&Value::Object(text), &self.shared.step(STEP_TIMEOUT))
            .map_err(lost("sending the results"))?;
        self.line.send(State::DisplayResults, &self.shared.step(STEP_TIMEOUT)).map_err(lost("saying good-bye"))?;
        // The final state of the client; without it the results are complete too.
        let _ = self.line.receive(&self.shared.step(CLOSE_TIMEOUT));
        if let (Some(output), Some(theirs)) = (self.tests.output(), &known.peer) {
            let id = self.test.as_ref().map_or("", |(id, _)| id);
            let (peer, parameters) = (unmap(self.peer), granted);
            let served = ServedTest { id, peer, parameters, specs, started_unix_ns, host };
            output.completed(&served.document(&report, theirs, output.interval_ns).map_err(Ended::Lost)?);
        }
        Ok(report)
    }
}
