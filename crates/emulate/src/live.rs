//! Live data of a running emulation: its seconds, as they end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_model::{EmulateSecond, InvalidSecond};
use landspeed_sys::clock::{monotonic_ns, sleep_until};

/// Maximum number of stored seconds (two hours); older ones are discarded.
pub(crate) const MAX_STORED_SECONDS: usize = 7200;
/// Timeout for the state of the current second, nanoseconds: several times the longest sleep of the forwarding
/// thread.
const SNAPSHOT_TIMEOUT_NS: u64 = 200_000_000;

/// Data shared between the thread that forwards frames and those that report on it.
#[derive(Debug, Default)]
pub struct Live {
    shown: Mutex<LiveState>,
    /// Number of snapshot requests made, and answered.
    asked: AtomicU64,
    answered: AtomicU64,
}

#[derive(Debug, Default)]
struct LiveState {
    start_unix_ns: u64,
    elapsed_ns: u64,
    seconds: VecDeque<EmulateSecond>,
    invalid: Vec<InvalidSecond>,
    /// The current second, if it is already invalid.
    current_invalid: Option<InvalidSecond>,
}

/// State of an emulation at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Start of the emulation, nanoseconds since the Unix epoch; 0 before it starts.
    pub start_unix_ns: u64,
    /// Elapsed time, nanoseconds.
    pub elapsed_ns: u64,
    /// Invalid seconds, including the current one.
    pub invalid: Vec<InvalidSecond>,
}

impl Live {
    fn shown(&self) -> MutexGuard<'_, LiveState> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, start_unix_ns: u64) {
        self.shown().start_unix_ns = start_unix_ns;
    }

    /// Adds a completed second.
    pub(crate) fn add(&self, second: EmulateSecond, invalid: Vec<InvalidSecond>, elapsed_ns: u64) {
        let mut shown = self.shown();
        if shown.seconds.len() == MAX_STORED_SECONDS {
            shown.seconds.pop_front();
        }
        shown.seconds.push_back(second);
        shown.invalid.extend(invalid);
        shown.current_invalid = None;
        shown.elapsed_ns = elapsed_ns;
    }

    /// Number of the pending snapshot request, if any.
    pub(crate) fn pending_request(&self) -> Option<u64> {
        let asked = self.asked.load(Ordering::Relaxed);
        (asked != self.answered.load(Ordering::Relaxed)).then_some(asked)
    }

    /// Answers a snapshot request: `current_invalid` is the current second, if it is already invalid.
    pub(crate) fn answer(&self, pending_request: u64, current_invalid: Option<InvalidSecond>, elapsed_ns: u64) {
        let mut shown = self.shown();
        shown.current_invalid = current_invalid;
        shown.elapsed_ns = elapsed_ns;
        drop(shown);
        self.answered.store(pending_request, Ordering::Release);
    }

    /// The completed seconds with this number or a higher one.
    pub fn seconds_from(&self, number: u64) -> Vec<EmulateSecond> {
        let shown = self.shown();
        let known = shown.seconds.iter().rev().take_while(|second| second.second >= number).count();
        shown.seconds.iter().skip(shown.seconds.len() - known).cloned().collect()
    }

    /// Returns the current state. The forwarding thread answers at its next wake-up.
    pub fn snapshot(&self) -> Snapshot {
        let pending_request = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let until_ns = monotonic_ns() + SNAPSHOT_TIMEOUT_NS;
        while self.answered.load(Ordering::Acquire) < pending_request && monotonic_ns() < until_ns {
            sleep_until(monotonic_ns() + 1_000_000);
        }
        let shown = self.shown();
        Snapshot {
            start_unix_ns: shown.start_unix_ns,
            elapsed_ns: shown.elapsed_ns,
            invalid: shown.invalid.iter().chain(&shown.current_invalid).cloned().collect(),
        }
    }

    /// Removes and returns all seconds, at the end of the emulation.
    pub(crate) fn take_seconds(&self) -> Vec<EmulateSecond> {
        std::mem::take(&mut self.shown().seconds).into()
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::InvalidReason;

    use super::*;

    fn second(number: u64) -> EmulateSecond {
        EmulateSecond { second: number, ..EmulateSecond::default() }
    }

    #[test]
    fn seconds_from_returns_later_seconds_only() {
        let live = Live::default();
        for number in [0, 1, 2, 5] {
            live.add(second(number), Vec::new(), number);
        }
        let numbers = |from| live.seconds_from(from).iter().map(|second| second.second).collect::<Vec<_>>();
        assert_eq!((numbers(0), numbers(2), numbers(3), numbers(6)), (vec![0, 1, 2, 5], vec![2, 5], vec![5], vec![]));
    }

    #[test]
    fn snapshot_includes_the_current_invalid_second() {
        let live = Live::default();
        let invalid =
            |number| InvalidSecond { second: number, reasons: vec![InvalidReason::Late], message: String::new() };
        live.begin(7);
        live.add(second(0), vec![invalid(0)], 1_000);
        let snapshot = std::thread::scope(|scope| {
            let asking = scope.spawn(|| live.snapshot());
            let until_ns = monotonic_ns() + 10_000_000_000;
            while !asking.is_finished() && monotonic_ns() < until_ns {
                if let Some(pending_request) = live.pending_request() {
                    live.answer(pending_request, Some(invalid(1)), 1_500);
                }
            }
            asking.join().expect("no panic")
        });
        assert_eq!((snapshot.start_unix_ns, snapshot.elapsed_ns), (7, 1_500));
        assert_eq!(snapshot.invalid, [invalid(0), invalid(1)]);
        assert_eq!(live.pending_request(), None);
    }
}
