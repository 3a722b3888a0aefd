//! UDP sockets: batches, segmentation offload, receive metadata.
//!
//! These functions work on a socket that the caller has created, bound and connected: set options once
//! ([`set_receive_buffer`], [`enable_gro`], …), then transfer batches with a [`SendBatch`] or a [`ReceiveBatch`].
//! Both allocate all their memory at creation; the calls that transfer data allocate nothing.

mod options;
mod receive;
mod send;
mod source;

pub use options::{
    MtuDiscovery, drain_error_queue, enable_gro, enable_send_errors, enable_timestamps, gso_supported,
    minimize_timer_slack, set_io_timeout, set_mtu_discovery, set_receive_buffer, set_send_buffer, socket_drops,
};
pub use receive::{Message, ReceiveBatch};
pub use send::{SendBatch, SendFailure};
pub use source::send_from;

/// Maximum payload of one segmentation-offload (GSO) packet, bytes: the smaller of the limits of IPv4 (65,507)
/// and of an IPv6 packet without jumbogram option, whose 40-byte header counts (65,487).
pub const MAX_BATCH_BYTES: usize = 65_487;
/// Maximum payload of a single IPv4 datagram, bytes: 65,535 less 20 for IP and 8 for UDP.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;
/// Maximum segments per GSO packet since Linux 6.9 (`UDP_MAX_SEGMENTS`, include/linux/udp.h).
pub const MAX_SEGMENTS: usize = 128;
/// Maximum segments per GSO packet before Linux 6.9.
pub const MAX_SEGMENTS_OLD: usize = 64;
