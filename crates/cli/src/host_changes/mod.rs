//! Temporary changes of this host or of a server's host, for the time of a measurement.
//!
//! Both are a held `tune` transaction: it is rolled back when the value is dropped, its process ends or the
//! connection to the server is lost. To keep a change, an administrator of the host applies it with
//! `landspeed tune apply`.

// Clients of a server cause what happens here: it is logged as events of the server, which are limited.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod clients;
mod holder;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::{RemoteChanges, Target};
use landspeed_flow::control::changes::{AppliedChange, PlannedChange};
use landspeed_flow::control::channel::Key;
use landspeed_flow::error::FlowError;
use landspeed_flow::server::HeldChanges as _;
use landspeed_model::{Change, Family};
use landspeed_tune::NOT_RESTORED;

pub use clients::ClientService;
pub use holder::Holder;
pub use landspeed_tune::{ChangeError, ChangeErrorKind};

use crate::trust::TrustArgs;

/// Changes held on one host.
pub enum HostChanges {
    /// Changes of this host.
    Local(Box<Holder>),
    /// Changes of a server's host, and those currently held.
    Remote(Box<RemoteChanges>, Vec<Change>),
}

/// Returns the error of a server's session.
fn remote_error(error: &FlowError, session: &RemoteChanges) -> ChangeError {
    let kind = match error {
        FlowError::Refused { code, .. } if code == NOT_RESTORED => ChangeErrorKind::NotRestored,
        FlowError::Refused { .. } if !session.is_lost() => ChangeErrorKind::Refused,
        _ => ChangeErrorKind::Lost,
    };
    ChangeError { kind, entry: error.entry() }
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
            Self::Remote(session, _) => session.plan(changes).map_err(|error| remote_error(&error, session)),
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
                let applied = session.apply(changes).map_err(|error| remote_error(&error, session))?;
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
                session.roll_back().map_err(|error| remote_error(&error, session))
            }
        }
    }
}
