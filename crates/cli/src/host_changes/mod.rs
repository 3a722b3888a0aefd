//! Temporary changes of this host or of a server's host, for the time of a measurement.
//!
//! Both are a held `tune` transaction: it is rolled back when the value is dropped, its process ends or the
//! connection to the server is lost, unless [`HostChanges::keep`] was called.

mod clients;
mod holder;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::{RemoteChanges, Target};
use landspeed_flow::control::changes::{AppliedChange, PlannedChange};
use landspeed_flow::control::channel::Key;
use landspeed_flow::error::FlowError;
use landspeed_flow::server::HeldChanges as _;
use landspeed_model::{Change, ErrorEntry, Family};

pub use clients::ClientService;
pub use holder::Holder;
use holder::NOT_RESTORED;

use crate::trust::TrustArgs;

/// Changes held on one host.
pub enum HostChanges {
    /// Changes of this host.
    Local(Box<Holder>),
    /// Changes of a server's host, and those currently held.
    Remote(Box<RemoteChanges>, Vec<Change>),
}

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

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entry.message)?;
        self.entry.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for ChangeError {}

impl ChangeError {
    fn unavailable(entry: ErrorEntry) -> Self {
        Self { kind: ChangeErrorKind::Unavailable, entry }
    }

    fn local(entry: ErrorEntry) -> Self {
        let kind = if entry.code == NOT_RESTORED { ChangeErrorKind::NotRestored } else { ChangeErrorKind::Refused };
        Self { kind, entry }
    }

    fn remote(error: &FlowError, session: &RemoteChanges) -> Self {
        let kind = match error {
            FlowError::Refused { code, .. } if code == NOT_RESTORED => ChangeErrorKind::NotRestored,
            FlowError::Refused { .. } if !session.is_lost() => ChangeErrorKind::Refused,
            _ => ChangeErrorKind::Lost,
        };
        Self { kind, entry: error.entry() }
    }
}

impl HostChanges {
    /// Opens changes of this host, held for at most `limit`. Needs root.
    pub fn local(limit: Duration, trust: TrustArgs) -> Result<Self, ChangeError> {
        Holder::begin(limit, trust).map(|holder| Self::Local(Box::new(holder))).map_err(ChangeError::unavailable)
    }

    /// Opens changes of a server's host on a separate connection. `stop` interrupts every wait except that for a
    /// rollback.
    pub fn remote(
        target: &Target,
        family: Family,
        key: Option<&Key>,
        limit: Duration,
        stop: &'static AtomicBool,
    ) -> Result<Self, ChangeError> {
        match RemoteChanges::begin(target, family, key, limit, stop) {
            Ok(session) => Ok(Self::Remote(Box::new(session), Vec::new())),
            Err(error) => Err(ChangeError::unavailable(error.entry())),
        }
    }

    /// Returns boot ID and network namespace. If both hosts return the same, only one of them can hold changes.
    pub fn place(&self) -> String {
        match self {
            Self::Local(holder) => holder.place(),
            Self::Remote(session, _) => session.place().to_owned(),
        }
    }

    /// Returns the planned changes in the order of writing. Writes nothing.
    pub fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, ChangeError> {
        match self {
            Self::Local(holder) => holder.plan(changes).map_err(ChangeError::local),
            Self::Remote(session, _) => session.plan(changes).map_err(|error| ChangeError::remote(&error, session)),
        }
    }

    /// Applies exactly these changes, all or none. Rolls back the previously held changes first; after an error
    /// nothing is held. If the same changes are already held, nothing is written. Returns the written changes,
    /// without those whose value was already set.
    pub fn apply(&mut self, changes: &[Change]) -> Result<Vec<AppliedChange>, ChangeError> {
        match self {
            Self::Local(holder) => holder.apply(changes).map_err(ChangeError::local),
            Self::Remote(session, held) => {
                held.clear();
                let applied = session.apply(changes).map_err(|error| ChangeError::remote(&error, session))?;
                held.extend_from_slice(changes);
                Ok(applied)
            }
        }
    }

    /// Returns the changes that are currently held.
    pub fn held(&self) -> &[Change] {
        match self {
            Self::Local(holder) => holder.held(),
            Self::Remote(_, held) => held,
        }
    }

    /// Rolls back the held changes. An interrupt does not stop it.
    pub fn roll_back(&mut self) -> Result<(), ChangeError> {
        match self {
            Self::Local(holder) => holder.roll_back().map(drop).map_err(ChangeError::local),
            Self::Remote(session, held) => {
                held.clear();
                session.roll_back().map_err(|error| ChangeError::remote(&error, session))
            }
        }
    }

    /// Makes the held changes last until the next reboot, unless a carrier, a default route or a value has changed
    /// since.
    pub fn keep(&mut self) -> Result<(), ChangeError> {
        match self {
            Self::Local(holder) => holder.keep().map_err(ChangeError::local),
            Self::Remote(session, held) => {
                session.keep().map_err(|error| ChangeError::remote(&error, session))?;
                held.clear();
                Ok(())
            }
        }
    }
}
