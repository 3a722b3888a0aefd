//! Streams of a test: client and server derive the same list from the same parameters.

use std::borrow::Cow;

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
                let link = if parameters.probe_udp { Link::Udp } else { link };
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

/// Returns the parameters of the sockets of one stream: its DSCP instead of those of all streams.
pub fn of_stream<'a>(parameters: &'a Parameters, spec: &StreamSpec) -> Cow<'a, Parameters> {
    let classes = &parameters.stream_dscp;
    match classes.len() {
        0 => Cow::Borrowed(parameters),
        n => Cow::Owned(Parameters { dscp: Some(classes[spec.index as usize % n]), ..parameters.clone() }),
    }
}

/// Assumed duration of a test without a time limit, nanoseconds.
pub const ASSUMED_DURATION_NS: u64 = 3_600_000_000_000;

/// Returns the duration of a test, including the omitted phase, in nanoseconds; `None` without a time limit.
pub fn duration_ns(parameters: &Parameters) -> Option<u64> {
    let one = parameters.time_ns? + parameters.omit_ns;
    Some(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_both_directions_have_the_classes_in_turn() {
        let parameters = Parameters {
            direction: Direction::Both,
            streams: 4,
            stream_dscp: vec![0, 8, 40, 46],
            probe_rate_per_s: Some(100.0),
            probe_udp: true,
            ..Parameters::default()
        };
        let specs = streams(&parameters).expect("a test");
        let classes: Vec<_> = specs.iter().map(|spec| of_stream(&parameters, spec).dscp.expect("a class")).collect();
        assert_eq!(classes, [0, 8, 40, 46, 0, 8, 40, 46, 0]);
        let probe = specs.last().expect("the probe");
        assert_eq!((probe.id, probe.link, specs[0].link), (PROBE_STREAM, Link::Udp, Link::Tcp));
        let plain = Parameters { stream_dscp: Vec::new(), dscp: Some(10), ..parameters.clone() };
        assert_eq!(of_stream(&plain, &specs[1]).dscp, Some(10));
    }
}
