//! Connections of connect/request/response, a new one for each transaction.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::control::credentials::Credentials;
use crate::control::deadline::Deadline;
use crate::control::{entry, patient};

/// Makes connections for connect/request/response.
#[derive(Debug)]
pub struct Connector {
    /// Where to.
    pub server: std::net::SocketAddr,
    /// From where.
    pub bind: Option<std::net::SocketAddr>,
    /// Number of the stream.
    pub stream: u32,
    /// What each connection shows.
    pub credentials: Credentials,
}

impl Connector {
    /// Connects and is answered, within 2 s in all, sooner when `stop` is set.
    pub(super) fn connect(&self, stop: &AtomicBool) -> std::io::Result<TcpStream> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let deadline = Deadline::after(PATIENCE).or_stop(stop);
        let socket = socket2::Socket::new(socket2::Domain::for_address(self.server), socket2::Type::STREAM, None)?;
        if let Some(local) = self.bind {
            socket.bind(&local.into())?;
        }
        patient::connect(&socket, self.server, &deadline)?;
        let mut stream: TcpStream = socket.into();
        entry::enter(&mut stream, self.server, self.stream, &self.credentials, &deadline)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        // A closed connection lingers in TIME_WAIT on our side; thousands of them would use up the ports.
        let _ = socket2::SockRef::from(&stream.as_fd()).set_linger(Some(Duration::ZERO));
        Ok(stream)
    }
}
