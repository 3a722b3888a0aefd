//! What one stream's requester or responder found.

use std::io;

use landspeed_stats::LatencyHistogram;

use super::plan::PlanError;

/// Requests of one phase. `scheduled = sent + unsent` and `sent = completed + unanswered`, exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests whose intended time fell inside the phase.
    pub scheduled: u64,
    /// Of these, requests handed to the kernel whole.
    pub sent: u64,
    /// Of these, requests whose response arrived whole and in time.
    pub completed: u64,
    /// Of the sent, requests that were not answered: lost, timed out, or the peer gone.
    pub unanswered: u64,
}

impl Tally {
    /// Requests that were due and could not be sent (the peer read too slowly, or went away).
    pub const fn unsent(&self) -> u64 {
        self.scheduled - self.sent
    }

    /// Whether every scheduled request is accounted for, once.
    pub const fn holds(&self) -> bool {
        self.scheduled >= self.sent && self.sent == self.completed + self.unanswered
    }

    /// Adds `other` to this.
    pub fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.completed += other.completed;
        self.unanswered += other.unanswered;
    }
}

/// Requests intended in `from_ns..to_ns`, and the latencies of those completed.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Begin of the phase, monotonic nanoseconds.
    pub from_ns: u64,
    /// End of the phase, or when requests stopped being offered if that was earlier.
    pub to_ns: u64,
    /// What became of its requests.
    pub tally: Tally,
    /// Round-trip times of the completed, whenever they completed.
    pub histogram: LatencyHistogram,
}

impl Phase {
    pub(super) fn new(from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns, to_ns, tally: Tally::default(), histogram: LatencyHistogram::new() }
    }

    /// Length, nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What a requester measured. Always partial results, whatever went wrong; `error` says what did.
#[derive(Debug, Clone)]
pub struct RrOutcome {
    /// From the end of the omitted part to the end.
    pub measured: Phase,
    /// The idle part before the load came, if the plan has one.
    pub idle: Option<Phase>,
    /// Requests in neither: the omitted part.
    pub omitted: Tally,
    /// Open loop: how late requests left, against their intended time. This is our own error, and part of the latency.
    pub send_late: LatencyHistogram,
    /// When the first request was sent, monotonic nanoseconds.
    pub first_ns: Option<u64>,
    /// When the last response arrived, monotonic nanoseconds.
    pub last_ns: Option<u64>,
    /// System calls made from the first request to the end.
    pub syscalls: u64,
    /// UDP: responses that came after their request had been given up (the request stays unanswered).
    pub late: u64,
    /// UDP: second and further responses to one request.
    pub duplicate: u64,
    /// UDP: datagrams that answer no request: wrong length, unknown sequence number.
    pub junk: u64,
    /// UDP: times the peer's host said that the port is closed. Connect: connections that failed.
    pub refused: u64,
    /// What cut the measurement short, if anything.
    pub error: Option<RrError>,
}

impl RrOutcome {
    /// All phases together.
    pub fn total(&self) -> Tally {
        let mut total = self.omitted;
        total.add(&self.measured.tally);
        if let Some(idle) = &self.idle {
            total.add(&idle.tally);
        }
        total
    }
}

/// What a responder did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponderOutcome {
    /// Requests answered whole.
    pub answered: u64,
    /// UDP: datagrams that are not requests: wrong length.
    pub junk: u64,
    /// UDP: responses that the kernel did not take.
    pub unsent: u64,
    /// When the first request arrived, monotonic nanoseconds.
    pub first_ns: Option<u64>,
    /// When the responder ended, monotonic nanoseconds.
    pub last_ns: Option<u64>,
    /// System calls made.
    pub syscalls: u64,
    /// What went wrong, if anything. A requester that closes is not an error.
    pub error: Option<RrError>,
}

/// What cut a request/response measurement short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RrError {
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// End of stream while requests were outstanding or still due.
    #[error("the peer closed the connection before the measurement ended")]
    PeerClosed,
    /// More bytes than all requests together ask for: the stream cannot be read any further.
    #[error("the peer sent more bytes than the requests asked for: the ends disagree on the response size")]
    Surplus,
    /// Responses were still missing when the grace period ended.
    #[error("the peer fell silent: {unanswered} requests were not answered before the deadline")]
    PeerSilent {
        /// How many were outstanding.
        unanswered: u64,
    },
    /// The peer's host said again and again that nothing listens.
    #[error("nothing answers at the peer's UDP port (refused {times} times in a row)")]
    Refused {
        /// How many times in a row.
        times: u32,
    },
    /// Connections failed again and again.
    #[error("cannot connect, {times} times in a row: {cause}")]
    Connect {
        /// How many times in a row.
        times: u32,
        /// What the last attempt said.
        cause: String,
    },
    /// A system call failed.
    #[error("cannot {operation}: {cause}")]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// What the system said.
        cause: String,
    },
}

impl RrError {
    /// Turns an error of `operation` into ours: the ways a TCP peer goes away are one.
    pub(super) fn io(operation: &'static str, error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => Self::PeerClosed,
            _ => Self::Io { operation, cause: error.to_string() },
        }
    }
}
