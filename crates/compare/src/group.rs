//! Groups of records, and their values for a comparison.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{ComparisonDesign, Metric};
use landspeed_results::{Record, RecordStatus};

/// The metrics compared by default: rates, their cost, and delay. Each additional metric widens all intervals
/// (Holm).
pub const DEFAULT_METRICS: [Metric; 9] = [
    Metric::Goodput,
    Metric::ReverseGoodput,
    Metric::Retransmits,
    Metric::Loss,
    Metric::RttP50,
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::Transactions,
    Metric::Cpu,
];

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Confidence level of all verdicts together, 0..1.
    pub level: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// Metrics to compare; empty for [`DEFAULT_METRICS`].
    pub metrics: Vec<Metric>,
    /// Settings or host facts that differ between the groups on purpose.
    pub factors: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 0.95, seed: 1, metrics: Vec::new(), factors: Vec::new() }
    }
}

impl Options {
    /// The metrics to compare. With a rate, retransmits are always compared.
    pub fn metrics(&self) -> Vec<Metric> {
        if self.metrics.is_empty() {
            return DEFAULT_METRICS.to_vec();
        }
        let mut metrics: BTreeSet<Metric> = self.metrics.iter().copied().collect();
        if metrics.contains(&Metric::Goodput) || metrics.contains(&Metric::ReverseGoodput) {
            metrics.insert(Metric::Retransmits);
        }
        metrics.into_iter().collect()
    }
}

/// Results that are replicates of each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// Name shown in tables.
    pub name: String,
    /// Files or query that the results come from.
    pub source: String,
    /// One record for each flow of each result.
    pub records: Vec<Record>,
    /// Results left out, each with the reason.
    pub left_out: Vec<String>,
}

impl Group {
    /// Creates a group of these records.
    pub fn new(name: impl Into<String>, source: impl Into<String>, records: Vec<Record>) -> Self {
        Self { name: name.into(), source: source.into(), records, left_out: Vec::new() }
    }

    /// Complete records without the second runs of A/A controls, in the order of time.
    pub(crate) fn usable(&self) -> Vec<&Record> {
        let mut usable: Vec<&Record> =
            self.records.iter().filter(|record| record.status == RecordStatus::Complete && !record.control).collect();
        usable.sort_by(|a, b| a.started.cmp(&b.started));
        usable
    }

    /// Names of the flows; `None` for results with one flow.
    pub(crate) fn flows(&self) -> BTreeSet<Option<&str>> {
        self.usable().iter().map(|record| record.flow.as_deref()).collect()
    }
}

/// The values of one metric in two groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// Baseline and candidate of each block.
    Paired(Vec<(f64, f64)>),
    /// All values of baseline and of candidate.
    Unpaired {
        a: Vec<f64>,
        b: Vec<f64>,
        /// Whether the values are in the order of time, so that neighbours may be correlated.
        in_time: bool,
    },
}

impl Values {
    /// Collects the values of two groups in the order of time; pairs them by block if both have blocks of the same
    /// experiment.
    pub(crate) fn of(baseline: &[&Record], candidate: &[&Record], metric: Metric) -> Self {
        let varying = varying(baseline, candidate);
        let keyed = |records: &[&Record]| -> Option<BTreeMap<Vec<String>, f64>> {
            let with = records.iter().filter_map(|record| Some((record, record.figures.get(metric)?)));
            with.map(|(record, value)| Some((key(record, &varying)?, value))).collect()
        };
        if let (Some(a), Some(b)) = (keyed(baseline), keyed(candidate)) {
            let pairs: Vec<(f64, f64)> = a.iter().filter_map(|(key, a)| Some((*a, *b.get(key)?))).collect();
            if !pairs.is_empty() {
                return Self::Paired(pairs);
            }
        }
        let values = |records: &[&Record]| {
            records.iter().filter_map(|record| record.figures.get(metric)).collect::<Vec<f64>>()
        };
        // Lab runs are independent because each has its own seed; records without a time have no order.
        let in_time = [baseline, candidate].into_iter().all(|records| {
            let times: BTreeSet<&str> = records.iter().map(|record| record.started.as_str()).collect();
            times.len() > 1 && records.iter().all(|record| record.digest.is_none())
        });
        Self::Unpaired { a: values(baseline), b: values(candidate), in_time }
    }

    /// The values of baseline and candidate.
    pub(crate) fn baseline_and_candidate(&self) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Paired(pairs) => pairs.iter().copied().unzip(),
            Self::Unpaired { a, b, .. } => (a.clone(), b.clone()),
        }
    }

    /// Whether neither group has values.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Paired(pairs) => pairs.is_empty(),
            Self::Unpaired { a, b, .. } => a.is_empty() && b.is_empty(),
        }
    }

    pub(crate) fn design(&self) -> ComparisonDesign {
        match self {
            Self::Paired(_) => ComparisonDesign::Paired,
            Self::Unpaired { .. } => ComparisonDesign::Unpaired,
        }
    }
}

/// Settings that vary within both groups; runs are paired by their values.
fn varying(baseline: &[&Record], candidate: &[&Record]) -> Vec<String> {
    let within = |records: &[&Record]| -> BTreeSet<String> {
        let keys: BTreeSet<&String> = records.iter().flat_map(|record| record.settings.keys()).collect();
        let varies = |key: &&&String| {
            let values: BTreeSet<Option<&String>> = records.iter().map(|record| record.settings.get(**key)).collect();
            values.len() > 1
        };
        keys.iter().filter(varies).map(|key| (*key).clone()).collect()
    };
    within(baseline).intersection(&within(candidate)).cloned().collect()
}

/// The key by which runs of two groups are paired: experiment, block and varying settings.
fn key(record: &Record, varying: &[String]) -> Option<Vec<String>> {
    let block = record.block?.to_string();
    let levels = varying.iter().map(|name| record.settings.get(name).cloned().unwrap_or_default());
    Some([record.experiment.clone().unwrap_or_default(), block].into_iter().chain(levels).collect())
}
