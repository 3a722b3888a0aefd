//! One end of a test: stream threads, the sampler beside them, and the report they add up to.
//!
//! Both hosts run this same code. Everything was agreed before it starts: sockets are open, the start lies a moment
//! ahead on the local monotonic clock. What is still said to the peer while the test runs is the business of a [`Peer`].

mod bulk;
mod connector;
mod drive;
mod live;
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
pub use live::{LiveReading, TcpState, UdpState};
pub use phases::{Cuts, DRAIN_NS};
pub use plan::{DataSocket, EndPlan, Job, Side, StreamPlan};
pub use report::{EndReport, RrReport, StreamReport};
pub use sampler::{MAX_SAMPLES, affordable_interval_ns, keep_affordable};
pub use slots::{IDLE_NS, RrSlot};
pub use watch::Watch;
