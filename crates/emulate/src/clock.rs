//! Conversion of the kernel's timestamps to the monotonic clock.

use landspeed_sys::clock::{monotonic_ns, realtime_ns};

/// Validity of a measured clock offset, nanoseconds.
const OFFSET_VALIDITY_NS: u64 = 50_000_000;

/// Plausible range of timestamps relative to the time of reading, nanoseconds.
const MAX_AHEAD_NS: u64 = 20_000_000;
const MAX_BEHIND_NS: u64 = 10_000_000_000;

/// Converts times of `CLOCK_REALTIME`, which may be stepped or slewed, to `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(crate) struct Converter {
    /// Monotonic minus real time, nanoseconds.
    offset_ns: i128,
    measured_ns: u64,
}

impl Converter {
    pub(crate) fn new() -> Self {
        let mut converter = Self { offset_ns: 0, measured_ns: 0 };
        converter.measure();
        converter
    }

    fn measure(&mut self) {
        // Of three readings, the one with the shortest interval between two monotonic readings.
        let mut best_ns = u64::MAX;
        for _ in 0..3 {
            let before_ns = monotonic_ns();
            let real_ns = realtime_ns();
            let after_ns = monotonic_ns();
            if after_ns - before_ns < best_ns {
                best_ns = after_ns - before_ns;
                self.offset_ns = i128::from(before_ns + best_ns / 2) - i128::from(real_ns);
            }
        }
        self.measured_ns = monotonic_ns();
    }

    /// Measures the offset again if it is too old.
    pub(crate) fn refresh(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.measured_ns) > OFFSET_VALIDITY_NS {
            self.measure();
        }
    }

    /// The monotonic time of a frame's timestamp; `now_ns` if the timestamp is implausible (20 ms or more in the
    /// future, or 10 s in the past).
    pub(crate) fn monotonic(&self, realtime_ns: u64, now_ns: u64) -> u64 {
        let at_ns = i128::from(realtime_ns) + self.offset_ns;
        match u64::try_from(at_ns) {
            Ok(at_ns) if at_ns < now_ns + MAX_AHEAD_NS && now_ns < at_ns + MAX_BEHIND_NS => at_ns,
            _ => now_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_timestamps_are_replaced_by_now() {
        let mut converter = Converter::new();
        let (real_ns, now_ns) = (realtime_ns(), monotonic_ns());
        converter.refresh(now_ns);
        let at_ns = converter.monotonic(real_ns, now_ns + 1_000_000);
        assert!(at_ns.abs_diff(now_ns) < 1_000_000, "{at_ns} {now_ns}");
        assert_eq!(converter.monotonic(real_ns + 1_000_000_000, now_ns), now_ns);
        assert_eq!(converter.monotonic(0, now_ns), now_ns);
    }
}
