//! Limits of a status exchange, and the reasons why a status remains unknown.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::EmulationStatus;
use landspeed_sys::clock::monotonic_ns;

/// Maximum time between checks of the limits, milliseconds.
pub(crate) const CHECK_MS: u32 = 20;
/// Largest difference of clocks in a status, nanoseconds: the system clock may have been slewed since its start.
const CLOCK_TOLERANCE_NS: u64 = 1_000_000_000;
/// MTUs of emulated paths: from the minimum of IPv4 to beyond the largest packet.
const MTU_BYTES: std::ops::RangeInclusive<u32> = 68..=1 << 17;
/// Longest message of an invalid second, bytes.
const MAX_MESSAGE: usize = 4096;
const SECOND_NS: u64 = 1_000_000_000;

/// Reason why the status of an emulated path is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatusError {
    /// The exchange took longer than its limit.
    #[error("no complete answer in time")]
    Timeout,
    /// The stop flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The answer is larger than its limit, bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The answer is not a status.
    #[error("the answer cannot be parsed: {0}")]
    Unreadable(String),
    /// The answer contradicts itself or the clock.
    #[error("the answer contradicts itself: {0}")]
    Implausible(&'static str),
    /// A system call failed.
    #[error("{0}")]
    System(String),
}

impl From<std::io::Error> for StatusError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// Absolute limit of a whole exchange, whatever arrives meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeLimit<'a> {
    end_ns: u64,
    stop: &'a AtomicBool,
}

impl<'a> ExchangeLimit<'a> {
    /// The exchange ends after `length_ns`, or at once when `stop` is set.
    pub fn new(length_ns: u64, stop: &'a AtomicBool) -> Self {
        Self { end_ns: monotonic_ns().saturating_add(length_ns), stop }
    }

    /// Returns the time left, nanoseconds, or the reason why the exchange is over.
    pub(crate) fn left_ns(&self) -> Result<u64, StatusError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StatusError::Interrupted);
        }
        match self.end_ns.saturating_sub(monotonic_ns()) {
            0 => Err(StatusError::Timeout),
            left_ns => Ok(left_ns),
        }
    }
}

/// Checks the figures of a status that arrived at `now_unix_ns`.
pub(crate) fn check(status: &EmulationStatus, now_unix_ns: u64) -> Result<(), StatusError> {
    let require = |holds: bool, what| if holds { Ok(()) } else { Err(StatusError::Implausible(what)) };
    let now_ns = now_unix_ns.saturating_add(CLOCK_TOLERANCE_NS);
    let latest_ns = status.start_unix_ns.checked_add(status.elapsed_ns);
    require(latest_ns.is_some_and(|latest_ns| latest_ns <= now_ns), "it ends after now")?;
    require(MTU_BYTES.contains(&status.path.mtu_bytes) && status.path.links > 0, "no path has these properties")?;
    let seconds = &status.invalid;
    require(seconds.windows(2).all(|pair| pair[0].second < pair[1].second), "invalid seconds are out of order")?;
    let last = seconds.last().map_or(0, |last| last.second);
    require(last <= status.elapsed_ns / SECOND_NS, "an invalid second lies after its end")?;
    let explained = |second: &landspeed_model::InvalidSecond| {
        !second.reasons.is_empty() && !second.message.is_empty() && second.message.len() <= MAX_MESSAGE
    };
    require(seconds.iter().all(explained), "an invalid second has no reason")
}

#[cfg(test)]
pub(crate) mod tests {
    use landspeed_model::{EmulatePlacement, EmulatedPath, InvalidReason, InvalidSecond};

    use super::*;

    /// A status with these invalid seconds after `elapsed_s` seconds.
    pub fn status(elapsed_s: u64, seconds: &[u64]) -> EmulationStatus {
        let invalid = |&second| InvalidSecond {
            second,
            reasons: vec![InvalidReason::Late],
            message: "12 of 3456 frames left more than 200 µs late".to_owned(),
        };
        EmulationStatus {
            path: EmulatedPath { name: "a path".to_owned(), seed: 1, mtu_bytes: 1500, links: 1 },
            placement: EmulatePlacement::Between { first: "eth1".to_owned(), second: "eth2".to_owned() },
            start_unix_ns: 1_000 * SECOND_NS,
            elapsed_ns: elapsed_s * SECOND_NS,
            invalid: seconds.iter().map(invalid).collect(),
        }
    }

    #[test]
    fn impossible_figures_are_rejected() {
        let check = |status: &EmulationStatus| check(status, 1_010 * SECOND_NS);
        assert_eq!(check(&status(10, &[0, 3, 10])), Ok(()));
        let mut wrong = vec![status(12, &[]), status(10, &[3, 3]), status(10, &[4, 3]), status(10, &[11])];
        wrong.push(EmulationStatus { start_unix_ns: u64::MAX, ..status(10, &[]) });
        wrong.push(EmulationStatus { elapsed_ns: u64::MAX, ..status(10, &[0]) });
        for mtu_bytes in [0, 67, u32::MAX] {
            let path = EmulatedPath { mtu_bytes, ..status(10, &[]).path };
            wrong.push(EmulationStatus { path, ..status(10, &[]) });
        }
        let mut silent = status(10, &[1]);
        silent.invalid[0].reasons.clear();
        let mut long = status(10, &[1]);
        long.invalid[0].message = "x".repeat(MAX_MESSAGE + 1);
        wrong.extend([silent, long]);
        for status in wrong {
            assert!(matches!(check(&status), Err(StatusError::Implausible(_))), "{status:?}");
        }
    }
}
