//! Readings of a running test: when there is a new one for every interval.

use landspeed_flow::client::{DirectionProgress, Progress};
use landspeed_model::{Direction, Parameters};

/// Minimum interval with its own lines, nanoseconds: the server reports five times per second.
pub const MIN_INTERVAL_NS: u64 = 200_000_000;

/// Emits each multiple of an interval once, when both hosts have reported a later sample.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Time between two readings, nanoseconds.
    pub every_ns: u64,
    /// Latest multiple that was emitted, nanoseconds.
    pub passed_ns: u64,
}

impl Grid {
    /// Creates a grid with a spacing of `every_ns`.
    pub fn new(every_ns: u64) -> Self {
        Self { every_ns: every_ns.max(MIN_INTERVAL_NS), passed_ns: 0 }
    }

    /// Whether a sample at `t_ns` is the first after another multiple.
    pub fn passes(&mut self, t_ns: u64) -> bool {
        let passed_ns = t_ns / self.every_ns * self.every_ns;
        let passes = passed_ns > self.passed_ns;
        self.passed_ns = self.passed_ns.max(passed_ns);
        passes
    }
}

/// Returns the time of the oldest of the samples that `parameters` need, nanoseconds since the start.
pub fn reading_ns(parameters: &Parameters, progress: &Progress) -> u64 {
    if parameters.rr.is_some() {
        return progress.transactions_t_ns;
    }
    let of = |direction: &Direction| direction_progress(progress, *direction).t_ns;
    parameters.direction.parts().iter().map(of).min().unwrap_or(0)
}

/// Returns the progress of one direction.
pub fn direction_progress(progress: &Progress, direction: Direction) -> &DirectionProgress {
    if direction == Direction::Download { &progress.download } else { &progress.upload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_multiple_of_the_interval_is_emitted_once() {
        let mut grid = Grid::new(1_000_000_000);
        let passed: Vec<u64> = [0, 400, 999, 1001, 1002, 1900, 3050, 3060, 2999]
            .into_iter()
            .filter(|ms| grid.passes(ms * 1_000_000))
            .collect();
        assert_eq!(passed, [1001, 3050]);
    }
}
