//! Waiting for the server's acceptance, in its queue if it has one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_sys::clock;

use crate::control::channel::{Receiver, Sender};
use crate::control::deadline::Deadline;
use crate::control::message::{ToClient, ToServer};
use crate::error::FlowError;
use crate::server::admission::QueuePosition;

/// Longest wait in a server's queue: the server's own limit is shorter.
const MAX_WAIT: Duration = Duration::from_hours(6);
/// Interval of heartbeats to the server, nanoseconds.
const HEARTBEAT_NS: u64 = 1_000_000_000;

/// Waits for the server's answer to the greeting, `timeout` for each message. A busy server with a queue reports the
/// position, which `observe` gets; the client reports that it still waits.
pub(super) fn await_answer(
    tx: &mut Sender,
    rx: &mut Receiver,
    timeout: Duration,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(QueuePosition),
) -> Result<ToClient, FlowError> {
    let total = Deadline::after(MAX_WAIT).with_stop(interrupted);
    let mut step = Deadline::after(timeout).with_stop(interrupted);
    let mut queued = false;
    let mut heartbeat_ns = 0;
    loop {
        if total.passed() {
            leave(tx);
            return Err(total.missed("the queue of the server"));
        }
        let Ok(slice) = step.slice() else {
            leave(tx);
            return Err(step.missed("the server's acceptance"));
        };
        let now_ns = clock::monotonic_ns();
        tx.flush()?;
        if queued && now_ns >= heartbeat_ns && !tx.is_blocked() {
            heartbeat_ns = now_ns + HEARTBEAT_NS;
            tx.queue(&ToServer::Alive)?;
        }
        match rx.poll::<ToClient>(slice)? {
            None => {}
            Some(ToClient::Queued { position, waiting, wait_ns }) => {
                queued = true;
                step = Deadline::after(timeout).with_stop(interrupted);
                observe(QueuePosition { position, waiting, wait_ns });
            }
            Some(answer) => return Ok(answer),
        }
    }
}

/// Tells the server that the client no longer waits.
fn leave(tx: &mut Sender) {
    let _ = tx.queue(&ToServer::Bye);
}
