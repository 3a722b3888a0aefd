//! The state of a transaction and of its steps, from its journal.

use crate::Value;
use crate::journal::{Baseline, Entry, FileChange, Journal, JournalStep, RestoreOutcome};
use serde::Serialize;

/// State of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Only the plan is recorded.
    Planned,
    /// The watchdog runs; nothing has been written.
    Armed,
    /// Settings are being written.
    Applying,
    /// All settings are written; a confirmation is required before the deadline.
    AwaitingConfirm {
        /// Deadline of the confirmation (`CLOCK_MONOTONIC`, nanoseconds).
        deadline_ns: u64,
    },
    /// Confirmed: the changes stay.
    Committed,
    /// The rollback is in progress.
    Reverting,
    /// Everything is restored.
    Reverted,
    /// The rollback is incomplete and needs manual attention.
    NeedsAttention,
}

impl State {
    /// Whether the transaction is neither confirmed nor finished.
    pub fn is_unfinished(&self) -> bool {
        !matches!(self, Self::Committed | Self::Reverted | Self::NeedsAttention)
    }
}

/// State of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// The journal has no record of its start.
    NotStarted,
    /// The records end during a write or a restore: the current value may be this transaction's.
    InFlight {
        /// Value before the write.
        before: Value,
    },
    /// The setting was written and read back.
    Applied {
        /// Value before the write.
        before: Value,
        /// Value read back after the write.
        observed: Value,
        /// Whether the driver rounded or clamped the value.
        rounded: bool,
    },
    /// A rollback has processed the step.
    Settled {
        /// Value before the write.
        before: Value,
        /// Value read back after the write, if it was recorded.
        observed: Option<Value>,
        /// Result of the rollback for this step.
        outcome: RestoreOutcome,
    },
}

impl Journal {
    /// Steps of the plan; empty without a plan.
    pub fn steps(&self) -> &[JournalStep] {
        self.entries()
            .find_map(|e| if let Entry::Planned { steps, .. } = e { Some(steps.as_slice()) } else { None })
            .unwrap_or(&[])
    }

    /// State of the host before the first write.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.entries().find_map(|e| if let Entry::Planned { baseline, .. } = e { Some(baseline) } else { None })
    }

    /// Whether the first record is a plan.
    pub fn is_planned(&self) -> bool {
        matches!(self.entries().next(), Some(Entry::Planned { .. }))
    }

    /// State of the transaction. A journal without a plan needs attention: a journal gets its name only once
    /// the plan is in it.
    pub fn state(&self) -> State {
        if !self.is_planned() {
            return State::NeedsAttention;
        }
        let mut state = State::Planned;
        for entry in self.entries() {
            state = match entry {
                Entry::Planned { .. } => State::Planned,
                Entry::Armed { .. } => State::Armed,
                Entry::Intent { .. } | Entry::Applied { .. } => State::Applying,
                Entry::AwaitingConfirm { deadline_ns } => State::AwaitingConfirm { deadline_ns: *deadline_ns },
                Entry::Committed => State::Committed,
                Entry::TakenOver { .. }
                | Entry::Reverting { .. }
                | Entry::Restoring { .. }
                | Entry::Restored { .. } => State::Reverting,
                Entry::Reverted { .. } => State::Reverted,
                Entry::NeedsAttention { .. } => State::NeedsAttention,
                Entry::Persisting { .. } | Entry::Persisted | Entry::Unpersisting | Entry::Unpersisted => state,
            };
        }
        state
    }

    /// State of a step, by number from 0.
    pub fn step_state(&self, number: usize) -> StepState {
        let mut state = StepState::NotStarted;
        for entry in self.entries() {
            match entry {
                Entry::Intent { step, before } if *step == number => {
                    state = StepState::InFlight { before: before.clone() };
                }
                Entry::Applied { step, observed, rounded } if *step == number => {
                    if let StepState::InFlight { before } = state {
                        state = StepState::Applied { before, observed: observed.clone(), rounded: *rounded };
                    }
                }
                Entry::Restoring { step } if *step == number => {
                    state = match state {
                        StepState::Applied { before, .. } | StepState::Settled { before, .. } => {
                            StepState::InFlight { before }
                        }
                        other => other,
                    };
                }
                Entry::Restored { step, outcome } if *step == number => {
                    state = match state {
                        StepState::InFlight { before } => {
                            StepState::Settled { before, observed: None, outcome: outcome.clone() }
                        }
                        StepState::Applied { before, observed, .. } => {
                            StepState::Settled { before, observed: Some(observed), outcome: outcome.clone() }
                        }
                        StepState::Settled { before, observed, .. } => {
                            StepState::Settled { before, observed, outcome: outcome.clone() }
                        }
                        StepState::NotStarted => {
                            let before = self.steps().get(number).map(|step| step.before.clone());
                            match before {
                                Some(before) => {
                                    StepState::Settled { before, observed: None, outcome: outcome.clone() }
                                }
                                None => StepState::NotStarted,
                            }
                        }
                    };
                }
                _ => {}
            }
        }
        state
    }

    /// Number of the step that was being written when the watchdog took the transaction over.
    pub(crate) fn hung_step(&self) -> Option<usize> {
        let mut in_flight = None;
        for entry in self.entries() {
            match entry {
                Entry::Intent { step, .. } => in_flight = Some(*step),
                Entry::Applied { .. } => in_flight = None,
                Entry::TakenOver { .. } => return in_flight,
                _ => {}
            }
        }
        None
    }

    /// Reason of the current state: from the last record that has one.
    pub fn reason(&self) -> Option<&str> {
        if !self.is_planned() {
            return Some(
                "its journal has no plan, so nothing can be checked or rolled back; look at the host by hand",
            );
        }
        self.entries().rev().find_map(|entry| match entry {
            Entry::Reverting { why } | Entry::Reverted { why } | Entry::NeedsAttention { why } => Some(why.as_str()),
            _ => None,
        })
    }

    /// Files written for the next boot and not restored, and whether writing them was completed.
    pub fn persisted(&self) -> Option<(&[FileChange], bool)> {
        let mut last = None;
        for entry in self.entries() {
            match entry {
                Entry::Persisting { files } => last = Some((files.as_slice(), false)),
                Entry::Persisted => last = last.map(|(files, _)| (files, true)),
                Entry::Unpersisting => last = last.map(|(files, _)| (files, false)),
                Entry::Unpersisted => last = None,
                _ => {}
            }
        }
        last
    }
}
