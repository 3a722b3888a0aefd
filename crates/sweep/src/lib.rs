//! Experiments: plan, design, order, and when there is enough.
#![forbid(unsafe_code)]
