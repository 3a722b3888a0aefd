//! The records of a journal.

use landspeed_model::Target;
use serde::{Deserialize, Serialize};

use crate::persist::FileChange;
use crate::transaction::RestoreOutcome;
use crate::{Device, Value};

/// A step as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStep {
    /// What.
    pub target: Target,
    /// Its device.
    pub device: Option<Device>,
    /// The value when it was planned.
    pub before: Value,
    /// The value it is to have.
    pub desired: String,
    /// Whether it is only watched over.
    pub keep: bool,
}

impl JournalStep {
    /// What, under the name its device has now.
    #[must_use]
    pub fn target_on(&self, name: &str) -> Target {
        crate::sysctl::on_interface(&self.target, name)
    }
}

/// What the host was like before the first write, to judge it by before a confirmation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Default routes.
    pub routes: Vec<String>,
    /// Devices of the plan and whether they had a carrier.
    pub carriers: Vec<(Device, bool)>,
    /// The management peer: the far address of `SSH_CONNECTION`.
    pub peer: Option<String>,
    /// `SSH_CONNECTION` of who applied.
    pub session: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Entry {
    /// What is going to be done.
    Planned {
        /// In order.
        steps: Vec<JournalStep>,
        /// How long a confirmation is waited for, seconds.
        confirm_s: u64,
        /// The host before.
        baseline: Baseline,
        /// Process that applies, and when it was started, clock ticks since boot.
        applier: (u32, u64),
        /// `CLOCK_MONOTONIC`, nanoseconds.
        monotonic_ns: u64,
        /// Whether it lasts only as long as that process. Older journals have none.
        #[serde(default)]
        held: bool,
    },
    /// The watchdog runs, and the time to confirm begins.
    Armed {
        /// Its process.
        watchdog: u32,
        /// When everything must be written and confirmed (`CLOCK_MONOTONIC`, nanoseconds). Older journals have none.
        #[serde(default)]
        deadline_ns: Option<u64>,
    },
    /// A step is about to be written; this is what is there now.
    Intent {
        /// Its number, from 0.
        step: usize,
        /// The value now.
        before: Value,
    },
    /// A step was written and read back.
    Applied {
        /// Its number.
        step: usize,
        /// What was read back.
        observed: Value,
        /// Whether the driver took another value than asked for.
        rounded: bool,
    },
    /// Everything is written; a confirmation is due by then (`CLOCK_MONOTONIC`, nanoseconds).
    AwaitingConfirm {
        /// When it is too late.
        deadline_ns: u64,
    },
    /// It stays.
    Committed,
    /// The watchdog goes on without the process that holds the lock: that process did not end and must not write any more.
    TakenOver {
        /// That process, and when it was started, clock ticks since boot.
        from: (u32, u64),
    },
    /// It is being rolled back.
    Reverting {
        /// Why.
        why: String,
    },
    /// A step is about to be put back.
    Restoring {
        /// Its number.
        step: usize,
    },
    /// A step was dealt with.
    Restored {
        /// Its number.
        step: usize,
        /// How.
        outcome: RestoreOutcome,
    },
    /// All is as it was.
    Reverted {
        /// How that came.
        why: String,
    },
    /// Something is left to a person.
    NeedsAttention {
        /// What.
        why: String,
    },
    /// Files are about to be written; this is what was there.
    Persisting {
        /// The files.
        files: Vec<FileChange>,
    },
    /// They are written.
    Persisted,
    /// They are being put back.
    Unpersisting,
    /// They are as they were.
    Unpersisted,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Number in its journal, from 0.
    pub sequence: u64,
    /// Boot id of the kernel.
    pub boot: String,
    /// Network namespace.
    pub namespace: String,
    /// When, nanoseconds since the Unix epoch.
    pub realtime_ns: u64,
    /// What.
    pub entry: Entry,
}
