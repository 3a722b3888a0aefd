//! Outcomes of a stream's requester or responder.

use std::io;

use landspeed_stats::LatencyHistogram;

use super::plan::PlanError;
use super::timeline::Timeline;

/// Request counts of one phase. `scheduled = sent + unsent` and `sent = completed + unanswered`, exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests with an intended time in the phase.
    pub scheduled: u64,
    /// Scheduled requests that were passed to the kernel completely.
    pub sent: u64,
    /// Sent requests whose response arrived completely and in time.
    pub completed: u64,
    /// Sent requests without a response: lost, timed out, or the peer disconnected.
    pub unanswered: u64,
}

impl Tally {
    /// Number of requests that were due but not sent (the peer read too slowly, or disconnected).
    pub const fn unsent(&self) -> u64 {
        self.scheduled - self.sent
    }

    /// Whether the counts balance.
    pub const fn is_balanced(&self) -> bool {
        self.scheduled >= self.sent && self.sent == self.completed + self.unanswered
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.completed += other.completed;
        self.unanswered += other.unanswered;
    }
}

/// Requests intended in `from_ns..to_ns`, and the latencies of the completed ones.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Begin of the phase, monotonic nanoseconds.
    pub from_ns: u64,
    /// End of the phase, or the time requests stopped being offered if that was earlier, monotonic nanoseconds.
    pub to_ns: u64,
    /// Counts of its requests.
    pub tally: Tally,
    /// Round-trip times of the completed requests, even if they completed after the phase.
    pub histogram: LatencyHistogram,
}

impl Phase {
    pub(super) fn new(from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns, to_ns, tally: Tally::default(), histogram: LatencyHistogram::new() }
    }

    /// End minus start, nanoseconds; 0 if the end is not after the start.
    pub const fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// Outcome of a requester. Results are partial if `error` is set.
#[derive(Debug, Clone)]
pub struct RrOutcome {
    /// Phase from the end of the omitted part to the end.
    pub measured: Phase,
    /// Phase on the idle path before the load, if the plan has one.
    pub idle: Option<Phase>,
    /// Latencies over time, if the plan asks for them.
    pub timeline: Option<Timeline>,
    /// Counts of requests in neither phase: the omitted part.
    pub omitted: Tally,
    /// Open loop: delay of sends after their intended time. This is an error of the requester, and part of the
    /// latency.
    pub send_late: LatencyHistogram,
    /// Time of the first request, monotonic nanoseconds.
    pub first_ns: Option<u64>,
    /// Time of the last response, monotonic nanoseconds.
    pub last_ns: Option<u64>,
    /// System calls from the first request to the end.
    pub syscalls: u64,
    /// UDP: responses that arrived after the timeout (the request stays unanswered).
    pub late: u64,
    /// UDP: duplicate responses.
    pub duplicate: u64,
    /// UDP: datagrams that do not match a request: wrong length, unknown sequence number.
    pub junk: u64,
    /// UDP: ICMP "port unreachable" errors. Connect: connections that failed.
    pub refused: u64,
    /// Error that ended the measurement early.
    pub error: Option<RrError>,
}

impl RrOutcome {
    /// Returns the sum over all phases.
    pub fn total(&self) -> Tally {
        let mut total = self.omitted;
        total.add(&self.measured.tally);
        if let Some(idle) = &self.idle {
            total.add(&idle.tally);
        }
        total
    }
}

/// Outcome of a responder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponderOutcome {
    /// Number of requests answered completely.
    pub answered: u64,
    /// UDP: datagrams that are not requests: wrong length.
    pub junk: u64,
    /// UDP: responses that the kernel did not accept.
    pub unsent: u64,
    /// Time of the first request, monotonic nanoseconds.
    pub first_ns: Option<u64>,
    /// Time the responder ended, monotonic nanoseconds.
    pub last_ns: Option<u64>,
    /// Number of system calls.
    pub syscalls: u64,
    /// Error that ended it. A requester that closes is not an error.
    pub error: Option<RrError>,
}

/// Errors that end a request/response measurement early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RrError {
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// End of stream while responses were outstanding or requests still due.
    #[error("the peer closed the connection before the measurement ended")]
    PeerClosed,
    /// More bytes than all responses together: the stream cannot be parsed further.
    #[error("the peer sent more bytes than the requests asked for: the ends disagree on the response size")]
    ExcessBytes,
    /// Responses were still outstanding when the grace period ended.
    #[error("the peer fell silent: {unanswered} requests were not answered before the deadline")]
    PeerSilent {
        /// Number of outstanding responses.
        unanswered: u64,
    },
    /// The peer's host answered repeatedly with ICMP "port unreachable".
    #[error("nothing answers at the peer's UDP port (refused {times} times in a row)")]
    Refused {
        /// Number of consecutive refusals.
        times: u32,
    },
    /// Connections failed repeatedly.
    #[error("cannot connect, {times} times in a row: {cause}")]
    Connect {
        /// Number of consecutive failures.
        times: u32,
        /// Error of the last attempt.
        cause: String,
    },
    /// A system call failed.
    #[error("cannot {operation}: {cause}")]
    Io {
        /// Name of the operation.
        operation: &'static str,
        /// Error text of the system.
        cause: String,
    },
}

impl RrError {
    /// Converts an error of `operation`; all errors of a disconnected TCP peer become one.
    pub(super) fn io(operation: &'static str, error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => Self::PeerClosed,
            _ => Self::Io { operation, cause: error.to_string() },
        }
    }
}
