//! Clients that wait for their test, with their position.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_model::Parameters;
use landspeed_sys::clock;

use super::admission::{AdmittedClient, NotGranted, QueuePosition};
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{ToClient, ToServer};
use crate::control::printable;
use crate::dialect::Dialect;
use crate::error::FlowError;

/// Interval of messages about the position, nanoseconds.
const UPDATE_NS: u64 = 1_000_000_000;
/// Timeout without a message from the client, which sends heartbeats, nanoseconds.
const SILENCE_TIMEOUT_NS: u64 = 15_000_000_000;
/// Interval of attempts to take the test.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(50);

/// Accepted parameters and notes, or the reason of a refusal.
type Granted = Result<(Parameters, Vec<String>), NotGranted>;

/// A client's request for a test.
pub(super) struct QueuedRequest<'a> {
    /// Parameters that the client requested.
    pub asked: &'a Parameters,
    /// Whether the client understands messages about its position.
    pub understands: bool,
    /// Longest wait, nanoseconds.
    pub max_wait_ns: u64,
    /// Set when the server stops.
    pub stop: &'a AtomicBool,
}

/// Accepts a test, after a wait in the queue if the server is busy, has one, and the client understands it. `message`
/// makes the message about the position.
///
/// # Errors
/// The client disconnected, stopped responding or left, or the server stops.
pub(super) fn admit(
    admitted: &mut AdmittedClient,
    request: &QueuedRequest<'_>,
    (tx, rx): (&mut Sender, &mut Receiver),
    message: impl Fn(QueuePosition) -> ToClient,
) -> Result<Granted, FlowError> {
    let &QueuedRequest { asked, understands, max_wait_ns, stop } = request;
    let first = admitted.grant(asked, Dialect::LANDSPEED);
    let Err(why) = &first else { return Ok(first) };
    if !understands || !why.may_wait() || !admitted.enter_queue(asked) {
        return Ok(first);
    }
    if !admitted.release_handshake_slot() {
        return Ok(Err(NotGranted::SlotLost));
    }
    let now_ns = clock::monotonic_ns();
    let end_ns = now_ns.saturating_add(max_wait_ns);
    let (mut last_message_ns, mut update_ns, mut attempt_ns) = (now_ns, now_ns, now_ns);
    loop {
        let now_ns = clock::monotonic_ns();
        // Not with each message: a client may send many.
        if now_ns >= attempt_ns {
            attempt_ns = now_ns + ATTEMPT_INTERVAL.as_nanos() as u64;
            match admitted.grant(asked, Dialect::LANDSPEED) {
                Err(why) if why.may_wait() => {}
                other => return Ok(other),
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(FlowError::Interrupted);
        }
        if now_ns > end_ns {
            return Ok(Err(NotGranted::WaitedTooLong { seconds: max_wait_ns / 1_000_000_000 }));
        }
        if now_ns > last_message_ns + SILENCE_TIMEOUT_NS {
            let seconds = SILENCE_TIMEOUT_NS / 1_000_000_000;
            return Err(FlowError::Timeout { what: "a message from the waiting client", seconds });
        }
        tx.flush()?;
        if now_ns >= update_ns && !tx.is_blocked() {
            update_ns = now_ns + UPDATE_NS;
            if let Some(position) = admitted.queue_position(now_ns) {
                tx.queue(&message(position))?;
            }
        }
        match rx.poll::<ToServer>(ATTEMPT_INTERVAL)? {
            None => {}
            Some(ToServer::Alive) => last_message_ns = clock::monotonic_ns(),
            Some(ToServer::Bye | ToServer::Stop) => return Err(left_queue()),
            Some(other) => {
                let message = format!("unexpected message {}", printable(&format!("{other:?}"), 60));
                return Err(FlowError::Protocol { during: "while waiting for a test", message });
            }
        }
    }
}

/// Error of a client that gave up.
fn left_queue() -> FlowError {
    FlowError::Other {
        code: "left-queue",
        message: "the client left the queue".to_owned(),
        advice: "nothing needs to be done",
    }
}
