//! Tests that this server runs, as client, against other servers, on behalf of clients.
//!
//! Cannot be abused for amplification: traffic to another host begins with one TCP connection and a preface,
//! and data is sent only to a server that accepts the test.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ipnet::IpNet;
use landspeed_model::{Direction, ErrorEntry, Parameters, Protocol};
use landspeed_sys::clock;

use super::session::unexpected;
use super::{Shared, TestKind, describe_outcome};
use crate::address;
use crate::assemble::CollectedRun;
use crate::client::{self, Bounds, Request, RunEvent, Target};
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{ToClient, ToServer, report_parts};
use crate::control::third_party::{ThirdPartyEvent, ThirdPartyResult};
use crate::error::FlowError;

/// Timeout without a message from the client, which sends heartbeats, nanoseconds.
const SILENCE_TIMEOUT_NS: u64 = 15_000_000_000;
/// Shortest time in the target's queue after which a test gives up if clients wait for this server, nanoseconds. They may be
/// what the target waits for.
const QUEUE_PATIENCE_NS: u64 = 10_000_000_000;
/// Longest random time in addition, nanoseconds: one of two tests that wait for each other gives up first, and the other starts.
const QUEUE_JITTER_NS: u64 = 20_000_000_000;
/// Interval of heartbeats to the client, nanoseconds.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// Interval of live figures, aligned to a grid of this period, nanoseconds.
const PROGRESS_NS: u64 = 200_000_000;
/// Poll timeout for a message from the client.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);
/// Poll interval while a test ends, nanoseconds.
const END_POLL_NS: u64 = 2_000_000;
/// Timeout for sending a result, all parts together: this, plus one second per 64 KiB.
const RESULT_TIMEOUT: Duration = Duration::from_secs(20);
const RESULT_BYTES_PER_S: u64 = 64 * 1024;

/// Servers against which clients may have this one run tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThirdPartyTargets {
    /// Any server.
    Any,
    /// Servers with an address in one of these networks.
    Networks(Vec<IpNet>),
}

impl ThirdPartyTargets {
    fn allow(&self, ip: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Networks(networks) => networks.iter().any(|network| network.contains(&ip)),
        }
    }
}

/// Test that a client requested.
pub(super) struct ThirdPartyTest<'a> {
    /// Permitted targets.
    pub targets: &'a ThirdPartyTargets,
    /// Address of the other server.
    pub target: Target,
    /// Granted parameters.
    pub parameters: Parameters,
    /// Rate limit per direction over all streams, bits/s.
    pub rate_limit_bps: Option<u64>,
    /// Read rate limit of each TCP stream, bits/s.
    pub receive_cap_bps: Option<u64>,
    /// Differences between granted and requested parameters.
    pub notes: Vec<String>,
    /// Whether the requesting client understands a wait in the target's queue.
    pub queue: bool,
}

/// Swaps client and server in the parameters: for a server that is the client of a test, upload is what it
/// sends.
pub(super) fn mirrored(p: &Parameters) -> Parameters {
    let direction = match p.direction {
        // Request/response tests have one direction in their parameters but use both.
        other if matches!(p.protocol, Protocol::TcpRr | Protocol::UdpRr) => other,
        Direction::Upload => Direction::Download,
        Direction::Download => Direction::Upload,
        Direction::Both => Direction::Both,
    };
    Parameters {
        direction,
        client_cpus: p.server_cpus.clone(),
        server_cpus: p.client_cpus.clone(),
        client_cpus_auto: p.server_cpus_auto,
        server_cpus_auto: p.client_cpus_auto,
        client_numa: p.server_numa,
        server_numa: p.client_numa,
        ..p.clone()
    }
}

/// Runs the test and sends its result. The test ends early if the client disconnects, stops responding or
/// requests it, or if the server stops. Returns a description of the outcome for the log, and whether both
/// sides reported.
pub(super) fn serve(
    test: &ThirdPartyTest<'_>,
    (peer, kind, shared): (SocketAddr, TestKind, &Shared),
    tx: &mut Sender,
    rx: &mut Receiver,
) -> Result<(String, bool), FlowError> {
    let over = AtomicBool::new(false);
    let (events, heard) = mpsc::channel();
    let random = landspeed_sys::random::bytes().map_or(0, u16::from_le_bytes);
    let patience_ns = QUEUE_PATIENCE_NS + QUEUE_JITTER_NS / (1 << 16) * u64::from(random);
    let mut gave_up = false;
    let (mut found, conversation) = std::thread::scope(|scope| {
        let run = || measure(test, shared, &over, events);
        let setup = |source| FlowError::Setup { what: "start a thread for a third-party test".into(), source };
        let worker = std::thread::Builder::new().name("third-party".to_owned()).spawn_scoped(scope, run);
        let worker = worker.map_err(setup)?;
        let now_ns = clock::monotonic_ns();
        let mut asker = RequestingClient {
            tx,
            rx,
            last_message_ns: now_ns,
            last_sent_ns: now_ns,
            last_progress_ns: 0,
            queued_ns: None,
            stop_requested: false,
        };
        let mut conversation = Ok(());
        while !worker.is_finished() {
            if conversation.is_ok() {
                conversation = asker.serve_peer(&heard);
            } else {
                clock::sleep_until(clock::monotonic_ns() + END_POLL_NS);
            }
            let waited = asker.queued_ns.is_some_and(|since_ns| clock::monotonic_ns() > since_ns + patience_ns);
            gave_up |= waited && shared.admission.has_waiting();
            if conversation.is_err() || asker.stop_requested || gave_up || shared.stopping() {
                over.store(true, Ordering::Relaxed);
            }
        }
        let panicked = |_| setup(std::io::Error::other("it panicked"));
        Ok((worker.join().map_err(panicked)?, conversation))
    })?;
    if gave_up && found.effective.is_none() {
        found.errors = vec![others_wait(&test.target)];
    }
    if let Some(report) = &found.client {
        shared.counts.count_traffic(kind, report, 0);
    }
    conversation?;
    let outcome = match (&found.client, found.errors.first()) {
        (_, Some(error)) => error.message.clone(),
        (Some(report), None) => describe_outcome(report, 0),
        (None, None) => "no data".to_owned(),
    };
    let complete = found.client.as_ref().filter(|_| found.server.is_some());
    if let Some(report) = complete {
        shared.counts.record_goodput(kind, report);
    }
    let complete = complete.is_some();
    deliver(found, peer, test, shared, tx)?;
    Ok((outcome, complete))
}

/// Runs the test, against an address that is checked after name resolution.
#[expect(clippy::needless_pass_by_value, reason = "the channel ends with the test")]
fn measure(
    test: &ThirdPartyTest<'_>,
    shared: &Shared,
    over: &AtomicBool,
    events: mpsc::Sender<ThirdPartyEvent>,
) -> CollectedRun {
    let request = Request {
        target: test.target.clone(),
        parameters: test.parameters.clone(),
        key: shared.config.key.clone(),
        command: Vec::new(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    let failed = |entry: ErrorEntry| {
        let mut found = CollectedRun::new(&request);
        found.errors.push(entry);
        found
    };
    let found: Vec<SocketAddr> = match test.target.addresses(test.parameters.family, over) {
        Ok(servers) => servers.into_iter().map(address::unmap).collect(),
        Err(error) => return failed(error.entry()),
    };
    let servers: Vec<_> = found.iter().copied().filter(|server| test.targets.allow(server.ip())).collect();
    if servers.is_empty() {
        return failed(not_among_targets(&test.target, found[0]));
    }
    let bounds = Bounds {
        servers,
        rate_limit_bps: test.rate_limit_bps,
        receive_cap_bps: test.receive_cap_bps,
        longest_ns: shared.admission.limits.max_duration_ns,
        queue: test.queue,
    };
    // The thread that polls the client detects a lost connection.
    let send_event = |event| drop(events.send(event));
    // Waiting in the target's queue is not traffic.
    let mut traffic = None;
    let mut observe = |event: RunEvent<'_>| match event {
        RunEvent::Queued(at) => send_event(ThirdPartyEvent::queued(at, true)),
        RunEvent::Accepted { id, parameters, notes, path } => {
            traffic = Some(shared.admission.begin_traffic());
            send_event(ThirdPartyEvent::Accepted {
                id: id.to_owned(),
                parameters: Box::new(parameters.clone()),
                notes: notes.to_vec(),
                path: Box::new(path.clone()),
            });
        }
        RunEvent::Mtu(probe) => send_event(ThirdPartyEvent::Mtu { probe: probe.clone() }),
        RunEvent::Progress(progress) => send_event(ThirdPartyEvent::Progress { progress }),
        RunEvent::Opened(_) | RunEvent::Readings { .. } => {}
    };
    let mut found = client::measure(&request, Some(&bounds), over, &mut observe, None);
    if let (Some(report), Some(traffic)) = (&mut found.client, &traffic) {
        report.other_tests = Some(traffic.others());
    }
    found
}

/// Control connection to the client that requested the test.
struct RequestingClient<'a> {
    tx: &'a mut Sender,
    rx: &'a mut Receiver,
    /// Time of its last message.
    last_message_ns: u64,
    /// Time of the last message sent to it.
    last_sent_ns: u64,
    /// Time of the last live figures, nanoseconds after the start.
    last_progress_ns: u64,
    /// Time since which the test waits in the target's queue.
    queued_ns: Option<u64>,
    stop_requested: bool,
}

impl RequestingClient<'_> {
    /// Forwards events to the client and handles its messages, without blocking on it.
    fn serve_peer(&mut self, events: &mpsc::Receiver<ThirdPartyEvent>) -> Result<(), FlowError> {
        self.tx.flush()?;
        let now_ns = clock::monotonic_ns();
        for event in events.try_iter() {
            match &event {
                ThirdPartyEvent::Queued { .. } => _ = self.queued_ns.get_or_insert(now_ns),
                ThirdPartyEvent::Accepted { .. } => self.queued_ns = None,
                _ => {}
            }
            if let ThirdPartyEvent::Progress { progress } = &event {
                let due = progress.t_ns / PROGRESS_NS > self.last_progress_ns / PROGRESS_NS;
                if !due || self.tx.is_blocked() {
                    continue;
                }
                self.last_progress_ns = progress.t_ns;
            }
            self.send_event(event, now_ns)?;
        }
        if now_ns > self.last_sent_ns + HEARTBEAT_NS && !self.tx.is_blocked() {
            self.send_event(ThirdPartyEvent::Alive, now_ns)?;
        }
        match self.rx.poll::<ToServer>(POLL_TIMEOUT)? {
            Some(ToServer::Alive) => {}
            Some(ToServer::Stop | ToServer::Bye) => self.stop_requested = true,
            Some(other) => return Err(unexpected("during a third-party test", &other)),
            None if now_ns > self.last_message_ns + SILENCE_TIMEOUT_NS => {
                let seconds = SILENCE_TIMEOUT_NS / 1_000_000_000;
                return Err(FlowError::Timeout { what: "a message from the client", seconds });
            }
            None => return Ok(()),
        }
        self.last_message_ns = clock::monotonic_ns();
        Ok(())
    }

    fn send_event(&mut self, event: ThirdPartyEvent, now_ns: u64) -> Result<(), FlowError> {
        self.last_sent_ns = now_ns;
        self.tx.queue(&ToClient::ThirdParty { event })
    }
}

/// Sends the result, then the reports of both sides.
fn deliver(
    found: CollectedRun,
    peer: SocketAddr,
    test: &ThirdPartyTest<'_>,
    shared: &Shared,
    tx: &mut Sender,
) -> Result<(), FlowError> {
    let result = ThirdPartyResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        asker_addr: address::display(peer),
        id: found.id,
        started_unix_ns: found.started_unix_ns,
        effective: found.effective,
        server_version: found.server_version,
        path: found.path,
        client_host: found.client_host,
        server_host: found.server_host,
        client_notes: test.notes.clone(),
        server_notes: found.notes,
        errors: found.errors,
        client_reports: found.client.is_some(),
        server_reports: found.server.is_some(),
    };
    let broken = |e: serde_json::Error| FlowError::Protocol { during: "writing the result", message: e.to_string() };
    let mut parts = report_parts(&result).map_err(broken)?;
    for report in [&found.client, &found.server].into_iter().flatten() {
        parts.extend(report_parts(report).map_err(broken)?);
    }
    let bytes: usize = parts.iter().map(super::session::report_bytes).sum();
    let deadline = shared.step(RESULT_TIMEOUT + Duration::from_secs(bytes as u64 / RESULT_BYTES_PER_S));
    parts.iter().try_for_each(|part| tx.send(part, &deadline))
}

/// Returns the refusal of a server that runs no tests for clients.
pub(super) fn without_permission() -> ErrorEntry {
    ErrorEntry {
        code: "not-permitted".to_owned(),
        message: "this server does not run tests against other servers".to_owned(),
        advice: Some("start it with --allow-third-party".to_owned()),
    }
}

/// Returns the refusal of an invalid target.
pub(super) fn bad_target(why: &client::TargetError) -> ErrorEntry {
    ErrorEntry { code: "bad-target".to_owned(), message: why.to_string(), advice: None }
}

/// Returns the error of a test that waited for its target while clients waited for this server.
fn others_wait(target: &Target) -> ErrorEntry {
    ErrorEntry {
        code: "server-busy".to_owned(),
        message: format!("{target} is busy, and others wait for this server meanwhile"),
        advice: Some("try again in a moment".to_owned()),
    }
}

fn not_among_targets(target: &Target, server: SocketAddr) -> ErrorEntry {
    let ip = server.ip();
    let resolved = if target.host == ip.to_string() { String::new() } else { format!(" ({})", target.host) };
    ErrorEntry {
        code: "not-permitted".to_owned(),
        message: format!("this server does not run tests against {ip}{resolved}"),
        advice: Some("add its network to --allow-third-party there".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirroring_twice_changes_nothing() {
        let asked = Parameters {
            direction: Direction::Download,
            client_cpus: vec![1],
            server_cpus_auto: true,
            client_numa: Some(landspeed_model::NumaPolicy::Local),
            ..Parameters::default()
        };
        assert_ne!(mirrored(&asked), asked);
        assert_eq!(mirrored(&mirrored(&asked)), asked);
    }

    #[test]
    fn targets_are_limited_to_networks() {
        let networks = ThirdPartyTargets::Networks(vec!["192.0.2.0/24".parse().unwrap()]);
        assert!(networks.allow("192.0.2.7".parse().unwrap()));
        for other in ["192.0.3.7", "::1", "127.0.0.1"] {
            assert!(!networks.allow(other.parse().unwrap()), "{other}");
        }
        assert!(!ThirdPartyTargets::Networks(Vec::new()).allow("192.0.2.7".parse().unwrap()));
        assert!(ThirdPartyTargets::Any.allow("::1".parse().unwrap()));
    }
}
