//! Request/response: how long a question takes to be answered, and how many can be asked.
//!
//! A requester sends messages of a size and counts whole round trips, never halved; its responder answers each with a
//! message of another. Sizes are in the [`RrPlan`] both ends hold, not in the data. In a closed loop the next request
//! leaves when the response has arrived: two system calls for each transaction at each end. In an open loop requests
//! leave on an absolute schedule and latency counts from the intended time, so that a stall shows in every request it
//! delayed (no coordinated omission). Everything blocks for 20 ms at most before it looks at its [`crate::shared::Stop`]
//! and deadlines.

mod cadence;
mod connect;
mod flights;
mod merge;
mod outcome;
mod plan;
mod probe;
mod respond;
mod run;
pub mod sizes;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

pub use connect::request_connect;
pub use merge::merge;
pub use outcome::{Phase, ResponderOutcome, RrError, RrOutcome, Tally};
pub use plan::{Load, PlanError, RrPlan, Transport};
pub use probe::ProbePlan;
pub use respond::{respond_tcp, respond_udp};
pub use tcp::request_tcp;
pub use udp::request_udp;
