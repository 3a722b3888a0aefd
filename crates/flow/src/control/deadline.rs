//! Deadline of one protocol step, as an absolute time.
//!
//! A socket timeout bounds one system call, not the step: a peer that sends a byte now and then could extend
//! the wait forever. A deadline bounds the step, independent of arriving bytes; a stop request shortens it.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock;

use crate::error::FlowError;

/// Interval between checks of the stop flag, nanoseconds.
const TICK_NS: u64 = 100_000_000;

/// Round trips that a step may take in addition to its base time: the exchange itself, and retransmissions.
const ROUND_TRIPS: u64 = 4;

/// Returns the timeout of a step over a path with this RTT, nanoseconds.
pub fn timeout_ns(base_ns: u64, rtt_ns: u64) -> u64 {
    base_ns.saturating_add(rtt_ns.saturating_mul(ROUND_TRIPS))
}

/// Returns the timeout of a step over a path with this RTT.
pub fn timeout(base: Duration, rtt_ns: u64) -> Duration {
    base.saturating_add(Duration::from_nanos(timeout_ns(0, rtt_ns)))
}

/// Absolute time by which a step must be complete.
#[derive(Debug)]
pub struct Deadline<'a> {
    at_ns: Cell<u64>,
    limit: Duration,
    stop: Option<&'a AtomicBool>,
    grace_ns: u64,
    stop_seen: Cell<bool>,
}

impl Deadline<'static> {
    /// Creates a deadline `time` from now.
    pub fn after(time: Duration) -> Self {
        let at_ns = Cell::new(clock::monotonic_ns().saturating_add(time.as_nanos() as u64));
        Self { at_ns, limit: time, stop: None, grace_ns: 0, stop_seen: Cell::new(false) }
    }
}

impl Deadline<'_> {
    /// Ends the step immediately when `stop` is set.
    pub fn with_stop(self, stop: &AtomicBool) -> Deadline<'_> {
        self.with_stop_grace(stop, Duration::ZERO)
    }

    /// Ends the step `grace` after `stop` is first seen set, if that is earlier than the deadline.
    pub fn with_stop_grace(self, stop: &AtomicBool, grace: Duration) -> Deadline<'_> {
        let Self { at_ns, limit, stop_seen, .. } = self;
        Deadline { at_ns, limit, stop: Some(stop), grace_ns: grace.as_nanos() as u64, stop_seen }
    }

    /// Returns the timeout for the next system call, 1 to 100 ms.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the deadline has passed.
    pub fn slice(&self) -> io::Result<Duration> {
        let left_ns = self.left_ns();
        if left_ns == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Duration::from_nanos(left_ns.clamp(1_000_000, TICK_NS)))
    }

    /// Whether the deadline has passed.
    pub fn passed(&self) -> bool {
        self.left_ns() == 0
    }

    /// Returns the error of a step that missed its deadline: an interrupt, or a timeout of `what`.
    pub fn missed(&self, what: &'static str) -> FlowError {
        let seconds = self.limit.as_secs();
        if self.stop_seen.get() { FlowError::Interrupted } else { FlowError::Timeout { what, seconds } }
    }

    /// Returns the error of a failed write: an interrupt if one ended the wait, otherwise a lost peer.
    pub fn write_error(&self, during: &'static str, source: io::Error) -> FlowError {
        if self.stop_seen.get() && source.kind() == io::ErrorKind::TimedOut {
            FlowError::Interrupted
        } else {
            FlowError::PeerLost { during, source }
        }
    }

    fn left_ns(&self) -> u64 {
        let now_ns = clock::monotonic_ns();
        if !self.stop_seen.get() && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.stop_seen.set(true);
            self.at_ns.set(self.at_ns.get().min(now_ns.saturating_add(self.grace_ns)));
        }
        self.at_ns.get().saturating_sub(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_request_shortens_the_deadline_once() {
        let stop = AtomicBool::new(false);
        let deadline = Deadline::after(Duration::from_hours(1)).with_stop_grace(&stop, Duration::from_millis(20));
        assert!(!deadline.passed());
        stop.store(true, Ordering::Relaxed);
        let seen_ns = clock::monotonic_ns();
        assert!(!deadline.passed());
        while !deadline.passed() {
            assert!(clock::monotonic_ns() < seen_ns + 10_000_000_000, "the grace does not start again");
            clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        }
        assert!(clock::monotonic_ns() >= seen_ns + 20_000_000);
        assert!(matches!(deadline.missed("x"), FlowError::Interrupted));
    }

    #[test]
    fn a_wait_is_never_longer_than_the_step() {
        let deadline = Deadline::after(Duration::from_millis(30));
        assert!(deadline.slice().is_ok_and(|slice| slice <= Duration::from_millis(30)));
        assert_eq!(
            Deadline::after(Duration::ZERO).slice().map_err(|error| error.kind()),
            Err(io::ErrorKind::TimedOut)
        );
    }
}
