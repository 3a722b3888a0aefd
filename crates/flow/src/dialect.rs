//! Framing and termination of a test's data, which depend on the control protocol.

use crate::udp::header::Format;

/// Properties of the data that depend on the control protocol. The default is landspeed's own protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Header of UDP datagrams.
    pub datagrams: Datagrams,
    /// Block length of TCP streams, bytes, if the peer counts only whole blocks.
    pub block_bytes: Option<u64>,
    /// Streams stay open at the end of the test, which a control message announces. Otherwise each stream ends: TCP
    /// by end of file, UDP by the sender's final count.
    pub streams_stay_open: bool,
}

/// Header format of UDP datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Datagrams {
    /// Landspeed header with the stream's tag.
    #[default]
    Tagged,
    /// iperf3 header: seconds, microseconds and sequence number.
    Timeval {
        /// Whether sequence numbers have 64 bits; 32 otherwise.
        wide: bool,
    },
}

impl Dialect {
    /// landspeed's own protocol.
    pub const LANDSPEED: Self = Self { datagrams: Datagrams::Tagged, block_bytes: None, streams_stay_open: false };

    /// Returns the datagram format of a UDP stream.
    pub fn format(self, tag: u32) -> Format {
        match self.datagrams {
            Datagrams::Tagged => Format::Landspeed { tag },
            Datagrams::Timeval { wide } => Format::Timeval { wide },
        }
    }
}
