//! Metrics of one test that comparisons use.

use landspeed_model::{Metric, RunDocument};
use landspeed_results::figures;

/// Metrics of one test. Metrics that are not visible are `None` and have no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Goodput at the receivers in the steady phase, bits/s.
    pub goodput_bps: f64,
    /// Median smoothed RTT of the sender in the steady phase, µs.
    pub rtt_p50_us: Option<f64>,
    /// 99th percentile of the same, µs.
    pub rtt_p99_us: Option<f64>,
    /// Retransmitted segments per GB delivered.
    pub retransmits_per_gb: Option<f64>,
    /// CPU time of both hosts per Gb delivered, all cores, seconds; of one host if both are the same.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU that serves the receiver's receive queues of all streams; `None` if there are several.
    pub receive_queue_cpu: Option<u32>,
}

impl Measurement {
    /// Extracts the metrics from the document of a test in one direction; `None` if nothing arrived in its steady
    /// phase.
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
