//! Main effects of the levels.

use std::collections::BTreeMap;

use landspeed_model::{SweepCell, SweepEffect};
use landspeed_stats::{UNBOUNDED_CHANGE, block_mean, relative_change};

use super::figure;
use crate::{Design, Plan, Rules};

/// Compares each level of every factor except the first level with the first level, for the plan's metric.
/// Empty with one factor: the cells show the same. A block counts once, whatever the number of other levels.
pub(super) fn of(
    plan: &Plan,
    rules: &Rules,
    flow: Option<&str>,
    design: &Design,
    cells: &[SweepCell],
) -> Vec<SweepEffect> {
    if plan.factors.len() < 2 {
        return Vec::new();
    }
    let values: Vec<BTreeMap<u32, f64>> = cells
        .iter()
        .map(|cell| {
            let usable = cell.runs.iter().filter(|run| run.usable && !run.control);
            usable.filter_map(|run| Some((run.block, figure(&run.flows, flow, plan.metric)?))).collect()
        })
        .collect();
    let mut effects = Vec::new();
    for (number, factor) in plan.factors.iter().enumerate() {
        let with = |level: usize| -> Vec<&BTreeMap<u32, f64>> {
            let cells = values.iter().zip(&design.cells).filter(|(_, cell)| cell[number] == level);
            cells.map(|(values, _)| values).collect()
        };
        let first = with(0);
        for (level, described) in factor.levels.iter().enumerate().skip(1) {
            let ratios = ratios(&first, &with(level));
            // From 0 to more is no ratio.
            let known = |ratio: &f64| *ratio < UNBOUNDED_CHANGE / 2.0;
            let Some(ratio) = landspeed_stats::median(&ratios).filter(known) else { continue };
            let interval = rules.interval(&ratios);
            effects.push(SweepEffect {
                factor: factor.name.clone(),
                level: described.label.clone(),
                flow: flow.map(str::to_owned),
                metric: plan.metric.name().to_owned(),
                blocks: ratios.len() as u32,
                ratio,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high).filter(known),
            });
        }
    }
    effects
}

/// Ratio of the means, for each block in which all cells of both sets have a value.
fn ratios(first: &[&BTreeMap<u32, f64>], second: &[&BTreeMap<u32, f64>]) -> Vec<f64> {
    let positive = first.iter().chain(second).flat_map(|cell| cell.values()).all(|value| *value > 0.0);
    let mean = |cells: &[&BTreeMap<u32, f64>], block: &u32| -> Option<f64> {
        let values: Option<Vec<f64>> = cells.iter().map(|values| values.get(block).copied()).collect();
        values.filter(|values| !values.is_empty()).map(|values| block_mean(&values, positive))
    };
    let blocks = first.first().into_iter().flat_map(|values| values.keys());
    blocks.filter_map(|block| Some(1.0 + relative_change(mean(first, block)?, mean(second, block)?))).collect()
}
