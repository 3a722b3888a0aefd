//! Client for tests against an iperf3 server: local measurements are as in any test, the server's totals come
//! from iperf3's results.

mod conversation;

mod open;
pub(crate) mod remote;
mod traffic;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::address;
use landspeed_flow::assemble::CollectedRun;
use landspeed_flow::client::{Request, RunEvent, Target, local_address, not_started_document};
use landspeed_flow::control::preface::Token;
use landspeed_flow::control::printable;
use landspeed_flow::end::{self, EndPlan, EndReport, Side, StreamReport, Watch};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::{self, StreamSpec};
use landspeed_flow::sockets;
use landspeed_flow::validate;
use landspeed_model::{Direction, ErrorEntry, Iperf3End, Parameters, PathInfo, Protocol, RunDocument, SendMode};
use landspeed_sys::{clock, thread};
use serde_json::Value;

use self::conversation::{Conversation, not_iperf3};
use self::open::DuplicatedStream;
use self::traffic::Server;
use crate::dialect::{MAX_BLOCK, dialect};
use crate::request;
use crate::results::{Omitted, Results, SessionValues};
use crate::wire::{self, Cookie, MAX_SERVER_RESULTS, State, TextReadError};
use crate::{DEFAULT_PORT, Extras};

/// Timeout for a step of the server, in addition to four round trips.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum connection attempts while the server closes connections before its first state, and the pause
/// between them, nanoseconds.
const ATTEMPTS: u32 = 4;
const RETRY_DELAY_NS: u64 = 100_000_000;

/// Runs a test; returns its document, failures included.
pub fn run(
    request: &Request,
    extras: &Extras,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
) -> RunDocument {
    let rules = dialect(&request.parameters, !extras.narrow_counters);
    let sound = validate::check_in(&request.parameters, rules).map_err(|invalid| invalid.to_string());
    let sound = sound.and_then(|()| request::check(&request.parameters));
    let sound = sound.and_then(|()| request.check_ports());
    if let Err(message) = sound {
        return not_started_document(
            request,
            ErrorEntry { code: "bad-parameters".to_owned(), message, advice: None },
        );
    }
    let mut found = CollectedRun::new(request);
    let mut server = remote::unknown(&request.parameters);
    if let Err(error) = attempt(request, extras, interrupted, observe, &mut found, &mut server) {
        found.errors.push(error.entry());
    }
    remote::document(found, server)
}

fn attempt(
    request: &Request,
    extras: &Extras,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    found: &mut CollectedRun,
    remote: &mut Iperf3End,
) -> Result<(), FlowError> {
    let parameters = &request.parameters;
    landspeed_flow::client::check_cores(parameters)?;
    let target = Target { port: Some(request.target.port.unwrap_or(DEFAULT_PORT)), ..request.target.clone() };
    let servers = target.addresses(parameters.family, interrupted)?;
    let candidates = sockets::bound(&servers, |server| local_address(parameters.bind.as_deref(), server))?;
    found.client_host = Some(landspeed_host::snapshot(Some(candidates[0].0)));
    let authtoken = extras.credentials.as_ref().map(|c| c.key.token(&c.user, &c.password, c.pkcs1)).transpose();
    let authtoken =
        authtoken.map_err(|message| FlowError::Protocol { during: "writing the credentials", message })?;
    let cookie = wire::cookie().map_err(|source| FlowError::Setup { what: "read random bytes".into(), source })?;
    let mut conversation = connect_with_retries(&candidates, &cookie, interrupted)?;
    let server = conversation.server;
    let bind = candidates.iter().find(|(candidate, _)| *candidate == server).and_then(|(_, bind)| *bind);
    if server != candidates[0].0 {
        found.client_host = Some(landspeed_host::snapshot(Some(server)));
    }
    let interface = found.client_interface();
    if let Some(keep_alive) = extras.keep_alive {
        keep_alive.apply(conversation.line.stream());
    }
    let rtt_ns = conversation.round_trip_ns();
    validate::check_distance(parameters, rtt_ns)?;
    found.id = Token::random()
        .map_err(|source| FlowError::Setup { what: "read random bytes".into(), source })?
        .to_hex()
        .chars()
        .take(32)
        .collect();
    conversation.send_json(&request::encode(parameters, extras, authtoken.as_deref()), "asking for the test")?;
    conversation.expect(State::CreateStreams, "asking for the test")?;
    let mut effective = parameters.clone();
    effective.write_bytes = if parameters.protocol == Protocol::Tcp && parameters.direction != Direction::Upload {
        parameters.write_bytes.min(MAX_BLOCK)
    } else {
        parameters.write_bytes
    };
    let local = conversation.line.stream().local_addr().map_or_else(|_| String::new(), address::display);
    let path = PathInfo {
        target: target.to_string(),
        client_addr: local,
        server_addr: address::display(server),
        loopback: server.ip().is_loopback()
            || conversation.line.stream().local_addr().is_ok_and(|a| a.ip() == server.ip()),
        control_rtt_ns: rtt_ns,
        authenticated: false,
        ..PathInfo::default()
    };
    let mut notes = notes(parameters);
    let length_ns = layout::duration_ns(parameters).unwrap_or(layout::ASSUMED_DURATION_NS);
    notes.extend(end::limit_sampling(&mut effective, length_ns));
    notes.extend(disable_exact_departures(&mut effective, path.loopback, thread::allowed_cores().len()));
    observe(RunEvent::Accepted { id: &found.id, parameters: &effective, notes: &notes, path: &path });
    found.effective = Some(effective.clone());
    found.notes = notes;
    found.path = Some(path);
    let specs = layout::streams(&effective)
        .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
    let streams =
        open::open_streams(&specs, (server, rtt_ns), bind, &effective, request.local_port, &cookie, interrupted)?;
    let held = open::hold(&streams)?;
    if extras.report_ns.is_some() {
        let client = Some(EndReport::at_start(&streams));
        let opened = remote::document(CollectedRun { client, ..found.clone() }, remote.clone());
        observe(RunEvent::Opened(&opened));
    }
    conversation.expect(State::TestStart, "opening the streams")?;
    conversation.expect(State::TestRunning, "starting")?;
    let limit_ns = layout::duration_ns(&effective).unwrap_or(landspeed_settings::MAX_TIME_NS);
    let plan = EndPlan {
        side: Side::Client,
        dialect: dialect(&effective, !extras.narrow_counters),
        parameters: effective,
        t0_ns: clock::monotonic_ns() + 1_000_000,
        streams,
        interface,
        limit_ns,
        rtt_ns,
        receive_cap_bps: None,
    };
    let mut run = Run { conversation, held, specs, rtt_ns, report_ns: extras.report_ns, found, remote };
    run.finish(plan, observe)
}

/// Connects and waits for the server's first state. Between two tests an iperf3 server briefly closes its
/// listening socket and the connections pending there, so a connection that is closed this early is retried.
fn connect_with_retries<'a>(
    candidates: &[(SocketAddr, Option<SocketAddr>)],
    cookie: &Cookie,
    interrupted: &'a AtomicBool,
) -> Result<Conversation<'a>, FlowError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut conversation = match Conversation::open(candidates, cookie, interrupted) {
            Err(FlowError::Connect { addr, .. }) if attempts > 1 => return Err(not_iperf3(addr)),
            opened => opened?,
        };
        let server = conversation.server;
        match conversation.expect(State::ParamExchange, "waiting for the server's first word") {
            Ok(()) => return Ok(conversation),
            Err(FlowError::PeerLost { .. }) if attempts < ATTEMPTS => {
                clock::sleep_until(clock::monotonic_ns() + RETRY_DELAY_NS);
            }
            Err(FlowError::PeerLost { .. }) => return Err(not_iperf3(server)),
            Err(error) => return Err(error),
        }
    }
}

/// Options that the client applies differently than requested.
fn notes(p: &Parameters) -> Vec<String> {
    let mut notes = Vec::new();
    if p.protocol == Protocol::Tcp && p.write_bytes > MAX_BLOCK && p.direction != Direction::Upload {
        notes.push("iperf3 writes at most 1 MiB at a time".to_owned());
    }
    if p.omit_ns > 0 && !request::server_omits(p) {
        notes.push(
            "the omitted part is left out here; the server counts all, so that both ends' totals mean the same"
                .to_owned(),
        );
    }
    if p.direction != Direction::Upload && p.send == SendMode::Sendfile {
        notes.push("whether the server really sends without copying is not visible".to_owned());
    }
    notes
}

/// Disables exact departures if the server shares this host's cores and none is spare: a sender that spins
/// until each departure would take the receiver's core, and the test itself would cause losses.
fn disable_exact_departures(p: &mut Parameters, loopback: bool, cores: usize) -> Option<String> {
    let udp = p.udp.as_mut()?;
    let spins = udp.exact_departures && p.rate_bps.is_some() && p.direction != Direction::Download;
    if !spins || !loopback || cores >= 2 * p.streams as usize + 2 {
        return None;
    }
    udp.exact_departures = false;
    Some("departures are gathered over 250 µs: a sender that spins would take the server's core".to_owned())
}

/// A test with open streams.
struct Run<'a, 'b> {
    conversation: Conversation<'a>,
    held: Vec<DuplicatedStream>,
    specs: Vec<StreamSpec>,
    rtt_ns: u64,
    report_ns: Option<u64>,
    found: &'b mut CollectedRun,
    remote: &'b mut Iperf3End,
}

impl Run<'_, '_> {
    fn finish(&mut self, plan: EndPlan, observe: &mut dyn FnMut(RunEvent<'_>)) -> Result<(), FlowError> {
        let watch = Watch::new(&plan);
        let t0_ns = plan.t0_ns;
        self.found.started_unix_ns = clock::realtime_ns() + t0_ns.saturating_sub(clock::monotonic_ns());
        let times = (self.rtt_ns, t0_ns, self.report_ns);
        let omits = request::server_omits(&plan.parameters);
        let omit_ns = plan.parameters.omit_ns;
        let (held, parameters) = (&self.held, plan.parameters.clone());
        let mut server = Server::new(&mut self.conversation, held, &self.specs, parameters, times, observe);
        let (report, conversation) = end::drive(plan, &watch, &mut server);
        let report = report?;
        let result = conversation.and_then(|()| self.results(&report, omits.then_some(omit_ns)));
        self.found.client = Some(report);
        result
    }

    /// Sends the client's totals and receives the server's; `omit_ns` is the part that the server omits.
    fn results(&mut self, report: &EndReport, omit_ns: Option<u64>) -> Result<(), FlowError> {
        let known = SessionValues {
            omitted: omit_ns.map(|omit_ns| omitted(report, omit_ns)).unwrap_or_default(),
            omit_ns: omit_ns.unwrap_or(0),
            ..SessionValues::default()
        };
        let ours = Results::from_report(report, &self.specs, &known);
        self.conversation.send_json(&Value::Object(ours.encode()), "sending the results")?;
        let during = "in the server's results";
        let step = self.conversation.step();
        let text = self.conversation.line.receive_json(MAX_SERVER_RESULTS, &step);
        let interrupted = self.conversation.interrupted;
        let mut text =
            text.map_err(|unread: TextReadError| FlowError::or_interrupted(interrupted, unread.during(during)))?;
        let theirs = Results::decode(&text).map_err(|message| FlowError::Protocol { during, message })?;
        let server = remote::report_of(Side::Server, &theirs, &self.specs, report, omit_ns.is_some())
            .map_err(|message| FlowError::Protocol { during, message })?;
        self.found.server = Some(server);
        let remote = &mut *self.remote;
        remote.output = text
            .as_object_mut()
            .and_then(|fields| fields.remove("server_output_json").or_else(|| fields.remove("server_output_text")));
        if let Some(Value::String(printed)) = &mut remote.output {
            *printed = printed.lines().map(|line| printable(line, 400)).collect::<Vec<_>>().join("\n");
        }
        self.found.server_version = remote.output.as_ref().and_then(remote::version);
        landspeed_flow::client::make_printable(&mut text);
        remote.results = text;
        // The results are complete, so errors from here on are ignored.
        if self.conversation.expect(State::DisplayResults, "saying good-bye").is_ok() {
            let _ = self.conversation.send(State::IperfDone, "saying good-bye");
        }
        Ok(())
    }
}

/// Counts of the local senders at the end of the omitted part, by stream, from the last sample before it.
fn omitted(report: &EndReport, omit_ns: u64) -> HashMap<u32, Omitted> {
    let of_stream = |stream: &StreamReport| {
        let until = stream.end.samples.partition_point(|sample| sample.t_ns <= omit_ns);
        let last = stream.end.samples[..until].last()?;
        let packets = last.packets.unwrap_or(0);
        Some((stream.id, Omitted { bytes: last.bytes, packets, highest: packets }))
    };
    report.streams.iter().filter(|stream| stream.sends).filter_map(of_stream).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_model::UdpParameters;

    use super::*;

    #[test]
    fn exact_departures_on_loopback_need_a_spare_core() {
        let exact = |loopback, cores, rate_bps| {
            let udp = Some(UdpParameters { exact_departures: true, ..UdpParameters::default() });
            let mut p = Parameters { protocol: Protocol::Udp, streams: 1, rate_bps, udp, ..Parameters::default() };
            let note = disable_exact_departures(&mut p, loopback, cores);
            let exact = p.udp.is_some_and(|udp| udp.exact_departures);
            assert_eq!(note.is_none(), exact);
            exact
        };
        assert!(!exact(true, 2, Some(1_000_000)));
        assert!(exact(true, 4, Some(1_000_000)) && exact(false, 2, Some(1_000_000)) && exact(true, 2, None));
    }
}
