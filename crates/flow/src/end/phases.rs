//! The phases of a test at one end: when each ends, and what follows. No sockets and no clocks: times are arguments.
//!
//! A test starts up until every stream has moved its first byte, its omitted part lasts as long as was agreed, its steady
//! part lasts until the senders stop, and what is under way then drains. Each cut is made at a look at the test, at which all
//! streams are read; so no phase is longer, and none has more bytes, than its samples allow.

use landspeed_model::{Parameters, PhaseName};
use serde::{Deserialize, Serialize};

/// How long after the senders stopped receivers may still wait for what is under way, nanoseconds.
pub const DRAIN_NS: u64 = 10_000_000_000;
/// A stream that has moved nothing by then no longer holds start-up open, nanoseconds.
const STARTUP_LIMIT_NS: u64 = 1_000_000_000;
/// Longest time between two looks, nanoseconds.
pub const LOOK_NS: u64 = 20_000_000;
/// The same while start-up or the drain lasts: what ends them is awaited, nanoseconds.
const CLOSE_LOOK_NS: u64 = 500_000;

/// Where an end's timeline was cut, nanoseconds after the agreed start. Every cut is also a sample of every stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuts {
    /// Every stream had moved its first byte.
    pub startup_end_ns: Option<u64>,
    /// The omitted part was over.
    pub omit_end_ns: Option<u64>,
    /// Senders were asked to stop, or had finished.
    pub steady_end_ns: Option<u64>,
    /// Every stream had finished.
    pub end_ns: Option<u64>,
}

impl Cuts {
    /// The phase a span that ends at `t_ns` lies in.
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

/// What a test is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Some stream has moved nothing yet.
    Startup,
    /// Its figures are left out.
    Omitted,
    /// Its figures count.
    Steady,
    /// Senders have stopped; receivers take what is under way.
    Drain,
    /// Every stream has finished.
    Finished,
}

/// What is seen of the streams at a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Every stream has moved its first byte.
    pub all_moved: bool,
    /// The local senders were asked to stop, or all senders of the peer have stopped.
    pub senders_stopped: bool,
    /// Every stream has finished.
    pub all_finished: bool,
}

/// What is to be done at a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actions {
    /// The timeline is cut here: all streams are to be read, at the time of the look.
    pub read_streams: bool,
    /// The host's counters are to be read.
    pub read_host: bool,
    /// Senders are to stop.
    pub stop_senders: bool,
    /// Receivers are to give up what is still under way.
    pub stop_receivers: bool,
}

/// The phases of one test.
#[derive(Debug, Clone)]
pub struct Phases {
    /// End of the omitted part, nanoseconds after the start, if there is one.
    omit_ns: Option<u64>,
    /// When the senders stop at the latest, nanoseconds after the start.
    stop_ns: u64,
    cuts: Cuts,
    gave_up: bool,
}

impl Phases {
    /// Of a test with these parameters that lasts no longer than `limit_ns` after its start, nanoseconds.
    pub fn new(parameters: &Parameters, limit_ns: u64) -> Self {
        let omit_ns = parameters.omit_ns;
        Self {
            omit_ns: Some(omit_ns).filter(|&ns| ns > 0),
            stop_ns: parameters.time_ns.map_or(limit_ns, |time_ns| time_ns + omit_ns),
            cuts: Cuts::default(),
            gave_up: false,
        }
    }

    /// A look at the test `t_ns` after its start, nanoseconds; looks never go back in time.
    pub fn look(&mut self, t_ns: u64, seen: Seen) -> Actions {
        let mut actions = Actions::default();
        let cuts = &mut self.cuts;
        if cuts.end_ns.is_some() {
            return actions;
        }
        if seen.all_finished {
            // Senders that were done between two looks end the steady part, too.
            cuts.steady_end_ns.get_or_insert(t_ns);
            cuts.end_ns = Some(t_ns);
            return Actions { read_streams: true, read_host: true, ..actions };
        }
        if cuts.startup_end_ns.is_none() && (seen.all_moved || t_ns > STARTUP_LIMIT_NS) {
            cuts.startup_end_ns = Some(t_ns);
            actions.read_streams = true;
        }
        if cuts.omit_end_ns.is_none() && self.omit_ns.is_some_and(|omit_ns| t_ns >= omit_ns) {
            cuts.omit_end_ns = Some(t_ns);
            (actions.read_streams, actions.read_host) = (true, true);
        }
        if cuts.steady_end_ns.is_none() && (t_ns >= self.stop_ns || seen.senders_stopped) {
            cuts.steady_end_ns = Some(t_ns);
            actions = Actions { read_streams: true, read_host: true, stop_senders: true, ..actions };
        }
        if !self.gave_up && cuts.steady_end_ns.is_some_and(|end_ns| t_ns > end_ns + DRAIN_NS) {
            (self.gave_up, actions.stop_receivers) = (true, true);
        }
        actions
    }

    /// When to look again at the latest, nanoseconds after the start.
    pub fn next_look(&self, t_ns: u64) -> u64 {
        let awaits = self.cuts.startup_end_ns.is_none() || self.cuts.steady_end_ns.is_some();
        let mut next_ns = t_ns + if awaits { CLOSE_LOOK_NS } else { LOOK_NS };
        if let Some(omit_ns) = self.omit_ns.filter(|_| self.cuts.omit_end_ns.is_none()) {
            next_ns = next_ns.min(omit_ns);
        }
        if self.cuts.steady_end_ns.is_none() {
            next_ns = next_ns.min(self.stop_ns);
        }
        next_ns
    }

    /// What the test is doing since its last look.
    pub fn phase(&self) -> Phase {
        let Cuts { startup_end_ns, omit_end_ns, steady_end_ns, end_ns } = self.cuts;
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

    /// Where the timeline has been cut so far.
    pub fn cuts(&self) -> Cuts {
        self.cuts
    }
}

/// Moments at equal distances from the start.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    every_ns: u64,
    next_ns: u64,
}

impl Grid {
    /// Every `every_ns`, nanoseconds; the first one is that long after the start.
    pub fn new(every_ns: u64) -> Self {
        let every_ns = every_ns.max(1);
        Self { every_ns, next_ns: every_ns }
    }

    /// Whether a moment has come since the last one that had. Moments that were missed count as one.
    pub fn is_due(&mut self, t_ns: u64) -> bool {
        let due = t_ns >= self.next_ns;
        if due {
            self.next_ns += self.every_ns * ((t_ns - self.next_ns) / self.every_ns + 1);
        }
        due
    }

    /// The next moment, nanoseconds after the start.
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
        Phases::new(&parameters, u64::MAX)
    }

    const MOVING: Seen = Seen { all_moved: true, senders_stopped: false, all_finished: false };
    const FINISHED: Seen = Seen { all_finished: true, ..MOVING };

    #[test]
    fn phases_follow_each_other_at_their_moments() {
        let mut phases = test(100, 20);
        let mut seen = Vec::new();
        let (mut t_ns, mut looks) = (0, 0);
        while phases.phase() != Phase::Finished {
            let moving = Seen { all_moved: t_ns >= 3 * MS, ..Seen::default() };
            let actions = phases.look(t_ns, if t_ns >= 125 * MS { FINISHED } else { moving });
            assert_eq!(actions.stop_senders, t_ns == 120 * MS);
            if seen.last() != Some(&phases.phase()) {
                seen.push(phases.phase());
            }
            t_ns = phases.next_look(t_ns);
            looks += 1;
        }
        assert_eq!(seen, [Phase::Startup, Phase::Omitted, Phase::Steady, Phase::Drain, Phase::Finished]);
        let cuts = phases.cuts();
        assert_eq!((cuts.startup_end_ns, cuts.omit_end_ns), (Some(3 * MS), Some(20 * MS)));
        assert_eq!((cuts.steady_end_ns, cuts.end_ns), (Some(120 * MS), Some(125 * MS)));
        assert!(looks < 40, "{looks} looks");
    }

    #[test]
    fn a_late_look_cuts_where_it_looks() {
        let mut phases = test(100, 20);
        let actions = phases.look(500 * MS, MOVING);
        assert!(actions.read_streams && actions.stop_senders);
        let cuts = phases.cuts();
        assert_eq!([cuts.startup_end_ns, cuts.omit_end_ns, cuts.steady_end_ns], [Some(500 * MS); 3]);
    }

    #[test]
    fn stopped_senders_end_the_steady_part_before_its_time() {
        let mut phases = test(100, 0);
        phases.look(10 * MS, MOVING);
        assert_eq!(phases.phase(), Phase::Steady);
        let actions = phases.look(40 * MS, Seen { senders_stopped: true, ..MOVING });
        assert!(actions.stop_senders && !actions.stop_receivers);
        assert_eq!((phases.phase(), phases.cuts().steady_end_ns), (Phase::Drain, Some(40 * MS)));
    }

    #[test]
    fn receivers_give_up_once_when_the_drain_is_over() {
        let mut phases = test(100, 0);
        phases.look(100 * MS, MOVING);
        assert!(!phases.look(100 * MS + DRAIN_NS, MOVING).stop_receivers);
        assert!(phases.look(101 * MS + DRAIN_NS, MOVING).stop_receivers);
        assert!(!phases.look(102 * MS + DRAIN_NS, MOVING).stop_receivers);
    }

    #[test]
    fn a_silent_stream_holds_start_up_open_for_a_second() {
        let mut phases = test(5_000, 0);
        phases.look(1_000 * MS, Seen::default());
        assert_eq!(phases.phase(), Phase::Startup);
        phases.look(1_001 * MS, Seen::default());
        assert_eq!(phases.phase(), Phase::Steady);
    }

    #[test]
    fn a_finished_test_changes_no_more() {
        let mut phases = test(100, 0);
        phases.look(50 * MS, FINISHED);
        let cuts = phases.cuts();
        assert_eq!(phases.look(200 * MS, MOVING), Actions::default());
        assert_eq!((phases.cuts(), phases.phase()), (cuts, Phase::Finished));
    }

    #[test]
    fn a_missed_moment_of_the_grid_does_not_shift_it() {
        let mut grid = Grid::new(10);
        assert!(!grid.is_due(9) && grid.is_due(10) && !grid.is_due(19) && grid.is_due(47) && !grid.is_due(49));
        assert_eq!(grid.next(), 50);
    }
}
