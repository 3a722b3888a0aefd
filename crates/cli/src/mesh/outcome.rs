//! What a run document means for the mesh.

use landspeed_model::{ErrorEntry, MeshResult, RunDocument, Status};

use super::journal::EndOutcome;

/// Code of the error of a test that was stopped, here or by one of its servers.
const INTERRUPTED: &str = "interrupted";
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

/// Returns how a test ended. `local` says which hosts of the pair are the local one: client, server. `stopped` says that
/// the mesh stopped the test.
///
/// A test that broke off failed, also if it has figures.
pub fn outcome(document: &RunDocument, local: (bool, bool), stopped: bool) -> EndOutcome {
    let error = document.errors.first();
    if stopped && error.is_some_and(|error| error.code == INTERRUPTED) {
        return EndOutcome::Interrupted;
    }
    let measured = document.summary.goodput_bps.is_some() || document.summary.transactions_per_s.is_some();
    if document.status == Status::Complete || (document.status == Status::Partial && error.is_none() && measured) {
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

/// Returns the payload bytes that both hosts sent; `None` if one of them did not report. A test that no server accepted
/// sent none.
pub fn sent_bytes(document: &RunDocument, accepted: bool) -> Option<u64> {
    if !accepted && document.status == Status::Failed && document.effective.is_none() {
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
        error: document.errors.first().map(error),
    }
}

/// Returns the error of a test; explains an interrupt that was not the mesh's.
fn error(error: &ErrorEntry) -> ErrorEntry {
    if error.code != INTERRUPTED {
        return error.clone();
    }
    let message = format!("one of its servers was stopped during the test ({})", error.message);
    ErrorEntry { message, advice: Some("look at the log of that server".to_owned()), ..error.clone() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the document of a test that ended as planned.
    fn document() -> RunDocument {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/documents/udp.json");
        serde_json::from_slice(&std::fs::read(path).expect("the fixture")).expect("a run")
    }

    fn broken_off(code: &str) -> RunDocument {
        let entry = ErrorEntry { code: code.to_owned(), message: "interrupted".to_owned(), advice: None };
        RunDocument { status: Status::Partial, errors: vec![entry], ..document() }
    }

    #[test]
    fn a_server_that_stops_does_not_interrupt_the_mesh() {
        let stopped = broken_off(INTERRUPTED);
        assert_eq!(outcome(&stopped, (false, false), true), EndOutcome::Interrupted);
        assert_eq!(outcome(&stopped, (false, false), false), EndOutcome::Failed);
        let message = result(&stopped).error.expect("an error").message;
        assert_eq!(message, "one of its servers was stopped during the test (interrupted)");
    }

    #[test]
    fn a_test_that_broke_off_failed() {
        assert_eq!(outcome(&document(), (true, false), false), EndOutcome::Measured);
        assert_eq!(outcome(&broken_off("stream"), (true, false), false), EndOutcome::Failed);
        assert_eq!(outcome(&broken_off("peer-lost"), (true, false), false), EndOutcome::ServerUnreachable);
    }

    #[test]
    fn bytes_of_an_accepted_test_without_a_result_are_unknown() {
        let lost = RunDocument { status: Status::Failed, effective: None, ..document() };
        assert_eq!(sent_bytes(&lost, false), Some(0));
        let mut lost = lost;
        lost.totals.client = None;
        assert_eq!(sent_bytes(&lost, true), None);
    }
}
