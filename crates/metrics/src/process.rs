//! Metrics of this process, with the names that Prometheus' client libraries use, and of its endpoint.

use landspeed_sys::{clock, process};

use crate::family::{Family, Kind};
use crate::request::Status;
use crate::samples::Samples;

static BUILD: Family = Family {
    kind: Kind::Info,
    ..Family::gauge("landspeed_build", "Version of landspeed, and the command that exports")
}
.labels(&["version", "command"]);
static CPU: Family = Family::counter("process_cpu", "CPU time of the process, user and system").unit("seconds");
static RESIDENT: Family = Family::gauge("process_resident_memory", "Resident memory of the process").unit("bytes");
static START: Family =
    Family::gauge("process_start_time", "Start of the endpoint, seconds since the Unix epoch").unit("seconds");
static RESPONSES: Family =
    Family::counter("landspeed_metrics_responses", "Answers of the metrics endpoint, by HTTP status")
        .labels(&["code"]);
static CLOSED: Family = Family::counter(
    "landspeed_metrics_connections_closed",
    "Connections that ended before their answer was sent: closed by the scraper, too slow, or closed for another one",
);

/// Returns the families that every endpoint has.
pub fn process_families() -> [&'static Family; 6] {
    [&BUILD, &CPU, &RESIDENT, &START, &RESPONSES, &CLOSED]
}

/// Counters of the endpoint.
#[derive(Debug, Default)]
pub(crate) struct EndpointCounts {
    responses: [u64; Status::ALL.len()],
    pub closed: u64,
}

impl EndpointCounts {
    pub fn answered(&mut self, status: Status) {
        self.responses[status as usize] += 1;
    }
}

/// Values that are constant while the process runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub version: &'static str,
    pub command: &'static str,
    pub started_unix_ns: u64,
}

pub(crate) fn add_process(samples: &mut Samples, identity: Identity, counts: &EndpointCounts) {
    samples.add_labelled(&BUILD, &[identity.version, identity.command], 1);
    samples.add(&CPU, Some(clock::process_cpu_ns() as f64 / 1e9));
    samples.add(&RESIDENT, process::resident_memory());
    samples.add(&START, Some(identity.started_unix_ns as f64 / 1e9));
    for status in Status::ALL {
        samples.add_labelled(&RESPONSES, &[&status.code().to_string()], counts.responses[status as usize]);
    }
    samples.add(&CLOSED, Some(counts.closed));
}
