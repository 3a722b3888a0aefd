//! Values that could not be read, with the reasons.

use std::collections::BTreeMap;

/// Names of unavailable values, with the reasons.
pub(crate) type Unavailable = BTreeMap<String, String>;

/// Returns the value, or notes why it is unavailable.
pub(crate) fn ok_or_note<T, E: std::fmt::Display>(
    missing: &mut Unavailable,
    what: &str,
    outcome: Result<T, E>,
) -> Option<T> {
    outcome.map_err(|why| missing.insert(what.to_owned(), why.to_string())).ok()
}
