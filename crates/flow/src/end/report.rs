//! What one end says of its part of a test.

use landspeed_model::{Direction, HostSeries, LatencyResult, LatencyUnderLoad, Sample, StreamEnd};
use serde::{Deserialize, Serialize};

use super::phases::Cuts;
use super::plan::{EndPlan, Side, StreamPlan};
use super::sampler::{Sampled, Series};
use super::task::{Finished, describe_tcp};
use super::transactions;
use crate::control::plausible::Plausible;
use crate::control::printable;
use crate::layout::StreamSpec;

/// One end's report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EndReport {
    /// Its bulk streams.
    pub streams: Vec<StreamReport>,
    /// Request/response and probe streams: what their threads cost and whether they failed.
    pub rr_streams: Vec<RrReport>,
    /// Where its timeline was cut.
    pub cuts: Cuts,
    /// What its host did.
    pub host: HostSeries,
    /// Results of local requesters, one for each size.
    pub latency: Vec<LatencyResult>,
    /// Result of the local probes.
    pub under_load: Option<LatencyUnderLoad>,
    /// What could not be done as asked.
    pub notes: Vec<String>,
}

impl EndReport {
    /// Whether the end was watched while it lasted. A peer's totals alone are a report without a timeline.
    pub fn has_timeline(&self) -> bool {
        self.cuts.end_ns.is_some()
    }

    /// What can be said before the first byte: who is connected to whom, and with what.
    pub fn at_start(streams: &[StreamPlan]) -> Self {
        let opened = |stream: &StreamPlan| {
            let mut end = StreamEnd::default();
            if let Some(fd) = stream.socket.fd().filter(|_| stream.socket.is_tcp()) {
                describe_tcp(stream, fd, &mut end);
            }
            StreamReport::new(stream, end)
        };
        Self {
            streams: streams.iter().filter(|stream| stream.job.is_bulk()).map(opened).collect(),
            ..Self::default()
        }
    }

    /// Reads a server's report of a test with these streams.
    ///
    /// # Errors
    /// As [`Self::of_side`].
    pub fn of_server(text: &str, specs: &[StreamSpec]) -> Result<Self, String> {
        Self::of_side(Side::Server, text, specs)
    }

    /// Reads the report of one side of a test with these streams.
    ///
    /// # Errors
    /// A message: the text is not a report, its figures are impossible, or it has streams that the test did not have.
    pub fn of_side(side: Side, text: &str, specs: &[StreamSpec]) -> Result<Self, String> {
        let unknown = |e: serde_json::Error| format!("not a report we know: {}", printable(&e.to_string(), 200));
        serde_json::from_str::<Plausible>(text).map_err(unknown)?;
        let report: Self = serde_json::from_slice(text.as_bytes()).map_err(unknown)?;
        let mut seen = Vec::new();
        for stream in &report.streams {
            let known = specs.iter().any(|spec| {
                let job = spec.job(side);
                let same = (spec.id, spec.direction) == (stream.id, stream.direction);
                same && job.is_bulk() && job.sends() == stream.sends
            });
            let in_order = |pair: &[Sample]| pair[0].t_ns <= pair[1].t_ns && pair[0].bytes <= pair[1].bytes;
            if !known || seen.contains(&stream.id) || !stream.end.samples.windows(2).all(in_order) {
                return Err(format!("what it says of stream {} cannot be", stream.id));
            }
            seen.push(stream.id);
        }
        Ok(report)
    }
}

/// One bulk stream at one end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamReport {
    /// Number within the test.
    pub id: u32,
    /// Which way its data moves.
    pub direction: Direction,
    /// Whether the local end sends.
    pub sends: bool,
    /// This end's address.
    pub local_addr: String,
    /// The other end's, as seen here.
    pub peer_addr: String,
    /// The end itself.
    pub end: StreamEnd,
}

impl StreamReport {
    fn new(stream: &StreamPlan, end: StreamEnd) -> Self {
        let (local, peer) = stream.socket.addresses();
        let text = |addr: Option<std::net::SocketAddr>| addr.map_or_else(String::new, crate::address::display);
        Self {
            id: stream.id,
            direction: stream.direction,
            sends: stream.job.sends(),
            local_addr: text(local),
            peer_addr: text(peer),
            end,
        }
    }
}

/// One request/response stream at one end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RrReport {
    /// Number within the test.
    pub id: u32,
    /// This end's address.
    #[serde(default)]
    pub local_addr: String,
    /// The other end's, as seen here.
    #[serde(default)]
    pub peer_addr: String,
    /// CPU time of its thread, nanoseconds.
    pub thread_cpu_ns: u64,
    /// Why it ended early.
    pub error: Option<String>,
}

impl RrReport {
    fn new(stream: &StreamPlan, end: StreamEnd) -> Self {
        let StreamReport { id, local_addr, peer_addr, end, .. } = StreamReport::new(stream, end);
        Self { id, local_addr, peer_addr, thread_cpu_ns: end.thread_cpu_ns, error: end.error }
    }
}

/// Puts the pieces of an end together.
pub(super) fn build(plan: &EndPlan, sampled: Sampled, finished: Vec<Finished>, host: HostSeries) -> EndReport {
    let Sampled { series, cuts, cpu_ns, gaps } = sampled;
    let mut report = EndReport { cuts, host, ..EndReport::default() };
    report.host.sampler_cpu_ns = report.host.sampler_cpu_ns.max(cpu_ns);
    report.host.sampler_gaps = gaps;
    let mut outcomes = Vec::new();
    for ((stream, series), finished) in plan.streams.iter().zip(series).zip(finished) {
        let Finished { mut end, rr, notes } = finished;
        report.notes.extend(notes);
        if let Some(rr) = rr {
            outcomes.push((stream.job, rr));
        }
        if stream.job.is_bulk() {
            end.samples = close_samples(stream, series, &end);
            report.streams.push(StreamReport::new(stream, end));
        } else {
            report.rr_streams.push(RrReport::new(stream, end));
        }
    }
    (report.latency, report.under_load) = transactions::merge(&outcomes, plan.t0_ns);
    report
}

fn close_samples(stream: &StreamPlan, series: Series, end: &StreamEnd) -> Vec<Sample> {
    let packets = match &end.udp {
        Some(udp) if stream.job.sends() => udp.sent_packets,
        Some(udp) => udp.delivered_packets,
        None => 0,
    };
    series.into_samples(end.bytes, packets)
}
