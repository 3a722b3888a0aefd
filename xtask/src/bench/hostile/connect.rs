//! Connections from a chosen address of the loopback network, every operation bounded in time.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// How long an attacker waits for one connect, read or write.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// One act of an attacker.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The attacked server.
    pub server: SocketAddr,
    /// The address that the attacker connects from.
    pub source: Ipv4Addr,
    /// Number of the act, unique within the attack.
    pub number: u64,
}

impl Visit {
    /// A TCP connection from the attacker's address to the server.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::V4(SocketAddrV4::new(self.source, 0)).into())?;
        socket.connect_timeout(&self.server.into(), PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    }

    /// A TCP connection with its first bytes already sent.
    pub fn connect_and_send(&self, bytes: &[u8]) -> io::Result<TcpStream> {
        let mut stream = self.connect()?;
        stream.write_all(bytes)?;
        Ok(stream)
    }
}

/// Closes a connection with a reset, as a host that vanishes does.
pub fn reset(stream: TcpStream) {
    let socket = Socket::from(stream);
    // Fails only on a socket that is already gone.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Reads exactly `N` bytes.
pub fn read_array<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The peer did not answer as the protocol says.
pub fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
