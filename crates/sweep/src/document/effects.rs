//! Main effects of the levels.

use std::collections::BTreeMap;

use landspeed_model::{SweepCell, SweepEffect};

use super::figure;
use crate::{Design, Plan, rules};

/// Compares each level of every factor except the first level with the first level, for the plan's metric.
/// Empty with one factor: the cells show the same.
pub(super) fn of(plan: &Plan, flow: Option<&str>, design: &Design, cells: &[SweepCell]) -> Vec<SweepEffect> {
    if plan.factors.len() < 2 {
        return Vec::new();
    }
    let logs: Vec<BTreeMap<u32, f64>> = cells
        .iter()
        .map(|cell| {
            let usable = cell.runs.iter().filter(|run| run.usable && !run.control);
            let value = |flows| figure(flows, flow, plan.metric).filter(|value| *value > 0.0).map(f64::ln);
            usable.filter_map(|run| Some((run.block, value(&run.flows)?))).collect()
        })
        .collect();
    let mut effects = Vec::new();
    for (number, factor) in plan.factors.iter().enumerate() {
        let with = |level: usize| -> Vec<&BTreeMap<u32, f64>> {
            logs.iter().zip(&design.cells).filter(|(_, cell)| cell[number] == level).map(|(logs, _)| logs).collect()
        };
        let first = with(0);
        for (level, described) in factor.levels.iter().enumerate().skip(1) {
            let ratios = ratios(&first, &with(level));
            let Some(ratio) = landspeed_stats::median(&ratios) else { continue };
            let interval = rules::interval(&ratios);
            effects.push(SweepEffect {
                factor: factor.name.clone(),
                level: described.label.clone(),
                flow: flow.map(str::to_owned),
                metric: plan.metric.name().to_owned(),
                blocks: ratios.len() as u32,
                ratio,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
            });
        }
    }
    effects
}

/// Ratio of the geometric means, for each block in which all cells of both sets have a value.
fn ratios(first: &[&BTreeMap<u32, f64>], second: &[&BTreeMap<u32, f64>]) -> Vec<f64> {
    let mean = |cells: &[&BTreeMap<u32, f64>], block: &u32| -> Option<f64> {
        let values: Option<Vec<f64>> = cells.iter().map(|logs| logs.get(block).copied()).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let blocks = first.first().into_iter().flat_map(|logs| logs.keys());
    blocks.filter_map(|block| Some((mean(second, block)? - mean(first, block)?).exp())).collect()
}
