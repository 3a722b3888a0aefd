//! The test that a client runs.

use std::net::IpAddr;

use landspeed_model::Parameters;

use super::target::Target;
use crate::control::channel::Key;

/// A test to run.
#[derive(Debug, Clone)]
pub struct Request {
    /// Address of the server's control connection.
    pub target: Target,
    /// Test parameters.
    pub parameters: Parameters,
    /// Pre-shared key; without one the connection is not authenticated.
    pub key: Option<Key>,
    /// Command line, for the document.
    pub command: Vec<String>,
    /// Address of the data connections if it differs from `target`, which then carries only the control connection.
    /// The server must listen there on the same port. If the data then has another source address on this host, a
    /// server without a key must be configured to accept data from any address.
    pub data: Option<IpAddr>,
    /// Start time on this host's monotonic clock, nanoseconds; as soon as possible if `None` or in the past.
    pub start_ns: Option<u64>,
}
