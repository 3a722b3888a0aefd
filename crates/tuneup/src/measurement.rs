//! The figures of one test that a comparison needs.

use landspeed_model::{Direction, PhaseName, RunDocument, Stream};
use landspeed_stats::quantile;

/// CPU time per Gb from time per byte.
const BYTES_PER_GB: f64 = 1e9 / 8.0;

/// What one test gave. What was not visible is `None` and bounds nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Payload rate at the receivers in the steady phase, bits/s.
    pub goodput_bps: f64,
    /// Median of the sender's smoothed RTT in the steady phase, microseconds.
    pub rtt_p50_us: Option<f64>,
    /// Its 99th percentile.
    pub rtt_p99_us: Option<f64>,
    /// Retransmitted segments for each GB delivered.
    pub retransmits_per_gb: Option<f64>,
    /// CPU time of the hosts for each Gb delivered, all cores, seconds; of one host where both ends are on the same.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU that serves the receive queue of all streams at the receiver; `None` where several do.
    pub receive_queue_cpu: Option<u32>,
}

impl Measurement {
    /// From the document of a test in one direction. `None` if nothing arrived in its steady phase.
    pub fn of(document: &RunDocument, same_host: bool) -> Option<Self> {
        let goodput_bps = document.summary.goodput_bps.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let rtts = rtts_us(document);
        let costs = [&document.cost.client, &document.cost.server];
        let costs = costs.into_iter().take(if same_host { 1 } else { 2 });
        let per_byte: Option<Vec<f64>> = costs.map(|cost| cost.as_ref()?.host_ns_per_byte).collect();
        let mut serving = document.streams.iter().map(|stream| stream.receiver.as_ref()?.incoming_cpu);
        let first = serving.next().flatten();
        let delivered = document.summary.bytes_delivered as f64;
        Some(Self {
            goodput_bps,
            rtt_p50_us: quantile(&rtts, 0.5),
            rtt_p99_us: quantile(&rtts, 0.99),
            retransmits_per_gb: document.summary.retransmits.map(|count| count as f64 * 1e9 / delivered.max(1.0)),
            cpu_s_per_gb: per_byte.map(|ns| ns.iter().sum::<f64>() * 1e-9 * BYTES_PER_GB),
            receive_queue_cpu: first.filter(|_| serving.all(|cpu| cpu == first)),
        })
    }
}

/// The senders' smoothed RTTs in the steady phase.
fn rtts_us(document: &RunDocument) -> Vec<f64> {
    let steady = |direction: Direction| {
        let phase = document.phases.iter().find(|p| p.direction == direction && p.name == PhaseName::Steady);
        phase.map_or((0, u64::MAX), |phase| (phase.start_ns, phase.end_ns))
    };
    let of = |stream: &Stream| -> Vec<f64> {
        let (from, to) = steady(stream.direction);
        let samples = stream.sender.iter().flat_map(|sender| &sender.samples);
        let within = samples.filter(|sample| (from..=to).contains(&sample.t_ns));
        within.filter_map(|sample| Some(f64::from(sample.tcp.as_ref()?.rtt_us))).filter(|rtt| *rtt > 0.0).collect()
    };
    document.streams.iter().flat_map(of).collect()
}
