//! Series of a document as a Parquet file: intervals and samples of each stream, in long format.
//!
//! A row is an interval (`source` is `interval`) or a sample of a stream's `sender` or `receiver`; columns that
//! do not apply are null. Times are nanoseconds after the start of the test; counters of samples are
//! cumulative, as in the document.

use landspeed_model::{Direction, PhaseName, RunDocument, Sample, Stream};
use landspeed_results::Document;

use crate::ArchiveError;
use crate::table::{Column, write};

/// Columns of a series file.
#[derive(Default)]
struct Rows {
    flow: Vec<Option<String>>,
    stream: Vec<Option<i64>>,
    direction: Vec<Option<String>>,
    source: Vec<Option<String>>,
    phase: Vec<Option<String>>,
    start_ns: Vec<Option<i64>>,
    end_ns: Vec<Option<i64>>,
    bytes: Vec<Option<i64>>,
    packets: Vec<Option<i64>>,
    goodput_bps: Vec<Option<f64>>,
    rtt_ns: Vec<Option<i64>>,
    cwnd_packets: Vec<Option<i64>>,
    retransmits: Vec<Option<i64>>,
    unacked_packets: Vec<Option<i64>>,
    snd_wnd_bytes: Vec<Option<i64>>,
    pacing_bps: Vec<Option<f64>>,
    delivery_bps: Vec<Option<f64>>,
}

/// Returns the series of a document as Parquet; `None` if it has none.
///
/// # Errors
/// If the file cannot be encoded.
pub fn series(document: &Document) -> Result<Option<Vec<u8>>, ArchiveError> {
    let mut rows = Rows::default();
    match document {
        Document::Run(run) => rows.add(None, run),
        Document::Lab(lab) => {
            for flow in &lab.flows {
                if let Some(run) = &flow.run {
                    rows.add(Some(&flow.name), run);
                }
            }
        }
        _ => return Ok(None),
    }
    if rows.stream.is_empty() {
        return Ok(None);
    }
    rows.finish().map(Some)
}

impl Rows {
    fn add(&mut self, flow: Option<&str>, run: &RunDocument) {
        for stream in &run.streams {
            for interval in &stream.intervals {
                self.begin(flow, stream, "interval");
                self.phase.push(Some(phase(interval.phase).to_owned()));
                self.start_ns.push(Some(interval.start_ns as i64));
                self.end_ns.push(Some(interval.end_ns as i64));
                self.bytes.push(Some(interval.bytes as i64));
                self.packets.push(interval.packets.map(|packets| packets as i64));
                let span_ns = interval.end_ns.saturating_sub(interval.start_ns);
                self.goodput_bps.push((span_ns > 0).then(|| interval.bytes as f64 * 8e9 / span_ns as f64));
                self.kernel(None);
            }
            for (source, end) in [("sender", &stream.sender), ("receiver", &stream.receiver)] {
                for sample in end.iter().flat_map(|end| &end.samples) {
                    self.begin(flow, stream, source);
                    self.phase.push(None);
                    self.start_ns.push(Some(sample.t_ns as i64));
                    self.end_ns.push(None);
                    self.bytes.push(Some(sample.bytes as i64));
                    self.packets.push(sample.packets.map(|packets| packets as i64));
                    self.goodput_bps.push(None);
                    self.kernel(Some(sample));
                }
            }
        }
    }

    fn begin(&mut self, flow: Option<&str>, stream: &Stream, source: &str) {
        self.flow.push(flow.map(str::to_owned));
        self.stream.push(Some(i64::from(stream.id)));
        let direction = match stream.direction {
            Direction::Download => "download",
            Direction::Upload | Direction::Both => "upload",
        };
        self.direction.push(Some(direction.to_owned()));
        self.source.push(Some(source.to_owned()));
    }

    /// Appends the values of `tcp_info` in a sample, or nulls.
    fn kernel(&mut self, sample: Option<&Sample>) {
        let tcp = sample.and_then(|sample| sample.tcp.as_deref());
        let bps = |bytes_per_s: Option<u64>| bytes_per_s.map(|rate| rate as f64 * 8.0);
        self.rtt_ns.push(tcp.map(|tcp| i64::from(tcp.rtt_us) * 1000));
        self.cwnd_packets.push(tcp.map(|tcp| i64::from(tcp.snd_cwnd)));
        self.retransmits.push(tcp.map(|tcp| i64::from(tcp.total_retrans)));
        self.unacked_packets.push(tcp.map(|tcp| i64::from(tcp.unacked)));
        self.snd_wnd_bytes.push(tcp.and_then(|tcp| tcp.snd_wnd_bytes).map(i64::from));
        self.pacing_bps.push(bps(tcp.and_then(|tcp| tcp.pacing_rate_bytes_per_s)));
        self.delivery_bps.push(bps(tcp.and_then(|tcp| tcp.delivery_rate_bytes_per_s)));
    }

    fn finish(self) -> Result<Vec<u8>, ArchiveError> {
        write(
            "series",
            &[
                Column::Text("flow", self.flow),
                Column::Integer("stream", self.stream),
                Column::Text("direction", self.direction),
                Column::Text("source", self.source),
                Column::Text("phase", self.phase),
                Column::Integer("start_ns", self.start_ns),
                Column::Integer("end_ns", self.end_ns),
                Column::Integer("bytes", self.bytes),
                Column::Integer("packets", self.packets),
                Column::Real("goodput_bps", self.goodput_bps),
                Column::Integer("rtt_ns", self.rtt_ns),
                Column::Integer("cwnd_packets", self.cwnd_packets),
                Column::Integer("retransmits", self.retransmits),
                Column::Integer("unacked_packets", self.unacked_packets),
                Column::Integer("snd_wnd_bytes", self.snd_wnd_bytes),
                Column::Real("pacing_bps", self.pacing_bps),
                Column::Real("delivery_bps", self.delivery_bps),
            ],
        )
    }
}

fn phase(name: PhaseName) -> &'static str {
    match name {
        PhaseName::Startup => "startup",
        PhaseName::Omitted => "omitted",
        PhaseName::Steady => "steady",
        PhaseName::Drain => "drain",
    }
}
