//! (see crates/README.md)
#![forbid(unsafe_code)]
