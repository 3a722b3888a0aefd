//! Third-party tests: one server runs a test, as client, against another server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_model::{ErrorEntry, Family, RunDocument, ThirdParty};
use landspeed_sys::clock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::conversation::{refused, unexpected};
use super::target::Target;
use super::{QueuePosition, Request, RunEvent, SILENCE_TIMEOUT_NS, bad_parameters, connect};
use crate::address;
use crate::assemble::{self, CollectedRun};
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{MAX_FACTS, MAX_REPORT, ToClient, ToServer};
use crate::control::third_party::{ThirdPartyEvent, ThirdPartyRequest, ThirdPartyResult};
use crate::control::{identifier, printable_copy};
use crate::end::{EndReport, Side};
use crate::error::FlowError;
use crate::layout;
use crate::validate;

/// Operation, as error messages name it.
const OPERATION: &str = "during a third-party test";
/// Timeout until the target server accepts: name resolution, connection and authentication, each with its own
/// limit.
const SETUP_NS: u64 = 90_000_000_000;
/// Time allowed beyond the test's own duration until the result begins: set-up, path MTU probes, drain, the
/// target's report.
const RESULT_MARGIN_NS: u64 = 180_000_000_000;
/// Timeout for each part of the result.
const PART_TIMEOUT_NS: u64 = 15_000_000_000;
/// Interval of heartbeats to the server.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// After an interrupt: time allowed for the server's next message. `CLOSING_NS` limits the total.
const CLOSING_STEP_NS: u64 = 1_500_000_000;
const CLOSING_NS: u64 = 5_000_000_000;
/// Poll timeout for a message from the server.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// Runs a test between two servers: `from` runs it, as client, against the target of the request. The document
/// is the same as that of [`run`](super::run), plus [`RunDocument::third_party`]. Both servers use the key of
/// the request, or none.
pub fn third_party(
    from: &Target,
    request: &Request,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
) -> RunDocument {
    let mut found = CollectedRun::new(request);
    let mut parties = ThirdParty { from: from.to_string(), ..ThirdParty::default() };
    if let Err(invalid) = validate::check(&request.parameters) {
        found.errors.push(bad_parameters(&invalid));
    } else if let Err(error) = attempt(from, request, interrupted, observe, &mut found, &mut parties) {
        let mut entry = error.entry();
        // Two servers are involved: name the one meant.
        entry.message = entry.message.replacen("the server", &parties.from, 1);
        found.errors.push(entry);
    }
    RunDocument { third_party: Some(parties), ..assemble::document(found) }
}

fn attempt(
    from: &Target,
    request: &Request,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(RunEvent<'_>),
    found: &mut CollectedRun,
    parties: &mut ThirdParty,
) -> Result<(), FlowError> {
    let key = request.key.as_ref();
    let wanted = ThirdPartyRequest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: request.target.to_string(),
        parameters: request.parameters.clone(),
        queue: true,
    };
    let wanted = ToServer::ThirdParty { request: Box::new(wanted) };
    let (mut tx, mut rx, local) = connect::control_of(from, Family::Any, key, &wanted, interrupted)?;
    parties.asker_addr = address::display(local);
    parties.authenticated = request.key.is_some();
    let now_ns = clock::monotonic_ns();
    let mut asked = RequestState {
        request,
        interrupted,
        observe,
        found,
        parties,
        last_message_ns: now_ns,
        next_heartbeat_ns: now_ns,
        due_ns: now_ns + SETUP_NS,
        stop_requested_ns: None,
        received_any: false,
        expected: vec![Part::Result],
        text: String::new(),
    };
    let outcome = asked.exchange_messages(&mut tx, &mut rx);
    let closing = asked.stop_requested_ns.is_some();
    let _ = tx.queue(&ToServer::Bye);
    tx.close();
    // A server that saw the stop reports the interrupt itself.
    if closing && found.errors.iter().all(|entry| entry.code != "interrupted") {
        return Err(FlowError::Interrupted);
    }
    outcome
}

/// Parts of the result, sent when the test is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Result,
    Report(Side),
}

struct RequestState<'a> {
    request: &'a Request,
    interrupted: &'a AtomicBool,
    observe: &'a mut dyn FnMut(RunEvent<'_>),
    found: &'a mut CollectedRun,
    parties: &'a mut ThirdParty,
    /// Time of the last complete message.
    last_message_ns: u64,
    /// Time to send the next heartbeat.
    next_heartbeat_ns: u64,
    /// Deadline of the current step.
    due_ns: u64,
    stop_requested_ns: Option<u64>,
    received_any: bool,
    /// Parts still expected, in reverse order.
    expected: Vec<Part>,
    text: String,
}

impl RequestState<'_> {
    /// Exchanges messages until the result is complete.
    fn exchange_messages(&mut self, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let rtt_ns = tx.min_rtt_ns();
        while !self.expected.is_empty() {
            let now_ns = clock::monotonic_ns();
            if self.stop_requested_ns.is_none() && self.interrupted.load(Ordering::Relaxed) {
                self.stop_requested_ns = Some(now_ns);
                tx.queue(&ToServer::Stop)?;
            }
            if let Some(since_ns) = self.stop_requested_ns {
                let next_ns = self.last_message_ns.max(since_ns) + CLOSING_STEP_NS + 2 * rtt_ns;
                if now_ns > next_ns.min(since_ns + CLOSING_NS) {
                    return Err(FlowError::Interrupted);
                }
            }
            if now_ns > self.next_heartbeat_ns && !tx.is_blocked() {
                self.next_heartbeat_ns = now_ns + HEARTBEAT_NS;
                tx.queue(&ToServer::Alive)?;
            }
            if now_ns > self.last_message_ns + SILENCE_TIMEOUT_NS {
                let seconds = SILENCE_TIMEOUT_NS / 1_000_000_000;
                return Err(FlowError::Timeout { what: "a message from the server", seconds });
            }
            if now_ns > self.due_ns {
                return Err(FlowError::Other {
                    code: "timeout",
                    message: "the server did not end the third-party test in time".to_owned(),
                    advice: "look at the log of that server",
                });
            }
            tx.flush()?;
            match rx.poll::<ToClient>(POLL_TIMEOUT) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    self.last_message_ns = clock::monotonic_ns();
                    self.received_any = true;
                    self.take(message)?;
                }
                Err(error) => return Err(if self.received_any { error } else { older(error) }),
            }
        }
        Ok(())
    }

    fn take(&mut self, message: ToClient) -> Result<(), FlowError> {
        match message {
            ToClient::ThirdParty { event } => self.show(event),
            ToClient::Report { text, last } => {
                self.due_ns = self.last_message_ns + PART_TIMEOUT_NS;
                let part = self.expected.last().copied().unwrap_or(Part::Result);
                let most = if part == Part::Result { MAX_FACTS } else { MAX_REPORT };
                if self.text.len() + text.len() > most {
                    return Err(protocol_error(format!("its result is longer than {most} bytes")));
                }
                self.text.push_str(&text);
                if last {
                    self.expected.pop();
                    let text = std::mem::take(&mut self.text);
                    match part {
                        Part::Result => self.read_result(&text)?,
                        Part::Report(side) => self.read_report(side, &text)?,
                    }
                }
                Ok(())
            }
            ToClient::Refused(entry) | ToClient::Error(entry) => Err(refused(entry)),
            other => Err(unexpected(OPERATION, other)),
        }
    }

    fn show(&mut self, event: ThirdPartyEvent) -> Result<(), FlowError> {
        match event {
            ThirdPartyEvent::Alive => {}
            ThirdPartyEvent::Queued { position, waiting, wait_ns, .. } => {
                self.due_ns = self.last_message_ns + SETUP_NS;
                (self.observe)(RunEvent::Queued(QueuePosition { position, waiting, wait_ns }));
            }
            ThirdPartyEvent::Progress { progress } => (self.observe)(RunEvent::Progress(progress)),
            ThirdPartyEvent::Mtu { probe } => (self.observe)(RunEvent::Mtu(&printable(&probe)?)),
            ThirdPartyEvent::Accepted { id, parameters, notes, path } => {
                let (notes, path) = printable(&(notes, path))?;
                let id = identifier(&id);
                validate::granted(&self.request.parameters, &parameters).map_err(protocol_error)?;
                let time_ns = layout::duration_ns(&parameters).unwrap_or(landspeed_settings::MAX_TIME_NS);
                self.due_ns = self.last_message_ns.saturating_add(time_ns).saturating_add(RESULT_MARGIN_NS);
                (self.observe)(RunEvent::Accepted { id: &id, parameters: &parameters, notes: &notes, path: &path });
            }
        }
        Ok(())
    }

    fn read_result(&mut self, text: &str) -> Result<(), FlowError> {
        let result: ThirdPartyResult =
            serde_json::from_slice(text.as_bytes()).map_err(|error| protocol_error(error.to_string()))?;
        let result = printable(&result)?;
        let found = &mut *self.found;
        if let Some(effective) = &result.effective {
            validate::granted(&self.request.parameters, effective).map_err(protocol_error)?;
        }
        let from = &self.parties.from;
        let target = self.request.target.to_string();
        found.id = identifier(&result.id);
        found.started_unix_ns = result.started_unix_ns;
        found.effective = result.effective;
        found.server_version = result.server_version;
        found.path = result.path.filter(|path| path.control_rtt_ns < MAX_RTT_NS);
        if let Some(path) = &mut found.path {
            path.target.clone_from(&target);
        }
        found.client_host = result.client_host;
        found.server_host = result.server_host;
        // In the notes of each host, "the server" means a different server.
        let notes = |notes: Vec<String>, server: &str| -> Vec<String> {
            notes.iter().take(64).map(|note| note.replacen("the server", server, 1)).collect()
        };
        found.notes = notes(result.client_notes, from);
        found.notes.extend(notes(result.server_notes, &target));
        found.errors = result.errors.into_iter().take(64).map(|entry| at(from, &target, entry)).collect();
        self.parties.client_version = Some(result.version);
        self.parties.asker_addr = result.asker_addr;
        // In reverse order.
        self.expected = [(result.server_reports, Side::Server), (result.client_reports, Side::Client)]
            .into_iter()
            .filter_map(|(follows, side)| follows.then_some(Part::Report(side)))
            .collect();
        Ok(())
    }

    fn read_report(&mut self, side: Side, text: &str) -> Result<(), FlowError> {
        let parameters = self.found.effective.as_ref().unwrap_or(&self.request.parameters);
        let specs = layout::streams(parameters).unwrap_or_default();
        let report = Some(EndReport::parse_side_report(side, text, &specs).map_err(protocol_error)?);
        match side {
            Side::Client => self.found.client = report,
            Side::Server => self.found.server = report,
        }
        Ok(())
    }
}

/// Upper limit of a plausible round-trip time, nanoseconds.
const MAX_RTT_NS: u64 = 3_600_000_000_000;

/// Rewrites an error of the test to name both servers.
fn at(from: &str, target: &str, entry: ErrorEntry) -> ErrorEntry {
    let message = entry.message.replacen("the server", target, 1);
    // The iperf3 advice does not apply: third-party tests need a landspeed server.
    let advice =
        entry.advice.map(|advice| advice.split("; for an iperf3 server").next().unwrap_or_default().to_owned());
    ErrorEntry { message: format!("{from}: {message}"), advice, ..entry }
}

fn protocol_error(message: String) -> FlowError {
    FlowError::Protocol { during: OPERATION, message }
}

/// Explains a lost connection: a server that does not know the first message closes the connection without an
/// answer.
fn older(error: FlowError) -> FlowError {
    match error {
        FlowError::PeerLost { .. } => FlowError::Other {
            code: "unsupported",
            message: "the server closed the connection when it was asked for a third-party test: it may be older than this \
                      client"
                .to_owned(),
            advice: "update landspeed on that server",
        },
        other => other,
    }
}

/// Makes the server's strings printable: they reach terminals and documents.
fn printable<T: Serialize + DeserializeOwned>(said: &T) -> Result<T, FlowError> {
    printable_copy(said).map_err(|error| protocol_error(error.to_string()))
}
