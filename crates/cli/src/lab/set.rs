//! The document of a set of cells.

use landspeed_lab::cell::ONE_DRAW;
use landspeed_lab::scenario::Cell;
use landspeed_model::{
    BuildInfo, CellFlow, CellQueue, LAB_SET_SCHEMA, LabCell, LabChart, LabDocument, LabSetDocument, QueueRole,
    Warning,
};
use landspeed_results::{compare_reference, flow_series, mean_rtt_ns, steady_bps};

/// Returns the set's document: each cell's figures without its time series.
pub fn document(cells: &[Cell], documents: &[LabDocument], wall_s: f64) -> LabSetDocument {
    let first = documents.first();
    let reference = first.and_then(|d| d.scenario.reference.clone());
    let charts = cells.first().map(|cell| cell.scenario.charts.clone()).unwrap_or_default();
    let varied: Vec<String> = cells.first().map(|cell| cell.values.keys().cloned().collect()).unwrap_or_default();
    LabSetDocument {
        schema: LAB_SET_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
        started: first.map(|d| d.started.clone()).unwrap_or_default(),
        command: first.map(|d| d.command.clone()).unwrap_or_default(),
        name: first.map(|d| d.scenario.name.clone()).unwrap_or_default(),
        description: first.and_then(|d| d.scenario.description.clone()),
        reference_figures: reference.as_ref().map(|r| compare_reference(r, documents)).unwrap_or_default(),
        reference,
        warnings: warnings(documents),
        // In the scenario's order: the first key varies slowest.
        varied: slowest_first(varied, cells),
        wall_s,
        cells: documents.iter().map(|document| cell(document, first_seed(document, documents), &charts)).collect(),
        charts,
    }
}

/// Returns the warnings of all cells without duplicates. `one-draw` warnings differ only in the seed: the first
/// is kept.
fn warnings(documents: &[LabDocument]) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for warning in documents.iter().flat_map(|document| &document.warnings) {
        let known = |other: &Warning| other == warning || (warning.code == ONE_DRAW && other.code == ONE_DRAW);
        if !found.iter().any(known) {
            found.push(warning.clone());
        }
    }
    found
}

/// Returns the varied keys, slowest first. The slowest is the chart's x axis.
fn slowest_first(mut keys: Vec<String>, cells: &[Cell]) -> Vec<String> {
    let changes =
        |key: &String| cells.windows(2).filter(|pair| pair[0].values.get(key) != pair[1].values.get(key)).count();
    keys.sort_by_key(changes);
    keys.retain(|key| cells.iter().any(|cell| cell.values.get(key) != cells[0].values.get(key)));
    keys
}

/// Whether this document has the smallest seed of its cell; its time series is the one drawn.
fn first_seed(document: &LabDocument, documents: &[LabDocument]) -> bool {
    documents.iter().all(|d| d.scenario.cell != document.scenario.cell || d.seed >= document.seed)
}

fn cell(document: &LabDocument, drawn: bool, charts: &[LabChart]) -> LabCell {
    let over_time = |flow: &str| {
        drawn
            && charts
                .iter()
                .any(|chart| chart.over.is_some() && chart.flow.as_deref().is_none_or(|name| name == flow))
    };
    let failed = document.checks.iter().filter(|check| !check.passed).map(|c| format!("{}: {}", c.name, c.detail));
    LabCell {
        values: document.scenario.cell.clone(),
        seed: document.seed,
        status: document.status,
        kernel: document.kernel.clone(),
        digest: document.digest.clone(),
        problems: document.errors.iter().map(|error| error.message.clone()).chain(failed).collect(),
        wall_s: document.wall_s,
        flows: document
            .flows
            .iter()
            .map(|flow| CellFlow {
                name: flow.name.clone(),
                goodput_bps: flow.goodput_bps,
                retransmits: flow.retransmits,
                loss_ratio: flow.run.as_ref().and_then(|run| run.summary.loss_ratio),
                rtt_ns: flow.run.as_ref().and_then(mean_rtt_ns),
                latency_p50_ns: flow.run.as_ref().and_then(|run| run.summary.latency_p50_ns),
                latency_p99_ns: flow.run.as_ref().and_then(|run| run.summary.latency_p99_ns),
                streams_bps: flow
                    .run
                    .iter()
                    .flat_map(|run| &run.streams)
                    .map(steady_bps)
                    .collect::<Option<Vec<f64>>>()
                    .unwrap_or_default(),
                series: flow.run.as_ref().filter(|_| over_time(&flow.name)).and_then(flow_series),
            })
            .collect(),
        queues: document
            .queues
            .iter()
            .filter(|queue| queue.role == QueueRole::Switch)
            .map(|queue| CellQueue { name: queue.name.clone(), drops: queue.drops, peak_bytes: queue.peak_bytes })
            .collect(),
    }
}
