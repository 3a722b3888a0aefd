//! `landspeed.labset/1`: what `lab run` wrote of several cells before it wrote sweeps. It is read as a sweep.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{
    BuildInfo, ComparedFigure, FlowSeries, KernelInfo, LabChart, LabStatus, Metric, Reference, SWEEP_SCHEMA,
    SweepCell, SweepDesign, SweepDocument, SweepEngine, SweepEnvironment, SweepFactor, SweepFlow, SweepMetric,
    SweepRun, SweepStatus, Warning,
};
use serde::Deserialize;
use serde_json::Value;

use crate::figures::{Figures, balance};
use crate::levels;
use crate::record::lab_hosts;

/// Field of [`SweepFlow::figures`] with the number of retransmits; these documents lack the bytes for a rate.
const RETRANSMITS: &str = "retransmits";

#[derive(Deserialize)]
pub(crate) struct LabSet {
    landspeed: BuildInfo,
    started: String,
    command: Vec<String>,
    name: String,
    description: Option<String>,
    reference: Option<Reference>,
    #[serde(default)]
    reference_figures: Vec<ComparedFigure>,
    #[serde(default)]
    warnings: Vec<Warning>,
    #[serde(default)]
    charts: Vec<LabChart>,
    /// Varied keys, slowest first.
    varied: Vec<String>,
    wall_s: f64,
    cells: Vec<Cell>,
}

/// One combination of values and seed.
#[derive(Deserialize)]
struct Cell {
    values: BTreeMap<String, Value>,
    seed: u64,
    status: LabStatus,
    kernel: KernelInfo,
    digest: Option<String>,
    problems: Vec<String>,
    wall_s: f64,
    flows: Vec<Flow>,
    queues: Vec<Queue>,
}

#[derive(Deserialize)]
struct Flow {
    name: String,
    goodput_bps: Option<f64>,
    retransmits: Option<u64>,
    loss_ratio: Option<f64>,
    /// Mean of the smoothed RTT.
    #[serde(default)]
    rtt_ns: Option<u64>,
    #[serde(default)]
    latency_p50_ns: Option<u64>,
    #[serde(default)]
    latency_p99_ns: Option<u64>,
    streams_bps: Vec<f64>,
    #[serde(default)]
    series: Option<FlowSeries>,
}

#[derive(Deserialize)]
struct Queue {
    drops: u64,
}

impl From<LabSet> for SweepDocument {
    /// Each seed is a block. Facts that the old document lacks are empty: ids, workers, verdicts, the plan.
    fn from(set: LabSet) -> Self {
        let seeds: Vec<u64> = set.cells.iter().map(|cell| cell.seed).collect::<BTreeSet<_>>().into_iter().collect();
        let mut environments = Vec::new();
        let mut cells: Vec<SweepCell> = Vec::new();
        for (cell, place) in set.cells.iter().zip(0..) {
            let levels: BTreeMap<String, Value> = set
                .varied
                .iter()
                .map(|key| (key.clone(), cell.values.get(key).cloned().unwrap_or_default()))
                .collect();
            let block = seeds.iter().position(|seed| *seed == cell.seed).unwrap_or_default();
            let run = run(cell, &set.started, (block as u32, place), environment(&mut environments, &cell.kernel));
            match cells.iter_mut().find(|known| known.levels == levels) {
                Some(known) => known.runs.push(run),
                None => cells.push(SweepCell { id: String::new(), levels, runs: vec![run] }),
            }
        }
        let usable = set.cells.iter().filter(|cell| cell.status == LabStatus::Complete).count();
        let flows: BTreeSet<&str> =
            set.cells.iter().flat_map(|cell| &cell.flows).map(|flow| flow.name.as_str()).collect();
        let first = set.cells.iter().find_map(|cell| cell.flows.first());
        Self {
            schema: SWEEP_SCHEMA.to_owned(),
            id: set.cells.iter().find_map(|cell| cell.digest.clone()).unwrap_or_default(),
            factors: set.varied.iter().map(|key| factor(key, &cells)).collect(),
            design: SweepDesign {
                kind: "full".to_owned(),
                resolution: None,
                aliases: Vec::new(),
                blocks: seeds.len() as u32,
                seed: seeds.first().copied().unwrap_or_default(),
                until: None,
            },
            engine: SweepEngine { name: "local".to_owned(), jobs: 0, workers: Vec::new(), requeued: 0 },
            status: match usable {
                0 => SweepStatus::Failed,
                count if count == set.cells.len() => SweepStatus::Complete,
                _ => SweepStatus::Partial,
            },
            ended_because: format!("{usable} of {} runs are complete", set.cells.len()),
            errors: Vec::new(),
            metrics: metrics(&cells),
            flow: first.filter(|_| flows.len() > 1).map(|flow| flow.name.clone()),
            landspeed: set.landspeed,
            started: set.started,
            command: set.command,
            name: set.name,
            description: set.description,
            reference: set.reference,
            reference_figures: set.reference_figures,
            criteria: Vec::new(),
            charts: set.charts,
            plan: String::new(),
            warnings: set.warnings,
            cells,
            environments,
            control: None,
            effects: Vec::new(),
            digests: None,
            wall_s: set.wall_s,
            overhead_s: 0.0,
        }
    }
}

/// Returns the index of a kernel's environment, which is added if it is new.
fn environment(environments: &mut Vec<SweepEnvironment>, kernel: &KernelInfo) -> usize {
    let own = SweepEnvironment {
        kernel: Some(kernel.release.clone()),
        hosts: lab_hosts(kernel),
        ..SweepEnvironment::default()
    };
    environments.iter().position(|known| *known == own).unwrap_or_else(|| {
        environments.push(own);
        environments.len() - 1
    })
}

fn run(cell: &Cell, started: &str, (block, place): (u32, u32), environment: usize) -> SweepRun {
    let drops: u64 = cell.queues.iter().map(|queue| queue.drops).sum();
    SweepRun {
        id: String::new(),
        block,
        place,
        control: false,
        seed: cell.seed,
        usable: cell.status == LabStatus::Complete,
        problems: cell.problems.clone(),
        digest: cell.digest.clone(),
        document: String::new(),
        started: started.to_owned(),
        wall_s: cell.wall_s,
        worker: String::new(),
        flows: cell
            .flows
            .iter()
            .map(|flow| SweepFlow {
                name: Some(flow.name.clone()),
                figures: figures(flow, drops),
                retransmits: flow.retransmits,
                streams_bps: flow.streams_bps.clone(),
                series: flow.series.clone(),
                environment: Some(environment),
                ..SweepFlow::default()
            })
            .collect(),
    }
}

fn figures(flow: &Flow, drops: u64) -> BTreeMap<String, f64> {
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let mut figures = Figures::default();
    figures.set(Metric::Goodput, flow.goodput_bps);
    figures.set(Metric::Loss, flow.loss_ratio);
    figures.set(Metric::RttP50, ns(flow.rtt_ns));
    figures.set(Metric::LatencyP50, ns(flow.latency_p50_ns));
    figures.set(Metric::LatencyP99, ns(flow.latency_p99_ns));
    figures.set(Metric::StreamBalance, balance(&flow.streams_bps));
    figures.set(Metric::Drops, Some(drops as f64));
    let mut fields = figures.fields();
    fields.extend(flow.retransmits.map(|count| (RETRANSMITS.to_owned(), count as f64)));
    fields
}

fn factor(key: &str, cells: &[SweepCell]) -> SweepFactor {
    let mut values: Vec<Value> = Vec::new();
    for cell in cells {
        if !values.contains(&cell.levels[key]) {
            values.push(cell.levels[key].clone());
        }
    }
    let (numbers, unit) = levels::numbers(key, &values).unwrap_or_default();
    SweepFactor { name: key.to_owned(), key: key.to_owned(), levels: values, numbers, unit }
}

fn metrics(cells: &[SweepCell]) -> Vec<SweepMetric> {
    let has = |field: &str| {
        let mut flows = cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
        flows.any(|flow| flow.figures.contains_key(field))
    };
    let mut metrics: Vec<SweepMetric> = Metric::ALL.into_iter().map(SweepMetric::from).collect();
    metrics.push(SweepMetric {
        name: "Retransmits".to_owned(),
        field: RETRANSMITS.to_owned(),
        unit: "segments".to_owned(),
        better: landspeed_model::Better::Lower,
    });
    metrics.retain(|metric| has(&metric.field));
    metrics
}

#[cfg(test)]
mod tests {
    use crate::Document;

    const OLD: &str = include_str!("../../../fixtures/reports/labset.json");

    #[test]
    fn labset_is_read_as_a_sweep() {
        let Ok(Document::Sweep(sweep)) = Document::read(OLD.as_bytes()) else { panic!("not a sweep") };
        let factors: Vec<(&str, usize)> =
            sweep.factors.iter().map(|factor| (factor.name.as_str(), factor.levels.len())).collect();
        assert_eq!(factors, [("buffer", 3), ("congestion", 2)]);
        assert_eq!(sweep.factors[0].numbers, [20e3, 100e3, 1e6]);
        assert_eq!((sweep.cells.len(), sweep.design.blocks), (6, 2));
        let run = &sweep.cells[0].runs[0];
        assert_eq!((run.block, run.seed, run.usable), (0, 1, true));
        let tcp = &run.flows[0];
        assert_eq!((tcp.name.as_deref(), tcp.retransmits), (Some("tcp"), Some(142)));
        assert_eq!((tcp.figures["goodput_bps"], tcp.figures["drops_packets"]), (63_560_394.490_985_43, 145.0));
        assert_eq!((sweep.flow.as_deref(), sweep.charts.len(), sweep.warnings.len()), (Some("tcp"), 2, 1));
        assert_eq!(sweep.environments[0].kernel.as_deref(), Some("7.3.4"));
    }

    #[test]
    fn labset_has_one_record_for_each_flow_and_seed() {
        let document = Document::read(OLD.as_bytes()).expect("a document");
        let records = document.records();
        assert_eq!((document.kind(), records.len()), ("sweep", 24));
        assert!(records.iter().all(|record| record.settings.contains_key("buffer") && record.seed.is_some()));
        assert_eq!(records.iter().filter(|record| record.block == Some(1)).count(), 12);
    }
}
