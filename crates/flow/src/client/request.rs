//! The test that a client runs.

use std::net::IpAddr;

use landspeed_model::Parameters;

use super::target::Target;
use crate::control::channel::Key;
use crate::layout::{self, Link};

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
    /// Local port of the first data socket; the others have the ports after it. Any port if `None`.
    pub local_port: Option<u16>,
    /// Start time on this host's monotonic clock, nanoseconds; as soon as possible if `None` or in the past.
    pub start_ns: Option<u64>,
}

impl Request {
    /// Checks that the data sockets can have the local ports that the request asks for.
    ///
    /// # Errors
    /// A message: there are more sockets than ports, or each transaction has a new connection.
    pub fn check_ports(&self) -> Result<(), String> {
        let Some(first) = self.local_port else { return Ok(()) };
        let specs = layout::streams(&self.parameters).map_err(|error| error.to_string())?;
        if specs.iter().any(|spec| spec.link == Link::Connect) {
            return Err(
                "--cport: --rr --connect opens a new connection for each request, each from another port".to_owned()
            );
        }
        if usize::from(first) + specs.len() > 65_536 {
            return Err(format!("--cport {first}: {} sockets need ports above 65535", specs.len()));
        }
        Ok(())
    }
}
