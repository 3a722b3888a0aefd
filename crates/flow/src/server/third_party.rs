//! Tests that this server runs, as client, against other servers, for clients that ask.
//!
//! What it sends to another host begins with one TCP connection and a preface; data goes only to a server that accepts the
//! test. So it amplifies nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ipnet::IpNet;
use landspeed_model::{Direction, ErrorEntry, Parameters, Protocol};
use landspeed_sys::clock;

use super::session::unexpected;
use super::{Shared, describe_outcome};
use crate::address;
use crate::assemble::Ingredients;
use crate::client::{self, Bounds, Request, RunEvent, Target};
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{ToClient, ToServer, report_parts};
use crate::control::third_party::{ThirdPartyEvent, ThirdPartyResult};
use crate::error::FlowError;

/// A client that sends nothing for this long is gone, nanoseconds. It sends a heartbeat.
const SILENCE_NS: u64 = 15_000_000_000;
/// How often the client hears that the test is under way, nanoseconds.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// How often live figures are sent, and the grid of their times, nanoseconds.
const PROGRESS_NS: u64 = 200_000_000;
/// How long the client is listened to at once.
const POLL: Duration = Duration::from_millis(20);
/// How often a test that has to end is looked at, nanoseconds.
const ENDING_NS: u64 = 2_000_000;
/// How long a result may take to leave, all parts together: this, and a second for each 64 KiB.
const RESULT: Duration = Duration::from_secs(20);
const RESULT_BYTES_PER_S: u64 = 64 * 1024;

/// Servers against which this one runs tests for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThirdPartyTargets {
    /// Any.
    Any,
    /// Those with an address in one of these networks.
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

/// A test for a client.
pub(super) struct ThirdPartyTest<'a> {
    /// Servers that it may be against.
    pub targets: &'a ThirdPartyTargets,
    /// The other server.
    pub target: Target,
    /// What is granted.
    pub parameters: Parameters,
    /// What can move in each direction, all streams together, bits/s.
    pub rate_limit_bps: Option<u64>,
    /// How fast each TCP stream is read at most, bits/s.
    pub receive_cap_bps: Option<u64>,
    /// Where what is granted is less than what was asked for.
    pub notes: Vec<String>,
}

/// Parameters as the other end sees them: for a server that is a test's client, its upload is what it sends.
pub(super) fn mirrored(p: &Parameters) -> Parameters {
    let direction = match p.direction {
        // Request/response has one direction in its parameters and goes both ways.
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

/// Runs the test and sends its result. It ends soon after the client left, fell silent or asked for it, or the server stops.
/// Returns how it ended, in words for the log, and whether both ends reported.
pub(super) fn serve(
    test: &ThirdPartyTest<'_>,
    (peer, shared): (SocketAddr, &Shared),
    tx: &mut Sender,
    rx: &mut Receiver,
) -> Result<(String, bool), FlowError> {
    let over = AtomicBool::new(false);
    let (events, heard) = mpsc::channel();
    let (found, conversation) = std::thread::scope(|scope| {
        let run = || measure(test, shared, &over, events);
        let setup = |source| FlowError::Setup { what: "start a thread for a third-party test".into(), source };
        let worker = std::thread::Builder::new().name("third-party".to_owned()).spawn_scoped(scope, run);
        let worker = worker.map_err(setup)?;
        let now_ns = clock::monotonic_ns();
        let mut asker = Asker { tx, rx, heard_ns: now_ns, said_ns: now_ns, shown_ns: 0, wants_end: false };
        let mut conversation = Ok(());
        while !worker.is_finished() {
            if conversation.is_ok() {
                conversation = asker.attend(&heard);
            } else {
                clock::sleep_until(clock::monotonic_ns() + ENDING_NS);
            }
            if conversation.is_err() || asker.wants_end || shared.stopping() {
                over.store(true, Ordering::Relaxed);
            }
        }
        let panicked = |_| setup(std::io::Error::other("it panicked"));
        Ok((worker.join().map_err(panicked)?, conversation))
    })?;
    conversation?;
    let outcome = match (&found.client, found.errors.first()) {
        (_, Some(error)) => error.message.clone(),
        (Some(report), None) => describe_outcome(report, 0),
        (None, None) => "no data".to_owned(),
    };
    let complete = found.client.is_some() && found.server.is_some();
    deliver(found, peer, test, shared, tx)?;
    Ok((outcome, complete))
}

/// The test itself, against an address that is checked once its name is resolved.
#[expect(clippy::needless_pass_by_value, reason = "the channel ends with the test")]
fn measure(
    test: &ThirdPartyTest<'_>,
    shared: &Shared,
    over: &AtomicBool,
    events: mpsc::Sender<ThirdPartyEvent>,
) -> Ingredients {
    let request = Request {
        target: test.target.clone(),
        parameters: test.parameters.clone(),
        key: shared.config.key.clone(),
        command: Vec::new(),
        data: None,
        start_ns: None,
    };
    let failed = |entry: ErrorEntry| {
        let mut found = Ingredients::new(&request);
        found.errors.push(entry);
        found
    };
    let server = match test.target.resolve(test.parameters.family, over) {
        Ok(server) => address::unmap(server),
        Err(error) => return failed(error.entry()),
    };
    if !test.targets.allow(server.ip()) {
        return failed(not_among_targets(&test.target, server));
    }
    let bounds = Bounds {
        server,
        rate_limit_bps: test.rate_limit_bps,
        receive_cap_bps: test.receive_cap_bps,
        longest_ns: shared.admission.limits.max_duration_ns,
    };
    // A client that has left is noticed by who listens to it.
    let say = |event| drop(events.send(event));
    let mut observe = |event: RunEvent<'_>| match event {
        RunEvent::Accepted { id, parameters, notes, path } => say(ThirdPartyEvent::Accepted {
            id: id.to_owned(),
            parameters: Box::new(parameters.clone()),
            notes: notes.to_vec(),
            path: Box::new(path.clone()),
        }),
        RunEvent::Mtu(probe) => say(ThirdPartyEvent::Mtu { probe: probe.clone() }),
        RunEvent::Progress(progress) => say(ThirdPartyEvent::Progress { progress }),
        RunEvent::Opened(_) | RunEvent::Readings { .. } => {}
    };
    client::measure(&request, Some(&bounds), over, &mut observe, None)
}

/// The client that asked.
struct Asker<'a> {
    tx: &'a mut Sender,
    rx: &'a mut Receiver,
    /// When its last message came.
    heard_ns: u64,
    /// When the last message left for it.
    said_ns: u64,
    /// Time of the last live figures, nanoseconds after the start.
    shown_ns: u64,
    wants_end: bool,
}

impl Asker<'_> {
    /// Hears the client and tells it what happened, without waiting for it.
    fn attend(&mut self, events: &mpsc::Receiver<ThirdPartyEvent>) -> Result<(), FlowError> {
        self.tx.flush()?;
        let now_ns = clock::monotonic_ns();
        for event in events.try_iter() {
            if let ThirdPartyEvent::Progress { progress } = &event {
                let due = progress.t_ns / PROGRESS_NS > self.shown_ns / PROGRESS_NS;
                if !due || self.tx.is_blocked() {
                    continue;
                }
                self.shown_ns = progress.t_ns;
            }
            self.say(event, now_ns)?;
        }
        if now_ns > self.said_ns + HEARTBEAT_NS && !self.tx.is_blocked() {
            self.say(ThirdPartyEvent::Alive, now_ns)?;
        }
        match self.rx.poll::<ToServer>(POLL)? {
            Some(ToServer::Alive) => {}
            Some(ToServer::Stop | ToServer::Bye) => self.wants_end = true,
            Some(other) => return Err(unexpected("during a third-party test", &other)),
            None if now_ns > self.heard_ns + SILENCE_NS => {
                let seconds = SILENCE_NS / 1_000_000_000;
                return Err(FlowError::Timeout { what: "a message from the client", seconds });
            }
            None => return Ok(()),
        }
        self.heard_ns = clock::monotonic_ns();
        Ok(())
    }

    fn say(&mut self, event: ThirdPartyEvent, now_ns: u64) -> Result<(), FlowError> {
        self.said_ns = now_ns;
        self.tx.queue(&ToClient::ThirdParty { event })
    }
}

/// Sends the result, then the reports of the two ends.
fn deliver(
    found: Ingredients,
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
    let deadline = shared.step(RESULT + Duration::from_secs(bytes as u64 / RESULT_BYTES_PER_S));
    parts.iter().try_for_each(|part| tx.send(part, &deadline))
}

/// The refusal of a server that runs no tests for clients.
pub(super) fn without_permission() -> ErrorEntry {
    ErrorEntry {
        code: "not-permitted".to_owned(),
        message: "this server does not run tests against other servers".to_owned(),
        advice: Some("start it with --allow-third-party".to_owned()),
    }
}

/// The refusal of a target that is no address.
pub(super) fn bad_target(why: &client::BadTarget) -> ErrorEntry {
    ErrorEntry { code: "bad-target".to_owned(), message: why.to_string(), advice: None }
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
