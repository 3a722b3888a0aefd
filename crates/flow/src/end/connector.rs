//! Connections for connect/request/response, a new one for each transaction.

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
    /// Address of the server.
    pub server: std::net::SocketAddr,
    /// Local address to bind; `None` lets the kernel choose.
    pub bind: Option<std::net::SocketAddr>,
    /// Stream number within the test.
    pub stream: u32,
    /// Authenticates each connection.
    pub credentials: Credentials,
}

impl Connector {
    /// Connects and completes the preface within 2 s, or sooner when `stop` is set.
    pub(super) fn connect(&self, stop: &AtomicBool) -> std::io::Result<TcpStream> {
        const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
        let deadline = Deadline::after(CONNECT_TIMEOUT).with_stop(stop);
        let socket = socket2::Socket::new(socket2::Domain::for_address(self.server), socket2::Type::STREAM, None)?;
        if let Some(local) = self.bind {
            socket.bind(&local.into())?;
        }
        patient::connect(&socket, self.server, &deadline)?;
        let mut stream: TcpStream = socket.into();
        entry::open_data_connection(&mut stream, self.server, self.stream, &self.credentials, &deadline)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        // Close with a reset: thousands of connections in TIME_WAIT on the client would exhaust its ports.
        let _ = socket2::SockRef::from(&stream.as_fd()).set_linger(Some(Duration::ZERO));
        Ok(stream)
    }
}
