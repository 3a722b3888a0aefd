//! What held a transfer back: samples in, one verdict with its evidence out.
//!
//! [`diagnose`] looks at one direction of a run, in its steady phase, from both ends; [`diagnose_lab`] adds the links and queues
//! that a lab built. Each cause weighs its own readings and can be refuted by what the rest of the document says; a decision
//! table orders those that hold, and causes that contradict each other lower the confidence. "Undetermined, because X was not
//! visible" is a valid answer; a confident wrong one is the worst bug. [`warnings`] says what weakens the run's figures whatever
//! the cause.
//!
//! The procedure and its measured figures are in `docs/verdicts.md`; every threshold has its source beside it in
//! `thresholds.rs`.
#![forbid(unsafe_code)]

mod advice;
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
mod pattern;
mod placement;
mod reader;
mod refute;
mod route;
mod stream;
mod text;
mod thresholds;
mod udp;
mod warnings;
mod watched;

use landspeed_model::{Direction, LabDocument, LabFlow, RunDocument, Verdict, WatchHost};

pub use contradictions::{WITHDRAWN, contradictions, withdraw_contradicted};
pub use warnings::warnings;

/// Names what held one direction of a run back. `Both` is answered for the upload.
///
/// Never panics and never puts a value that is not finite into the verdict, whatever the document holds.
pub fn diagnose(document: &RunDocument, direction: Direction) -> Verdict {
    let flow = flow::Flow::new(document, direction);
    withdraw_contradicted(emulation::withdraw_invalid(decide::decide(&flow), &flow), document, None)
}

/// [`diagnose`] for a flow of other programs that this host observed from its end: the document's client is this host, and the
/// server reported nothing. `beside` is what this host did beside the flow's socket. The rules are the same; texts speak of the
/// local and the remote host and advise no options of `run`.
pub fn diagnose_watched(document: &RunDocument, direction: Direction, beside: &WatchHost) -> Verdict {
    let flow = flow::Flow::observed(document, direction, beside);
    watched::adapt(withdraw_contradicted(decide::decide(&flow), document, None), &flow)
}

/// The rate that a verdict's summary begins with, before the colon.
pub fn headline(document: &RunDocument, direction: Direction) -> String {
    decide::headline(&flow::Flow::new(document, direction))
}

/// [`diagnose`] for a flow of a lab run, with what the lab knows of the links and queues on its path. `None` when the flow has
/// no run.
pub fn diagnose_lab(lab: &LabDocument, flow: &LabFlow, direction: Direction) -> Option<Verdict> {
    let run = flow.run.as_ref()?;
    Some(withdraw_contradicted(decide::decide(&flow::Flow::in_lab(lab, flow, run, direction)), run, Some(lab)))
}
