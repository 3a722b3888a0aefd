//! Verdicts on synthetic documents, and on those of real runs.

mod common;
mod docs;
mod doubt;
mod hostile;
mod named;
mod real;
