//! State machine that chooses the next run; the caller passes the time.

use std::collections::VecDeque;

use crate::order::Order;
use crate::{PlannedRun, Rules, RunKind, rules};

/// Number of blocks before precision is checked; with fewer runs a median has no interval at the level of
/// [`landspeed_stats::stopping_level`].
pub const MIN_BLOCKS: u32 = 9;
/// Maximum number of blocks if the only rule is a precision.
pub const MAX_BLOCKS: u32 = 100;
/// Number of consecutive failures after which a cell is given up.
pub const MAX_FAILURES: u32 = 3;

/// The next action of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Start this run.
    Run(PlannedRun),
    /// Wait for a running run to finish; the next action depends on it.
    Wait,
    /// The experiment has ended.
    Done(Ended),
}

/// Reason for the end of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All blocks are complete.
    Blocks,
    /// Every cell has reached the requested precision.
    Precision,
    /// The time budget is used up.
    Budget,
    /// Every cell failed [`MAX_FAILURES`] times in a row.
    AllCellsFailed,
    /// No run has a value of the metric whose precision is a stopping rule.
    NoMetricValues,
    /// [`Schedule::stop`] was called.
    Stopped,
}

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunResult {
    /// The value of the plan's metric; `None` if the run has none.
    Measured(Option<f64>),
    /// No usable figures.
    Failed,
}

/// The schedule of an experiment's runs.
#[derive(Debug, Clone)]
pub struct Schedule {
    order: Order,
    rules: Rules,
    /// Number of blocks started, including the current one.
    blocks: u32,
    queue: VecDeque<PlannedRun>,
    outstanding: usize,
    cells: Vec<CellState>,
    start_ns: Option<u64>,
    /// Duration of the longest run so far, nanoseconds.
    longest_ns: u64,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Default)]
struct CellState {
    values: Vec<f64>,
    failures: u32,
}

impl Schedule {
    /// A schedule without any runs yet.
    pub fn new(order: Order, rules: Rules) -> Self {
        let cells = vec![CellState::default(); order.cells()];
        Self {
            order,
            rules,
            blocks: 0,
            queue: VecDeque::new(),
            outstanding: 0,
            cells,
            start_ns: None,
            longest_ns: 0,
            ended: None,
        }
    }

    /// The next action at `now_ns`, a monotonic time.
    pub fn next(&mut self, now_ns: u64) -> Next {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let elapsed_ns = now_ns.saturating_sub(start_ns);
        // A run that would exceed the budget is not started, except the first one.
        let first = self.blocks == 0;
        if self.ended.is_none()
            && !first
            && self.rules.budget_ns.is_some_and(|budget_ns| elapsed_ns.saturating_add(self.longest_ns) > budget_ns)
        {
            self.ended = Some(Ended::Budget);
        }
        loop {
            if let Some(ended) = self.ended {
                return if self.outstanding > 0 { Next::Wait } else { Next::Done(ended) };
            }
            if let Some(run) = self.queue.pop_front() {
                if self.is_given_up(run.cell) {
                    continue;
                }
                self.outstanding += 1;
                return Next::Run(run);
            }
            if self.depends_on_results() && self.outstanding > 0 {
                return Next::Wait;
            }
            self.ended = self.reason_to_end();
            if self.ended.is_none() {
                self.queue = self.order.block(self.blocks).into();
                self.blocks += 1;
            }
        }
    }

    /// Records the result of a run from [`Schedule::next`]; `took_ns` is its duration, or 0 if it existed already.
    pub fn finish(&mut self, run: &PlannedRun, result: RunResult, took_ns: u64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.longest_ns = self.longest_ns.max(took_ns);
        let cell = &mut self.cells[run.cell];
        match result {
            RunResult::Failed => cell.failures += 1,
            RunResult::Measured(value) => {
                cell.failures = 0;
                if run.kind == RunKind::Cell {
                    cell.values.extend(value.filter(|value| value.is_finite()));
                }
            }
        }
    }

    /// Returns a run from [`Schedule::next`] that was not made; it is scheduled again.
    pub fn reschedule(&mut self, run: PlannedRun) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.queue.push_front(run);
        // The last block is not complete.
        if self.ended == Some(Ended::Blocks) {
            self.ended = None;
        }
    }

    /// Ends the experiment: no more runs are started.
    pub fn stop(&mut self) {
        self.ended.get_or_insert(Ended::Stopped);
    }

    /// Number of blocks started.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Number of runs in progress.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether a cell has failed too often to be tried again.
    pub fn is_given_up(&self, cell: usize) -> bool {
        self.cells[cell].failures >= MAX_FAILURES
    }

    /// The maximum number of runs, if there is one.
    pub fn max_runs(&self) -> Option<usize> {
        self.max_blocks().map(|blocks| (0..blocks).map(|block| self.order.runs(block)).sum())
    }

    /// The order of the runs.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The least precise cell and the spread of its interval as a share of its median; `None` if a cell has no
    /// interval yet.
    pub fn least_precise(&self) -> Option<(usize, f64)> {
        let spreads: Option<Vec<f64>> = self.cells.iter().map(|cell| rules::spread(&cell.values)).collect();
        spreads?.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn max_blocks(&self) -> Option<u32> {
        self.rules.blocks.or(self.rules.until.map(|_| MAX_BLOCKS))
    }

    /// Whether the next block depends on the results of the previous ones.
    fn depends_on_results(&self) -> bool {
        self.rules.until.is_some() && self.blocks >= MIN_BLOCKS
    }

    /// Checks the stopping rules at the end of a block.
    fn reason_to_end(&self) -> Option<Ended> {
        if !self.cells.is_empty() && (0..self.cells.len()).all(|cell| self.is_given_up(cell)) {
            return Some(Ended::AllCellsFailed);
        }
        if let Some(until) = self.rules.until.filter(|_| self.depends_on_results()) {
            if self.cells.iter().all(|cell| cell.values.is_empty()) {
                return Some(Ended::NoMetricValues);
            }
            let mut judged =
                (0..self.cells.len()).filter(|&cell| !self.is_given_up(cell)).map(|cell| &self.cells[cell]);
            if judged.all(|cell| until.is_met(&cell.values)) {
                return Some(Ended::Precision);
            }
        }
        self.max_blocks().is_some_and(|most| self.blocks >= most).then_some(Ended::Blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cells: usize, rules: Rules) -> Schedule {
        Schedule::new(Order::new(vec![0; cells], 1, 1, false), rules)
    }

    #[test]
    fn runs_returned_after_the_last_block_are_rescheduled() {
        let mut schedule = schedule(1, Rules { blocks: Some(1), ..Rules::default() });
        let mut runs = Vec::new();
        while let Next::Run(run) = schedule.next(0) {
            runs.push(run);
        }
        assert_eq!(schedule.next(0), Next::Wait, "all are under way");
        for run in &runs {
            schedule.reschedule(*run);
        }
        assert_eq!(schedule.next(0), Next::Run(runs[runs.len() - 1]));
        schedule.reschedule(runs[runs.len() - 1]);
        schedule.stop();
        assert_eq!(schedule.next(0), Next::Done(Ended::Stopped));
    }

    /// Makes all runs one after the other, each taking `took_ns`; returns their number.
    fn run_all(
        schedule: &mut Schedule,
        took_ns: u64,
        mut value: impl FnMut(&PlannedRun) -> RunResult,
    ) -> (usize, Ended) {
        let (mut now_ns, mut made) = (0, 0);
        loop {
            match schedule.next(now_ns) {
                Next::Run(run) => {
                    now_ns += took_ns;
                    made += 1;
                    let result = value(&run);
                    schedule.finish(&run, result, took_ns);
                }
                Next::Wait => panic!("nothing is under way"),
                Next::Done(ended) => return (made, ended),
            }
        }
    }

    #[test]
    fn experiment_ends_after_all_blocks() {
        let mut schedule = schedule(3, Rules { blocks: Some(5), ..Rules::default() });
        assert_eq!(schedule.max_runs(), Some(20));
        assert_eq!(run_all(&mut schedule, 1, |_| RunResult::Measured(Some(1.0))), (20, Ended::Blocks));
    }

    #[test]
    fn equal_values_reach_the_precision_after_minimum_blocks() {
        let until = "ci<2%".parse().ok();
        let mut schedule = schedule(2, Rules { until, ..Rules::default() });
        let ended = run_all(&mut schedule, 1, |_| RunResult::Measured(Some(1.0)));
        assert_eq!(ended, (3 * MIN_BLOCKS as usize, Ended::Precision));
        assert_eq!(schedule.least_precise(), Some((1, 0.0)));
    }

    #[test]
    fn scattered_values_end_at_the_block_limit() {
        let until = "ci<1%".parse().ok();
        let mut schedule = schedule(1, Rules { until, blocks: Some(9), ..Rules::default() });
        let scattered =
            |run: &PlannedRun| RunResult::Measured(Some(if run.block.is_multiple_of(2) { 1.0 } else { 2.0 }));
        assert_eq!(run_all(&mut schedule, 1, scattered), (18, Ended::Blocks));
    }

    #[test]
    fn no_run_ends_after_the_budget() {
        let mut schedule = schedule(3, Rules { budget_ns: Some(10_000), ..Rules::default() });
        assert_eq!(run_all(&mut schedule, 1000, |_| RunResult::Measured(Some(1.0))), (10, Ended::Budget));
    }

    #[test]
    fn cell_is_given_up_after_repeated_failures() {
        let mut schedule = schedule(2, Rules { blocks: Some(10), ..Rules::default() });
        let fails = |run: &PlannedRun| if run.cell == 1 { RunResult::Failed } else { RunResult::Measured(Some(1.0)) };
        assert_eq!(run_all(&mut schedule, 1, fails), (20 + MAX_FAILURES as usize, Ended::Blocks));
        let mut schedule = self::schedule(2, Rules { blocks: Some(10), ..Rules::default() });
        assert_eq!(run_all(&mut schedule, 1, |_| RunResult::Failed).1, Ended::AllCellsFailed);
    }

    #[test]
    fn missing_metric_ends_the_sweep() {
        let until = "ci<2%".parse().ok();
        let mut schedule = schedule(1, Rules { until, ..Rules::default() });
        let ended = run_all(&mut schedule, 1, |_| RunResult::Measured(None));
        assert_eq!(ended, (2 * MIN_BLOCKS as usize, Ended::NoMetricValues));
    }

    #[test]
    fn precision_check_waits_for_running_runs() {
        let until = "ci<2%".parse().ok();
        let mut schedule = schedule(1, Rules { until, ..Rules::default() });
        let mut given = Vec::new();
        while let Next::Run(run) = schedule.next(0) {
            given.push(run);
        }
        assert_eq!(given.len(), 2 * MIN_BLOCKS as usize);
        for run in &given {
            assert_eq!(schedule.next(0), Next::Wait);
            schedule.finish(run, RunResult::Measured(Some(1.0)), 0);
        }
        assert_eq!(schedule.next(0), Next::Done(Ended::Precision));
    }

    #[test]
    fn returned_run_is_scheduled_again() {
        let mut schedule = schedule(2, Rules { blocks: Some(1), ..Rules::default() });
        let Next::Run(run) = schedule.next(0) else { panic!("a run") };
        schedule.reschedule(run);
        assert_eq!(schedule.next(0), Next::Run(run));
        schedule.stop();
        assert_eq!(schedule.next(0), Next::Wait);
        schedule.finish(&run, RunResult::Failed, 0);
        assert_eq!(schedule.next(0), Next::Done(Ended::Stopped));
    }
}
