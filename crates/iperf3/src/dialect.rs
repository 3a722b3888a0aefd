//! Framing and end of the data in a test with iperf3.

use landspeed_flow::dialect::{Datagrams, Dialect};
use landspeed_model::{Direction, Parameters};

/// Maximum block size of iperf3 with TCP, bytes.
pub const MAX_BLOCK: u64 = 1 << 20;
/// Default block size of iperf3 with TCP, bytes.
pub const BLOCK: u64 = 128 * 1024;

/// iperf3's framing for a test. `wide` selects 64-bit datagram numbers.
pub fn dialect(parameters: &Parameters, wide: bool) -> Dialect {
    Dialect {
        datagrams: Datagrams::Timeval { wide },
        block_bytes: Some(block_bytes(parameters)),
        streams_stay_open: true,
    }
}

/// Block size of a TCP test, bytes. A server that only receives reads blocks of this size: a block that fits
/// its cache is read fastest, and an incomplete block is not counted (3.16 and later).
pub fn block_bytes(p: &Parameters) -> u64 {
    p.write_bytes.min(if p.direction == Direction::Upload { BLOCK } else { MAX_BLOCK }).max(1)
}
