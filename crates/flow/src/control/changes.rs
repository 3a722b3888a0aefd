//! Messages about changes to the server's host.

use landspeed_model::{Change, ErrorEntry};
use serde::{Deserialize, Serialize};

/// Maximum number of changes in one request.
pub const MAX_CHANGES: usize = 256;

/// Requests of a client that changes the server's host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum ChangeRequest {
    /// Starts a session; the first message on its connection. Changes last as long as the connection.
    Begin {
        /// Client's program version.
        version: String,
        /// Time after which the server rolls everything back, seconds.
        limit_s: u64,
    },
    /// Plan changes without writing anything.
    Plan {
        /// Changes to plan.
        changes: Vec<Change>,
    },
    /// Apply exactly these changes.
    Apply {
        /// Changes to apply; earlier ones are rolled back.
        changes: Vec<Change>,
    },
    /// Roll back all changes.
    RollBack,
}

/// Answers of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum ChangeAnswer {
    /// The session has started.
    Begun {
        /// Identifies host and network namespace.
        place: String,
    },
    /// Result of [`ChangeRequest::Plan`].
    Planned {
        /// Planned changes, in the order of writing.
        changes: Vec<PlannedChange>,
    },
    /// The changes are applied.
    Applied {
        /// Changes as written, with the values read back.
        changes: Vec<AppliedChange>,
    },
    /// All changes are rolled back.
    RolledBack,
    /// The request failed.
    Failed(ErrorEntry),
}

/// A change as the server would carry it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// Requested change.
    pub change: Change,
    /// Current value, if it is readable.
    pub before: Option<String>,
    /// Reason why the change would be refused.
    pub refused: Option<String>,
    /// Whether the setting already has that value.
    pub no_op: bool,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

/// A change that was written and read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedChange {
    /// Requested change.
    pub change: Change,
    /// Value before the change.
    pub before: String,
    /// Value read back after the change.
    pub after: String,
    /// Whether the driver set a different value than requested.
    pub rounded: bool,
}
