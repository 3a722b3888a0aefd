//! What one request/response stream has to do.

use std::fmt;

use landspeed_model::{RrMode, RrParameters, RrSize};

/// Which transport carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One connection; messages follow each other.
    Tcp,
    /// One datagram for each message.
    Udp,
}

impl Transport {
    /// The largest message, bytes: 1 MiB over TCP, the largest IPv4 datagram's payload over UDP.
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

/// When requests leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// The next request leaves when the response has arrived.
    ClosedLoop,
    /// Requests leave on an absolute schedule, answered or not; latency counts from the intended time.
    OpenLoop {
        /// Requests per second of this stream.
        rate_per_s: f64,
    },
    /// Closed loop, with a new connection for each transaction; latency includes the connect (TCP only).
    Connect,
}

impl Load {
    /// The load that `parameters` ask of each stream.
    pub fn from_parameters(parameters: &RrParameters) -> Result<Self, PlanError> {
        match (parameters.mode, parameters.rate_per_s) {
            (RrMode::ClosedLoop, _) => Ok(Self::ClosedLoop),
            (RrMode::Connect, _) => Ok(Self::Connect),
            (RrMode::OpenLoop, Some(rate_per_s)) => Ok(Self::OpenLoop { rate_per_s }),
            (RrMode::OpenLoop, None) => Err(PlanError::NoRate),
        }
    }

    /// The mode's name in documents.
    pub const fn mode(self) -> RrMode {
        match self {
            Self::ClosedLoop => RrMode::ClosedLoop,
            Self::OpenLoop { .. } => RrMode::OpenLoop,
            Self::Connect => RrMode::Connect,
        }
    }
}

/// Everything a requester or a responder needs to know, beyond its socket. Times are this host's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq)]
pub struct RrPlan {
    /// Message sizes; they are not in the data, so both ends must hold the same.
    pub size: RrSize,
    /// When requests leave.
    pub load: Load,
    /// When the first request leaves.
    pub t0_ns: u64,
    /// Requests intended before this are the omitted part (but see `idle_until_ns`).
    pub measure_from_ns: u64,
    /// Requests intended before this, if any, are kept apart as the idle path's; see [`super::ProbePlan`].
    pub idle_until_ns: Option<u64>,
    /// No request is intended at or after this. `u64::MAX` leaves the end to [`crate::shared::Stop`].
    pub end_ns: u64,
    /// How long after the end outstanding responses are waited for.
    pub grace_ns: u64,
    /// UDP: a request without a response for this long is unanswered.
    pub response_timeout_ns: u64,
    /// Stop after this many transactions.
    pub max_transactions: Option<u64>,
    /// Busy-poll instead of sleeping: costs a core of the requester.
    pub spin: bool,
}

impl RrPlan {
    /// Default for `grace_ns`.
    pub const GRACE_NS: u64 = 2_000_000_000;
    /// Default for `response_timeout_ns`.
    pub const RESPONSE_TIMEOUT_NS: u64 = 1_000_000_000;
    /// The fastest open loop, requests per second of one stream.
    pub const MAX_RATE_PER_S: f64 = 1e7;
    /// The slowest open loop: one request in about eleven days.
    pub const MIN_RATE_PER_S: f64 = 1e-6;

    /// A plan from `t0_ns` to `end_ns`: all of it measured, nothing omitted, defaults for the rest.
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
            max_transactions: None,
            spin: false,
        }
    }

    /// Whether the plan can be carried out over `transport`. Both ends check: the peer's plan is the outside world.
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

    /// When a responder gives up on a requester that neither closes nor is stopped.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.end_ns.saturating_add(self.grace_ns)
    }
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A message is empty or too large for the transport.
    #[error("a message of {bytes} bytes is out of range: give 1 to {max} bytes")]
    MessageSize {
        /// What was asked for.
        bytes: u32,
        /// The transport's limit.
        max: u32,
    },
    /// An open loop without a rate.
    #[error("an open loop needs a rate: give requests per second, for example 1000")]
    NoRate,
    /// A rate that is not a number, or out of range.
    #[error("a rate of {rate_per_s} requests per second is out of range: give 0.000001 to 10000000")]
    Rate {
        /// What was asked for, printed.
        rate_per_s: String,
    },
    /// Connections do not exist in UDP.
    #[error("connect/request/response needs TCP: UDP has no connections")]
    ConnectOverUdp,
    /// Connect mode asked of a function that was handed one connection.
    #[error("connect/request/response makes its own connections")]
    NeedsConnector,
    /// The end lies before the start.
    #[error("the measurement would end before it begins")]
    EndsBeforeItBegins,
    /// A response timeout of zero would call every request unanswered.
    #[error("a response timeout of zero leaves no time to answer")]
    NoTimeout,
}
