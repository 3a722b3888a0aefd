//! TCP bulk streams: the loops that move bytes.
//!
//! A loop owns its socket's data path and its counters; everything it needs to know was decided before it started.
//! Stop flags are seen within [`TICK_MS`] because the sockets carry a send and a receive timeout of that length.

mod receiver;
mod sender;

pub use receiver::{ReceiveOutcome, ReceivePlan, receive_stream};
pub use sender::{SendOutcome, SendPlan, send_stream};

/// How long a data system call may block before the loop looks at its stop flag, milliseconds.
pub const TICK_MS: u64 = 20;

/// Whether an error of a data call only means "look at the stop flag and try again".
fn is_tick(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}
