//! Verdicts on synthetic documents.

mod common;
mod doubt;
mod hostile;
mod named;
