//! Metrics of `landspeed mesh`: one series for each pair of the inventory and figure.

use landspeed_mesh::{Blocked, Scheduler};
use landspeed_metrics::{Family, Samples};
use landspeed_model::{MeshCell, MeshDocument, MeshHostState, MeshResult, MeshUsage};
use landspeed_sys::clock;

use super::Latest;
use crate::mesh::EndOutcome;

const PAIR: &[&str] = &["test", "from", "to"];
const RESOURCE: &[&str] = &["kind", "name"];

static GOODPUT: Family =
    Family::gauge("landspeed_mesh_goodput", "Goodput of the latest test of a pair, if it measured")
        .unit("bytes_per_second")
        .labels(PAIR);
static LOSS: Family =
    Family::gauge("landspeed_mesh_loss", "Share of packets lost in the latest test of a pair, if it measured (UDP)")
        .unit("ratio")
        .labels(PAIR);
static RETRANSMITS: Family =
    Family::gauge("landspeed_mesh_retransmits", "Retransmits in the latest test of a pair, if it measured (TCP)")
        .labels(PAIR);
static RTT: Family = Family::gauge("landspeed_mesh_rtt", "RTT in the latest test of a pair, if it measured")
    .unit("seconds")
    .labels(PAIR);
static MEASURED: Family = Family::gauge(
    "landspeed_mesh_measured_timestamp",
    "Start of the latest test of a pair that measured, seconds since the Unix epoch",
)
.unit("seconds")
.labels(PAIR);
static FAILURES: Family =
    Family::gauge("landspeed_mesh_failures", "Failed tests of a pair since the last that measured").labels(PAIR);
static ENDED: Family = Family::counter(
    "landspeed_mesh_tests_ended",
    "Tests that ended, by outcome: measured, failed, client-unreachable, server-unreachable, interrupted",
)
.labels(&["test", "outcome"]);
static INTERVAL: Family =
    Family::gauge("landspeed_mesh_interval", "Time from one start of a pair's test to the next (interval)")
        .unit("seconds")
        .labels(&["test"]);
static RUNNING: Family = Family::gauge("landspeed_mesh_tests_running", "Tests running now");
static WAITING: Family = Family::gauge(
    "landspeed_mesh_waiting_pairs",
    "Pairs whose test is overdue, by reason: busy, claimed, host-budget, link-budget, unreachable, maintenance",
)
.labels(&["test", "reason"]);
static REACHABLE: Family =
    Family::gauge("landspeed_mesh_reachable", "1 if a host answers, 0 if it does not").labels(&["name"]);
static USED_BYTES: Family =
    Family::gauge("landspeed_mesh_used", "Payload of the tests of a host or link in 24 h, with reservations")
        .unit("bytes")
        .labels(RESOURCE);
static USED_TIME: Family =
    Family::gauge("landspeed_mesh_used", "Time of the tests of a host or link in 24 h, with reservations")
        .unit("seconds")
        .labels(RESOURCE);
static BUDGET_BYTES: Family =
    Family::gauge("landspeed_mesh_budget", "Payload that the tests of a host or link may move in 24 h")
        .unit("bytes")
        .labels(RESOURCE);
static BUDGET_TIME: Family =
    Family::gauge("landspeed_mesh_budget", "Time that the tests of a host or link may take in 24 h")
        .unit("seconds")
        .labels(RESOURCE);
static UPDATED: Family =
    Family::gauge("landspeed_mesh_update_timestamp", "Time of these figures, seconds since the Unix epoch")
        .unit("seconds");

/// Metrics of a mesh, besides those of its process.
#[cfg(test)]
pub const FAMILIES: &[&Family] = &[
    &GOODPUT,
    &LOSS,
    &RETRANSMITS,
    &RTT,
    &MEASURED,
    &FAILURES,
    &ENDED,
    &INTERVAL,
    &RUNNING,
    &WAITING,
    &REACHABLE,
    &USED_BYTES,
    &USED_TIME,
    &BUDGET_BYTES,
    &BUDGET_TIME,
    &UPDATED,
];

/// Values of the label `reason`.
pub const REASONS: [&str; 6] = ["busy", "claimed", "host-budget", "link-budget", "unreachable", "maintenance"];

/// Facts that the document of a mesh does not have.
#[derive(Debug)]
pub struct Counts<'a> {
    /// Start of the latest test of each pair that measured, nanoseconds since the Unix epoch; `None` without one.
    pub measured_ns: &'a [Option<u64>],
    /// Tests of this process that ended, by test of the inventory and [`EndOutcome`].
    pub ended: &'a [[u64; EndOutcome::ALL.len()]],
}

/// Replaces the exported samples by the state of a mesh.
pub fn update(latest: &Latest, document: &MeshDocument, scheduler: &Scheduler, counts: &Counts<'_>) {
    latest.replace(samples(document, scheduler, counts));
}

fn samples(document: &MeshDocument, scheduler: &Scheduler, counts: &Counts<'_>) -> Samples {
    let mut samples = Samples::default();
    for (cell, measured_ns) in document.cells.iter().zip(counts.measured_ns) {
        add_pair(&mut samples, cell, *measured_ns);
    }
    for test in &document.tests {
        samples.add_labelled(&INTERVAL, &[&test.name], test.interval_ns as f64 / 1e9);
    }
    for (test, counts) in document.tests.iter().zip(counts.ended) {
        for (outcome, count) in EndOutcome::ALL.iter().zip(counts) {
            samples.add_labelled(&ENDED, &[&test.name, outcome.name()], *count);
        }
    }
    samples.add(&RUNNING, Some(scheduler.running() as u64));
    let mut waiting = vec![[0_u64; REASONS.len()]; document.tests.len()];
    for state in scheduler.states() {
        let Some(why) = state.blocked.filter(|_| state.is_overdue(clock::monotonic_ns() as i64)) else { continue };
        waiting[state.test][reason(why)] += 1;
    }
    for (test, counts) in document.tests.iter().zip(waiting) {
        for (name, count) in REASONS.iter().zip(counts) {
            samples.add_labelled(&WAITING, &[&test.name, name], count);
        }
    }
    for host in &document.hosts {
        match host.state {
            MeshHostState::Unknown => {}
            MeshHostState::Reachable => samples.add_labelled(&REACHABLE, &[&host.name], 1),
            MeshHostState::Unreachable => samples.add_labelled(&REACHABLE, &[&host.name], 0),
        }
        add_usage(&mut samples, ["host", &host.name], host.usage);
    }
    for link in &document.links {
        add_usage(&mut samples, ["link", &link.name], link.usage);
    }
    samples.add(&UPDATED, Some(clock::realtime_ns() as f64 / 1e9));
    samples
}

fn add_pair(samples: &mut Samples, cell: &MeshCell, measured_ns: Option<u64>) {
    let labels = [cell.test.as_str(), cell.from.as_str(), cell.to.as_str()];
    let mut add = |family, value: Option<f64>| {
        if let Some(value) = value {
            samples.add_labelled(family, &labels, value);
        }
    };
    let latest: Option<&MeshResult> = cell.latest.as_ref().filter(|_| cell.is_measured());
    add(&GOODPUT, latest.and_then(|result| Some(result.goodput_bps? / 8.0)));
    add(&LOSS, latest.and_then(|result| result.loss_ratio));
    add(&RETRANSMITS, latest.and_then(|result| Some(result.retransmits? as f64)));
    add(&RTT, latest.and_then(|result| Some(result.rtt_ns? as f64 / 1e9)));
    add(&MEASURED, measured_ns.map(|ns| ns as f64 / 1e9));
    add(&FAILURES, Some(f64::from(cell.failures)));
}

fn add_usage(samples: &mut Samples, labels: [&str; 2], usage: MeshUsage) {
    samples.add_labelled(&USED_BYTES, &labels, usage.bytes_24h);
    samples.add_labelled(&USED_TIME, &labels, usage.time_24h_ns as f64 / 1e9);
    if let Some(bytes) = usage.bytes_per_day {
        samples.add_labelled(&BUDGET_BYTES, &labels, bytes);
    }
    if let Some(time_ns) = usage.time_per_day_ns {
        samples.add_labelled(&BUDGET_TIME, &labels, time_ns as f64 / 1e9);
    }
}

/// Returns the index of a reason in [`REASONS`].
fn reason(why: Blocked) -> usize {
    match why {
        Blocked::Busy => 0,
        Blocked::Claimed => 1,
        Blocked::HostBudget { .. } => 2,
        Blocked::LinkBudget { .. } => 3,
        Blocked::Unreachable(_) => 4,
        Blocked::Maintenance => 5,
    }
}
