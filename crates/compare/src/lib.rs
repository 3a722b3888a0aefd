//! Groups of results against each other: intervals, verdicts, noise.
#![forbid(unsafe_code)]
