//! The engine's access to the host and its transaction data. Everything is written through here.

use landspeed_model::Target;
use landspeed_sys::process;

use crate::journal::{Context, Fault, Journal, JournalError};
use crate::{Knobs, Value};

/// Errors of writing a setting.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    /// The journal could not be read, or another process has taken the transaction over.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The setting could not be written.
    #[error(transparent)]
    Knob(#[from] crate::KnobError),
}

/// Executes transactions on a host.
pub struct Engine<'a> {
    pub(super) knobs: &'a dyn Knobs,
    pub(super) context: Context,
    writes: std::cell::Cell<u64>,
}

impl<'a> Engine<'a> {
    /// Creates an engine for a host.
    pub fn new(knobs: &'a dyn Knobs, context: Context) -> Self {
        Self { knobs, context, writes: std::cell::Cell::new(0) }
    }

    /// Identity of this host and the location of its transaction data.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Access to the host's settings.
    pub fn knobs(&self) -> &dyn Knobs {
        self.knobs
    }

    /// The only function that writes to the host. Refuses if another process has taken the transaction over.
    pub(super) fn put(&self, journal: &mut Journal, target: &Target, value: &Value) -> Result<(), PutError> {
        journal.ensure_not_taken_over()?;
        let outcome = self.knobs.write(target, value);
        self.wrote();
        Ok(outcome?)
    }

    /// Counts a write outside of the journal; kills the process at an injected fault, for tests.
    pub(crate) fn wrote(&self) {
        self.writes.set(self.writes.get() + 1);
        if self.context.fault == Some(Fault::AfterWrite(self.writes.get())) {
            process::kill_self();
        }
    }
}

/// Whether the driver takes the link down to change this setting.
pub(super) fn resets_link(target: &Target) -> bool {
    matches!(target, Target::Ring { .. } | Target::Channels { .. } | Target::Mtu { .. } | Target::Pause { .. })
}
