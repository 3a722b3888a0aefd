//! One side of a test: stream threads, the sampler, and the report built from both.
//!
//! Client and server run the same code. All parameters are agreed before it starts: sockets are open, and the
//! start time lies shortly ahead on the local monotonic clock. A [`Peer`] handles the messages during the test.

mod bulk;
mod connector;
mod drive;
pub mod phases;
mod placement;
mod plan;
mod report;
mod sampler;
mod slots;
mod streams;
mod task;
mod transactions;
mod watch;

pub use connector::Connector;
pub use drive::{Peer, drive};
pub use phases::{PhaseEnds, drain_ns};
pub use plan::{DataSocket, EndPlan, Job, Side, StreamPlan};
pub use report::{EndReport, RrReport, StreamReport};
pub use sampler::{MAX_SAMPLES, MAX_UNRECORDED_NS, finest_interval_ns, limit_sampling};
pub use slots::{IDLE_NS, RrSlot};
pub use watch::Watch;
