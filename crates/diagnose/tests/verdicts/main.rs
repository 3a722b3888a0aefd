//! Verdicts on synthetic documents, and on those of real runs.

mod arrivals;
mod beside;
mod common;
mod consistent;
mod docs;
mod doubt;
mod down;
mod examples;
mod gaps;
mod hostile;
mod lab;
mod named;
mod real;
mod starved;
mod watched;
