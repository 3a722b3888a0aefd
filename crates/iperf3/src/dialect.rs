//! How the data of a test with iperf3 is framed and ended.

use landspeed_flow::dialect::{Datagrams, Dialect};
use landspeed_model::{Direction, Parameters};

/// Largest block of iperf3's TCP, bytes.
pub const MAX_BLOCK: u64 = 1 << 20;
/// Its default, bytes.
pub const BLOCK: u64 = 128 * 1024;

/// iperf3's dialect for a test. `wide`: datagrams carry numbers of 64 bits.
pub fn dialect(parameters: &Parameters, wide: bool) -> Dialect {
    Dialect {
        datagrams: Datagrams::Timeval { wide },
        block_bytes: Some(block_bytes(parameters)),
        streams_stay_open: true,
    }
}

/// Length of the blocks that a TCP test is made of, bytes. A server that only reads does so block by block, and what stays
/// in its cache is read fastest; of a block that is not whole it counts nothing (3.16 and later).
pub fn block_bytes(p: &Parameters) -> u64 {
    p.write_bytes.min(if p.direction == Direction::Upload { BLOCK } else { MAX_BLOCK }).max(1)
}
