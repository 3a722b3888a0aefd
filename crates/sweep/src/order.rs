//! Order of the runs in each block.

use std::collections::BTreeMap;

use landspeed_stats::SplitMix64;
use serde::{Deserialize, Serialize};

/// Offset of the seeds of control runs.
const CONTROL_SEEDS: u64 = 1_000_000;

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Each cell, once in each block.
    Cell,
    /// Second run of the first cell, for the A/A control.
    Control,
    /// Repetition of the first run with the same seed, in the lab only; the digests must be equal.
    Repeat,
}

/// A run of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlannedRun {
    /// Block number, from 0.
    pub block: u32,
    /// Position in the block, from 0.
    pub place: u32,
    /// Index of the cell in the design.
    pub cell: usize,
    /// Purpose of the run.
    pub kind: RunKind,
    /// Seed of all random draws in the lab; with hosts it only identifies the run.
    pub seed: u64,
}

/// The order of the runs of an experiment. Cells with the same host settings are adjacent in a block, so that
/// each setting is applied once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Group of each cell; a group has the same host settings.
    groups: Vec<usize>,
    seed: u64,
    first_seed: u64,
    /// Whether blocks are in random order and have a control run.
    randomised: bool,
    repeats: bool,
}

impl Order {
    /// Creates an order. `groups` has one entry per cell. With `repeats`, one run of the first block is made twice
    /// with the same seed. `first_seed` is the seed of the first block's runs.
    pub fn new(groups: Vec<usize>, seed: u64, first_seed: u64, repeats: bool) -> Self {
        Self { groups, seed, first_seed, randomised: true, repeats }
    }

    /// Creates an order without control runs, every block in the order of the design: for runs in virtual time, where
    /// neither order nor neighbours have an effect. With `repeats`, the first run is made twice with the same seed.
    pub fn in_sequence(cells: usize, first_seed: u64, repeats: bool) -> Self {
        Self { groups: vec![0; cells], seed: 0, first_seed, randomised: false, repeats }
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.groups.len()
    }

    /// Number of runs in block `block`.
    pub fn runs(&self, block: u32) -> usize {
        self.cells() + usize::from(self.randomised) + usize::from(self.has_repeat(block))
    }

    fn has_repeat(&self, block: u32) -> bool {
        self.repeats && block == 0
    }

    /// The runs of a block in order: every cell once; if the order is random, the first cell a second time.
    pub fn block(&self, block: u32) -> Vec<PlannedRun> {
        // Blocks are drawn independently, so that each can be drawn without the previous ones.
        let mut random = SplitMix64::new(self.seed ^ u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut groups: BTreeMap<usize, Vec<(usize, RunKind)>> = BTreeMap::new();
        for (cell, &group) in self.groups.iter().enumerate() {
            groups.entry(group).or_default().push((cell, RunKind::Cell));
        }
        if let Some(first) = self.groups.first() {
            let runs = groups.entry(*first).or_default();
            if self.randomised {
                runs.push((0, RunKind::Control));
            }
            if self.has_repeat(block) {
                runs.push((0, RunKind::Repeat));
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        if self.randomised {
            shuffle(&mut groups, &mut random);
            groups.iter_mut().for_each(|runs| shuffle(runs, &mut random));
        }
        let seed = |kind| {
            let own = self.first_seed.wrapping_add(u64::from(block));
            if kind == RunKind::Control { own.wrapping_add(CONTROL_SEEDS) } else { own }
        };
        let runs = groups.into_iter().flatten().zip(0_u32..);
        runs.map(|((cell, kind), place)| PlannedRun { block, place, cell, kind, seed: seed(kind) }).collect()
    }
}

/// Fisher-Yates shuffle.
fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_cell_runs_once_in_each_block(cells in 1_usize..40, seed: u64, block in 0_u32..50) {
            let runs = Order::new(vec![0; cells], seed, 1, true).block(block);
            let mut own: Vec<usize> = runs.iter().filter(|run| run.kind == RunKind::Cell).map(|run| run.cell).collect();
            own.sort_unstable();
            prop_assert_eq!(own, (0..cells).collect::<Vec<_>>());
            prop_assert_eq!(runs.iter().filter(|run| run.kind == RunKind::Control).count(), 1);
            prop_assert_eq!(runs.iter().filter(|run| run.kind == RunKind::Repeat).count(), usize::from(block == 0));
            prop_assert!(runs.iter().zip(0..).all(|(run, place)| run.place == place && run.block == block));
        }

        #[test]
        fn cells_of_one_group_are_adjacent(groups in prop::collection::vec(0_usize..4, 1..30), seed: u64) {
            let runs = Order::new(groups.clone(), seed, 1, false).block(3);
            let seen: Vec<usize> = runs.iter().map(|run| groups[run.cell]).collect();
            let changes = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let mut distinct = groups;
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(changes + 1, distinct.len());
        }
    }

    #[test]
    fn runs_in_sequence_have_no_control() {
        let order = Order::in_sequence(3, 7, true);
        let runs = |block| order.block(block).iter().map(|run| (run.cell, run.kind, run.seed)).collect::<Vec<_>>();
        let cells = |seed| (0..3).map(move |cell| (cell, RunKind::Cell, seed));
        assert_eq!(runs(0), cells(7).chain([(0, RunKind::Repeat, 7)]).collect::<Vec<_>>());
        assert_eq!(runs(1), cells(8).collect::<Vec<_>>());
        assert_eq!((order.runs(0), order.runs(1)), (4, 3));
    }

    #[test]
    fn block_order_depends_on_block_and_seed() {
        let order = |seed| Order::new(vec![0; 20], seed, 1, false);
        assert_eq!(order(7).block(2), order(7).block(2));
        let cells = |block: Vec<PlannedRun>| block.iter().map(|run| run.cell).collect::<Vec<_>>();
        assert_ne!(cells(order(7).block(2)), cells(order(7).block(3)));
        assert_ne!(cells(order(7).block(2)), cells(order(8).block(2)));
    }

    #[test]
    fn control_runs_have_different_seeds() {
        let order = Order::new(vec![0; 3], 1, 5, true);
        for run in order.block(0).iter().chain(&order.block(1)) {
            let own = 5 + u64::from(run.block);
            assert_eq!(run.seed, if run.kind == RunKind::Control { own + CONTROL_SEEDS } else { own });
        }
    }
}
