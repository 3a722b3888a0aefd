//! What a journal's records come to: where the transaction stands, and each of its steps.

use crate::Value;
use crate::journal::{Baseline, Entry, Journal, JournalStep};
use crate::persist::FileChange;
use crate::transaction::RestoreOutcome;
use serde::Serialize;

/// Where a transaction stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing but the plan.
    Planned,
    /// The watchdog runs; nothing is written.
    Armed,
    /// Being written.
    Applying,
    /// Written; a confirmation is due by then (`CLOCK_MONOTONIC`, nanoseconds).
    AwaitingConfirm {
        /// When it is too late.
        deadline_ns: u64,
    },
    /// It stays.
    Committed,
    /// Being rolled back.
    Reverting,
    /// All is as it was.
    Reverted,
    /// Something is left to a person.
    NeedsAttention,
}

impl State {
    /// Whether it is still open.
    pub fn is_unfinished(&self) -> bool {
        !matches!(self, Self::Committed | Self::Reverted | Self::NeedsAttention)
    }
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// Not begun by the journal.
    Untouched,
    /// About to be written, or to be put back, when the records end: what is there now is of our making.
    InFlight {
        /// What was there before.
        before: Value,
    },
    /// Written.
    Applied {
        /// What was there before.
        before: Value,
        /// What was read back.
        observed: Value,
        /// Whether the driver rounded.
        rounded: bool,
    },
    /// Dealt with by a revert.
    Settled {
        /// What was there before.
        before: Value,
        /// What was read back after it was written, if that is known.
        observed: Option<Value>,
        /// How.
        outcome: RestoreOutcome,
    },
}

impl Journal {
    /// The plan.
    pub fn steps(&self) -> &[JournalStep] {
        self.entries()
            .find_map(|e| if let Entry::Planned { steps, .. } = e { Some(steps.as_slice()) } else { None })
            .unwrap_or(&[])
    }

    /// The host before.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.entries().find_map(|e| if let Entry::Planned { baseline, .. } = e { Some(baseline) } else { None })
    }

    /// Whether it begins with a plan.
    pub fn is_planned(&self) -> bool {
        matches!(self.entries().next(), Some(Entry::Planned { .. }))
    }

    /// Where it stands. A journal without its plan needs attention: it has its name only once the plan is in it.
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

    /// Where a step stands.
    pub fn step_state(&self, number: usize) -> StepState {
        let mut state = StepState::Untouched;
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
                        StepState::Untouched => {
                            let before = self.steps().get(number).map(|step| step.before.clone());
                            match before {
                                Some(before) => {
                                    StepState::Settled { before, observed: None, outcome: outcome.clone() }
                                }
                                None => StepState::Untouched,
                            }
                        }
                    };
                }
                _ => {}
            }
        }
        state
    }

    /// The step that was being written when the watchdog took the transaction over.
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

    /// Why it is where it is, in the words of the last record that has any.
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

    /// Files it wrote for the next boot and has not put back, and whether writing them was finished.
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
