//! A protocol that the server speaks at some of its addresses: how its connections and datagrams open, and who serves
//! them.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use super::Shared;

/// A protocol of the server. It sees no client that its networks exclude.
pub trait Service: Send + Sync {
    /// Its name in events.
    fn name(&self) -> &'static str;

    /// What failed when it cannot listen, for [`FlowError::Setup`](crate::error::FlowError::Setup).
    fn listening(&self, transport: &str, addr: SocketAddr) -> String {
        format!("listen on {transport} {addr}")
    }

    /// What a connection that was just accepted has to show.
    fn opening(&self) -> Box<dyn Opening>;

    /// The answer to a client without a free slot.
    fn busy(&self) -> Vec<u8>;

    /// The answer to a client that may not connect; `None` closes the connection.
    fn not_allowed(&self) -> Option<Vec<u8>>;

    /// Answers a datagram that came to the unconnected UDP socket of a door. Must not block.
    fn answer(&self, datagram: &Datagram<'_>, shared: &Shared);
}

/// What a connection has shown so far, and what becomes of it.
pub trait Opening: Send {
    /// Reads without blocking what is there; true when it is whole.
    ///
    /// # Errors
    /// When the connection ended or shows what no client of the protocol would.
    fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool>;

    /// Decides what a connection is for and takes it there, without blocking. Gives back one that has to show more.
    fn admit(self: Box<Self>, visitor: Visitor, shared: &Arc<Shared>) -> Option<(Visitor, Box<dyn Opening>)>;
}

/// A connection at a door; it does not block.
#[derive(Debug)]
pub struct Visitor {
    /// The connection.
    pub stream: TcpStream,
    /// Its client.
    pub peer: SocketAddr,
    /// Connections accepted before it at the same door.
    pub order: u64,
}

/// A datagram at a door.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The socket it came to.
    pub udp: &'a UdpSocket,
    /// Where that is bound.
    pub bound: SocketAddr,
    /// Where it came from, IPv4 not wrapped in IPv6.
    pub from: SocketAddr,
    /// Its first bytes, up to [`super::door::MAX_DATAGRAM`].
    pub bytes: &'a [u8],
}
