//! Request/response: latency and rate of transactions.
//!
//! A requester sends messages of one size and measures full round trips, never halved; the responder answers
//! each with a message of another size. The sizes are in the [`RrPlan`] of both sides, not in the data. In a
//! closed loop the next request is sent when the response has arrived: two system calls per transaction on each
//! side. In an open loop requests are sent on an absolute schedule and latency counts from the intended time,
//! so that a stall affects every request it delayed (no coordinated omission). Calls block for at most 20 ms
//! before [`crate::shared::Stop`] and the deadlines are checked.

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
mod timeline;
mod udp;

pub use connect::request_connect;
pub use merge::merge;
pub use outcome::{Phase, ResponderOutcome, RrError, RrOutcome, Tally};
pub use plan::{Load, PlanError, RrPlan, Transport};
pub use probe::ProbePlan;
pub use respond::{respond_tcp, respond_udp};
pub use tcp::request_tcp;
pub use timeline::Timeline;
pub use udp::request_udp;
