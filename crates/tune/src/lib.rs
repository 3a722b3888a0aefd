//! Changes to a host as a transaction: plan, journal, apply, confirm or revert, persist.
#![forbid(unsafe_code)]
