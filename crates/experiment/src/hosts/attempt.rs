//! Attempts of a test: errors that may be temporary repeat it.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::{ErrorEntry, RunDocument, Status};
use landspeed_sys::clock;

/// Attempts for a test that failed for reasons other than its settings.
const MAX_ATTEMPTS: u32 = 3;
/// Pause between attempts, nanoseconds: a busy server may be free by then.
const PAUSE_NS: u64 = 1_000_000_000;

/// Reason for a test without a measurement.
#[derive(Debug)]
pub enum Unmeasured {
    /// The user interrupted it.
    Interrupted,
    /// A host could not or would not apply the test's settings.
    Refused(String),
    /// The server is not reachable any more.
    Failed(ErrorEntry),
}

/// Runs a test; repeats it after errors that may be temporary.
pub fn try_run(interrupted: &AtomicBool, run: &mut dyn FnMut() -> RunDocument) -> Result<RunDocument, Unmeasured> {
    let mut tries = 0;
    loop {
        tries += 1;
        let document = run();
        if interrupted.load(Ordering::Relaxed) {
            return Err(Unmeasured::Interrupted);
        }
        let Some(error) = document.errors.first().filter(|_| document.status != Status::Complete) else {
            return Ok(document);
        };
        if is_about_settings(error) {
            return Err(Unmeasured::Refused(error.message.clone()));
        }
        if tries == MAX_ATTEMPTS || is_final(error) {
            return Err(Unmeasured::Failed(error.clone()));
        }
        clock::sleep_until(clock::monotonic_ns() + PAUSE_NS);
    }
}

/// Whether a host could not or would not apply the test's settings.
fn is_about_settings(error: &ErrorEntry) -> bool {
    ["socket-setup", "bad-parameters", "not-permitted"].contains(&error.code.as_str())
}

/// Whether repeating the test is useless.
fn is_final(error: &ErrorEntry) -> bool {
    !["server-busy", "timeout", "stream"].contains(&error.code.as_str())
}
