//! Send and receive loops of TCP bulk streams.
//!
//! A loop owns its socket's data path and its counters; its plan is complete before it starts. Stop flags are
//! seen within [`TICK_MS`] because the sockets have send and receive timeouts of that length.

mod receiver;
mod sender;

pub use receiver::{ReceiveOutcome, ReceivePlan, receive_stream};
pub use sender::{SendOutcome, SendPlan, chunk_bytes, send_stream};

/// Longest time a data call blocks before the loop checks its stop flag, milliseconds.
pub const TICK_MS: u64 = 20;

/// Whether an error of a data call only means to check the stop flag and retry.
fn is_tick(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}
