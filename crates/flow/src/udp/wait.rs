//! Waiting for a time: asleep as long as that is safe, then spinning.

use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::udp::precise_sleeps;

use crate::shared::Stop;

/// Longest sleep without a look at the stop flag.
pub(super) const LOOK_UP_NS: u64 = 20_000_000;

/// Waits precisely, knowing how late this host's sleeps end.
///
/// The margin follows the 99th percentile of that lateness: up by 99 steps when a sleep ends later than the margin,
/// down by one when not (a stochastic quantile tracker).
#[derive(Debug)]
pub(super) struct Waiter {
    margin_ns: u64,
    /// Median lateness of sleeps, tracked likewise with equal steps.
    typical_ns: u64,
    /// Sleeps end on time, as they do in virtual time: there is nothing to spin for.
    punctual: bool,
}

impl Waiter {
    const STEP_NS: u64 = 100;
    const MARGIN_NS: std::ops::RangeInclusive<u64> = 3_000..=250_000;
    /// No CPU wakes up this soon: time is virtual, where reading the clock is all that takes any.
    const PUNCTUAL_NS: u64 = 600;
    /// A sleep shorter than this costs more than it saves.
    const SHORTEST_SLEEP_NS: u64 = 10_000;

    /// Tries a few sleeps to learn how late they end: about a millisecond, and on a loaded host no more than
    /// `budget_ns`. Turns the calling thread's timer slack off.
    pub(super) fn calibrate(budget_ns: u64) -> Self {
        precise_sleeps();
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
        // Twice the median: an outlier among nine says little.
        let margin_ns = (2 * lateness[4]).clamp(*Self::MARGIN_NS.start(), *Self::MARGIN_NS.end());
        let punctual = lateness[8] <= Self::PUNCTUAL_NS;
        Self { margin_ns: if punctual { 0 } else { margin_ns }, typical_ns: lateness[4], punctual }
    }

    /// Whether spinning through the margin of a wait of `gap_ns` costs little: a twentieth of a core, at most.
    pub(super) fn spins_cheaply(&self, gap_ns: u64) -> bool {
        gap_ns / 20 > self.margin_ns
    }

    /// Waits until `target_ns`, it being `now_ns`; returns the time then. Earlier only if the stream is to stop.
    pub(super) fn precise(&mut self, now_ns: u64, target_ns: u64, stop: &Stop) -> u64 {
        if self.punctual {
            return sleep_punctually(now_ns, target_ns, stop);
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

    /// Sleeps until what is due from `due_ns` on has gathered for about `grain_ns`, and at least for half of that; does
    /// not spin.
    pub(super) fn economical(&mut self, due_ns: u64, grain_ns: u64, stop: &Stop) -> u64 {
        let gather_ns = grain_ns.saturating_sub(self.typical_ns).max(grain_ns / 2);
        self.sleep(due_ns.saturating_add(gather_ns), stop)
    }

    fn sleep(&mut self, wake_ns: u64, stop: &Stop) -> u64 {
        let mut now_ns = monotonic_ns();
        let shortest_ns = if self.punctual { 0 } else { Self::SHORTEST_SLEEP_NS };
        while wake_ns > now_ns.saturating_add(shortest_ns) && !stop.sending() {
            let target_ns = wake_ns.min(now_ns + LOOK_UP_NS);
            sleep_until(target_ns);
            now_ns = monotonic_ns();
            self.learn(now_ns.saturating_sub(target_ns));
        }
        now_ns
    }

    fn learn(&mut self, late_ns: u64) {
        if self.punctual {
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

/// In virtual time a sleep ends when it was to end, and reading the clock to learn that would be the dearer half of it.
fn sleep_punctually(mut now_ns: u64, target_ns: u64, stop: &Stop) -> u64 {
    while now_ns < target_ns && !stop.sending() {
        now_ns = target_ns.min(now_ns + LOOK_UP_NS);
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
            assert!(waiter.precise(monotonic_ns(), target_ns, &stop) >= target_ns);
        }
    }

    #[test]
    fn a_stop_cuts_a_wait_short() {
        let stop = Stop::default();
        stop.stop_sending();
        let mut waiter = Waiter { margin_ns: 3_000, typical_ns: 0, punctual: false };
        let target_ns = monotonic_ns() + 3_600_000_000_000;
        assert!(waiter.precise(monotonic_ns(), target_ns, &stop) < target_ns);
        assert!(sleep_punctually(monotonic_ns(), target_ns, &stop) < target_ns);
        assert!(waiter.economical(target_ns, 0, &stop) < target_ns);
    }

    #[test]
    fn the_margin_and_the_median_settle_where_the_lateness_says() {
        let mut waiter = Waiter { margin_ns: 3_000, typical_ns: 0, punctual: false };
        for i in 0..100_000u64 {
            waiter.learn((i * 7919 % 1000) * 100); // uniform from 0 to 100 µs
        }
        assert!((90_000..=110_000).contains(&waiter.margin_ns), "{}", waiter.margin_ns);
        assert!((45_000..=55_000).contains(&waiter.typical_ns), "{}", waiter.typical_ns);
    }
}
