//! What client and server say to each other about changes to the server's host.

use landspeed_model::{Change, ErrorEntry};
use serde::{Deserialize, Serialize};

/// Changes in one request, at most.
pub const MAX_CHANGES: usize = 256;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum ChangeRequest {
    /// The first message on its connection: changes are to be held for as long as the connection lasts.
    Begin {
        /// Client's program version.
        version: String,
        /// How long anything may stay changed, seconds.
        limit_s: u64,
    },
    /// What would be done?
    Plan {
        /// The changes.
        changes: Vec<Change>,
    },
    /// Hold exactly these changes.
    Apply {
        /// The changes.
        changes: Vec<Change>,
    },
    /// Hold nothing.
    RollBack,
    /// Let what is held stay.
    Keep,
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum ChangeAnswer {
    /// Changes may be asked for.
    Begun {
        /// Host and network namespace.
        place: String,
    },
    /// What would be done.
    Planned {
        /// In the order of writing.
        changes: Vec<PlannedChange>,
    },
    /// They are held.
    Applied {
        /// What was written.
        changes: Vec<AppliedChange>,
    },
    /// Nothing is held.
    RolledBack,
    /// They stay.
    Kept,
    /// It was not done.
    Failed(ErrorEntry),
}

/// A change as its host would carry it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// The change.
    pub change: Change,
    /// The value now, if it can be read.
    pub before: Option<String>,
    /// Why it would not be carried out.
    pub refused: Option<String>,
    /// Whether the setting has that value already.
    pub no_op: bool,
    /// Warnings.
    pub notes: Vec<String>,
}

/// A change that was written and read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedChange {
    /// The change.
    pub change: Change,
    /// The value before.
    pub before: String,
    /// The value that was read back.
    pub after: String,
    /// Whether the driver took another value than asked for.
    pub rounded: bool,
}
