//! What a client and a server say to each other about a test that the server runs, as client, against another server.

use landspeed_model::{ErrorEntry, HostSnapshot, MtuProbe, Parameters, PathInfo};
use serde::{Deserialize, Serialize};

use crate::client::Progress;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThirdPartyRequest {
    /// Version of landspeed at the client.
    pub version: String,
    /// The other server: `HOST`, `HOST:PORT`.
    pub target: String,
    /// What to measure. The client in it is the server that is asked.
    pub parameters: Parameters,
}

/// What the client hears while the test lasts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ThirdPartyEvent {
    /// The test is still under way.
    Alive,
    /// The other server accepted.
    Accepted {
        /// Identifier of the test.
        id: String,
        /// What is in force.
        parameters: Box<Parameters>,
        /// Where that differs from what was asked for.
        notes: Vec<String>,
        /// The path so far.
        path: Box<PathInfo>,
    },
    /// A path MTU probe is done.
    Mtu {
        /// Its result.
        probe: MtuProbe,
    },
    /// Traffic is flowing.
    Progress {
        /// Live figures.
        progress: Progress,
    },
}

/// The result but for the reports of the two ends, which follow it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThirdPartyResult {
    /// Version of landspeed at the server that ran the test.
    pub version: String,
    /// Address of the host that asked, as the server saw it.
    pub asker_addr: String,
    /// Identifier of the test.
    pub id: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// What was in force.
    pub effective: Option<Parameters>,
    /// Version of the other server.
    pub server_version: Option<String>,
    /// The path.
    pub path: Option<PathInfo>,
    /// Host of the server that ran the test.
    pub client_host: Option<HostSnapshot>,
    /// Host of the other server.
    pub server_host: Option<HostSnapshot>,
    /// What the server that ran the test could not do as asked.
    pub client_notes: Vec<String>,
    /// What the other server could not do as asked.
    pub server_notes: Vec<String>,
    /// What failed.
    pub errors: Vec<ErrorEntry>,
    /// Whether the report of the server that ran the test follows.
    pub client_reports: bool,
    /// Whether the report of the other server follows, after that.
    pub server_reports: bool,
}
