//! Changes to the server's host that last as long as a control connection.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_model::{Change, Family};

use super::connect;
use super::conversation::refused;
use super::conversation::unexpected;
use super::target::Target;
use crate::control::changes::{AppliedChange, ChangeAnswer, ChangeRequest, PlannedChange};
use crate::control::channel::{Key, Receiver, Sender};
use crate::control::deadline::Deadline;
use crate::control::message::{ToClient, ToServer};
use crate::control::printable_copy;
use crate::error::FlowError;

/// Timeout for sending a request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the server's answer: it may wait for other commands (10 s), its watchdog (10 s) and links (20 s
/// each).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval of heartbeats; the server times out after 15 s without one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Operation, as error messages name it.
const OPERATION: &str = "while changing the server's host";
/// Stop flag that is never set, for requests that an interrupt must not end.
static NEVER_STOP: AtomicBool = AtomicBool::new(false);

/// Session that changes the server's host. When it is dropped, or its process ends, the server rolls everything
/// back.
pub struct RemoteChanges {
    tx: Arc<Mutex<Sender>>,
    rx: Receiver,
    place: String,
    number: u32,
    stop: &'static AtomicBool,
    is_lost: bool,
    heartbeat: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl RemoteChanges {
    /// Begins a session. The server rolls everything back after `limit` at the latest.
    ///
    /// # Errors
    /// The server cannot be reached, is too old for the request, does not permit it, or serves another client's
    /// session.
    pub fn begin(
        target: &Target,
        family: Family,
        key: Option<&Key>,
        limit: Duration,
        stop: &'static AtomicBool,
    ) -> Result<Self, FlowError> {
        let (version, limit_s) = (env!("CARGO_PKG_VERSION").to_owned(), limit.as_secs());
        let begin = ToServer::Changes { n: 1, request: ChangeRequest::Begin { version, limit_s } };
        let (tx, rx, _) = connect::control_of(target, family, key, &begin, stop)?;
        let tx = Arc::new(Mutex::new(tx));
        let mut session = Self { tx, rx, place: String::new(), number: 1, stop, is_lost: false, heartbeat: None };
        match session.await_answer(1, stop).map_err(older)? {
            ChangeAnswer::Begun { place } => session.place = place,
            other => return Err(protocol_error(&other)),
        }
        session.heartbeat = Some(start_heartbeat(Arc::clone(&session.tx))?);
        Ok(session)
    }

    /// Identifies host and network namespace: two sessions with equal values change the same settings.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether the connection is lost. The server has rolled everything back, or is about to.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the planned writes in order. Writes nothing.
    ///
    /// # Errors
    /// [`FlowError::Refused`] with the server's reason; other errors if the connection is lost.
    pub fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, FlowError> {
        match self.ask(ChangeRequest::Plan { changes: changes.to_vec() }, self.stop)? {
            ChangeAnswer::Planned { changes } => Ok(changes),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Applies exactly these changes, all or none. Earlier changes of this session are rolled back first.
    ///
    /// # Errors
    /// Same as [`Self::plan`].
    pub fn apply(&mut self, changes: &[Change]) -> Result<Vec<AppliedChange>, FlowError> {
        match self.ask(ChangeRequest::Apply { changes: changes.to_vec() }, self.stop)? {
            ChangeAnswer::Applied { changes } => Ok(changes),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Rolls back all changes of this session. An interrupt does not end it.
    ///
    /// # Errors
    /// Same as [`Self::plan`].
    pub fn roll_back(&mut self) -> Result<(), FlowError> {
        match self.ask(ChangeRequest::RollBack, &NEVER_STOP)? {
            ChangeAnswer::RolledBack => Ok(()),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn unexpected_answer(&mut self, answer: &ChangeAnswer) -> FlowError {
        self.is_lost = true;
        protocol_error(answer)
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, request: ChangeRequest, stop: &AtomicBool) -> Result<ChangeAnswer, FlowError> {
        if self.is_lost {
            let source = io::ErrorKind::NotConnected.into();
            return Err(FlowError::PeerLost { during: OPERATION, source });
        }
        self.number += 1;
        let n = self.number;
        let sent =
            lock(&self.tx).send(&ToServer::Changes { n, request }, &Deadline::after(SEND_TIMEOUT).with_stop(stop));
        if let Err(error) = sent {
            self.is_lost = true;
            return Err(FlowError::or_interrupted(stop, error));
        }
        self.await_answer(n, stop)
    }

    /// Waits for the answer to request `n`.
    fn await_answer(&mut self, n: u32, stop: &AtomicBool) -> Result<ChangeAnswer, FlowError> {
        loop {
            match self.rx.wait::<ToClient>("the change of the server's host", ANSWER_TIMEOUT, stop) {
                Ok(ToClient::Changes { n: number, answer }) if number == n => {
                    return match printable(&answer)? {
                        ChangeAnswer::Failed(entry) => Err(refused(entry)),
                        answer => Ok(answer),
                    };
                }
                // Late answer to a request whose wait was interrupted.
                Ok(ToClient::Changes { n: number, .. }) if number < n => {}
                Err(FlowError::Interrupted) => return Err(FlowError::Interrupted),
                Ok(other) => {
                    self.is_lost = true;
                    return Err(unexpected(OPERATION, other));
                }
                Err(error) => {
                    self.is_lost = true;
                    return Err(error);
                }
            }
        }
    }
}

impl Drop for RemoteChanges {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.heartbeat.take() {
            over.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            let _ = thread.join();
        }
        let mut tx = lock(&self.tx);
        if !self.is_lost {
            let _ = tx.send(&ToServer::Bye, &Deadline::after(HEARTBEAT_INTERVAL));
        }
        tx.close();
    }
}

/// Starts a thread that sends heartbeats to the server.
fn start_heartbeat(tx: Arc<Mutex<Sender>>) -> Result<(Arc<AtomicBool>, JoinHandle<()>), FlowError> {
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            // The next request reports a broken connection.
            let _ = lock(&tx).queue(&ToServer::Alive);
            std::thread::park_timeout(HEARTBEAT_INTERVAL);
        }
    });
    let setup = |source| FlowError::Setup { what: "start a thread for heartbeats".into(), source };
    Ok((over, thread.map_err(setup)?))
}

fn lock(tx: &Mutex<Sender>) -> MutexGuard<'_, Sender> {
    tx.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Explains a lost connection: a server that does not know the first message closes the connection without an
/// answer.
fn older(error: FlowError) -> FlowError {
    match error {
        FlowError::PeerLost { .. } => FlowError::Other {
            code: "unsupported",
            message: "the server closed the connection when it was asked to change its host: it may be older than this client"
                .to_owned(),
            advice: "update landspeed on the server",
        },
        other => other,
    }
}

fn protocol_error(answer: &ChangeAnswer) -> FlowError {
    let message = format!("unexpected answer {}", crate::control::printable(&format!("{answer:?}"), 60));
    FlowError::Protocol { during: OPERATION, message }
}

/// Makes the server's strings printable: they reach terminals and documents.
fn printable(answer: &ChangeAnswer) -> Result<ChangeAnswer, FlowError> {
    printable_copy(answer).map_err(|error| FlowError::Protocol { during: OPERATION, message: error.to_string() })
}
