//! Titles of pages, and the summary shown without JavaScript.

use landspeed_model::{
    AuditDocument, FiguresDocument, LabDocument, LabStatus, RunDocument, Status, TraceDocument, WatchDocument,
};
use landspeed_units::BitRate;

/// Returns the run's title, its hosts and its goodput.
pub(crate) fn run(document: &RunDocument) -> String {
    let known = |names: &[Option<&str>], fallback: &str| {
        names.iter().flatten().find(|n| !n.is_empty()).map_or_else(|| fallback.to_owned(), |n| (*n).to_owned())
    };
    let client = known(&[document.hosts.client.as_ref().map(|h| h.hostname.as_str())], "client");
    let asked = match document.command.as_slice() {
        [_, run, target, ..] if run == "run" && !target.starts_with('-') => Some(target.as_str()),
        _ => None,
    };
    let server = known(
        &[
            document.hosts.server.as_ref().map(|h| h.hostname.as_str()),
            document.path.as_ref().map(|p| p.target.as_str()),
            asked,
        ],
        "server",
    );
    let name = document.requested.title.as_deref().map(|t| format!("{t} · ")).unwrap_or_default();
    let figure = match (document.status, document.summary.goodput_bps) {
        (Status::Failed, _) => " · failed".to_owned(),
        (_, Some(rate)) => format!(" · {}", rounded(rate)),
        (_, None) => String::new(),
    };
    format!("{name}{client} → {server}{figure} · landspeed")
}

/// Returns the status, the scenario and the goodput.
pub(crate) fn lab(document: &LabDocument) -> String {
    let status = match document.status {
        LabStatus::Complete => String::new(),
        LabStatus::Invalid => "INVALID · ".to_owned(),
        LabStatus::Partial => "partial · ".to_owned(),
        LabStatus::Failed => "failed · ".to_owned(),
    };
    let figure = goodput(document).map(|rate| format!(" · {}", rounded(rate))).unwrap_or_default();
    format!("{status}{}{figure} · landspeed lab", document.scenario.name)
}

/// Returns one sentence on a lab run.
pub(crate) fn lab_summary(document: &LabDocument) -> String {
    let failed: Vec<&str> = document.checks.iter().filter(|c| !c.passed).map(|c| c.name.as_str()).collect();
    let trust = match document.status {
        LabStatus::Complete => format!("All {} checks passed.", document.checks.len()),
        LabStatus::Invalid => format!("Invalid: do not use its figures. Failed: {}.", failed.join(", ")),
        LabStatus::Partial => "Cut short.".to_owned(),
        LabStatus::Failed => "Nothing was measured.".to_owned(),
    };
    let rate = goodput(document).map(|rate| format!(" {} in total.", rounded(rate))).unwrap_or_default();
    let prediction = document.prediction().trim_start_matches("a ");
    format!("{trust}{rate} Kernel {}, seed {}. A {prediction}.", document.kernel.release, document.seed)
}

/// Returns the audited host, or both hosts.
pub(crate) fn audit(document: &AuditDocument) -> String {
    let hosts: Vec<_> = [Some(document), document.peer.as_deref()]
        .into_iter()
        .flatten()
        .map(|audit| if audit.hostname.is_empty() { "a host" } else { &audit.hostname })
        .collect();
    format!("{} · landspeed check", hosts.join(" and "))
}

/// Returns the numbers of findings and of other outcomes.
pub(crate) fn audit_summary(document: &AuditDocument) -> String {
    format!(
        "{} findings; {} settings are as they should be, {} do not apply, {} are unknown.",
        document.findings.len(),
        document.passed.len(),
        document.not_applicable.len(),
        document.unknown.len()
    )
}

/// Returns the name of the capture.
pub(crate) fn trace(document: &TraceDocument) -> String {
    let name = document.capture.file.rsplit('/').next().unwrap_or_default();
    format!("{} · landspeed trace", if name.is_empty() { "a capture" } else { name })
}

/// Returns the numbers of frames, flows and retransmits.
pub(crate) fn trace_summary(document: &TraceDocument) -> String {
    let again: u64 = document.flows.iter().map(|flow| flow.retransmits).sum();
    format!(
        "{} frames in {} flows; {} retransmits in the listed ones.",
        document.capture.frames,
        document.flows.len() as u64 + document.unlisted.flows,
        again
    )
}

/// Returns the watched host.
pub(crate) fn watch(document: &WatchDocument) -> String {
    format!("{} · landspeed watch", if document.hostname.is_empty() { "a host" } else { &document.hostname })
}

/// Returns the verdict of the flow with the most bytes.
pub(crate) fn watch_summary(document: &WatchDocument) -> String {
    let first = document.flows.first().map_or("None moved data.", |flow| flow.summary.as_str());
    format!("{} flows moved data. {first}", document.flows.len())
}

/// Returns the title of the experiment.
pub(crate) fn figures(document: &FiguresDocument) -> String {
    let name = if document.title.is_empty() { "figures" } else { &document.title };
    format!("{name} · landspeed {}", if document.about.is_empty() { "report" } else { &document.about })
}

/// Returns the payload rate of all flows together.
fn goodput(document: &LabDocument) -> Option<f64> {
    let rates: Vec<f64> = document.flows.iter().filter_map(|f| f.goodput_bps).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

fn rounded(rate: f64) -> BitRate {
    BitRate::from_bps(rate.max(0.0).round() as u64)
}
