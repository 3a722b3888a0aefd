//! The document of a set of cells.

use landspeed_lab::cell::ONE_DRAW;
use landspeed_lab::scenario::Cell;
use landspeed_model::{
    BuildInfo, CellFlow, CellQueue, LAB_SET_SCHEMA, LabCell, LabDocument, LabSetDocument, PhaseName, QueueRole,
    RunDocument, Warning,
};

/// Returns the set's document: each cell's figures without its time series.
pub fn document(cells: &[Cell], documents: &[LabDocument], wall_s: f64) -> LabSetDocument {
    let first = documents.first();
    let varied: Vec<String> = cells.first().map(|cell| cell.values.keys().cloned().collect()).unwrap_or_default();
    LabSetDocument {
        schema: LAB_SET_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
        started: first.map(|d| d.started.clone()).unwrap_or_default(),
        command: first.map(|d| d.command.clone()).unwrap_or_default(),
        name: first.map(|d| d.scenario.name.clone()).unwrap_or_default(),
        description: first.and_then(|d| d.scenario.description.clone()),
        reference: first.and_then(|d| d.scenario.reference.clone()),
        warnings: warnings(documents),
        charts: cells.first().map(|cell| cell.scenario.charts.clone()).unwrap_or_default(),
        // In the order of the scenario: the first varies slowest.
        varied: ordered(varied, cells),
        wall_s,
        cells: documents.iter().map(cell).collect(),
    }
}

/// Returns the warnings of all cells, each once. `one-draw` warnings differ by the seed: the first is kept.
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

/// Returns the varied keys, the slowest first: the x axis of the chart.
fn ordered(mut keys: Vec<String>, cells: &[Cell]) -> Vec<String> {
    let changes =
        |key: &String| cells.windows(2).filter(|pair| pair[0].values.get(key) != pair[1].values.get(key)).count();
    keys.sort_by_key(changes);
    keys.retain(|key| cells.iter().any(|cell| cell.values.get(key) != cells[0].values.get(key)));
    keys
}

fn cell(document: &LabDocument) -> LabCell {
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
                    .filter_map(landspeed_results::steady_bps)
                    .collect(),
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

/// Returns the mean of the smoothed RTT that the sender's TCP had in the steady phase, over all streams, nanoseconds.
fn mean_rtt_ns(run: &RunDocument) -> Option<u64> {
    let steady = run.phases.iter().find(|phase| phase.name == PhaseName::Steady)?;
    let samples = run.streams.iter().filter_map(|stream| stream.sender.as_ref()).flat_map(|end| &end.samples);
    let rtts = samples
        .filter(|sample| (steady.start_ns..=steady.end_ns).contains(&sample.t_ns))
        .filter_map(|sample| sample.tcp.as_ref().map(|tcp| u64::from(tcp.rtt_us)).filter(|&rtt_us| rtt_us > 0));
    let (sum_us, count) = rtts.fold((0, 0), |(sum, count), rtt_us| (sum + rtt_us, count + 1));
    (count > 0).then(|| sum_us * 1000 / count)
}
