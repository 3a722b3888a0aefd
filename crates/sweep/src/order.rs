//! In which order the cells of a block run.

use std::collections::BTreeMap;

use landspeed_stats::SplitMix64;
use serde::{Deserialize, Serialize};

/// Seeds of control runs begin so far above the others.
const CONTROL_SEEDS: u64 = 1_000_000;

/// Why a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Each cell, once in each block.
    Cell,
    /// The first cell once more, for the A/A control.
    Control,
    /// Lab: the first run with its own seed once more: its digest is to be the same.
    Repeat,
}

/// One run that a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlannedRun {
    /// The block, from 0.
    pub block: u32,
    /// Its place in the block, from 0.
    pub place: u32,
    /// The cell, by its position in the design.
    pub cell: usize,
    /// Why it is made.
    pub kind: RunKind,
    /// Lab: all its random draws. Hosts: a number only.
    pub seed: u64,
}

/// The order of the runs of an experiment. Cells with the same host settings are neighbours in a block, so that each setting is made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The group of each cell: which host settings it needs.
    groups: Vec<usize>,
    seed: u64,
    first_seed: u64,
    repeats: bool,
}

impl Order {
    /// `groups` has one entry for each cell. With `repeats`, one run of the first block is made twice with the same seed.
    /// `first_seed` is that of the first block's runs.
    pub fn new(groups: Vec<usize>, seed: u64, first_seed: u64, repeats: bool) -> Self {
        Self { groups, seed, first_seed, repeats }
    }

    /// Cells.
    pub fn cells(&self) -> usize {
        self.groups.len()
    }

    /// Runs of block `block`.
    pub fn runs(&self, block: u32) -> usize {
        self.cells() + 1 + usize::from(self.has_repeat(block))
    }

    fn has_repeat(&self, block: u32) -> bool {
        self.repeats && block == 0
    }

    /// The runs of a block in their order: every cell once, and the first cell once more at a place of its own.
    pub fn block(&self, block: u32) -> Vec<PlannedRun> {
        // Blocks are drawn independently: one can be drawn without those before it.
        let mut random = SplitMix64::new(self.seed ^ u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut groups: BTreeMap<usize, Vec<(usize, RunKind)>> = BTreeMap::new();
        for (cell, &group) in self.groups.iter().enumerate() {
            groups.entry(group).or_default().push((cell, RunKind::Cell));
        }
        if let Some(first) = self.groups.first() {
            let runs = groups.entry(*first).or_default();
            runs.push((0, RunKind::Control));
            if self.has_repeat(block) {
                runs.push((0, RunKind::Repeat));
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        shuffle(&mut groups, &mut random);
        groups.iter_mut().for_each(|runs| shuffle(runs, &mut random));
        let seed = |kind| {
            let own = self.first_seed.wrapping_add(u64::from(block));
            if kind == RunKind::Control { own.wrapping_add(CONTROL_SEEDS) } else { own }
        };
        let runs = groups.into_iter().flatten().zip(0_u32..);
        runs.map(|((cell, kind), place)| PlannedRun { block, place, cell, kind, seed: seed(kind) }).collect()
    }
}

/// Fisher and Yates.
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
        fn cells_of_one_group_are_neighbours(groups in prop::collection::vec(0_usize..4, 1..30), seed: u64) {
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
    fn blocks_differ_and_follow_from_the_seed() {
        let order = |seed| Order::new(vec![0; 20], seed, 1, false);
        assert_eq!(order(7).block(2), order(7).block(2));
        let cells = |block: Vec<PlannedRun>| block.iter().map(|run| run.cell).collect::<Vec<_>>();
        assert_ne!(cells(order(7).block(2)), cells(order(7).block(3)));
        assert_ne!(cells(order(7).block(2)), cells(order(8).block(2)));
    }

    #[test]
    fn control_runs_have_seeds_of_their_own() {
        let order = Order::new(vec![0; 3], 1, 5, true);
        for run in order.block(0).iter().chain(&order.block(1)) {
            let own = 5 + u64::from(run.block);
            assert_eq!(run.seed, if run.kind == RunKind::Control { own + CONTROL_SEEDS } else { own });
        }
    }
}
