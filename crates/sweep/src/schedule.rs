//! Which run is next: a state machine without clocks.

use std::collections::VecDeque;

use crate::order::Order;
use crate::{PlannedRun, Rules, RunKind, rules};

/// Blocks before which no precision is judged: fewer runs carry no 95 % interval of a median
/// ([`landspeed_stats::Bootstrap::median`]).
pub const MIN_BLOCKS: u32 = 6;
/// Most blocks where only a precision is asked for.
pub const MAX_BLOCKS: u32 = 100;
/// A cell that failed so many times in a row is not tried again.
pub const MAX_FAILURES: u32 = 3;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Make this run.
    Run(PlannedRun),
    /// Wait for a run that is under way: what comes next depends on it.
    Wait,
    /// Nothing is left to do.
    Done(Ended),
}

/// Why no more runs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All blocks are there.
    Blocks,
    /// Every cell is as precise as asked.
    Precision,
    /// The time is spent.
    Budget,
    /// Every cell failed.
    NothingWorks,
    /// The caller stopped it.
    Stopped,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunResult {
    /// With this value of the metric in question; `None` if the run has none.
    Measured(Option<f64>),
    /// Without usable figures.
    Failed,
}

/// The runs of an experiment, in their order.
#[derive(Debug, Clone)]
pub struct Schedule {
    order: Order,
    rules: Rules,
    /// Blocks whose runs were given out, the current one included.
    blocks: u32,
    queue: VecDeque<PlannedRun>,
    outstanding: usize,
    cells: Vec<CellState>,
    start_ns: Option<u64>,
    /// Longest run so far, nanoseconds.
    longest_ns: u64,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Default)]
struct CellState {
    values: Vec<f64>,
    failures: u32,
}

impl Schedule {
    /// A schedule of which nothing was made yet.
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

    /// What to do at `now_ns`, a monotonic time.
    pub fn next(&mut self, now_ns: u64) -> Next {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let elapsed_ns = now_ns.saturating_sub(start_ns);
        // A run that would end after the budget is not begun, but the first one is.
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
            if self.needs_judgement() && self.outstanding > 0 {
                return Next::Wait;
            }
            self.ended = self.reason_to_end();
            if self.ended.is_none() {
                self.queue = self.order.block(self.blocks).into();
                self.blocks += 1;
            }
        }
    }

    /// A run that [`Schedule::next`] gave out has ended, after `took_ns`; 0 for one that was there already.
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

    /// A run that [`Schedule::next`] gave out was not made: it is to be given out again.
    pub fn give_back(&mut self, run: PlannedRun) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.queue.push_front(run);
    }

    /// Gives out no more runs.
    pub fn stop(&mut self) {
        self.ended.get_or_insert(Ended::Stopped);
    }

    /// Blocks whose runs were given out.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Runs under way.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether a cell failed too often to be tried again.
    pub fn is_given_up(&self, cell: usize) -> bool {
        self.cells[cell].failures >= MAX_FAILURES
    }

    /// The most runs there will be.
    pub fn most_runs(&self) -> Option<usize> {
        self.most_blocks().map(|blocks| (0..blocks).map(|block| self.order.runs(block)).sum())
    }

    /// The order of the runs.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The least precise cell, and the spread of its interval as a share of its median, if all have one.
    pub fn widest(&self) -> Option<(usize, f64)> {
        let spreads: Option<Vec<f64>> = self.cells.iter().map(|cell| rules::spread(&cell.values)).collect();
        spreads?.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn most_blocks(&self) -> Option<u32> {
        self.rules.blocks.or(self.rules.until.map(|_| MAX_BLOCKS))
    }

    /// Whether the next block depends on the results of those before.
    fn needs_judgement(&self) -> bool {
        self.rules.until.is_some() && self.blocks >= MIN_BLOCKS
    }

    /// At the end of a block.
    fn reason_to_end(&self) -> Option<Ended> {
        if !self.cells.is_empty() && (0..self.cells.len()).all(|cell| self.is_given_up(cell)) {
            return Some(Ended::NothingWorks);
        }
        if let Some(until) = self.rules.until.filter(|_| self.needs_judgement()) {
            let mut judged =
                (0..self.cells.len()).filter(|&cell| !self.is_given_up(cell)).map(|cell| &self.cells[cell]);
            if judged.all(|cell| until.is_met(&cell.values)) {
                return Some(Ended::Precision);
            }
        }
        self.most_blocks().is_some_and(|most| self.blocks >= most).then_some(Ended::Blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cells: usize, rules: Rules) -> Schedule {
        Schedule::new(Order::new(vec![0; cells], 1, 1, false), rules)
    }

    /// Runs everything one by one, each run taking `took_ns`.
    fn drive(
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
    fn all_blocks_run_and_then_it_ends() {
        let mut schedule = schedule(3, Rules { blocks: Some(5), ..Rules::default() });
        assert_eq!(schedule.most_runs(), Some(20));
        assert_eq!(drive(&mut schedule, 1, |_| RunResult::Measured(Some(1.0))), (20, Ended::Blocks));
    }

    #[test]
    fn equal_values_reach_a_precision_after_the_fewest_blocks() {
        let until = "ci<2%".parse().ok();
        let mut schedule = schedule(2, Rules { until, ..Rules::default() });
        let ended = drive(&mut schedule, 1, |_| RunResult::Measured(Some(1.0)));
        assert_eq!(ended, (3 * MIN_BLOCKS as usize, Ended::Precision));
        assert_eq!(schedule.widest(), Some((1, 0.0)));
    }

    #[test]
    fn values_that_scatter_end_at_the_most_blocks() {
        let until = "ci<1%".parse().ok();
        let mut schedule = schedule(1, Rules { until, blocks: Some(9), ..Rules::default() });
        let scattered = |run: &PlannedRun| RunResult::Measured(Some(if run.block % 2 == 0 { 1.0 } else { 2.0 }));
        assert_eq!(drive(&mut schedule, 1, scattered), (18, Ended::Blocks));
    }

    #[test]
    fn no_run_ends_after_the_budget() {
        let mut schedule = schedule(3, Rules { budget_ns: Some(10_000), ..Rules::default() });
        assert_eq!(drive(&mut schedule, 1000, |_| RunResult::Measured(Some(1.0))), (10, Ended::Budget));
    }

    #[test]
    fn a_cell_that_always_fails_is_given_up() {
        let mut schedule = schedule(2, Rules { blocks: Some(10), ..Rules::default() });
        let fails = |run: &PlannedRun| if run.cell == 1 { RunResult::Failed } else { RunResult::Measured(Some(1.0)) };
        assert_eq!(drive(&mut schedule, 1, fails), (20 + MAX_FAILURES as usize, Ended::Blocks));
        let mut schedule = self::schedule(2, Rules { blocks: Some(10), ..Rules::default() });
        assert_eq!(drive(&mut schedule, 1, |_| RunResult::Failed).1, Ended::NothingWorks);
    }

    #[test]
    fn a_precision_waits_for_runs_under_way() {
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
    fn a_run_given_back_is_given_out_again() {
        let mut schedule = schedule(2, Rules { blocks: Some(1), ..Rules::default() });
        let Next::Run(run) = schedule.next(0) else { panic!("a run") };
        schedule.give_back(run);
        assert_eq!(schedule.next(0), Next::Run(run));
        schedule.stop();
        assert_eq!(schedule.next(0), Next::Wait);
        schedule.finish(&run, RunResult::Failed, 0);
        assert_eq!(schedule.next(0), Next::Done(Ended::Stopped));
    }
}
