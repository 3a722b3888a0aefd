//! Integration tests of the analysis of captures.

mod classes;
mod clocks;
mod connections;
mod ecn;
mod fast_path;
mod fragments;
mod graph;
mod hostile;
mod icmp;
mod labelled;
mod limits;
mod multipath;
mod numbered;
mod placing;
mod play;
mod round_trips;
mod taps;
mod two_sides;
mod two_taps;

/// Returns a configuration with `usual` cases, or as many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> proptest::prelude::ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual);
    proptest::prelude::ProptestConfig::with_cases(cases)
}
