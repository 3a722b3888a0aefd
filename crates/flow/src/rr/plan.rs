//! Plan of one request/response stream.

use std::fmt;

use landspeed_model::{RrMode, RrParameters, RrSize};

/// Transport protocol of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One connection; messages are sent back to back.
    Tcp,
    /// One datagram per message.
    Udp,
}

impl Transport {
    /// Returns the largest message, bytes: 1 MiB over TCP, the largest IPv4 UDP payload over UDP.
    pub const fn max_message_bytes(self) -> u32 {
        match self {
            Self::Tcp => 1 << 20,
            Self::Udp => 65_507,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Timing of the requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// The next request is sent when the response has arrived.
    ClosedLoop,
    /// Requests are sent on an absolute schedule, answered or not; latency counts from the intended time.
    OpenLoop {
        /// Request rate of this stream, per second.
        rate_per_s: f64,
    },
    /// Closed loop, with a new connection for each transaction; latency includes the connect (TCP only).
    Connect,
}

impl Load {
    /// Returns the load of each stream according to `parameters`.
    pub fn from_parameters(parameters: &RrParameters) -> Result<Self, PlanError> {
        match (parameters.mode, parameters.rate_per_s) {
            (RrMode::ClosedLoop, _) => Ok(Self::ClosedLoop),
            (RrMode::Connect, _) => Ok(Self::Connect),
            (RrMode::OpenLoop, Some(rate_per_s)) => Ok(Self::OpenLoop { rate_per_s }),
            (RrMode::OpenLoop, None) => Err(PlanError::NoRate),
        }
    }

    /// Returns the mode's name in documents.
    pub const fn mode(self) -> RrMode {
        match self {
            Self::ClosedLoop => RrMode::ClosedLoop,
            Self::OpenLoop { .. } => RrMode::OpenLoop,
            Self::Connect => RrMode::Connect,
        }
    }
}

/// Everything a requester or a responder needs besides its socket. Times are this host's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq)]
pub struct RrPlan {
    /// Message sizes; they are not in the data, so both sides need the same.
    pub size: RrSize,
    /// Timing of the requests.
    pub load: Load,
    /// Time of the first request.
    pub t0_ns: u64,
    /// Requests intended before this time are omitted (except those before `idle_until_ns`).
    pub measure_from_ns: u64,
    /// Requests intended before this time are counted separately, for the idle path; see [`super::ProbePlan`].
    pub idle_until_ns: Option<u64>,
    /// Requests are intended only before this time. With `u64::MAX` the measurement lasts until
    /// [`crate::shared::Stop`].
    pub end_ns: u64,
    /// Time to wait for outstanding responses after the end, nanoseconds.
    pub grace_ns: u64,
    /// UDP: timeout after which a request counts as unanswered, nanoseconds.
    pub response_timeout_ns: u64,
    /// Width of the bins in which latencies are kept over time, nanoseconds; `None` keeps none.
    pub timeline_bin_ns: Option<u64>,
    /// Maximum number of transactions.
    pub max_transactions: Option<u64>,
    /// Busy-poll instead of sleeping; uses one core of the requester fully.
    pub spin: bool,
}

impl RrPlan {
    /// Default of `grace_ns`.
    pub const GRACE_NS: u64 = 2_000_000_000;
    /// Default of `response_timeout_ns`.
    pub const RESPONSE_TIMEOUT_NS: u64 = 1_000_000_000;
    /// Highest rate of an open loop, requests per second of one stream.
    pub const MAX_RATE_PER_S: f64 = 1e7;
    /// Lowest rate of an open loop: one request in about eleven days.
    pub const MIN_RATE_PER_S: f64 = 1e-6;

    /// Creates a plan from `t0_ns` to `end_ns` with everything measured and defaults for the rest.
    pub fn new(size: RrSize, load: Load, t0_ns: u64, end_ns: u64) -> Self {
        Self {
            size,
            load,
            t0_ns,
            measure_from_ns: t0_ns,
            idle_until_ns: None,
            end_ns,
            grace_ns: Self::GRACE_NS,
            response_timeout_ns: Self::RESPONSE_TIMEOUT_NS,
            timeline_bin_ns: None,
            max_transactions: None,
            spin: false,
        }
    }

    /// Checks that the plan is possible over `transport`. Both sides check: the peer's plan is untrusted input.
    pub fn check(&self, transport: Transport) -> Result<(), PlanError> {
        for bytes in [self.size.request_bytes, self.size.response_bytes] {
            if bytes == 0 || bytes > transport.max_message_bytes() {
                return Err(PlanError::MessageSize { bytes, max: transport.max_message_bytes() });
            }
        }
        match self.load {
            Load::OpenLoop { rate_per_s } if !(Self::MIN_RATE_PER_S..=Self::MAX_RATE_PER_S).contains(&rate_per_s) => {
                Err(PlanError::Rate { rate_per_s: format!("{rate_per_s:e}") })
            }
            Load::Connect if transport == Transport::Udp => Err(PlanError::ConnectOverUdp),
            _ if self.t0_ns > self.end_ns => Err(PlanError::EndsBeforeItBegins),
            _ if self.response_timeout_ns == 0 => Err(PlanError::NoTimeout),
            _ => Ok(()),
        }
    }

    /// Time at which a responder gives up on a requester that neither closes nor is stopped.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.end_ns.saturating_add(self.grace_ns)
    }
}

/// Reasons why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A message is empty or too large for the transport.
    #[error("a message of {bytes} bytes is out of range: give 1 to {max} bytes")]
    MessageSize {
        /// Requested message size.
        bytes: u32,
        /// Limit of the transport.
        max: u32,
    },
    /// The open loop has no rate.
    #[error("an open loop needs a rate: give requests per second, for example 1000")]
    NoRate,
    /// The rate is not a number, or out of range.
    #[error("a rate of {rate_per_s} requests per second is out of range: give 0.000001 to 10000000")]
    Rate {
        /// Requested rate as text.
        rate_per_s: String,
    },
    /// Connect mode is not possible over UDP.
    #[error("connect/request/response needs TCP: UDP has no connections")]
    ConnectOverUdp,
    /// Connect mode was requested of a function that has a single connection.
    #[error("connect/request/response makes its own connections")]
    NeedsConnector,
    /// The end is before the start.
    #[error("the measurement would end before it begins")]
    EndsBeforeItBegins,
    /// A response timeout of zero would make every request unanswered.
    #[error("a response timeout of zero leaves no time to answer")]
    NoTimeout,
}
