//! Errors of changes to a host.

use std::path::PathBuf;

use crate::journal::JournalError;

/// Errors of a transaction.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The journal could not be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The state directory cannot be used.
    #[error("cannot use the state directory {path}: {cause}; run as root, or name another with --state")]
    State {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// The registry of this host's transactions cannot be used.
    #[error("cannot use the transaction registry {path}: {cause}; nothing was changed")]
    Registry {
        /// Path of the registry.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// Another command holds the lock.
    #[error(
        "another tune command is running{}; wait for it, or look with `landspeed tune status`",
        .process.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Busy {
        /// Process id of the holder, if known.
        process: Option<u32>,
    },
    /// A transaction awaits its confirmation.
    #[error("transaction {id} awaits its confirmation: `landspeed tune confirm` or `landspeed tune revert` it first")]
    Open {
        /// Number of the transaction.
        id: u32,
    },
    /// An open transaction of another state directory changes one of the settings.
    #[error(
        "nothing was changed: transaction {id} in {} also changes {setting} and is not confirmed; confirm or revert it first \
         (`landspeed tune revert --state {0}`)",
        .state.display()
    )]
    OpenElsewhere {
        /// Number of that transaction.
        id: u32,
        /// State directory of that transaction.
        state: PathBuf,
        /// Name of a setting that both change.
        setting: String,
    },
    /// The plan has nothing to write.
    #[error("the plan holds nothing to write")]
    Empty,
    /// The watchdog did not start.
    #[error("the watchdog did not start, so nothing was changed: {why}")]
    Watchdog {
        /// Reason for the message.
        why: String,
    },
    /// Applying failed and was rolled back.
    #[error("{why}; {}", if *clean { "everything was put back" } else { "not everything could be put back: see `landspeed tune status`" })]
    Failed {
        /// The operation that failed, with the reason.
        why: String,
        /// Whether everything was restored.
        clean: bool,
    },
    /// There is no such transaction, or it is in the wrong state.
    #[error("{0}")]
    NotPossible(String),
    /// The health check before a confirmation failed; the problems found.
    #[error("not confirmed: {}. Unless it is confirmed, the change is rolled back", .0.join("; "))]
    Unhealthy(Vec<String>),
}
