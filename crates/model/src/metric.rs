//! Metrics by which results are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direction of improvement of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher values are better: rates.
    Higher,
    /// Lower values are better: costs, losses and delays.
    Lower,
}

/// A metric of a run, of a flow in the lab, or of another program's document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Goodput: payload rate at the receivers in the steady phase, all streams.
    Goodput,
    /// The same for the reverse direction of `--bidir`.
    ReverseGoodput,
    /// Retransmitted segments for each GB delivered.
    Retransmits,
    /// UDP: share of packets lost.
    Loss,
    /// Median of the senders' smoothed RTT in the steady phase.
    RttP50,
    /// 99th percentile of the senders' smoothed RTT in the steady phase.
    RttP99,
    /// Request/response, or latency probes during bulk streams: median latency.
    LatencyP50,
    /// Request/response, or latency probes during bulk streams: 99th percentile of the latency.
    LatencyP99,
    /// Request/response: transactions per second.
    Transactions,
    /// CPU time of both hosts, all cores, for each Gb delivered.
    Cpu,
    /// Jain's fairness index of the streams' goodputs: 1 if all are equal, 1/n if one stream gets everything.
    StreamBalance,
    /// Coefficient of variation of the goodput between intervals of the steady phase.
    GoodputCv,
    /// UDP: interarrival jitter (RFC 3550).
    Jitter,
    /// Lab: packets dropped by switch queues.
    Drops,
    /// Goodput × distance, the metric of the Land Speed Record.
    Record,
}

impl Metric {
    /// All metrics, most important first.
    pub const ALL: [Self; 15] = [
        Self::Goodput,
        Self::ReverseGoodput,
        Self::Retransmits,
        Self::Loss,
        Self::RttP50,
        Self::RttP99,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::Transactions,
        Self::Cpu,
        Self::StreamBalance,
        Self::GoodputCv,
        Self::Jitter,
        Self::Drops,
        Self::Record,
    ];

    /// Returns the name on the command line and in `.metrics[].name`: `goodput`.
    pub fn name(self) -> &'static str {
        self.describe().0
    }

    /// Returns the name of the field or column, which ends with the unit: `goodput_bps`.
    pub fn field(self) -> &'static str {
        self.describe().1
    }

    /// Returns the unit of [`Metric::field`] for display: `bit/s`.
    pub fn unit(self) -> &'static str {
        self.describe().2
    }

    /// Returns the title for charts and tables: `Packet loss`.
    pub fn title(self) -> &'static str {
        self.describe().3
    }

    /// Returns whether higher or lower values are better.
    pub fn better(self) -> Better {
        match self {
            Self::Goodput | Self::ReverseGoodput | Self::Transactions | Self::StreamBalance | Self::Record => {
                Better::Higher
            }
            _ => Better::Lower,
        }
    }

    /// Finds a metric by its [`Metric::name`] or [`Metric::field`].
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name || metric.field() == name)
    }

    fn describe(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Goodput => ("goodput", "goodput_bps", "bit/s", "Goodput"),
            Self::ReverseGoodput => ("reverse_goodput", "reverse_goodput_bps", "bit/s", "Goodput, server to client"),
            Self::Retransmits => ("retransmits", "retransmits_per_gb", "per GB", "Retransmits"),
            Self::Loss => ("loss", "loss_ratio", "ratio", "Packet loss"),
            Self::RttP50 => ("rtt_p50", "rtt_p50_ns", "ns", "Median RTT"),
            Self::RttP99 => ("rtt_p99", "rtt_p99_ns", "ns", "p99 RTT"),
            Self::LatencyP50 => ("latency_p50", "latency_p50_ns", "ns", "Median latency"),
            Self::LatencyP99 => ("latency_p99", "latency_p99_ns", "ns", "p99 latency"),
            Self::Transactions => ("transactions", "transactions_per_s", "per s", "Transactions"),
            Self::Cpu => ("cpu", "cpu_s_per_gb", "s/Gb", "CPU time"),
            Self::StreamBalance => {
                ("stream_balance", "stream_balance_ratio", "ratio", "Stream balance (Jain's index)")
            }
            Self::GoodputCv => ("goodput_cv", "goodput_cv_ratio", "ratio", "Variation of goodput"),
            Self::Jitter => ("jitter", "jitter_ns", "ns", "Jitter"),
            Self::Drops => ("drops", "drops_packets", "packets", "Drops in switches"),
            Self::Record => ("record", "record_bit_m_per_s", "bit·m/s", "Goodput × distance"),
        }
    }
}
