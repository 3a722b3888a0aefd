//! What a run document means for the mesh.

use landspeed_model::{MeshResult, RunDocument, Status};

use super::journal::EndOutcome;

/// Codes of errors of a host that does not answer.
const UNREACHABLE: &[&str] = &[
    "unknown-host",
    "no-address",
    "connection-refused",
    "connect-failed",
    "timeout",
    "not-landspeed",
    "peer-lost",
    "path-down",
];

/// Returns how a test ended. `local` says which hosts of the pair are the local one: client, server.
pub fn outcome(document: &RunDocument, local: (bool, bool)) -> EndOutcome {
    let measured = document.summary.goodput_bps.is_some() || document.summary.transactions_per_s.is_some();
    let error = document.errors.first();
    if error.is_some_and(|error| error.code == "interrupted") {
        return EndOutcome::Interrupted;
    }
    if document.status == Status::Complete || (document.status == Status::Partial && measured) {
        return EndOutcome::Measured;
    }
    let unreachable = error.is_some_and(|error| UNREACHABLE.contains(&error.code.as_str()));
    if !unreachable {
        return EndOutcome::Failed;
    }
    // A client that sent a result answers: its server does not.
    let client_answered = match &document.third_party {
        Some(parties) => parties.client_version.is_some(),
        None => local.0,
    };
    if client_answered { EndOutcome::ServerUnreachable } else { EndOutcome::ClientUnreachable }
}

/// Returns the payload bytes that both hosts sent; `None` if one of them did not report. A test that did not start sent
/// none.
pub fn sent_bytes(document: &RunDocument) -> Option<u64> {
    if document.status == Status::Failed && document.effective.is_none() {
        return Some(0);
    }
    let [client, server] = [&document.totals.client, &document.totals.server].map(|totals| totals.as_ref());
    Some(client?.bytes_sent.saturating_add(server?.bytes_sent))
}

/// Returns the versions of landspeed on the client and on the server of the pair.
pub fn versions(document: &RunDocument, mirrored: bool) -> (Option<String>, Option<String>) {
    let client = match &document.third_party {
        Some(parties) => parties.client_version.clone(),
        None => Some(document.landspeed.version.clone()),
    };
    let server = document.landspeed.server_version.clone();
    if mirrored { (server, client) } else { (client, server) }
}

/// Returns the figures of a test.
pub fn result(document: &RunDocument) -> MeshResult {
    let summary = &document.summary;
    let failed = document.status == Status::Failed;
    let control_ns = document.path.as_ref().map(|path| path.control_rtt_ns);
    let tcp_ns = summary.min_rtt_us.map(|us| u64::from(us) * 1000);
    let others = [document.other_tests.client, document.other_tests.server];
    MeshResult {
        started: document.started.clone(),
        run: Some(document.id.clone()).filter(|id| !id.is_empty()),
        status: document.status,
        goodput_bps: summary.goodput_bps,
        loss_ratio: summary.loss_ratio,
        retransmits: summary.retransmits,
        rtt_ns: tcp_ns.or(summary.latency_p50_ns).or(control_ns),
        verdict: (!failed).then_some(document.verdict.cause),
        confidence: (!failed).then_some(document.verdict.confidence),
        other_tests: others.into_iter().flatten().max(),
        error: document.errors.first().cloned(),
    }
}
