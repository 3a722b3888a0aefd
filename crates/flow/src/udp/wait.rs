//! Precise waits: sleep as long as is safe, then spin.

use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::udp::minimize_timer_slack;

use crate::shared::Stop;

/// Longest sleep between checks of the stop flag.
pub(super) const STOP_CHECK_NS: u64 = 20_000_000;

/// Waits precisely, based on the wake-up latency of this host's sleeps.
///
/// The margin tracks the 99th percentile of that latency: it grows by 99 steps when a sleep ends later than the
/// margin, and shrinks by one otherwise (a stochastic quantile tracker).
#[derive(Debug)]
pub(super) struct Waiter {
    margin_ns: u64,
    /// Median wake-up latency, tracked in the same way with equal steps.
    typical_ns: u64,
    /// Sleeps end on time, as in virtual time: spinning is unnecessary.
    exact_wakeups: bool,
}

impl Waiter {
    const STEP_NS: u64 = 100;
    const MARGIN_NS: std::ops::RangeInclusive<u64> = 3_000..=250_000;
    /// Wake-up latency up to which time counts as virtual, nanoseconds: no real CPU wakes up this soon.
    const EXACT_WAKEUP_NS: u64 = 600;
    /// A shorter sleep costs more than it saves.
    const SHORTEST_SLEEP_NS: u64 = 10_000;

    /// Measures the wake-up latency of a few sleeps: takes about a millisecond, on a loaded host at most
    /// `budget_ns`. Minimizes the calling thread's timer slack.
    pub(super) fn calibrate(budget_ns: u64) -> Self {
        minimize_timer_slack();
        let begin_ns = monotonic_ns();
        let mut lateness = [0; 9];
        for late_ns in &mut lateness {
            let target_ns = monotonic_ns() + 60_000;
            sleep_until(target_ns);
            let now_ns = monotonic_ns();
            *late_ns = now_ns - target_ns;
            if now_ns - begin_ns > budget_ns {
                break;
            }
        }
        lateness.sort_unstable();
        // Twice the median: robust against outliers among nine values.
        let margin_ns = (2 * lateness[4]).clamp(*Self::MARGIN_NS.start(), *Self::MARGIN_NS.end());
        let exact_wakeups = lateness[8] <= Self::EXACT_WAKEUP_NS;
        Self { margin_ns: if exact_wakeups { 0 } else { margin_ns }, typical_ns: lateness[4], exact_wakeups }
    }

    /// Whether spinning through the margin in every gap of `gap_ns` uses at most 5 % of a core.
    pub(super) fn spins_cheaply(&self, gap_ns: u64) -> bool {
        gap_ns / 20 > self.margin_ns
    }

    /// Waits from `now_ns` until `target_ns`; returns the time at the end. Ends early only on a stop.
    pub(super) fn wait_precisely(&mut self, now_ns: u64, target_ns: u64, stop: &Stop) -> u64 {
        if self.exact_wakeups {
            return sleep_exactly(now_ns, target_ns, stop);
        }
        let mut now_ns = self.sleep(target_ns.saturating_sub(self.margin_ns), stop);
        while now_ns < target_ns {
            if stop.sending() {
                break;
            }
            std::hint::spin_loop();
            now_ns = monotonic_ns();
        }
        now_ns
    }

    /// Sleeps until about `grain_ns` after `due_ns`, at least half of that, so that datagrams collect for a batch;
    /// does not spin.
    pub(super) fn wait_economically(&mut self, due_ns: u64, grain_ns: u64, stop: &Stop) -> u64 {
        let gather_ns = grain_ns.saturating_sub(self.typical_ns).max(grain_ns / 2);
        self.sleep(due_ns.saturating_add(gather_ns), stop)
    }

    fn sleep(&mut self, wake_ns: u64, stop: &Stop) -> u64 {
        let mut now_ns = monotonic_ns();
        let shortest_ns = if self.exact_wakeups { 0 } else { Self::SHORTEST_SLEEP_NS };
        while wake_ns > now_ns.saturating_add(shortest_ns) && !stop.sending() {
            let target_ns = wake_ns.min(now_ns + STOP_CHECK_NS);
            sleep_until(target_ns);
            now_ns = monotonic_ns();
            self.update_latency(now_ns.saturating_sub(target_ns));
        }
        now_ns
    }

    fn update_latency(&mut self, late_ns: u64) {
        if self.exact_wakeups {
            return;
        }
        let margin_ns = if late_ns > self.margin_ns {
            self.margin_ns + 99 * Self::STEP_NS
        } else {
            self.margin_ns.saturating_sub(Self::STEP_NS)
        };
        self.margin_ns = margin_ns.clamp(*Self::MARGIN_NS.start(), *Self::MARGIN_NS.end());
        let late = late_ns > self.typical_ns;
        self.typical_ns = (self.typical_ns + if late { 2 * Self::STEP_NS } else { 0 }).saturating_sub(Self::STEP_NS);
    }
}

/// Sleeps in virtual time, where a sleep ends exactly on time; reading the clock would cost more than the sleep
/// itself.
fn sleep_exactly(mut now_ns: u64, target_ns: u64, stop: &Stop) -> u64 {
    while now_ns < target_ns && !stop.sending() {
        now_ns = target_ns.min(now_ns + STOP_CHECK_NS);
        sleep_until(now_ns);
    }
    now_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precise_wait_never_ends_early() {
        let stop = Stop::default();
        let mut waiter = Waiter::calibrate(1_000_000);
        for wait_ns in [0, 1_000, 50_000, 400_000] {
            let target_ns = monotonic_ns() + wait_ns;
            assert!(waiter.wait_precisely(monotonic_ns(), target_ns, &stop) >= target_ns);
        }
    }

    #[test]
    fn a_stop_ends_waits_early() {
        let stop = Stop::default();
        stop.stop_sending();
        let mut waiter = Waiter { margin_ns: 3_000, typical_ns: 0, exact_wakeups: false };
        let target_ns = monotonic_ns() + 3_600_000_000_000;
        assert!(waiter.wait_precisely(monotonic_ns(), target_ns, &stop) < target_ns);
        assert!(sleep_exactly(monotonic_ns(), target_ns, &stop) < target_ns);
        assert!(waiter.wait_economically(target_ns, 0, &stop) < target_ns);
    }

    #[test]
    fn margin_and_median_converge_to_the_sleep_latency() {
        let mut waiter = Waiter { margin_ns: 3_000, typical_ns: 0, exact_wakeups: false };
        for i in 0..100_000u64 {
            waiter.update_latency((i * 7919 % 1000) * 100); // uniform from 0 to 100 µs
        }
        assert!((90_000..=110_000).contains(&waiter.margin_ns), "{}", waiter.margin_ns);
        assert!((45_000..=55_000).contains(&waiter.typical_ns), "{}", waiter.typical_ns);
    }
}
