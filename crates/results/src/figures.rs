//! The figures of a run.

use std::collections::BTreeMap;

use landspeed_model::{Direction, HostSnapshot, Metric, PhaseName, Protocol, RunDocument, Status, Stream};
use landspeed_stats::quantile;

/// Converts CPU time per byte to CPU time per Gbit.
const BYTES_PER_GB: f64 = 1e9 / 8.0;

/// Figures by metric, each in the unit of [`Metric::field`]. Unknown figures are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures(BTreeMap<Metric, f64>);

impl Figures {
    /// The figure of a metric.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// Sets a figure; values that are not finite, and losses that are not in 0..=1, are ignored.
    pub fn set(&mut self, metric: Metric, value: Option<f64>) {
        let possible = |value: &f64| value.is_finite() && (metric != Metric::Loss || (0.0..=1.0).contains(value));
        if let Some(value) = value.filter(possible) {
            self.0.insert(metric, value);
        }
    }

    /// Removes a figure.
    pub fn remove(&mut self, metric: Metric) {
        self.0.remove(&metric);
    }

    /// All figures, in the order of [`Metric::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        self.0.iter().map(|(metric, value)| (*metric, *value))
    }

    /// Figures by field name, as in documents.
    pub fn fields(&self) -> BTreeMap<String, f64> {
        self.iter().map(|(metric, value)| (metric.field().to_owned(), value)).collect()
    }

    /// Figures from field names; unknown names, from newer versions, are ignored.
    pub fn from_fields(fields: &BTreeMap<String, f64>) -> Self {
        let mut figures = Self::default();
        for (field, value) in fields {
            if let Some(metric) = Metric::find(field) {
                figures.set(metric, Some(*value));
            }
        }
        figures
    }
}

/// The figures of a run.
pub fn figures(run: &RunDocument) -> Figures {
    let summary = &run.summary;
    let mut figures = Figures::default();
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let rtts_us = rtts_us(run);
    let rtt_ns = |p| quantile(&rtts_us, p).map(|us| us * 1e3);
    let delivered = summary.bytes_delivered.map(|bytes| bytes as f64).filter(|bytes| *bytes > 0.0);
    let per_gb = |count: u64| delivered.map(|delivered| count as f64 * 1e9 / delivered);
    let parts = run.requested.direction.parts();
    let nothing = |part: usize| parts.get(part).is_some_and(|part| delivered_nothing(run, *part)).then_some(0.0);
    figures.set(Metric::Goodput, summary.goodput_bps.or_else(|| nothing(0)));
    figures.set(Metric::ReverseGoodput, summary.reverse_goodput_bps.or_else(|| nothing(1)));
    figures.set(Metric::Retransmits, summary.retransmits.and_then(per_gb));
    figures.set(Metric::Loss, summary.loss_ratio);
    figures.set(Metric::RttP50, rtt_ns(0.5));
    figures.set(Metric::RttP99, rtt_ns(0.99));
    figures.set(Metric::LatencyP50, ns(summary.latency_p50_ns));
    figures.set(Metric::LatencyP99, ns(summary.latency_p99_ns));
    figures.set(Metric::Transactions, summary.transactions_per_s);
    figures.set(Metric::Cpu, cpu_s_per_gb(run));
    figures.set(Metric::StreamBalance, balance(&streams_bps(run)));
    figures.set(Metric::GoodputCv, summary.goodput_cv);
    figures.set(Metric::Jitter, run.udp.as_ref().and_then(|udp| ns(udp.jitter_ns)));
    // Rate times distance: the Internet2 Land Speed Record, <http://www.internet2.edu/lsr/>.
    figures.set(Metric::Record, summary.goodput_bps.zip(run.requested.distance_m).map(|(bps, metres)| bps * metres));
    figures
}

/// Whether the receivers of all streams of a finished TCP or UDP test reported that nothing arrived: a goodput of 0.
fn delivered_nothing(run: &RunDocument, direction: Direction) -> bool {
    let bulk = matches!(run.requested.protocol, Protocol::Tcp | Protocol::Udp);
    let mut streams = run.streams.iter().filter(|stream| stream.direction == direction).peekable();
    let some = streams.peek().is_some();
    bulk && some
        && run.status == Status::Complete
        && streams.all(|stream| stream.receiver.as_ref().is_some_and(|receiver| receiver.bytes == 0))
}

/// Goodput of each stream of the primary direction in the steady phase, bits/s; none if the rate of a stream is
/// unknown.
pub fn streams_bps(run: &RunDocument) -> Vec<f64> {
    let primary = run.requested.direction.parts()[0];
    let streams = run.streams.iter().filter(|stream| stream.direction == primary);
    let rates: Option<Vec<f64>> = streams.map(steady_bps).collect();
    rates.filter(|_| run.summary.goodput_bps.is_some()).unwrap_or_default()
}

/// Goodput of one stream at the receiver in the steady phase, bits/s.
pub fn steady_bps(stream: &Stream) -> Option<f64> {
    let steady = stream.intervals.iter().filter(|interval| interval.phase == PhaseName::Steady);
    let (bytes, ns) = steady.fold((0, 0), |(bytes, ns), i| (bytes + i.bytes, ns + i.end_ns - i.start_ns));
    (ns > 0).then(|| bytes as f64 * 8e9 / ns as f64)
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984): (Σx)² / (n·Σx²). `None` with fewer than two streams, or if
/// all rates are zero.
pub fn balance(streams_bps: &[f64]) -> Option<f64> {
    let sum: f64 = streams_bps.iter().sum();
    let squares: f64 = streams_bps.iter().map(|rate| rate * rate).sum();
    (streams_bps.len() > 1 && squares > 0.0).then(|| sum * sum / (streams_bps.len() as f64 * squares))
}

/// CPU time per Gbit, seconds: of both hosts, or of one if client and server run on the same.
fn cpu_s_per_gb(run: &RunDocument) -> Option<f64> {
    let hosts = if same_host(run) { 1 } else { 2 };
    let costs = [&run.cost.client, &run.cost.server].into_iter().take(hosts);
    let per_byte: Option<Vec<f64>> = costs.map(|cost| cost.as_ref()?.host_ns_per_byte).collect();
    Some(per_byte?.iter().sum::<f64>() * 1e-9 * BYTES_PER_GB)
}

/// Whether client and server run on one machine and share its cores. Network namespaces of one machine have the
/// same hostname and memory size.
pub fn same_host(run: &RunDocument) -> bool {
    if run.path.as_ref().is_some_and(|path| path.loopback) {
        return true;
    }
    let of = |host: &HostSnapshot| {
        (host.hostname.clone(), host.kernel_version.clone(), host.cpu_model.clone(), host.memory_bytes)
    };
    match (&run.hosts.client, &run.hosts.server) {
        (Some(client), Some(server)) => of(client) == of(server),
        _ => false,
    }
}

/// The senders' smoothed RTTs in the steady phase, microseconds; none if the steady phase or a sender is unknown.
fn rtts_us(run: &RunDocument) -> Vec<f64> {
    let steady = |direction: Direction| {
        let phase = run.phases.iter().find(|p| p.direction == direction && p.name == PhaseName::Steady);
        phase.map_or((0, u64::MAX), |phase| (phase.start_ns, phase.end_ns))
    };
    let of = |stream: &Stream| -> Vec<f64> {
        let (from, to) = steady(stream.direction);
        let samples = stream.sender.iter().flat_map(|sender| &sender.samples);
        let within = samples.filter(|sample| (from..=to).contains(&sample.t_ns));
        within.filter_map(|sample| Some(f64::from(sample.tcp.as_ref()?.rtt_us))).filter(|rtt| *rtt > 0.0).collect()
    };
    if run.unknown.contains_key("summary.steady_ns") || run.unknown.contains_key("summary.min_rtt_us") {
        return Vec::new();
    }
    run.streams.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_index_of_equal_streams_is_one() {
        assert_eq!(balance(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(balance(&[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(balance(&[4.0]), None);
        assert_eq!(balance(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_run_that_delivered_nothing_has_goodput_zero() {
        let path = format!("{}/../../fixtures/documents/udp.json", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("a fixture");
        let mut run: RunDocument = serde_json::from_slice(&bytes).expect("a run");
        run.summary.goodput_bps = None;
        assert_eq!(figures(&run).get(Metric::Goodput), None);
        for stream in &mut run.streams {
            stream.receiver.as_mut().expect("a receiver").bytes = 0;
        }
        assert_eq!(figures(&run).get(Metric::Goodput), Some(0.0));
        // Without the receiver's report it is unknown.
        run.streams[0].receiver = None;
        assert_eq!(figures(&run).get(Metric::Goodput), None);
    }

    #[test]
    fn figures_round_trip_through_field_names() {
        let mut figures = Figures::default();
        figures.set(Metric::Goodput, Some(1e9));
        figures.set(Metric::Loss, Some(f64::NAN));
        assert_eq!(figures.fields(), BTreeMap::from([("goodput_bps".to_owned(), 1e9)]));
        assert_eq!(Figures::from_fields(&figures.fields()), figures);
    }
}
