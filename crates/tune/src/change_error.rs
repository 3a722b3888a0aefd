//! Failure to change a host, or to restore it.

use std::fmt;

use landspeed_model::ErrorEntry;

/// Error code: a setting could not be restored.
pub const NOT_RESTORED: &str = "not-restored";

/// State of the host after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeErrorKind {
    /// Changes are not possible at all.
    Unavailable,
    /// The request was refused and nothing is held; other requests may succeed.
    Refused,
    /// A setting could not be restored.
    NotRestored,
    /// The connection was lost or the user interrupted: the server rolls back by itself.
    Lost,
}

/// Failure to change or restore a host.
#[derive(Debug, Clone)]
pub struct ChangeError {
    /// State of the host after the error.
    pub kind: ChangeErrorKind,
    /// The error, with advice.
    pub entry: ErrorEntry,
}

impl ChangeError {
    /// Changes of the host are not possible.
    pub fn unavailable(entry: ErrorEntry) -> Self {
        Self { kind: ChangeErrorKind::Unavailable, entry }
    }

    /// Changes of this host failed.
    pub fn local(entry: ErrorEntry) -> Self {
        let kind = if entry.code == NOT_RESTORED { ChangeErrorKind::NotRestored } else { ChangeErrorKind::Refused };
        Self { kind, entry }
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entry.message)?;
        self.entry.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for ChangeError {}
