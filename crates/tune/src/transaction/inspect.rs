//! Compares the current settings of a transaction with its journal.

use serde::Serialize;

use super::Engine;
use crate::Value;
use crate::history::StepState;
use crate::journal::Journal;

/// Current value of a step's setting, compared with the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "check")]
pub enum StepCheck {
    /// The value from before the transaction.
    AsBefore,
    /// The value that was read back after the write.
    AsWritten,
    /// Another value.
    Differs {
        /// The current value.
        now: Value,
    },
    /// The device or the setting no longer exists.
    Gone,
    /// The setting was not read.
    NotChecked {
        /// Reason it was not read.
        why: String,
    },
}

impl Engine<'_> {
    /// Compares the setting of a step with its values before and after the transaction.
    pub fn check_step(&self, journal: &Journal, number: usize) -> StepCheck {
        let not = |why: String| StepCheck::NotChecked { why };
        let Some(step) = journal.steps().get(number) else { return not("the journal has no such step".into()) };
        let Some(first) = journal.records().first() else { return not("the journal is empty".into()) };
        if first.boot != self.context.boot {
            return not("the host was restarted since".into());
        }
        if first.namespace != self.context.namespace {
            return not(format!("it is in network namespace {}", first.namespace));
        }
        let Some(target) = self.present(step) else { return StepCheck::Gone };
        let (before, observed) = match journal.step_state(number) {
            StepState::NotStarted => (step.before.clone(), None),
            StepState::InFlight { before } => (before, None),
            StepState::Applied { before, observed, .. } => (before, Some(observed)),
            StepState::Settled { before, observed, .. } => (before, observed),
        };
        match self.knobs.read(&target) {
            Ok(now) if now.same(&before) => StepCheck::AsBefore,
            Ok(now) if observed.is_some_and(|observed| now.same(&observed)) => StepCheck::AsWritten,
            Ok(now) => StepCheck::Differs { now },
            Err(why) if why.is_absent() => StepCheck::Gone,
            Err(why) => not(why.to_string()),
        }
    }
}
