//! Shared parts of all requesters: counts, deadlines, waiting.

use std::io;
use std::os::fd::BorrowedFd;

use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::rrsock::{self, Ready};

use super::outcome::{Phase, RrError, RrOutcome, Tally};
use super::plan::RrPlan;
use super::timeline::Timeline;
use crate::shared::{Counters, Stop};

/// Longest time a call blocks before the stop flags are checked again.
pub(super) const TICK_NS: u64 = 20_000_000;

/// An open loop with nothing in flight sleeps until this long before the next request and then spins: timers
/// fire late by about this much. With requests in flight it never spins, so that it cannot take the responder's
/// core.
const SPIN_NS: u64 = 20_000;

/// Reason why a requester's loop ended early.
#[derive(Debug)]
pub(super) enum Halt {
    /// Stopped on request, or the grace period ran out.
    GaveUp,
    /// An error occurred.
    Failed(RrError),
}

impl From<RrError> for Halt {
    fn from(error: RrError) -> Self {
        Self::Failed(error)
    }
}

/// Two deadlines of a requester: requests are offered until the plan's end or a stop; responses are awaited one
/// grace period longer.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    end_ns: u64,
    grace_ns: u64,
    stop: &'a Stop,
}

impl<'a> Watch<'a> {
    pub(super) fn new(plan: &RrPlan, stop: &'a Stop) -> Self {
        Self { end_ns: plan.end_ns, grace_ns: plan.grace_ns, stop }
    }

    /// Returns the time from which no more requests are intended.
    #[inline]
    pub(super) fn cutoff(&mut self, now_ns: u64) -> u64 {
        if self.stop.sending() || self.stop.receiving() {
            self.end_ns = self.end_ns.min(now_ns);
        }
        self.end_ns
    }

    /// Whether requests may still be offered.
    #[inline]
    pub(super) fn offering(&mut self, now_ns: u64) -> bool {
        now_ns < self.cutoff(now_ns)
    }

    /// Whether the measurement was aborted: do not wait, and do not report an error.
    fn aborted(&self) -> bool {
        self.stop.receiving()
    }

    /// Whether to stop waiting for responses.
    pub(super) fn give_up(&mut self, now_ns: u64) -> bool {
        self.stop.receiving() || now_ns >= self.cutoff(now_ns).saturating_add(self.grace_ns)
    }
}

/// State and counts of a requester.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) plan: &'a RrPlan,
    pub(super) watch: Watch<'a>,
    pub(super) outcome: RrOutcome,
    counters: &'a Counters,
    completed: u64,
    latency_sum_ns: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(plan: &'a RrPlan, counters: &'a Counters, stop: &'a Stop) -> Self {
        let outcome = RrOutcome {
            measured: Phase::new(plan.measure_from_ns, plan.end_ns),
            idle: plan.idle_until_ns.map(|until| Phase::new(plan.t0_ns, until)),
            timeline: plan.timeline_bin_ns.map(|bin_ns| Timeline::new(plan.t0_ns, bin_ns)),
            omitted: Tally::default(),
            send_late: LatencyHistogram::new(),
            first_ns: None,
            last_ns: None,
            syscalls: 0,
            late: 0,
            duplicate: 0,
            junk: 0,
            refused: 0,
            error: None,
        };
        Self { plan, watch: Watch::new(plan, stop), outcome, counters, completed: 0, latency_sum_ns: 0 }
    }

    /// Waits for the plan's start and returns the time; returns early on a stop.
    pub(super) fn wait_for_start(&mut self) -> u64 {
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= self.plan.t0_ns || !self.watch.offering(now_ns) {
                return now_ns;
            }
            sleep_until(self.plan.t0_ns.min(now_ns + TICK_NS));
        }
    }

    #[inline]
    fn phase_of(&mut self, intended_ns: u64) -> (&mut Tally, Option<&mut LatencyHistogram>) {
        if intended_ns >= self.outcome.measured.from_ns {
            return (&mut self.outcome.measured.tally, Some(&mut self.outcome.measured.histogram));
        }
        match &mut self.outcome.idle {
            Some(idle) if intended_ns < idle.to_ns => (&mut idle.tally, Some(&mut idle.histogram)),
            _ => (&mut self.outcome.omitted, None),
        }
    }

    /// Counts a request that is due.
    #[inline]
    pub(super) fn scheduled(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.scheduled += 1;
    }

    /// Counts a request that was sent completely.
    #[inline]
    pub(super) fn sent(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.sent += 1;
    }

    /// Records the time of the first request.
    pub(super) fn stamp_first(&mut self, now_ns: u64) {
        if self.outcome.first_ns.is_none() {
            self.outcome.first_ns = Some(now_ns);
            self.counters.stamp_first(now_ns);
        }
    }

    /// Counts a complete response and its latency.
    #[inline]
    pub(super) fn completed(&mut self, intended_ns: u64, now_ns: u64) {
        let (tally, histogram) = self.phase_of(intended_ns);
        tally.completed += 1;
        if let Some(histogram) = histogram {
            histogram.record(now_ns.saturating_sub(intended_ns));
        }
        if let Some(timeline) = &mut self.outcome.timeline {
            timeline.record(intended_ns, now_ns.saturating_sub(intended_ns));
        }
        self.completed += 1;
        self.outcome.last_ns = Some(now_ns);
        let size = self.plan.size;
        let bytes = u64::from(size.request_bytes) + u64::from(size.response_bytes);
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(now_ns.saturating_sub(intended_ns));
        self.counters.publish_delay(self.latency_sum_ns);
        self.counters.publish(self.completed * bytes, self.completed);
        self.counters.stamp_last(now_ns);
    }

    /// Counts a sent request without a response.
    pub(super) fn unanswered(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.unanswered += 1;
    }

    /// Whether the plan allows another transaction after `so_far` transactions.
    #[inline]
    pub(super) fn may_start(&self, so_far: u64) -> bool {
        self.plan.max_transactions.is_none_or(|max| so_far < max)
    }

    /// Turns giving up into [`RrError::PeerSilent`], unless a stop was requested.
    pub(super) fn explain_halt(&self, halt: Halt, unanswered: u64) -> Halt {
        match halt {
            Halt::GaveUp if !self.watch.aborted() => RrError::PeerSilent { unanswered }.into(),
            halt => halt,
        }
    }

    /// Ends the phases at the time requests were no longer offered, and returns the outcome.
    pub(super) fn finish(mut self, error: Option<RrError>) -> RrOutcome {
        let now_ns = monotonic_ns();
        let to_ns = self.watch.cutoff(now_ns).min(now_ns);
        let measured = &mut self.outcome.measured;
        measured.to_ns = to_ns.max(measured.from_ns);
        if let Some(idle) = &mut self.outcome.idle {
            idle.to_ns = idle.to_ns.min(to_ns).max(idle.from_ns);
        }
        self.outcome.error = error;
        debug_assert!(self.outcome.total().is_balanced(), "{:?}", self.outcome.total());
        self.outcome
    }

    /// Returns the outcome of an invalid plan.
    pub(super) fn refuse(self, error: impl Into<RrError>) -> RrOutcome {
        self.finish(Some(error.into()))
    }
}

/// Sleeps until the socket is ready, or until an open loop's next request at `next_ns`, for at most one tick.
///
/// `idle` is true if no requests are in flight.
pub(super) fn wait(
    fd: BorrowedFd<'_>,
    for_writing: bool,
    next_ns: u64,
    idle: bool,
    syscalls: &mut u64,
) -> io::Result<Ready> {
    let now_ns = monotonic_ns();
    let left_ns = next_ns.saturating_sub(now_ns).min(TICK_NS);
    if idle && !for_writing {
        if left_ns <= SPIN_NS {
            while monotonic_ns() < next_ns {
                std::hint::spin_loop();
            }
            return Ok(Ready::default());
        }
        *syscalls += 1;
        return rrsock::wait(fd, false, left_ns - SPIN_NS);
    }
    *syscalls += 1;
    rrsock::wait(fd, for_writing, left_ns)
}
