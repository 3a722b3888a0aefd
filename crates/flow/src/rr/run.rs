//! What all requesters share: counts, deadlines, waiting.

use std::io;
use std::os::fd::BorrowedFd;

use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::rrsock::{self, Ready};

use super::outcome::{Phase, RrError, RrOutcome, Tally};
use super::plan::RrPlan;
use crate::shared::{Counters, Stop};

/// How long anything blocks before it looks at the stop flags again.
pub(super) const TICK_NS: u64 = 20_000_000;

/// An open loop with nothing in flight sleeps until this long before the next request and spins the rest: timers fire
/// late by about this much. With something in flight it never spins, so that it cannot take the responder's core.
const SPIN_NS: u64 = 20_000;

/// Why a requester's loop ended early.
#[derive(Debug)]
pub(super) enum Halt {
    /// Stopped on request, or the grace period ran out.
    GaveUp,
    /// It cannot go on.
    Failed(RrError),
}

impl From<RrError> for Halt {
    fn from(error: RrError) -> Self {
        Self::Failed(error)
    }
}

/// The two deadlines of a requester: offering ends at the plan's end or on request; waiting ends one grace period later.
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

    /// No request is intended at or after this time.
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

    /// Whether the measurement was aborted: no time to wait, and no error of either end.
    fn aborted(&self) -> bool {
        self.stop.receiving()
    }

    /// Whether to stop waiting for responses.
    pub(super) fn give_up(&mut self, now_ns: u64) -> bool {
        self.stop.receiving() || now_ns >= self.cutoff(now_ns).saturating_add(self.grace_ns)
    }
}

/// One requester's counts.
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

    /// Waits for the plan's start. Returns the time; at a stop it returns early.
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

    /// A request is due.
    #[inline]
    pub(super) fn scheduled(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.scheduled += 1;
    }

    /// A request has left whole.
    #[inline]
    pub(super) fn sent(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.sent += 1;
    }

    /// The first request leaves.
    pub(super) fn stamp_first(&mut self, now_ns: u64) {
        if self.outcome.first_ns.is_none() {
            self.outcome.first_ns = Some(now_ns);
            self.counters.stamp_first(now_ns);
        }
    }

    /// A response has arrived whole.
    #[inline]
    pub(super) fn completed(&mut self, intended_ns: u64, now_ns: u64) {
        let (tally, histogram) = self.phase_of(intended_ns);
        tally.completed += 1;
        if let Some(histogram) = histogram {
            histogram.record(now_ns.saturating_sub(intended_ns));
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

    /// A sent request will not be answered.
    pub(super) fn unanswered(&mut self, intended_ns: u64) {
        self.phase_of(intended_ns).0.unanswered += 1;
    }

    /// Whether the plan allows another transaction after `so_far` of them.
    #[inline]
    pub(super) fn may_start(&self, so_far: u64) -> bool {
        self.plan.max_transactions.is_none_or(|max| so_far < max)
    }

    /// Giving up means that the peer is silent, unless the stop was requested.
    pub(super) fn blame(&self, halt: Halt, unanswered: u64) -> Halt {
        match halt {
            Halt::GaveUp if !self.watch.aborted() => RrError::PeerSilent { unanswered }.into(),
            halt => halt,
        }
    }

    /// Closes the counts: requests stopped being offered now or at the cutoff.
    pub(super) fn finish(mut self, error: Option<RrError>) -> RrOutcome {
        let now_ns = monotonic_ns();
        let to_ns = self.watch.cutoff(now_ns).min(now_ns);
        let measured = &mut self.outcome.measured;
        measured.to_ns = to_ns.max(measured.from_ns);
        if let Some(idle) = &mut self.outcome.idle {
            idle.to_ns = idle.to_ns.min(to_ns).max(idle.from_ns);
        }
        self.outcome.error = error;
        debug_assert!(self.outcome.total().holds(), "{:?}", self.outcome.total());
        self.outcome
    }

    /// The outcome of a plan that cannot be carried out.
    pub(super) fn refuse(self, error: impl Into<RrError>) -> RrOutcome {
        self.finish(Some(error.into()))
    }
}

/// Sleeps until the socket is ready, or until `next_ns` for an open loop's next request, but never past a tick.
///
/// `idle` says that nothing is in flight.
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
