//! What held a transfer back: samples in, one verdict with its evidence out.
//!
//! [`diagnose`] looks at one direction of a run, in its steady phase, from both ends. Each cause is one small pure
//! function that weighs its own readings; a decision table orders them, and causes that contradict each other lower
//! the confidence. "Undetermined, because X was not visible" is a valid answer; a confident wrong one is the worst
//! bug. [`warnings`] says what weakens the run's figures whatever the cause.
//!
//! The procedure and its measured figures are in `docs/verdicts.md`; every threshold has its source beside it in
//! `thresholds.rs`.
#![forbid(unsafe_code)]

mod advice;
mod causes;
mod decide;
mod finding;
mod flow;
mod host;
mod load;
mod network;
mod reader;
mod stream;
mod text;
mod thresholds;
mod udp;
mod warnings;

use landspeed_model::{Direction, RunDocument, Verdict};

pub use warnings::warnings;

/// Names what held one direction of a run back. `Both` is answered for the upload.
///
/// Never panics and never puts a value that is not finite into the verdict, whatever the document holds.
pub fn diagnose(document: &RunDocument, direction: Direction) -> Verdict {
    decide::decide(&flow::Flow::new(document, direction))
}
