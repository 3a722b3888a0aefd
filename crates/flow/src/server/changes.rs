//! Changes to the server's host on behalf of a client, for as long as its connection lasts. This crate makes no
//! changes itself: the code that sets up the server passes in a [`HostChanger`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landspeed_model::{Change, ErrorEntry};
use landspeed_sys::clock;

use super::rate_limit::{RateLimit, RateLimiter};
use super::session::unexpected;
use super::{ServerEvent, Shared};
use crate::address::client_host;
use crate::control::changes::{AppliedChange, ChangeAnswer, ChangeRequest, MAX_CHANGES, PlannedChange};
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{MAX_MESSAGE, ToClient, ToServer};
use crate::error::FlowError;

/// Timeout without a message from the client, which sends heartbeats.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum duration of a session.
pub(super) const MAX_SESSION: Duration = Duration::from_hours(1);
/// Interval between checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout for sending an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits of `apply` requests: each one starts a watchdog and makes systemd, drivers and the kernel write to their
/// logs. A search applies changes about once a second.
const HOST_LIMIT: RateLimit = RateLimit { burst: 60, interval_ns: 500_000_000 };
const TOTAL_LIMIT: RateLimit = RateLimit { burst: 120, interval_ns: 250_000_000 };

pub(super) fn rate_limiter() -> RateLimiter {
    RateLimiter::new(HOST_LIMIT, TOTAL_LIMIT)
}

/// Makes changes to the server's host.
pub trait HostChanger: Send + Sync {
    /// Timeout without a message from the client.
    fn silence_timeout(&self) -> Duration {
        SILENCE_TIMEOUT
    }
    /// Starts a session for a client. It rolls its changes back after `limit` at the latest.
    fn begin(&self, limit: Duration) -> Result<Box<dyn HeldChanges>, ErrorEntry>;
}

/// Applied changes of a session. Dropping them rolls them back.
pub trait HeldChanges: Send {
    /// Identifies host and network namespace: sessions with equal values change the same settings.
    fn place(&self) -> String;
    /// Returns the planned writes. Writes nothing.
    fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, ErrorEntry>;
    /// Applies exactly these changes, all or none. Earlier ones are rolled back first; after an error nothing is
    /// applied.
    fn apply(&mut self, changes: &[Change]) -> Result<Vec<AppliedChange>, ErrorEntry>;
    /// Rolls back all applied changes. Returns whether there were any.
    fn roll_back(&mut self) -> Result<bool, ErrorEntry>;
}

/// Host changer that a server is configured with.
#[derive(Clone)]
pub struct ChangeHook(pub Arc<dyn HostChanger>);

impl std::fmt::Debug for ChangeHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChangeHook")
    }
}

/// Exclusive right to change the host, until dropped. A stopping server waits for it, as for a test.
pub(super) struct ExclusiveAccess<'a>(&'a Shared);

impl<'a> ExclusiveAccess<'a> {
    /// Takes the right, unless another client holds it.
    pub fn take(shared: &'a Shared) -> Option<Self> {
        let free = shared.changing.compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        free.then(|| {
            shared.counts.running.fetch_add(1, Ordering::Relaxed);
            Self(shared)
        })
    }
}

impl Drop for ExclusiveAccess<'_> {
    fn drop(&mut self) {
        self.0.counts.running.fetch_sub(1, Ordering::Relaxed);
        self.0.changing.store(false, Ordering::Relaxed);
    }
}

/// Serves a client that may change the host, until it leaves, stops responding, or the server stops. All
/// applied changes are rolled back in the end.
pub(super) fn serve(
    held: Box<dyn HeldChanges>,
    (limit, silence_timeout): (Duration, Duration),
    begun: u32,
    (peer, shared): (SocketAddr, &Shared),
    tx: &mut Sender,
    rx: &mut Receiver,
) {
    rx.set_limit(MAX_MESSAGE);
    let ends_ns = clock::monotonic_ns().saturating_add(limit.as_nanos() as u64);
    let mut session = Session { held, applied: Vec::new(), ends_ns, silence_timeout, peer, shared };
    let place = session.held.place();
    let begun = answer(tx, shared, begun, ChangeAnswer::Begun { place });
    let outcome = begun.and_then(|()| session.listen(tx, rx));
    let why = match &outcome {
        Ok(why) => (*why).to_owned(),
        Err(error) => error.to_string(),
    };
    // The log has the error; the client is gone.
    let _ = session.roll_back(&why);
    // Report the reason: the client cannot see it otherwise.
    if let Err(error) = &outcome {
        let _ = tx.send(&ToClient::Error(error.entry()), &shared.step(POLL_INTERVAL));
    }
}

fn answer(tx: &mut Sender, shared: &Shared, n: u32, answer: ChangeAnswer) -> Result<(), FlowError> {
    tx.send(&ToClient::Changes { n, answer }, &shared.step(ANSWER_TIMEOUT))
}

struct Session<'a> {
    held: Box<dyn HeldChanges>,
    /// Changes of the last successful request.
    applied: Vec<Change>,
    ends_ns: u64,
    silence_timeout: Duration,
    peer: SocketAddr,
    shared: &'a Shared,
}

impl Session<'_> {
    /// Answers requests until the session ends, and returns the reason.
    fn listen(&mut self, tx: &mut Sender, rx: &mut Receiver) -> Result<&'static str, FlowError> {
        let mut last_message_ns = clock::monotonic_ns();
        loop {
            if self.shared.stopping() {
                return Err(ended("server-stopped", "the server stops"));
            }
            if clock::monotonic_ns() > self.ends_ns {
                return Err(ended("timeout", "the time that changes were asked for is over"));
            }
            match rx.poll::<ToServer>(POLL_INTERVAL)? {
                Some(ToServer::Changes { n, request }) => {
                    let done = self.execute(request).unwrap_or_else(ChangeAnswer::Failed);
                    answer(tx, self.shared, n, done)?;
                }
                Some(ToServer::Alive) => {}
                Some(ToServer::Bye) => return Ok("the client ended its session"),
                Some(other) => return Err(unexpected("while changes are held", &other)),
                None if clock::monotonic_ns() > last_message_ns + self.silence_timeout.as_nanos() as u64 => {
                    let seconds = self.silence_timeout.as_secs();
                    return Err(FlowError::Timeout { what: "the client's heartbeat", seconds });
                }
                None => continue,
            }
            last_message_ns = clock::monotonic_ns();
        }
    }

    fn execute(&mut self, request: ChangeRequest) -> Result<ChangeAnswer, ErrorEntry> {
        match request {
            ChangeRequest::Begin { .. } => Err(refusal("changes have begun on this connection already")),
            ChangeRequest::Plan { changes } => {
                Ok(ChangeAnswer::Planned { changes: self.held.plan(check_count(&changes)?)? })
            }
            ChangeRequest::Apply { changes } => {
                let permitted = self.check_rate().and_then(|()| check_count(&changes));
                if permitted.is_err() || self.applied != changes {
                    self.roll_back("the client asked for other changes")?;
                }
                let applied = self.held.apply(permitted?);
                match &applied {
                    Ok(applied) => applied.iter().for_each(|change| self.log(describe(change))),
                    Err(entry) => self.log(format!("not changed: {}", entry.message)),
                }
                self.applied = if applied.is_ok() { changes } else { Vec::new() };
                Ok(ChangeAnswer::Applied { changes: applied? })
            }
            ChangeRequest::RollBack => {
                self.roll_back("the client asked for it")?;
                Ok(ChangeAnswer::RolledBack)
            }
        }
    }

    /// Rolls back all applied changes, and logs it if there were any.
    fn roll_back(&mut self, why: &str) -> Result<(), ErrorEntry> {
        self.applied.clear();
        match self.held.roll_back() {
            Ok(true) => self.log(format!("rolled back: {why}")),
            Ok(false) => {}
            Err(entry) => {
                self.log(format!("not rolled back in full: {}", entry.message));
                return Err(entry);
            }
        }
        Ok(())
    }

    fn check_rate(&self) -> Result<(), ErrorEntry> {
        let admitted = self.shared.changes.admit(client_host(self.peer), clock::monotonic_ns());
        admitted.map_err(|wait_ns| ErrorEntry {
            code: "server-busy".to_owned(),
            message: "this server has changed its host too often in the last moments".to_owned(),
            advice: Some(format!("try again in {} s", wait_ns.div_ceil(1_000_000_000))),
        })
    }

    fn log(&self, what: String) {
        self.shared.report(ServerEvent::HostChanged { peer: self.peer, what });
    }
}

/// Returns the error of a session that the server ends without an error of the client.
fn ended(code: &'static str, message: &str) -> FlowError {
    FlowError::Other { code, message: message.to_owned(), advice: "begin again; everything was rolled back" }
}

/// Describes a change in one line for the log.
fn describe(change: &AppliedChange) -> String {
    let AppliedChange { change, before, after, rounded } = change;
    let note = if *rounded { format!(" ({} was asked for)", change.desired) } else { String::new() };
    format!("{}: {before} -> {after}{note}", change.target)
}

fn refusal(message: &str) -> ErrorEntry {
    ErrorEntry { code: "not-permitted".to_owned(), message: message.to_owned(), advice: None }
}

fn check_count(changes: &[Change]) -> Result<&[Change], ErrorEntry> {
    if changes.len() <= MAX_CHANGES {
        return Ok(changes);
    }
    Err(refusal(&format!("{} changes are asked for; {MAX_CHANGES} at once are the most", changes.len())))
}

/// Returns the refusal of a server that does not permit changes by clients.
pub(super) fn without_permission() -> ErrorEntry {
    ErrorEntry {
        advice: Some("start it with --allow-host-changes".to_owned()),
        ..refusal("this server does not change settings of its host for clients")
    }
}

/// Returns the refusal while another client changes the host.
pub(super) fn busy_refusal() -> ErrorEntry {
    ErrorEntry {
        code: "server-busy".to_owned(),
        message: "another client is changing settings of this server's host".to_owned(),
        advice: Some("try again when it has finished".to_owned()),
    }
}
