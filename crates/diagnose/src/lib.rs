//! Diagnosis of a transfer: takes samples, returns one verdict with its evidence.
//!
//! [`diagnose`] evaluates one direction of a run, in its steady phase, from both hosts; [`diagnose_lab`]
//! adds the links and queues of a lab. Each cause evaluates its own readings and can be refuted by the rest
//! of the document; a decision table orders the remaining ones, and contradicting causes lower the
//! confidence. "Undetermined, because X was not visible" is a valid answer; a confident wrong one is the
//! worst bug. [`warnings`] lists what makes the run's figures less reliable, whatever the cause.
//!
//! The procedure and its measured values are in `docs/verdicts.md`; the source of each threshold is in
//! `thresholds.rs`.
#![forbid(unsafe_code)]

mod advice;
mod arrivals;
mod causes;
mod contradictions;
mod decide;
mod emulation;
mod epochs;
mod finding;
mod flow;
mod host;
mod load;
mod network;
mod path_epochs;
mod pattern;
mod placement;
mod reader;
mod refute;
mod route;
mod starved;
mod stream;
mod text;
mod thresholds;
mod udp;
mod waits;
mod warnings;
mod watched;

use landspeed_model::{Direction, LabDocument, LabEpoch, LabFlow, RunDocument, Verdict, WatchHost};

pub use contradictions::{WITHDRAWN, contradictions, withdraw_contradicted};
pub use warnings::warnings;

/// Names the limit of one direction of a run. For `Both` the upload is evaluated.
///
/// Never panics, and never returns non-finite values, whatever the document contains.
pub fn diagnose(document: &RunDocument, direction: Direction) -> Verdict {
    let flow = flow::Flow::new(document, direction);
    withdraw_contradicted(emulation::withdraw_invalid(decide::decide(&flow), &flow), document, None)
}

/// As [`diagnose`], for a flow of other programs watched on this host: the document's client is this host,
/// and the server reported nothing. `host_readings` has the readings of this host besides the flow's socket. The
/// rules are the same; texts speak of the local and the remote host and do not suggest options of `run`.
pub fn diagnose_watched(document: &RunDocument, direction: Direction, host_readings: &WatchHost) -> Verdict {
    let flow = flow::Flow::observed(document, direction, host_readings);
    watched::adapt_to_watched(withdraw_contradicted(decide::decide(&flow), document, None), &flow)
}

/// Returns the rate with which a verdict's summary begins, up to the colon.
pub fn headline(document: &RunDocument, direction: Direction) -> String {
    flow::Flow::new(document, direction).headline()
}

/// As [`diagnose`], for a flow of a lab run, with the links and queues of its path. If the path changed in the steady
/// phase and its parts have different limits, the verdict says so, at low confidence: see [`diagnose_path_epochs`].
/// `None` if the flow has no run.
pub fn diagnose_lab(lab: &LabDocument, flow: &LabFlow, direction: Direction) -> Option<Verdict> {
    let verdict = whole_verdict(lab, flow, direction)?;
    Some(path_epochs::combine(verdict, &path_epochs::path_epochs(lab, flow, direction, whole_verdict)))
}

/// Returns what limited a flow of a lab run between the changes of its path, in the order of time; empty if nothing that
/// concerns it changed in its steady phase.
pub fn diagnose_path_epochs(lab: &LabDocument, flow: &LabFlow, direction: Direction) -> Vec<LabEpoch> {
    path_epochs::path_epochs(lab, flow, direction, whole_verdict)
}

/// Returns the verdict about the whole steady phase.
fn whole_verdict(lab: &LabDocument, flow: &LabFlow, direction: Direction) -> Option<Verdict> {
    let run = flow.run.as_ref()?;
    let view = flow::Flow::in_lab(lab, flow, run, direction);
    let verdict = path_epochs::limit_by_traces(decide::decide(&view), lab, flow, direction);
    Some(withdraw_contradicted(verdict, run, Some(lab)))
}
