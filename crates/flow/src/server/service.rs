//! Interface of a protocol on the server's listening addresses: opening bytes of connections, datagrams, and
//! who serves them.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use super::Shared;

/// A protocol of the server. Clients from excluded networks never reach it.
pub trait Service: Send + Sync {
    /// Returns its name in events.
    fn name(&self) -> &'static str;

    /// Returns the failed operation for [`FlowError::Setup`](crate::error::FlowError::Setup) if it cannot listen.
    fn listening(&self, transport: &str, addr: SocketAddr) -> String {
        format!("listen on {transport} {addr}")
    }

    /// Returns the parser of a new connection's opening bytes.
    fn opening(&self) -> Box<dyn OpeningParser>;

    /// Returns the answer to a client without a free slot.
    fn busy(&self) -> Vec<u8>;

    /// Returns the answer to a client that may not connect; `None` closes the connection.
    fn not_allowed(&self) -> Option<Vec<u8>>;

    /// Answers a datagram on the unconnected UDP socket. Must not block.
    fn answer(&self, datagram: &Datagram<'_>, shared: &Shared);
}

/// Parser of a connection's opening bytes.
pub trait OpeningParser: Send {
    /// Reads available bytes without blocking; true when the opening is complete.
    ///
    /// # Errors
    /// When the connection ended or the bytes are invalid in this protocol.
    fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool>;

    /// Passes the connection on according to its opening, without blocking. Returns it with another parser if more
    /// bytes are needed.
    fn admit(
        self: Box<Self>,
        pending: PendingConnection,
        shared: &Arc<Shared>,
    ) -> Option<(PendingConnection, Box<dyn OpeningParser>)>;
}

/// An accepted, non-blocking connection that is not admitted yet.
#[derive(Debug)]
pub struct PendingConnection {
    /// Socket in non-blocking mode.
    pub stream: TcpStream,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Sequence number of the connection on its listening address.
    pub order: u64,
}

/// A datagram received on a listening address.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Socket that received it.
    pub udp: &'a UdpSocket,
    /// Address that the socket is bound to.
    pub bound: SocketAddr,
    /// Source address; IPv4-mapped IPv6 is converted to IPv4.
    pub from: SocketAddr,
    /// Its first bytes, up to [`super::door::MAX_DATAGRAM`].
    pub bytes: &'a [u8],
}
