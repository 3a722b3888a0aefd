//! Messages about a test that a server runs, as client, against another server.

use landspeed_model::{ErrorEntry, HostSnapshot, MtuProbe, Parameters, PathInfo};
use serde::{Deserialize, Serialize};

use crate::progress::Progress;
use crate::server::admission::QueuePosition;

/// Request for a third-party test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThirdPartyRequest {
    /// Program version of the requesting client.
    pub version: String,
    /// Address of the other server: `HOST` or `HOST:PORT`.
    pub target: String,
    /// Test parameters; the requested server is the client of the test.
    pub parameters: Parameters,
    /// Whether the client understands [`ThirdPartyEvent::Queued`].
    #[serde(default)]
    pub queue: bool,
}

/// Events during the test, sent to the requesting client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ThirdPartyEvent {
    /// Heartbeat: the test still runs.
    Alive,
    /// The test waits in the queue of a busy server.
    Queued {
        /// Position in the queue; 1 is next.
        position: u32,
        /// Number of waiting clients.
        waiting: u32,
        /// Estimated time until the test starts, nanoseconds; `None` if unknown.
        wait_ns: Option<u64>,
        /// Whether the other server is busy; otherwise the requested one.
        target: bool,
    },
    /// The other server accepted the test.
    Accepted {
        /// Identifier of the test.
        id: String,
        /// Effective parameters.
        parameters: Box<Parameters>,
        /// Differences from the requested parameters.
        notes: Vec<String>,
        /// Path, as far as it is known.
        path: Box<PathInfo>,
    },
    /// Result of a path MTU probe.
    Mtu {
        /// Result for one direction.
        probe: MtuProbe,
    },
    /// Live figures while traffic flows.
    Progress {
        /// Figures of both directions.
        progress: Progress,
    },
}

impl ThirdPartyEvent {
    /// Returns the event for a position in the queue of the target, or of the requested server.
    pub fn queued(at: QueuePosition, target: bool) -> Self {
        Self::Queued { position: at.position, waiting: at.waiting, wait_ns: at.wait_ns, target }
    }
}

/// Result without the reports of both servers, which follow it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThirdPartyResult {
    /// Program version of the server that ran the test.
    pub version: String,
    /// Address of the requesting host, as the server saw it.
    pub asker_addr: String,
    /// Identifier of the test.
    pub id: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Effective parameters.
    pub effective: Option<Parameters>,
    /// Program version of the other server.
    pub server_version: Option<String>,
    /// Path between the two servers.
    pub path: Option<PathInfo>,
    /// Snapshot of the host that ran the test.
    pub client_host: Option<HostSnapshot>,
    /// Snapshot of the other server's host.
    pub server_host: Option<HostSnapshot>,
    /// Requests that the server that ran the test could not meet exactly.
    pub client_notes: Vec<String>,
    /// Requests that the other server could not meet exactly.
    pub server_notes: Vec<String>,
    /// Errors of the test, in the order they occurred.
    pub errors: Vec<ErrorEntry>,
    /// Whether the report of the server that ran the test follows.
    pub client_reports: bool,
    /// Whether the report of the other server follows after it.
    pub server_reports: bool,
}
