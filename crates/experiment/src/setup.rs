//! What is fixed before a sweep begins, and what it will cost.

use std::collections::HashSet;

use landspeed_model::{LabChart, Warning};
use landspeed_sweep::order::Order;
use landspeed_sweep::{Design, Plan, PlannedRun, Rules, id};

use crate::directory::{Directory, Entry};

/// Properties of a cell that engines need.
#[derive(Debug, Clone, PartialEq)]
pub struct CellInfo {
    /// Id of the cell.
    pub id: String,
    /// Id of the lab's kernel; `None` between hosts.
    pub kernel: Option<String>,
    /// Cells with the same host settings have the same group.
    pub group: usize,
    /// Duration of one run for the progress line, nanoseconds; virtual time in the lab.
    pub span_ns: u64,
    /// Estimated real time of one run, seconds.
    pub wall_s: f64,
    /// Estimated memory of one run, bytes.
    pub memory_bytes: u64,
}

/// Parameters that do not change during a sweep.
#[derive(Debug)]
pub struct Setup {
    /// The plan, with command-line overrides.
    pub plan: Plan,
    /// The cells of the plan.
    pub design: Design,
    /// Properties of the cells, in the same order.
    pub cells: Vec<CellInfo>,
    /// Stopping rules.
    pub rules: Rules,
    /// The order of the runs.
    pub order: Order,
    /// Flow whose metric is evaluated; `None` is the first flow.
    pub flow: Option<String>,
    /// Directory for the runs and the sweep document.
    pub directory: Directory,
    /// Name of the engine.
    pub engine: &'static str,
    /// Maximum number of concurrent runs.
    pub jobs: usize,
    /// Warnings for the document.
    pub warnings: Vec<Warning>,
    /// Charts for the scenario's question; empty between hosts.
    pub charts: Vec<LabChart>,
}

/// Parameters of a sweep that the plan does not fix.
#[derive(Debug)]
pub struct Request {
    /// Directory for the runs and the sweep document.
    pub directory: Directory,
    /// Stopping rules.
    pub rules: Rules,
    /// Maximum number of concurrent runs; `None` is as many as possible.
    pub jobs: Option<u16>,
    /// Whether the sweep is only estimated.
    pub dry_run: bool,
}

impl Setup {
    /// Returns the entry of `runs.json` for a run.
    pub fn entry(&self, run: &PlannedRun) -> Entry {
        let cell = &self.cells[run.cell];
        Entry {
            id: id::run(&cell.id, run),
            cell: cell.id.clone(),
            number: run.cell,
            levels: self.design.cells[run.cell].clone(),
            block: run.block,
            place: run.place,
            kind: run.kind,
            seed: run.seed,
            kernel: cell.kernel.clone(),
        }
    }

    /// Returns all runs of the first `blocks` blocks.
    pub fn runs(&self, blocks: u32) -> impl Iterator<Item = PlannedRun> {
        (0..blocks).flat_map(|block| self.order.block(block))
    }

    /// Returns the memory of the largest run, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0)
    }

    /// Returns the number of blocks that run in any case: the minimum if the sweep may stop early, otherwise all.
    pub fn expected_blocks(&self) -> u32 {
        use landspeed_sweep::schedule::{MAX_BLOCKS, MIN_BLOCKS};
        let most = self.rules.blocks.unwrap_or(MAX_BLOCKS);
        if self.rules.until.is_some() || self.rules.blocks.is_none() { most.min(MIN_BLOCKS) } else { most }
    }
}

/// Estimate of the work that remains.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    /// Expected runs, including existing ones.
    pub runs: usize,
    /// Expected runs without a document.
    pub missing: usize,
    /// Sum of the durations of the missing runs, nanoseconds.
    pub span_ns: u64,
    /// Estimated real time, seconds.
    pub wall_s: f64,
    /// Largest estimated memory of a run, bytes.
    pub memory_bytes: u64,
    /// Runs in the directory that do not belong to this plan, build or host state.
    pub others: usize,
}

impl CostEstimate {
    /// Compares the expected runs with those in the directory.
    pub fn of(setup: &Setup) -> Self {
        let present: HashSet<String> = setup.directory.ids().into_iter().collect();
        let planned: Vec<(PlannedRun, String)> =
            setup.runs(setup.expected_blocks()).map(|run| (run, id::run(&setup.cells[run.cell].id, &run))).collect();
        let missing: Vec<PlannedRun> =
            planned.iter().filter(|(_, id)| !present.contains(id)).map(|(run, _)| *run).collect();
        let known = planned.len() - missing.len();
        let cell = |run: &PlannedRun| &setup.cells[run.cell];
        Self {
            runs: planned.len(),
            missing: missing.len(),
            span_ns: missing.iter().map(|run| cell(run).span_ns).sum(),
            wall_s: missing.iter().map(|run| cell(run).wall_s).sum::<f64>() / setup.jobs as f64,
            memory_bytes: setup.memory_bytes(),
            others: present.len() - known.min(present.len()),
        }
    }
}
