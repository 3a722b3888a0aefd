//! Report of one side of a test.

use landspeed_model::{Direction, HostSeries, LatencyResult, LatencyUnderLoad, Sample, StreamEnd};
use serde::{Deserialize, Serialize};

use super::phases::PhaseEnds;
use super::plan::{EndPlan, Side, StreamPlan};
use super::sampler::{Sampled, Series};
use super::task::{Finished, describe_tcp};
use super::transactions;
use crate::control::plausible::Plausible;
use crate::control::{make_printable, printable};
use crate::layout::StreamSpec;

/// Measurements of one side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EndReport {
    /// Bulk streams.
    pub streams: Vec<StreamReport>,
    /// Request/response and probe streams: CPU time and errors.
    pub rr_streams: Vec<RrReport>,
    /// Ends of the phases.
    pub cuts: PhaseEnds,
    /// Host counters during the test.
    pub host: HostSeries,
    /// Results of the local requesters, one for each message size.
    pub latency: Vec<LatencyResult>,
    /// Result of the local latency probes.
    pub under_load: Option<LatencyUnderLoad>,
    /// Requests that could not be met exactly.
    pub notes: Vec<String>,
    /// Other tests of this server that sent or received at the same time; `None` if unknown.
    #[serde(default)]
    pub other_tests: Option<u32>,
    /// Whether the server was stopped during the test, so that it ended early.
    #[serde(default)]
    pub server_stopped: bool,
}

impl EndReport {
    /// Whether the report has readings over time. A report with only a peer's totals has none.
    pub fn has_timeline(&self) -> bool {
        self.cuts.end_ns.is_some()
    }

    /// Returns the report before the first byte: addresses, and the state of the TCP connections.
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

    /// Parses and checks a server's report of a test with these streams.
    ///
    /// # Errors
    /// Same as [`Self::parse_side_report`].
    pub fn parse_server_report(text: &str, specs: &[StreamSpec]) -> Result<Self, String> {
        Self::parse_side_report(Side::Server, text, specs)
    }

    /// Parses and checks the report of one side of a test with these streams.
    ///
    /// # Errors
    /// A message: the text is not a report, its numbers are impossible, or it has streams that the test did not
    /// have.
    pub fn parse_side_report(side: Side, text: &str, specs: &[StreamSpec]) -> Result<Self, String> {
        let unknown = |e: serde_json::Error| format!("not a report we know: {}", printable(&e.to_string(), 200));
        // Control characters are escaped in JSON: few reports need this copy.
        let cleaned = text.contains('\\').then(|| clean(text).map_err(unknown)).transpose()?;
        let text = cleaned.as_deref().unwrap_or(text);
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

/// Makes all strings of a report printable.
fn clean(text: &str) -> serde_json::Result<String> {
    let mut value = serde_json::from_str(text)?;
    make_printable(&mut value);
    serde_json::to_string(&value)
}

/// One bulk stream on one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamReport {
    /// Stream number within the test.
    pub id: u32,
    /// Direction of its data.
    pub direction: Direction,
    /// Whether this side is the sender.
    pub sends: bool,
    /// Address and port of this side's socket.
    pub local_addr: String,
    /// Peer address, as this side sees it.
    pub peer_addr: String,
    /// Counters and samples of this side.
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

/// One request/response stream on one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RrReport {
    /// Stream number within the test.
    pub id: u32,
    /// Address and port of this side's socket.
    #[serde(default)]
    pub local_addr: String,
    /// Peer address, as this side sees it.
    #[serde(default)]
    pub peer_addr: String,
    /// CPU time of its thread, nanoseconds.
    pub thread_cpu_ns: Option<u64>,
    /// Error that ended it early.
    pub error: Option<String>,
}

impl RrReport {
    fn new(stream: &StreamPlan, end: StreamEnd) -> Self {
        let StreamReport { id, local_addr, peer_addr, end, .. } = StreamReport::new(stream, end);
        Self { id, local_addr, peer_addr, thread_cpu_ns: end.thread_cpu_ns, error: end.error }
    }
}

/// Builds the report of one side from samples and final counts.
pub(super) fn build(plan: &EndPlan, sampled: Sampled, finished: Vec<Finished>, host: HostSeries) -> EndReport {
    let Sampled { series, mut cuts, moved_all_bytes, cpu_ns, gaps } = sampled;
    let last_byte = moved_all_bytes.then(|| LastByte::of(plan, &finished)).flatten();
    if let Some(last) = &last_byte {
        cuts.end_with_last_byte(last.t_ns);
    }
    let mut report = EndReport { cuts, host, ..EndReport::default() };
    report.host.sampler_cpu_ns = report.host.sampler_cpu_ns.max(cpu_ns);
    report.host.sampler_gaps = gaps;
    let mut outcomes = Vec::new();
    for ((stream, series), finished) in plan.streams.iter().zip(series).zip(finished) {
        let Finished { mut end, rr, notes, .. } = finished;
        report.notes.extend(notes);
        if let Some(rr) = rr {
            outcomes.push((stream.job, rr));
        }
        if stream.job.is_bulk() {
            let last_ns = last_byte.as_ref().filter(|last| last.sent == stream.job.sends()).map(|last| last.t_ns);
            end.samples = close_samples(stream, series, &end, last_ns);
            report.streams.push(StreamReport::new(stream, end));
        } else {
            report.rr_streams.push(RrReport::new(stream, end));
        }
    }
    (report.latency, report.under_load) = transactions::merge(&outcomes, plan.t0_ns);
    report
}

/// The last byte of a test with a byte limit on this side.
struct LastByte {
    /// Nanoseconds after the start.
    t_ns: u64,
    /// Whether it was sent and acknowledged, on a side that receives nothing; received otherwise.
    sent: bool,
}

impl LastByte {
    /// `None` if a stream failed, or has bytes that were never acknowledged.
    fn of(plan: &EndPlan, finished: &[Finished]) -> Option<Self> {
        let bulk = || plan.streams.iter().zip(finished).filter(|(stream, _)| stream.job.is_bulk());
        let sent = bulk().all(|(stream, _)| stream.job.sends());
        let times = bulk().filter(|(stream, _)| stream.job.sends() == sent).map(|(_, finished)| {
            let end = &finished.end;
            let t_ns = if sent { finished.acked_ns } else { end.last_byte_ns };
            let failed = end.error.is_some() || (t_ns.is_none() && end.bytes > 0);
            // Streams that got no share of the bytes do not count.
            (!failed).then(|| t_ns.filter(|_| end.bytes > 0))
        });
        let times: Vec<u64> = times.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
        Some(Self { t_ns: times.into_iter().max()?, sent })
    }
}

fn close_samples(stream: &StreamPlan, series: Series, end: &StreamEnd, last_byte_ns: Option<u64>) -> Vec<Sample> {
    let packets = match &end.udp {
        Some(udp) if stream.job.sends() => udp.sent_packets,
        Some(udp) => udp.delivered_packets,
        None => 0,
    };
    series.into_samples(end.bytes, packets, last_byte_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_a_report_have_no_line_breaks() {
        let text = clean(r#"{"end":{"congestion":"cubic\nTHROUGHPUT=1\u001b[2J"},"n":9007199254740993,"x":0.1}"#);
        assert_eq!(
            text.expect("JSON"),
            r#"{"end":{"congestion":"cubic\\nTHROUGHPUT=1\\u{1b}[2J"},"n":9007199254740993,"x":0.1}"#
        );
        let report = r#"{"streams":[{"id":1,"direction":"upload","sends":true,"local_addr":"a\nb"}]}"#;
        let why = EndReport::parse_server_report(report, &[]).map(drop).expect_err("fields are missing");
        assert!(!why.contains('\n'), "{why}");
    }
}
