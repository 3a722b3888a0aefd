//! Phases of a test on one side: when each ends, and the actions at its end. No sockets and no clocks: times
//! are arguments.
//!
//! Start-up lasts until every stream has moved its first byte, the omitted phase as long as agreed, the steady
//! phase until the senders stop; data in flight then drains. Each phase ends at a check at which all streams
//! are sampled, so durations and bytes of a phase match its samples.
//!
//! A test of a number of bytes measures all of them: it has no start-up, and its steady phase ends with the last
//! byte ([`PhaseEnds::end_with_last_byte`]), which is earlier than the check that notices it.

use landspeed_model::{Parameters, PhaseName};
use serde::{Deserialize, Serialize};

use crate::control::deadline::timeout_ns;

/// Time receivers may wait for data in flight after the senders stopped, in addition to four round trips,
/// nanoseconds.
const DRAIN_NS: u64 = 10_000_000_000;
/// Limit of start-up, in addition to a round trip, nanoseconds: a stream without data does not extend it further.
const STARTUP_LIMIT_NS: u64 = 1_000_000_000;
/// Longest time between two checks, nanoseconds.
pub const CHECK_INTERVAL_NS: u64 = 20_000_000;
/// The same during start-up and drain, whose ends must be detected quickly, nanoseconds.
const SHORT_CHECK_INTERVAL_NS: u64 = 500_000;

/// Returns the time receivers may wait for data in flight after the senders stopped, nanoseconds.
pub fn drain_ns(rtt_ns: u64) -> u64 {
    timeout_ns(DRAIN_NS, rtt_ns)
}

/// Ends of the phases on one side, nanoseconds after the agreed start. Every stream is sampled at each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseEnds {
    /// Every stream had moved its first byte, or the limit of start-up was reached.
    pub startup_end_ns: Option<u64>,
    /// End of the omitted phase.
    pub omit_end_ns: Option<u64>,
    /// The senders were stopped, or had finished.
    pub steady_end_ns: Option<u64>,
    /// Every stream had finished.
    pub end_ns: Option<u64>,
}

impl PhaseEnds {
    /// Ends the steady phase at `last_ns`, when the last byte moved.
    pub fn end_with_last_byte(&mut self, last_ns: u64) {
        self.steady_end_ns = Some(last_ns.max(self.omit_end_ns.unwrap_or(0)));
    }

    /// Returns the phase of an interval that ends at `t_ns`.
    pub fn phase_ending_at(&self, t_ns: u64) -> PhaseName {
        if self.startup_end_ns.is_none_or(|cut| t_ns <= cut) {
            PhaseName::Startup
        } else if self.omit_end_ns.is_some_and(|cut| t_ns <= cut) {
            PhaseName::Omitted
        } else if self.steady_end_ns.is_none_or(|cut| t_ns <= cut) {
            PhaseName::Steady
        } else {
            PhaseName::Drain
        }
    }
}

/// Current phase of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Some stream has not moved data yet.
    Startup,
    /// Samples are excluded from the results.
    Omitted,
    /// Samples are part of the results.
    Steady,
    /// Senders have stopped; receivers read the data in flight.
    Drain,
    /// Every stream has finished.
    Finished,
}

/// State of the streams at a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamsState {
    /// Every stream has moved its first byte.
    pub all_started: bool,
    /// The test was stopped before all of its bytes were moved.
    pub stopped: bool,
    /// All senders of the peer have stopped, or the byte limit is reached.
    pub senders_done: bool,
    /// Every stream has finished.
    pub all_finished: bool,
}

/// Actions that follow from a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actions {
    /// A phase ends: sample all streams, with the time of the check.
    pub read_streams: bool,
    /// Sample the host's counters.
    pub read_host: bool,
    /// Stop the senders.
    pub stop_senders: bool,
    /// Stop the receivers; data still in flight is given up.
    pub stop_receivers: bool,
}

/// Phase state machine of one test.
#[derive(Debug, Clone)]
pub struct Phases {
    /// End of the omitted phase, nanoseconds after the start; `None` without one.
    omit_ns: Option<u64>,
    /// Latest time at which the senders stop, nanoseconds after the start.
    stop_ns: u64,
    startup_limit_ns: u64,
    drain_ns: u64,
    /// Whether the test has a byte limit.
    limits_bytes: bool,
    /// Whether a stop or the time limit ended the steady phase.
    cut_short: bool,
    cuts: PhaseEnds,
    drain_timed_out: bool,
}

impl Phases {
    /// Creates the phases of a test that ends at most `limit_ns` nanoseconds after its start, over a path with this RTT.
    pub fn new(parameters: &Parameters, limit_ns: u64, rtt_ns: u64) -> Self {
        let omit_ns = parameters.omit_ns;
        Self {
            omit_ns: Some(omit_ns).filter(|&ns| ns > 0),
            stop_ns: parameters.time_ns.map_or(limit_ns, |time_ns| time_ns + omit_ns),
            startup_limit_ns: STARTUP_LIMIT_NS + rtt_ns,
            drain_ns: drain_ns(rtt_ns),
            limits_bytes: parameters.bytes.is_some(),
            cut_short: false,
            cuts: PhaseEnds { startup_end_ns: parameters.bytes.map(|_| 0), ..PhaseEnds::default() },
            drain_timed_out: false,
        }
    }

    /// Updates the phases at `t_ns` nanoseconds after the start, and returns the actions due. `t_ns` must not
    /// decrease.
    pub fn update(&mut self, t_ns: u64, seen: StreamsState) -> Actions {
        let mut actions = Actions::default();
        let cuts = &mut self.cuts;
        if cuts.end_ns.is_some() {
            return actions;
        }
        let cut_short = t_ns >= self.stop_ns || seen.stopped;
        if cuts.steady_end_ns.is_none() {
            self.cut_short = cut_short;
        }
        if seen.all_finished {
            // Senders that finished between two checks also end the steady phase.
            cuts.steady_end_ns.get_or_insert(t_ns);
            cuts.end_ns = Some(t_ns);
            return Actions { read_streams: true, read_host: true, ..actions };
        }
        if cuts.startup_end_ns.is_none() && (seen.all_started || t_ns > self.startup_limit_ns) {
            cuts.startup_end_ns = Some(t_ns);
            actions.read_streams = true;
        }
        if cuts.omit_end_ns.is_none() && self.omit_ns.is_some_and(|omit_ns| t_ns >= omit_ns) {
            cuts.omit_end_ns = Some(t_ns);
            (actions.read_streams, actions.read_host) = (true, true);
        }
        if cuts.steady_end_ns.is_none() && (cut_short || seen.senders_done) {
            cuts.steady_end_ns = Some(t_ns);
            actions = Actions { read_streams: true, read_host: true, stop_senders: true, ..actions };
        }
        if !self.drain_timed_out && cuts.steady_end_ns.is_some_and(|end_ns| t_ns > end_ns + self.drain_ns) {
            (self.drain_timed_out, actions.stop_receivers) = (true, true);
        }
        actions
    }

    /// Returns the time of the next check, nanoseconds after the start.
    pub fn next_check_ns(&self, t_ns: u64) -> u64 {
        let awaits = self.cuts.startup_end_ns.is_none() || self.cuts.steady_end_ns.is_some();
        let mut next_ns = t_ns + if awaits { SHORT_CHECK_INTERVAL_NS } else { CHECK_INTERVAL_NS };
        if let Some(omit_ns) = self.omit_ns.filter(|_| self.cuts.omit_end_ns.is_none()) {
            next_ns = next_ns.min(omit_ns);
        }
        if self.cuts.steady_end_ns.is_none() {
            next_ns = next_ns.min(self.stop_ns);
        }
        next_ns
    }

    /// Returns the phase as of the last check.
    pub fn phase(&self) -> Phase {
        let PhaseEnds { startup_end_ns, omit_end_ns, steady_end_ns, end_ns } = self.cuts;
        if end_ns.is_some() {
            Phase::Finished
        } else if steady_end_ns.is_some() {
            Phase::Drain
        } else if startup_end_ns.is_none() {
            Phase::Startup
        } else if self.omit_ns.is_some() && omit_end_ns.is_none() {
            Phase::Omitted
        } else {
            Phase::Steady
        }
    }

    /// Whether the test has ended because all of its bytes were moved.
    pub fn moved_all_bytes(&self) -> bool {
        self.limits_bytes && !self.cut_short && !self.drain_timed_out && self.phase() == Phase::Finished
    }

    /// Returns the phase ends so far.
    pub fn cuts(&self) -> PhaseEnds {
        self.cuts
    }
}

/// Periodic times, aligned to the start.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    every_ns: u64,
    next_ns: u64,
}

impl Grid {
    /// Creates a grid with a period of `every_ns` nanoseconds; the first time is one period after the start.
    pub fn new(every_ns: u64) -> Self {
        let every_ns = every_ns.max(1);
        Self { every_ns, next_ns: every_ns }
    }

    /// Whether a grid time has passed since the last call that returned true. Missed times count as one.
    pub fn is_due(&mut self, t_ns: u64) -> bool {
        let due = t_ns >= self.next_ns;
        if due {
            self.next_ns += self.every_ns * ((t_ns - self.next_ns) / self.every_ns + 1);
        }
        due
    }

    /// Returns the next grid time, nanoseconds after the start.
    pub fn next(&self) -> u64 {
        self.next_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn test(time_ms: u64, omit_ms: u64) -> Phases {
        let parameters = Parameters { time_ns: Some(time_ms * MS), omit_ns: omit_ms * MS, ..Parameters::default() };
        Phases::new(&parameters, u64::MAX, 0)
    }

    const MOVING: StreamsState =
        StreamsState { all_started: true, stopped: false, senders_done: false, all_finished: false };
    const FINISHED: StreamsState = StreamsState { all_finished: true, ..MOVING };

    #[test]
    fn phases_end_in_order_at_the_planned_times() {
        let mut phases = test(100, 20);
        let mut seen = Vec::new();
        let (mut t_ns, mut looks) = (0, 0);
        while phases.phase() != Phase::Finished {
            let moving = StreamsState { all_started: t_ns >= 3 * MS, ..StreamsState::default() };
            let actions = phases.update(t_ns, if t_ns >= 125 * MS { FINISHED } else { moving });
            assert_eq!(actions.stop_senders, t_ns == 120 * MS);
            if seen.last() != Some(&phases.phase()) {
                seen.push(phases.phase());
            }
            t_ns = phases.next_check_ns(t_ns);
            looks += 1;
        }
        assert_eq!(seen, [Phase::Startup, Phase::Omitted, Phase::Steady, Phase::Drain, Phase::Finished]);
        let cuts = phases.cuts();
        assert_eq!((cuts.startup_end_ns, cuts.omit_end_ns), (Some(3 * MS), Some(20 * MS)));
        assert_eq!((cuts.steady_end_ns, cuts.end_ns), (Some(120 * MS), Some(125 * MS)));
        assert!(looks < 40, "{looks} looks");
    }

    #[test]
    fn a_late_check_ends_phases_at_its_own_time() {
        let mut phases = test(100, 20);
        let actions = phases.update(500 * MS, MOVING);
        assert!(actions.read_streams && actions.stop_senders);
        let cuts = phases.cuts();
        assert_eq!([cuts.startup_end_ns, cuts.omit_end_ns, cuts.steady_end_ns], [Some(500 * MS); 3]);
    }

    #[test]
    fn stopped_senders_end_the_steady_phase_early() {
        let mut phases = test(100, 0);
        phases.update(10 * MS, MOVING);
        assert_eq!(phases.phase(), Phase::Steady);
        let actions = phases.update(40 * MS, StreamsState { senders_done: true, ..MOVING });
        assert!(actions.stop_senders && !actions.stop_receivers);
        assert_eq!((phases.phase(), phases.cuts().steady_end_ns), (Phase::Drain, Some(40 * MS)));
    }

    #[test]
    fn receivers_are_stopped_once_after_the_drain_time() {
        let mut phases = test(100, 0);
        phases.update(100 * MS, MOVING);
        assert!(!phases.update(100 * MS + DRAIN_NS, MOVING).stop_receivers);
        assert!(phases.update(101 * MS + DRAIN_NS, MOVING).stop_receivers);
        assert!(!phases.update(102 * MS + DRAIN_NS, MOVING).stop_receivers);
    }

    #[test]
    fn startup_waits_one_second_for_streams_without_data() {
        let mut phases = test(5_000, 0);
        phases.update(1_000 * MS, StreamsState::default());
        assert_eq!(phases.phase(), Phase::Startup);
        phases.update(1_001 * MS, StreamsState::default());
        assert_eq!(phases.phase(), Phase::Steady);
    }

    #[test]
    fn a_byte_limited_test_has_no_startup_and_is_complete_unless_stopped() {
        let parameters = Parameters { time_ns: None, bytes: Some(2 << 20), ..Parameters::default() };
        let new = || Phases::new(&parameters, u64::MAX, 0);
        assert_eq!(new().phase(), Phase::Steady);
        let mut phases = new();
        phases.update(20 * MS, FINISHED);
        let mut cuts = phases.cuts();
        cuts.end_with_last_byte(3 * MS);
        assert!(phases.moved_all_bytes());
        assert_eq!((cuts.startup_end_ns, cuts.steady_end_ns, cuts.end_ns), (Some(0), Some(3 * MS), Some(20 * MS)));

        let mut phases = new();
        phases.update(20 * MS, StreamsState { senders_done: true, ..MOVING });
        phases.update(30 * MS, FINISHED);
        assert!(phases.moved_all_bytes());

        let mut stopped = new();
        stopped.update(20 * MS, StreamsState { stopped: true, ..MOVING });
        stopped.update(30 * MS, FINISHED);
        assert!(!stopped.moved_all_bytes());
        let mut stopped_at_once = new();
        stopped_at_once.update(20 * MS, StreamsState { stopped: true, ..FINISHED });
        assert!(!stopped_at_once.moved_all_bytes());
    }

    #[test]
    fn a_long_path_has_more_time_to_start_and_to_drain() {
        let mut phases =
            Phases::new(&Parameters { time_ns: Some(10_000 * MS), ..Parameters::default() }, u64::MAX, 3_000 * MS);
        phases.update(4_000 * MS, StreamsState::default());
        assert_eq!(phases.phase(), Phase::Startup);
        phases.update(10_000 * MS, MOVING);
        assert!(!phases.update(10_000 * MS + DRAIN_NS + 11_000 * MS, MOVING).stop_receivers);
        assert!(phases.update(10_000 * MS + DRAIN_NS + 13_000 * MS, MOVING).stop_receivers);
    }

    #[test]
    fn a_finished_test_ignores_further_checks() {
        let mut phases = test(100, 0);
        phases.update(50 * MS, FINISHED);
        let cuts = phases.cuts();
        assert_eq!(phases.update(200 * MS, MOVING), Actions::default());
        assert_eq!((phases.cuts(), phases.phase()), (cuts, Phase::Finished));
    }

    #[test]
    fn missed_grid_times_do_not_shift_the_grid() {
        let mut grid = Grid::new(10);
        assert!(!grid.is_due(9) && grid.is_due(10) && !grid.is_due(19) && grid.is_due(47) && !grid.is_due(49));
        assert_eq!(grid.next(), 50);
    }
}
