//! One test on the server: handshake, data sockets, run, report.
//!
//! Every wait has a deadline and every message a size limit; whatever the client does, the session ends and
//! releases its resources.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use landspeed_model::{ErrorEntry, Parameters};
use landspeed_sys::clock;

use super::admission::{AdmittedClient, NotGranted, QueuePosition};
use super::changes::{self, ExclusiveAccess};
use super::queueing;
use super::running::run_end;
use super::setting_up::{SocketArrivals, Test, prepare};
use super::tap::Capture;
use super::third_party::{self, ThirdPartyTest};
use super::{ClientKind, Refusal, ServerEvent, Shared, TestKind, describe_outcome, describe_test};
use crate::address::client_host;
use crate::client::Target;
use crate::control::changes::ChangeRequest;
use crate::control::channel::{self, Receiver, Role, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::{Deadline, timeout};
use crate::control::message::{
    Accepted, MAX_EARLY_MESSAGE, MAX_MESSAGE, ToClient, ToServer, deflated_parts, report_parts,
};
use crate::control::preface::{self, Status, Token};
use crate::control::printable;
use crate::control::third_party::{ThirdPartyEvent, ThirdPartyRequest};
use crate::dialect::Dialect;
use crate::end::{EndPlan, Side};
use crate::error::FlowError;
use crate::layout;

/// Timeout for the client's first request, and for each step until the start.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the key handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for sending a report, all parts together: this, plus one second per 64 KiB.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
const REPORT_BYTES_PER_S: u64 = 64 * 1024;
/// Timeout for sending a description, all parts together.
const DESCRIPTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeouts for the client to read a refusal, and to send the final message.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a control connection on a new thread; returns it, unanswered, if no descriptor or thread is free.
pub(super) fn spawn(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>) -> Result<(), TcpStream> {
    let session = Arc::clone(shared);
    shared.admission.spawn_session(stream, peer, "session", move |admitted, mut stream| {
        if stream.write_all(&preface::encode_answer(Status::Welcome)).is_ok() {
            Session { shared: session, peer, admitted, test: None }.main(stream);
        }
    })
}

struct Session {
    shared: Arc<Shared>,
    peer: SocketAddr,
    admitted: AdmittedClient,
    /// Identifier and kind of the accepted test.
    test: Option<(String, TestKind)>,
}

impl Session {
    fn main(mut self, stream: TcpStream) {
        if let Err(error) = self.serve(stream) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &FlowError) {
        let why = error.to_string();
        match &self.test {
            Some((id, kind)) => self.shared.report_failed(id.clone(), self.peer, *kind, why),
            None => self.shared.report_refused(self.peer, Refusal::of_error(error), why),
        }
    }

    fn serve(&mut self, stream: TcpStream) -> Result<(), FlowError> {
        let local =
            stream.local_addr().map_err(|source| FlowError::Setup { what: "serve a client".into(), source })?;
        let key = self.shared.config.key.as_ref();
        let (mut tx, mut rx) =
            channel::open(stream, Role::Server, key, MAX_EARLY_MESSAGE, HANDSHAKE_TIMEOUT, &self.shared.stop)
                .map_err(|error| self.check_slot_lost(None).unwrap_or(error))?;
        let limit = timeout(STEP_TIMEOUT, tx.min_rtt_ns());
        let asked = rx.wait::<ToServer>("the client's greeting", limit, &self.shared.stop);
        let asked = match asked.map_err(|error| self.check_slot_lost(Some(&mut tx)).unwrap_or(error))? {
            ToServer::Hello { parameters, queue, deflate, .. } => (*parameters, queue, deflate),
            ToServer::Describe { .. } => return self.describe_host(&mut tx, &mut rx),
            ToServer::Changes { n, request: ChangeRequest::Begin { limit_s, .. } } => {
                return self.change_host(n, Duration::from_secs(limit_s), &mut tx, &mut rx);
            }
            ToServer::ThirdParty { request } => return self.run_third_party(&request, &mut tx, &mut rx),
            other => return Err(unexpected("before the greeting", &other)),
        };
        let (parameters, understands, deflate) = asked;
        let queued =
            |at: QueuePosition| ToClient::Queued { position: at.position, waiting: at.waiting, wait_ns: at.wait_ns };
        let ends = (&mut tx, &mut rx);
        let request = queued_request(&self.shared, &parameters, understands);
        let granted = queueing::admit(&mut self.admitted, &request, ends, queued)?;
        let (granted, notes) = match granted {
            Ok(granted) => granted,
            Err(why) => return self.not_granted(&why, &mut tx, &mut rx),
        };
        rx.set_limit(MAX_MESSAGE);
        let result = self.run_test((&mut tx, &mut rx), granted, notes, local, deflate);
        self.send_error(result, &mut tx)
    }

    fn not_granted(&self, why: &NotGranted, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        match why {
            NotGranted::SlotLost => Err(self.check_slot_lost(Some(tx)).unwrap_or(FlowError::Interrupted)),
            why => self.refuse(why.entry(), tx, rx),
        }
    }

    /// Sends the reason of a failed test to the client if it is still connected.
    fn send_error(&self, result: Result<(), FlowError>, tx: &mut Sender) -> Result<(), FlowError> {
        if let Err(error) = &result
            && !matches!(error, FlowError::PeerLost { .. })
        {
            let entry = match error {
                FlowError::Refused { code, message, advice } => {
                    ErrorEntry { code: code.clone(), message: message.clone(), advice: advice.clone() }
                }
                other => other.entry(),
            };
            let _ = tx.send(&ToClient::Error(entry), &self.shared.step(REFUSAL_TIMEOUT));
        }
        result
    }

    /// Runs a test against another server for a client.
    fn run_third_party(
        &mut self,
        asked: &ThirdPartyRequest,
        tx: &mut Sender,
        rx: &mut Receiver,
    ) -> Result<(), FlowError> {
        let shared = Arc::clone(&self.shared);
        let Some(targets) = &shared.config.third_party else {
            return self.refuse(third_party::without_permission(), tx, rx);
        };
        let target: Target = match printable(&asked.target, 300).parse() {
            Ok(target) => target,
            Err(why) => return self.refuse(third_party::bad_target(&why), tx, rx),
        };
        // The limits are those of a server: this host's upload counts as its clients' download.
        let mirrored = third_party::mirrored(&asked.parameters);
        let queued = |at: QueuePosition| ToClient::ThirdParty { event: ThirdPartyEvent::queued(at, false) };
        let ends = (&mut *tx, &mut *rx);
        let request = queued_request(&shared, &mirrored, asked.queue);
        let (granted, notes) = match queueing::admit(&mut self.admitted, &request, ends, queued)? {
            Ok((granted, notes)) => (third_party::mirrored(&granted), notes),
            Err(why) => return self.not_granted(&why, tx, rx),
        };
        rx.set_limit(MAX_MESSAGE);
        let random = |source| FlowError::Setup { what: "read random bytes".into(), source };
        let id: String = Token::random().map_err(random)?.to_hex().chars().take(32).collect();
        let kind = TestKind::of(ClientKind::ThirdParty, &granted);
        self.test = Some((id.clone(), kind));
        let what = format!("third-party test to {target}: {}", describe_test(&granted));
        shared.report_started(id.clone(), self.peer, kind, what);
        let test = ThirdPartyTest {
            targets,
            target,
            rate_limit_bps: self.admitted.rate_limit_bps(),
            receive_cap_bps: self.admitted.receive_cap_bps(&granted),
            parameters: granted,
            notes,
            queue: asked.queue,
        };
        let ended = third_party::serve(&test, (self.peer, kind, &shared), tx, rx);
        let (outcome, complete) = match ended {
            Ok(ended) => ended,
            Err(error) => return self.send_error(Err(error), tx),
        };
        await_final_message(rx, &shared);
        if complete {
            shared.report_completed(id, self.peer, kind, outcome);
        } else {
            shared.report_failed(id, self.peer, kind, outcome);
        }
        Ok(())
    }

    /// Informs the client if it lost its slot to other clients.
    fn check_slot_lost(&self, tx: Option<&mut Sender>) -> Option<FlowError> {
        let stream = self.admitted.lost()?;
        let entry = NotGranted::SlotLost.entry();
        let error = FlowError::Refused { code: entry.code.clone(), message: entry.message.clone(), advice: None };
        let answer: &[u8] = match tx {
            Some(tx) => {
                let _ = tx.send(&ToClient::Refused(entry), &self.shared.step(REFUSAL_TIMEOUT));
                &[]
            }
            // No messages are possible during the key handshake.
            None => &channel::BUSY_HANDSHAKE,
        };
        self.admitted.refuse_lost(stream, answer);
        Some(error)
    }

    /// Sends this host's facts to clients that may have them: the facts contain addresses and program names.
    fn describe_host(&mut self, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let config = &self.shared.config;
        if config.key.is_none() && !config.describe && config.changes.is_none() {
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
        let deadline = self.shared.step(DESCRIPTION_TIMEOUT);
        for part in parts {
            tx.send(&part, &deadline)?;
        }
        self.shared.report(ServerEvent::Described { peer: self.peer });
        // The client closes when it has received everything.
        let _ = rx.wait::<ToServer>("the client to leave", REFUSAL_TIMEOUT, &self.shared.stop);
        Ok(())
    }

    /// Changes this host for a client until its connection ends, if permitted and not in use by another client.
    fn change_host(&mut self, n: u32, limit: Duration, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let shared = Arc::clone(&self.shared);
        let Some(hook) = &shared.config.changes else { return self.refuse(changes::without_permission(), tx, rx) };
        let Some(_turn) = ExclusiveAccess::take(&shared) else { return self.refuse(changes::busy_refusal(), tx, rx) };
        if !self.admitted.release_handshake_slot() {
            return Err(self.check_slot_lost(Some(tx)).unwrap_or(FlowError::Interrupted));
        }
        let limit = limit.min(changes::MAX_SESSION);
        match hook.0.begin(limit) {
            Ok(held) => {
                changes::serve(held, (limit, hook.0.silence_timeout()), n, (self.peer, &shared), tx, rx);
                Ok(())
            }
            Err(why) => self.refuse(why, tx, rx),
        }
    }

    /// Sends a refusal, and lets the client read it before the connection is closed.
    fn refuse(&self, entry: ErrorEntry, tx: &mut Sender, rx: &mut Receiver) -> Result<(), FlowError> {
        let (code, message) = (entry.code.clone(), entry.message.clone());
        tx.send(&ToClient::Refused(entry), &self.shared.step(STEP_TIMEOUT))?;
        let _ = rx.wait::<ToServer>("the client to leave", REFUSAL_TIMEOUT, &self.shared.stop);
        Err(FlowError::Refused { code, message, advice: None })
    }

    fn run_test(
        &mut self,
        (tx, rx): (&mut Sender, &mut Receiver),
        parameters: Parameters,
        notes: Vec<String>,
        local: SocketAddr,
        deflate: bool,
    ) -> Result<(), FlowError> {
        let random = |source| FlowError::Setup { what: "read random bytes".into(), source };
        let token = Token::random().map_err(random)?;
        let id: String = Token::random().map_err(random)?.to_hex().chars().take(32).collect();
        let specs = layout::streams(&parameters)
            .map_err(|e| FlowError::Protocol { during: "planning the test", message: e.to_string() })?;
        let kind = TestKind::of(ClientKind::Landspeed, &parameters);
        self.test = Some((id.clone(), kind));
        let mut listeners = SocketArrivals::new(&specs, parameters.probe_mtu);
        let shared = Arc::clone(&self.shared);
        let credentials = Credentials::new(token, shared.config.key.is_some());
        let entry = shared.registry.enter(listeners.slot(local, self.peer, credentials));
        shared.report_started(id.clone(), self.peer, kind, describe_test(&parameters));
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
        tx.send(&ToClient::Accepted(Box::new(accepted)), &self.shared.step(STEP_TIMEOUT))?;
        let test = Test { credentials: &credentials, specs: &specs, parameters: &parameters };
        let mut capture = Capture::new(shared.config.tap.as_ref(), (local, self.peer), &entry.slot);
        let Some((start, streams)) = prepare(tx, rx, listeners, &test, &shared, &mut capture)? else {
            let outcome = "the client left before the start".to_owned();
            shared.report_failed(id, self.peer, kind, outcome);
            return Ok(());
        };
        let rate_limit_bps = self.admitted.rate_limit_bps();
        let receive_cap_bps = self.admitted.receive_cap_bps(&parameters);
        let limit_ns = shared.admission.limits.max_duration_ns;
        let (side, dialect) = (Side::Server, Dialect::LANDSPEED);
        let (t0_ns, rtt_ns) = (start.at_ns, tx.min_rtt_ns());
        let plan =
            EndPlan { side, dialect, parameters, t0_ns, streams, interface, limit_ns, rtt_ns, receive_cap_bps };
        let (mut report, answered) = run_end(plan, tx, rx, (&shared, kind), rate_limit_bps)?;
        report.notes.extend(start.note);
        let parts = if deflate { deflated_parts(&report) } else { report_parts(&report).map_err(Into::into) };
        let parts =
            parts.map_err(|e| FlowError::Protocol { during: "writing the report", message: e.to_string() })?;
        let bytes: usize = parts.iter().map(report_bytes).sum();
        let bytes_s = bytes as u64 / REPORT_BYTES_PER_S;
        let deadline = shared.step(timeout(REPORT_TIMEOUT + Duration::from_secs(bytes_s), 2 * tx.min_rtt_ns()));
        for part in parts {
            tx.send(&part, &deadline)?;
        }
        capture.deliver(tx, &shared)?;
        await_final_message(rx, &shared);
        let outcome = describe_outcome(&report, answered);
        if report.server_stopped {
            shared.report_failed(id, self.peer, kind, format!("this server was stopped: {outcome}"));
            return Ok(());
        }
        shared.counts.record_goodput(kind, &report);
        shared.report_completed(id, self.peer, kind, outcome);
        Ok(())
    }
}

/// Waits for the client's final message; without it nothing is lost.
fn await_final_message(rx: &mut Receiver, shared: &Shared) {
    let farewell = Deadline::after(CLOSE_TIMEOUT).with_stop(&shared.stop);
    while let Ok(slice) = farewell.slice() {
        match rx.poll::<ToServer>(slice) {
            Ok(Some(ToServer::Bye)) | Err(_) => break,
            Ok(_) => {}
        }
    }
}

/// Returns the bytes of a part of a report; 0 for other messages.
pub(super) fn report_bytes(part: &ToClient) -> usize {
    match part {
        ToClient::Report { text, .. } | ToClient::Deflated { data: text, .. } => text.len(),
        _ => 0,
    }
}

fn queued_request<'a>(shared: &'a Shared, asked: &'a Parameters, understands: bool) -> queueing::QueuedRequest<'a> {
    queueing::QueuedRequest {
        asked,
        understands,
        max_wait_ns: shared.admission.limits.max_wait_ns,
        stop: &shared.stop,
    }
}

pub fn unexpected(during: &'static str, message: &ToServer) -> FlowError {
    FlowError::Protocol { during, message: format!("unexpected message {}", printable(&format!("{message:?}"), 60)) }
}
