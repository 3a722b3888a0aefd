//! A cell between hosts: options, hosts, settings and cross traffic.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::{Request, Target};
use landspeed_model::Change;
use landspeed_tune::ChangeError;

use super::command::{HeldSettings, RunTest};

/// Maximum time that host settings stay changed, even if landspeed hangs.
const LIMIT: Duration = Duration::from_mins(55);

/// A cell between hosts.
#[derive(Debug)]
pub struct HostCell {
    /// Parsed options of `run`.
    pub test: Box<dyn RunTest>,
    /// The client, if it is another host.
    pub from: Option<Target>,
    /// Settings of the client host.
    pub client: Vec<Change>,
    /// Settings of the server host.
    pub server: Vec<Change>,
    /// Cross traffic during the run.
    pub cross: Vec<Cross>,
}

/// Cross traffic during a run.
#[derive(Debug)]
pub struct Cross {
    /// Name of the traffic in results.
    pub name: String,
    /// The host that sends the traffic.
    pub from: Target,
    /// Parsed options of `run`.
    pub test: Box<dyn RunTest>,
}

/// Client and server of a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The client; `None` is this host.
    pub from: Option<String>,
    /// The server.
    pub to: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from.as_deref().unwrap_or("this host"), self.to)
    }
}

impl Cross {
    /// Returns client and server of the traffic.
    pub fn pair(&self) -> Pair {
        Pair { from: Some(self.from.to_string()), to: self.test.server().to_string() }
    }
}

impl HostCell {
    /// Returns client and server of the cell.
    pub fn pair(&self) -> Pair {
        Pair { from: self.from.as_ref().map(ToString::to_string), to: self.test.server().to_string() }
    }

    /// Whether the cell changes host settings.
    pub fn changes_hosts(&self) -> bool {
        !self.client.is_empty() || !self.server.is_empty()
    }

    /// Opens changes of client and server, after `request`.
    pub fn open_changes(
        &self,
        request: &Request,
        interrupted: &'static AtomicBool,
    ) -> Result<Box<dyn HeldSettings>, ChangeError> {
        self.test.open_changes(request, self.from.as_ref(), LIMIT, interrupted)
    }
}
