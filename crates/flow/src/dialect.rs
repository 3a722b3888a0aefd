//! Whose rules the two ends of a test follow.

use landspeed_model::Parameters;

use crate::iperf3::wanted::block_bytes;
use crate::udp::header::Format;

/// A control protocol, and what follows from it for the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Ours: the end of each stream is told, by an end of file or by the sender's final count.
    #[default]
    Landspeed,
    /// iperf3's: the test ends by a word on the control connection, and streams stay as they are until it is said.
    Iperf3 {
        /// UDP datagrams carry numbers of 64 bits.
        wide: bool,
    },
}

impl Dialect {
    /// How the datagrams of a UDP stream are numbered.
    pub fn format(self, tag: u32) -> Format {
        match self {
            Self::Landspeed => Format::Landspeed { tag },
            Self::Iperf3 { wide } => Format::Iperf3 { wide },
        }
    }

    /// Length of the blocks that TCP streams are made of, bytes, where they are.
    pub fn block_bytes(self, parameters: &Parameters) -> Option<u64> {
        match self {
            Self::Landspeed => None,
            Self::Iperf3 { .. } => Some(block_bytes(parameters)),
        }
    }

    /// Whether streams end by an end of file.
    pub fn closes_streams(self) -> bool {
        self == Self::Landspeed
    }
}
