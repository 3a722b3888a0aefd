//! Groups of records, and the values in them that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{ComparisonDesign, Metric};
use landspeed_results::{Record, RecordStatus};

/// Compared unless metrics are named: rates, what they cost, and delay. Each metric more makes all intervals wider (Holm).
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

/// What a comparison is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Level of all verdicts together, 0..1.
    pub level: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// Metrics; empty for [`DEFAULT_METRICS`].
    pub metrics: Vec<Metric>,
    /// Settings or host facts that the groups are meant to differ in.
    pub factors: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 0.95, seed: 1, metrics: Vec::new(), factors: Vec::new() }
    }
}

impl Options {
    /// The metrics to compare. A rate is never compared without its retransmits.
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
    /// The name in tables.
    pub name: String,
    /// Where its results came from.
    pub source: String,
    /// One record for each flow of each result.
    pub records: Vec<Record>,
    /// Results left out before, and why.
    pub left_out: Vec<String>,
}

impl Group {
    /// A group of these records.
    pub fn new(name: impl Into<String>, source: impl Into<String>, records: Vec<Record>) -> Self {
        Self { name: name.into(), source: source.into(), records, left_out: Vec::new() }
    }

    /// Records whose figures may be used, without the second runs of A/A controls, in the order of time.
    pub(crate) fn usable(&self) -> Vec<&Record> {
        let mut usable: Vec<&Record> =
            self.records.iter().filter(|record| record.status == RecordStatus::Complete && !record.control).collect();
        usable.sort_by(|a, b| a.started.cmp(&b.started));
        usable
    }

    /// Names of the flows, `None` for results with one.
    pub(crate) fn flows(&self) -> BTreeSet<Option<&str>> {
        self.usable().iter().map(|record| record.flow.as_deref()).collect()
    }
}

/// The values of one metric in two groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// Baseline and candidate of one block.
    Paired(Vec<(f64, f64)>),
    /// Baseline and candidate.
    Unpaired {
        a: Vec<f64>,
        b: Vec<f64>,
        /// Whether they are in the order of time, so that neighbours may resemble each other.
        in_time: bool,
    },
}

impl Values {
    /// Matches the runs of two groups, which are in the order of time: by block where both have blocks of the same experiment.
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
        // Labs draw each run anew from its seed; records without a time have no neighbours.
        let in_time = [baseline, candidate].into_iter().all(|records| {
            let times: BTreeSet<&str> = records.iter().map(|record| record.started.as_str()).collect();
            times.len() > 1 && records.iter().all(|record| record.digest.is_none())
        });
        Self::Unpaired { a: values(baseline), b: values(candidate), in_time }
    }

    /// Baseline and candidate.
    pub(crate) fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Paired(pairs) => pairs.iter().copied().unzip(),
            Self::Unpaired { a, b, .. } => (a.clone(), b.clone()),
        }
    }

    /// Whether neither has values.
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

/// Settings that vary within both groups: their runs are compared level by level.
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

/// What makes runs of two groups a pair: experiment, block, and the settings that vary besides.
fn key(record: &Record, varying: &[String]) -> Option<Vec<String>> {
    let block = record.block?.to_string();
    let levels = varying.iter().map(|name| record.settings.get(name).cloned().unwrap_or_default());
    Some([record.experiment.clone().unwrap_or_default(), block].into_iter().chain(levels).collect())
}
