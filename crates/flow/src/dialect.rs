//! How the data of a test is framed and ended, which depends on the protocol that agreed on the test.

use crate::udp::header::Format;

/// What follows from a control protocol for the data. The default is landspeed's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// What UDP datagrams start with.
    pub datagrams: Datagrams,
    /// Length of the blocks that TCP streams are made of, bytes, where the other end counts whole blocks only.
    pub block_bytes: Option<u64>,
    /// Streams stay open at the end of the test, which is a message on the control connection. Otherwise each stream ends:
    /// TCP by its end of file, UDP by the sender's final count.
    pub streams_stay_open: bool,
}

/// What the datagrams of a UDP test start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Datagrams {
    /// Landspeed's header with the stream's tag.
    #[default]
    Tagged,
    /// Seconds, microseconds and a number.
    Timeval {
        /// Whether numbers have 64 bits; 32 otherwise.
        wide: bool,
    },
}

impl Dialect {
    /// Landspeed's own.
    pub const LANDSPEED: Self = Self { datagrams: Datagrams::Tagged, block_bytes: None, streams_stay_open: false };

    /// How the datagrams of a UDP stream are numbered.
    pub fn format(self, tag: u32) -> Format {
        match self.datagrams {
            Datagrams::Tagged => Format::Landspeed { tag },
            Datagrams::Timeval { wide } => Format::Timeval { wide },
        }
    }
}
