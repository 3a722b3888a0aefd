//! Connections from a chosen loopback address; every operation has a timeout.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Timeout of each connect, read or write of an attacker.
pub const IO_TIMEOUT: Duration = Duration::from_secs(2);

/// One action of an attacker.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// The attacked server.
    pub server: SocketAddr,
    /// Source address of the attacker.
    pub source: Ipv4Addr,
    /// Number of the action, unique within the attack.
    pub number: u64,
}

impl Action {
    /// Opens a TCP connection from the attacker's address to the server.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::V4(SocketAddrV4::new(self.source, 0)).into())?;
        socket.connect_timeout(&self.server.into(), IO_TIMEOUT)?;
        socket.set_read_timeout(Some(IO_TIMEOUT))?;
        socket.set_write_timeout(Some(IO_TIMEOUT))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    }

    /// Opens a TCP connection and sends the first bytes.
    pub fn connect_and_send(&self, bytes: &[u8]) -> io::Result<TcpStream> {
        let mut stream = self.connect()?;
        stream.write_all(bytes)?;
        Ok(stream)
    }
}

/// Closes a connection with a RST, like a crashed host.
pub fn reset(stream: TcpStream) {
    let socket = Socket::from(stream);
    // Fails only if the socket is already closed.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Reads exactly `N` bytes.
pub fn read_array<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Error for an answer that violates the protocol.
pub fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
