//! Combines the reports of client and server into one run document. A figure that a report would have provided and that
//! never came is null, with the reason in `.unknown`.

mod contradictions;
mod costs;
mod known;
mod ledger;
mod reports;
mod responsiveness;
mod spread;
mod streams;
mod sums;

use landspeed_model::{
    BuildInfo, CONTRADICTION, Cause, Confidence, Direction, Ends, ErrorEntry, HostSnapshot, Parameters, PathInfo,
    Protocol, RUN_SCHEMA, RunDocument, Status, Verdict, Warning,
};

use serde::{Deserialize, Serialize};

use self::known::Unknown;
use self::reports::Reports;
use crate::client::Request;
use crate::end::{EndReport, Side};

/// State of a test as the client has collected it so far; the input of [`document`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CollectedRun {
    /// As given, before the server reduces them to its limits.
    pub requested: Parameters,
    /// Command line of the client, one argument per element.
    pub command: Vec<String>,
    /// Identifier of the test.
    pub id: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Effective parameters, as the server accepted them.
    pub effective: Option<Parameters>,
    /// Program version of the server.
    pub server_version: Option<String>,
    /// Path between client and server.
    pub path: Option<PathInfo>,
    /// Snapshot of the client's host.
    pub client_host: Option<HostSnapshot>,
    /// Snapshot of the server's host.
    pub server_host: Option<HostSnapshot>,
    /// Measurements of the client.
    pub client: Option<EndReport>,
    /// Measurements of the server.
    pub server: Option<EndReport>,
    /// When the server's report began to arrive, nanoseconds after the start.
    pub report_ns: Option<u64>,
    /// Requests that could not be met exactly; each becomes a warning.
    pub notes: Vec<String>,
    /// Errors of the test, in the order they occurred.
    pub errors: Vec<ErrorEntry>,
}

impl CollectedRun {
    /// Starts with the request only.
    pub fn new(request: &Request) -> Self {
        Self {
            requested: request.parameters.clone(),
            command: request.command.clone(),
            id: String::new(),
            started_unix_ns: landspeed_sys::clock::realtime_ns(),
            effective: None,
            server_version: None,
            path: None,
            client_host: None,
            server_host: None,
            client: None,
            server: None,
            report_ns: None,
            notes: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Records the server's acceptance.
    pub fn accept(
        &mut self,
        id: String,
        effective: Parameters,
        notes: Vec<String>,
        host: HostSnapshot,
        version: String,
    ) {
        self.id = id;
        self.effective = Some(effective);
        self.notes = notes;
        self.server_host = Some(host);
        self.server_version = Some(version);
    }

    /// Returns the name of the client's interface towards the server, if known.
    pub fn client_interface(&self) -> Option<String> {
        Some(self.client_host.as_ref()?.nic.as_ref()?.name.clone())
    }

    fn parameters(&self) -> &Parameters {
        self.effective.as_ref().unwrap_or(&self.requested)
    }
}

/// Builds the run document. The verdict stays undetermined: another crate diagnoses the cause.
pub fn document(found: CollectedRun) -> RunDocument {
    let parameters = found.parameters().clone();
    let mut streams = streams::join(found.client.as_ref(), found.server.as_ref());
    let reports = Reports::new(&parameters, &streams, found.client.as_ref(), found.server.as_ref());
    let mut unknown = Unknown::default();
    let phases = sums::phases(&reports, &mut unknown);
    let latency = found.client.as_ref().map(|c| c.latency.clone()).unwrap_or_default();
    let under_load = found.client.as_ref().and_then(|c| c.under_load.clone());
    let under_load = under_load.map(|load| responsiveness::add(load, &parameters, &streams, &phases, &mut unknown));
    let udp = (parameters.protocol == Protocol::Udp).then(|| sums::udp(&parameters, &reports, &mut unknown));
    let latencies = (latency.as_slice(), under_load.as_ref());
    let summary = sums::summary(&parameters, &reports, &phases, udp.as_ref(), latencies, &mut unknown);
    let conservation = ledger::balance(&parameters, &reports, udp.as_ref(), &mut unknown);
    let whole = |side| reports.side(side).filter(|report| reports.is_whole(report));
    let cost = costs::end_costs(whole(Side::Client), whole(Side::Server));
    let totals =
        Ends { client: whole(Side::Client).map(sums::totals), server: whole(Side::Server).map(sums::totals) };
    let mut errors = found.errors.clone();
    if found.server.as_ref().is_some_and(|report| report.server_stopped) {
        errors.push(ErrorEntry {
            code: "server-stopped".to_owned(),
            message: "the server was stopped during the test".to_owned(),
            advice: Some("run it again; the document has what was measured until then".to_owned()),
        });
    }
    for (host, report) in [("client", &found.client), ("server", &found.server)] {
        let Some(report) = report else { continue };
        let failures = report
            .streams
            .iter()
            .filter_map(|s| s.end.error.as_ref().map(|e| (s.id, e)))
            .chain(report.rr_streams.iter().filter_map(|s| s.error.as_ref().map(|e| (s.id, e))));
        errors.extend(failures.map(|(id, message)| ErrorEntry {
            code: "stream".to_owned(),
            message: format!("{host}, stream {id}: {message}"),
            advice: None,
        }));
    }
    let status = match (&found.client, &found.server) {
        (Some(_), Some(_)) if errors.is_empty() => Status::Complete,
        (None, None) => Status::Failed,
        _ => Status::Partial,
    };
    let mut notes = found.notes.clone();
    notes.extend([&found.client, &found.server].into_iter().flatten().flat_map(|r| r.notes.iter().cloned()));
    let other_tests = Ends {
        client: found.client.as_ref().and_then(|report| report.other_tests),
        server: found.server.as_ref().and_then(|report| report.other_tests),
    };
    let mut warnings: Vec<Warning> =
        notes.into_iter().map(|message| Warning { code: "not-as-asked".to_owned(), message }).collect();
    warnings.extend(overlaps(&other_tests));
    // Request/response streams carry no bulk data: the sums above exclude them.
    if matches!(parameters.protocol, Protocol::TcpRr | Protocol::UdpRr) {
        streams.extend(streams::transactions(found.client.as_ref(), found.server.as_ref()));
    }
    let mut run = RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: found.server_version },
        id: found.id,
        started: crate::wall_clock::rfc3339(found.started_unix_ns),
        command: found.command,
        status,
        errors,
        warnings,
        summary,
        requested: found.requested,
        effective: found.effective,
        path: found.path,
        hosts: Ends { client: found.client_host, server: found.server_host },
        phases,
        streams,
        totals,
        udp,
        latency,
        latency_under_load: under_load,
        conservation,
        cost,
        host_series: Ends {
            client: found.client.map(|r| r.host),
            server: with_timeline(found.server).map(|r| r.host),
        },
        other_tests,
        iperf3: None,
        third_party: None,
        emulation: None,
        unknown: unknown.into_reasons(),
        verdict: undetermined(),
        reverse_verdict: (parameters.direction == Direction::Both).then(undetermined),
    };
    let found = contradictions::find(&run, found.report_ns);
    if run.status == Status::Complete && !found.is_empty() {
        run.status = Status::Partial;
        run.warnings.push(Warning { code: CONTRADICTION.to_owned(), message: describe_contradictions(&found) });
    }
    run
}

fn describe_contradictions(found: &[String]) -> String {
    format!(
        "The document contradicts itself: {}. Its figures over time are not reliable. Look for a clock that jumped (a virtual \
         machine that was moved or suspended) or a server that reports false times, and run again.",
        found.join("; ")
    )
}

/// Warns of other tests of the same server at the same time.
fn overlaps(other_tests: &Ends<u32>) -> impl Iterator<Item = Warning> {
    let hosts = [("client", other_tests.client), ("server", other_tests.server)];
    hosts.into_iter().filter_map(|(host, others)| {
        let others = others.filter(|others| *others > 0)?;
        let tests = if others == 1 { "1 other test".to_owned() } else { format!("{others} other tests") };
        let message = format!("{tests} sent or received at the {host} during this one and shared its CPUs and links");
        Some(Warning { code: "overlapping-tests".to_owned(), message })
    })
}

/// Keeps a report only if it has readings over time, not just totals.
fn with_timeline(report: Option<EndReport>) -> Option<EndReport> {
    report.filter(EndReport::has_timeline)
}

fn undetermined() -> Verdict {
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: "Nothing was measured that a cause could be read from.".to_owned(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: vec!["a completed measurement".to_owned()],
        next_step: "Fix what failed and run again.".to_owned(),
        epochs: Vec::new(),
    }
}
