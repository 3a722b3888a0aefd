//! Settings of this host or of a server's host, changed for as long as a measurement lasts.
//!
//! Both are a held `tune` transaction: nothing stays changed when the value is dropped, its process ends, or the connection to
//! the server breaks, unless [`HostChanges::keep`] was called.

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

pub use clients::ForClients;
pub use holder::Holder;

use crate::trust::TrustArgs;

/// The code of an error after which something is not as it was.
const NOT_RESTORED: &str = "not-restored";

/// Changes that are held at one end.
pub enum HostChanges {
    /// This host.
    Local(Box<Holder>),
    /// The host of a server.
    Remote(Box<RemoteChanges>, Vec<Change>),
}

/// What an error leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeErrorKind {
    /// Changes cannot begin.
    Unavailable,
    /// The request was refused and nothing is held. Others may follow.
    Refused,
    /// Something could not be put back.
    NotRestored,
    /// The connection cannot be used any more, or the user interrupted: the server rolls back by itself.
    Lost,
}

/// Why a host was not changed, or not put back.
#[derive(Debug, Clone)]
pub struct ChangeError {
    /// What it leaves.
    pub kind: ChangeErrorKind,
    /// What happened, and what to try.
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
    /// Changes of this host. Nothing stays changed for longer than `limit`. Needs root.
    pub fn local(limit: Duration, trust: TrustArgs) -> Result<Self, ChangeError> {
        Holder::begin(limit, trust).map(|holder| Self::Local(Box::new(holder))).map_err(ChangeError::unavailable)
    }

    /// Changes of a server's host, on a separate connection. `stop` ends every wait but that for a rollback.
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

    /// Host and network namespace. Where it is equal at both ends, only one of them can hold changes.
    pub fn place(&self) -> String {
        match self {
            Self::Local(holder) => holder.place(),
            Self::Remote(session, _) => session.place().to_owned(),
        }
    }

    /// What would be done, in the order of writing. Writes nothing.
    pub fn plan(&mut self, changes: &[Change]) -> Result<Vec<PlannedChange>, ChangeError> {
        match self {
            Self::Local(holder) => holder.plan(changes).map_err(ChangeError::local),
            Self::Remote(session, _) => session.plan(changes).map_err(|error| ChangeError::remote(&error, session)),
        }
    }

    /// Holds exactly these changes: all of them or none. What was held before is rolled back first; on an error nothing is
    /// held. The same changes again write nothing. Returns what was written, without what already had its value.
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

    /// What is held.
    pub fn held(&self) -> &[Change] {
        match self {
            Self::Local(holder) => holder.held(),
            Self::Remote(_, held) => held,
        }
    }

    /// Rolls back what is held. An interrupt does not end it.
    pub fn roll_back(&mut self) -> Result<(), ChangeError> {
        match self {
            Self::Local(holder) => holder.roll_back().map(drop).map_err(ChangeError::local),
            Self::Remote(session, held) => {
                held.clear();
                session.roll_back().map_err(|error| ChangeError::remote(&error, session))
            }
        }
    }

    /// Lets what is held stay until the next reboot, unless a carrier, a default route or a value has changed since.
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
