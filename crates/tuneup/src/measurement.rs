//! The figures of one test that a comparison needs.

use landspeed_model::{Metric, RunDocument};
use landspeed_results::figures;

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
    pub fn of(document: &RunDocument) -> Option<Self> {
        let figures = figures(document);
        let us = |metric| figures.get(metric).map(|ns| ns * 1e-3);
        let mut serving = document.streams.iter().map(|stream| stream.receiver.as_ref()?.incoming_cpu);
        let first = serving.next().flatten();
        Some(Self {
            goodput_bps: figures.get(Metric::Goodput).filter(|rate| *rate > 0.0)?,
            rtt_p50_us: us(Metric::RttP50),
            rtt_p99_us: us(Metric::RttP99),
            retransmits_per_gb: figures.get(Metric::Retransmits),
            cpu_s_per_gb: figures.get(Metric::Cpu),
            receive_queue_cpu: first.filter(|_| serving.all(|cpu| cpu == first)),
        })
    }
}
