//! The records of a journal.

use landspeed_model::Target;
use serde::{Deserialize, Serialize};

use crate::persist::FileChange;
use crate::transaction::RestoreOutcome;
use crate::{Device, Value};

/// A step of the plan in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStep {
    /// The setting to change.
    pub target: Target,
    /// The device of the setting, if it has one.
    pub device: Option<Device>,
    /// Value when the plan was made.
    pub before: Value,
    /// Requested value.
    pub desired: String,
    /// Whether the step only records the value, to restore it if another step changes it.
    pub keep: bool,
}

impl JournalStep {
    /// Returns the setting under the device's current name.
    #[must_use]
    pub fn target_on(&self, name: &str) -> Target {
        crate::sysctl::on_interface(&self.target, name)
    }
}

/// State of the host before the first write, for the health check before a confirmation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Default routes of the host.
    pub routes: Vec<String>,
    /// Devices of the plan, and whether each had a carrier.
    pub carriers: Vec<(Device, bool)>,
    /// Management peer: the remote address in `SSH_CONNECTION`.
    pub peer: Option<String>,
    /// `SSH_CONNECTION` of the command that applied.
    pub session: Option<String>,
}

/// Content of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Entry {
    /// The plan, before anything is written.
    Planned {
        /// Steps in the order of execution.
        steps: Vec<JournalStep>,
        /// Time to confirm, seconds.
        confirm_s: u64,
        /// State of the host before the first write.
        baseline: Baseline,
        /// Process that applies: process id and start time, clock ticks since boot.
        applier: (u32, u64),
        /// Time of the plan (`CLOCK_MONOTONIC`, nanoseconds).
        monotonic_ns: u64,
        /// Whether the transaction ends with that process. Missing in older journals.
        #[serde(default)]
        held: bool,
    },
    /// The watchdog runs, and the time to confirm has started.
    Armed {
        /// Process id of the watchdog.
        watchdog: u32,
        /// Deadline for writing and confirming everything (`CLOCK_MONOTONIC`, nanoseconds). Missing in older
        /// journals.
        #[serde(default)]
        deadline_ns: Option<u64>,
    },
    /// A step is about to be written.
    Intent {
        /// Number of the step, from 0.
        step: usize,
        /// Current value, before the write.
        before: Value,
    },
    /// A step was written and read back.
    Applied {
        /// Number of the step, from 0.
        step: usize,
        /// Value read back after the write.
        observed: Value,
        /// Whether the driver rounded or clamped the requested value.
        rounded: bool,
    },
    /// Everything is written; a confirmation is required before the deadline.
    AwaitingConfirm {
        /// Deadline of the confirmation (`CLOCK_MONOTONIC`, nanoseconds).
        deadline_ns: u64,
    },
    /// The transaction is confirmed and stays.
    Committed,
    /// The watchdog continues without the lock of a process that does not end. That process must not write any
    /// more.
    TakenOver {
        /// That process: process id and start time, clock ticks since boot.
        from: (u32, u64),
    },
    /// The rollback has started.
    Reverting {
        /// Reason of the rollback.
        why: String,
    },
    /// A step is about to be restored.
    Restoring {
        /// Number of the step, from 0.
        step: usize,
    },
    /// The rollback has processed a step.
    Restored {
        /// Number of the step, from 0.
        step: usize,
        /// Result for this step.
        outcome: RestoreOutcome,
    },
    /// Everything is restored.
    Reverted {
        /// Reason of the rollback.
        why: String,
    },
    /// The rollback is incomplete and needs manual attention.
    NeedsAttention {
        /// Settings not restored, with the reason.
        why: String,
    },
    /// Files for the next boot are about to be written.
    Persisting {
        /// The files, with their contents before and after.
        files: Vec<FileChange>,
    },
    /// All of these files are written.
    Persisted,
    /// These files are about to be restored.
    Unpersisting,
    /// These files are restored.
    Unpersisted,
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the record in its journal, from 0.
    pub sequence: u64,
    /// Boot id of the kernel.
    pub boot: String,
    /// Network namespace.
    pub namespace: String,
    /// Time of the record, nanoseconds since the Unix epoch.
    pub realtime_ns: u64,
    /// Content of the record.
    pub entry: Entry,
}
