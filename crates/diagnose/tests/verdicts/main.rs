//! Verdicts on synthetic documents.

mod common;
mod docs;
mod doubt;
mod hostile;
mod named;
