//! Latency under load: a slow open loop next to bulk streams.

use std::net::{TcpStream, UdpSocket};

use landspeed_model::{LatencyUnderLoad, RrSize};

use super::merge::{merge, merge_phases};
use super::outcome::RrOutcome;
use super::plan::{Load, RrPlan};
use super::{request_tcp, request_udp};
use crate::shared::{Counters, Stop};

/// Width of the bins of latencies over time, nanoseconds.
const TIMELINE_BIN_NS: u64 = 100_000_000;

/// Schedule of the probes, with the idle and the loaded part. Times are this host's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbePlan {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Sizes of request and response.
    pub size: RrSize,
    /// Time of the first probe.
    pub start_ns: u64,
    /// Start of the load: probes intended before this time measure the idle path.
    pub idle_until_ns: u64,
    /// Start of the steady load: probes between `idle_until_ns` and this time count for neither part.
    pub loaded_from_ns: u64,
    /// End of the load. With `u64::MAX` it is set by [`Stop::stop_sending`].
    pub end_ns: u64,
}

impl ProbePlan {
    /// Default rate, probes per second.
    pub const RATE_PER_S: f64 = 100.0;
    /// UDP: time after which a probe counts as unanswered, nanoseconds. Longer than the queues of most access links: a probe that
    /// is given up earlier would be missing where the latency is worst.
    const TIMEOUT_NS: u64 = 10_000_000_000;
    /// Default message sizes.
    pub const SIZE: RrSize = RrSize { request_bytes: 64, response_bytes: 64 };

    /// Creates default probes from `start_ns` to `end_ns`, with the start of the load at `boundary_ns`.
    pub fn new(start_ns: u64, boundary_ns: u64, end_ns: u64) -> Self {
        Self {
            rate_per_s: Self::RATE_PER_S,
            size: Self::SIZE,
            start_ns,
            idle_until_ns: boundary_ns,
            loaded_from_ns: boundary_ns,
            end_ns,
        }
    }

    /// Returns the plan of the requester. Its responder has the same plan, with times on the responder's clock.
    pub fn to_plan(&self) -> RrPlan {
        let load = Load::OpenLoop { rate_per_s: self.rate_per_s };
        RrPlan {
            measure_from_ns: self.loaded_from_ns,
            idle_until_ns: (self.idle_until_ns > self.start_ns).then_some(self.idle_until_ns),
            timeline_bin_ns: Some(TIMELINE_BIN_NS),
            response_timeout_ns: Self::TIMEOUT_NS,
            ..RrPlan::new(self.size, load, self.start_ns, self.end_ns)
        }
    }

    /// Probes over `stream`: the outcome's `idle` and `measured` are the two parts.
    ///
    /// A lost segment delays the probes after it: over TCP the latency under load is that of an application that
    /// needs its bytes in order.
    pub fn run_tcp(&self, stream: TcpStream, counters: &Counters, stop: &Stop) -> RrOutcome {
        request_tcp(stream, &self.to_plan(), counters, stop)
    }

    /// Probes over `socket`: the outcome's `idle` and `measured` are the two parts.
    pub fn run_udp(&self, socket: UdpSocket, counters: &Counters, stop: &Stop) -> RrOutcome {
        request_udp(socket, &self.to_plan(), counters, stop)
    }

    /// Merges the two parts of the probes' outcomes for the document.
    pub fn under_load(&self, outcomes: &[RrOutcome]) -> LatencyUnderLoad {
        let plan = self.to_plan();
        // A test has one probe: its points are in order.
        let timelines = outcomes.iter().filter_map(|outcome| outcome.timeline.as_ref());
        let idle: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.idle.as_ref()).collect();
        LatencyUnderLoad {
            idle: (!idle.is_empty()).then(|| merge_phases(idle, &plan)),
            loaded: merge(outcomes, &plan),
            responsiveness: None,
            timeline: timelines.flat_map(|timeline| timeline.points(self.idle_until_ns)).collect(),
        }
    }
}
