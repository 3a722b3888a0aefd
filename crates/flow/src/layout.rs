//! Streams of a test: client and server derive the same list from the same parameters.

use landspeed_model::{Direction, Parameters, Protocol, RrMode};

use crate::end::{Job, RrSlot, Side};

/// Number of the latency probe's stream. Numbers from here on are not bulk streams of the accounting.
pub const PROBE_STREAM: u32 = 1_000_000;
/// Number of the path MTU probe's flow.
pub const MTU_STREAM: u32 = 1_000_001;

/// Specification of one stream, before it has a socket.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSpec {
    /// Stream number within the test.
    pub id: u32,
    /// Position among the streams of its direction.
    pub index: u32,
    /// Direction of its data.
    pub direction: Direction,
    /// Type of its connection.
    pub link: Link,
    /// Task of the client's thread.
    pub client_job: Job,
    /// Task of the server's thread.
    pub server_job: Job,
}

impl StreamSpec {
    /// Returns the task of the given side's thread.
    pub fn job(&self, side: Side) -> Job {
        match side {
            Side::Client => self.client_job,
            Side::Server => self.server_job,
        }
    }
}

/// Type of a stream's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// One TCP connection.
    Tcp,
    /// One UDP flow.
    Udp,
    /// A TCP connection for each transaction.
    Connect,
}

/// Returns all streams of a test.
///
/// # Errors
/// When the request/response parameters are invalid; [`crate::validate::check`] rejects them first.
pub fn streams(parameters: &Parameters) -> Result<Vec<StreamSpec>, crate::rr::PlanError> {
    let mut specs = Vec::new();
    let link = match parameters.protocol {
        Protocol::Tcp | Protocol::TcpRr => Link::Tcp,
        Protocol::Udp | Protocol::UdpRr => Link::Udp,
    };
    match parameters.protocol {
        Protocol::Tcp | Protocol::Udp => {
            for &direction in parameters.direction.parts() {
                for index in 0..parameters.streams {
                    let (client_job, server_job) = match direction {
                        Direction::Download => (Job::Receive, Job::Send),
                        Direction::Upload | Direction::Both => (Job::Send, Job::Receive),
                    };
                    let id = specs.len() as u32;
                    specs.push(StreamSpec { id, index, direction, link, client_job, server_job });
                }
            }
            if let Some(slot) = RrSlot::probe(parameters) {
                specs.push(StreamSpec {
                    id: PROBE_STREAM,
                    index: 0,
                    direction: Direction::Upload,
                    link,
                    client_job: Job::Probe(slot),
                    server_job: Job::Echo(slot),
                });
            }
        }
        Protocol::TcpRr | Protocol::UdpRr => {
            let connect = parameters.rr.as_ref().is_some_and(|rr| rr.mode == RrMode::Connect);
            let link = if connect { Link::Connect } else { link };
            for slot in RrSlot::all(parameters)? {
                for index in 0..parameters.streams {
                    let id = specs.len() as u32;
                    let (client_job, server_job) = (Job::Request(slot), Job::Respond(slot));
                    specs.push(StreamSpec { id, index, direction: Direction::Upload, link, client_job, server_job });
                }
            }
        }
    }
    Ok(specs)
}

/// Assumed duration of a test without a time limit, nanoseconds.
pub const ASSUMED_DURATION_NS: u64 = 3_600_000_000_000;

/// Returns the duration of a test, including the omitted phase, in nanoseconds; `None` without a time limit.
pub fn duration_ns(parameters: &Parameters) -> Option<u64> {
    let one = parameters.time_ns? + parameters.omit_ns;
    Some(one)
}
