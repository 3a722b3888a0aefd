//! Groups of records, and their values for a comparison.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{ComparisonDesign, Metric};
use landspeed_results::{Record, RecordStatus};
use landspeed_stats::block_mean;

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
pub(crate) struct Values {
    /// The runs of the baseline.
    pub(crate) baseline: Vec<f64>,
    /// The runs of the candidate.
    pub(crate) candidate: Vec<f64>,
    /// The independent values of both.
    pub(crate) units: Units,
    /// Number of blocks, if the values are means of blocks.
    pub(crate) blocks: Option<u32>,
}

/// Independent values: runs of one block, or with one seed of a lab, share conditions and give one value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Units {
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
    /// experiment. Runs of a block that differ in other factors are compared level by level, and their mean is the
    /// block's value.
    pub(crate) fn of(baseline: &[&Record], candidate: &[&Record], metric: Metric) -> Self {
        let varying = varying(baseline, candidate);
        let keyed = |records: &[&Record]| -> Option<BTreeMap<RunKey, Vec<f64>>> {
            let mut runs: BTreeMap<RunKey, Vec<f64>> = BTreeMap::new();
            for record in records {
                if let Some(value) = record.figures.get(metric) {
                    runs.entry(key(record, &varying)?).or_default().push(value);
                }
            }
            Some(runs)
        };
        if let (Some(a), Some(b)) = (keyed(baseline), keyed(candidate)) {
            let mut blocks: BTreeMap<String, Vec<RunPair>> = BTreeMap::new();
            for (key, a) in a {
                if let Some(b) = b.get(&key) {
                    blocks.entry(key.0).or_default().push((a, b.clone()));
                }
            }
            if !blocks.is_empty() {
                return Self::paired(&blocks.into_values().collect::<Vec<_>>());
            }
        }
        let (a, a_means) = clustered(baseline, metric);
        let (b, b_means) = clustered(candidate, metric);
        // Lab runs are independent because each has its own seed; records without a time have no order.
        let in_time = [baseline, candidate].into_iter().all(|records| {
            let times: BTreeSet<&str> = records.iter().map(|record| record.started.as_str()).collect();
            times.len() > 1 && records.iter().all(|record| record.digest.is_none())
        });
        let means = a_means.len() < a.len() || b_means.len() < b.len();
        let blocks = means.then(|| a_means.len().min(b_means.len()) as u32);
        Self { baseline: a, candidate: b, units: Units::Unpaired { a: a_means, b: b_means, in_time }, blocks }
    }

    /// The values of the runs of blocks: of each block, the runs of baseline and candidate with the same levels.
    pub(crate) fn paired(blocks: &[Vec<RunPair>]) -> Self {
        let runs =
            |of: fn(&RunPair) -> &Vec<f64>| blocks.iter().flatten().flat_map(of).copied().collect::<Vec<f64>>();
        let (baseline, candidate) = (runs(|pair| &pair.0), runs(|pair| &pair.1));
        let positive = baseline.iter().chain(&candidate).all(|value| *value > 0.0);
        let of = |block: &Vec<RunPair>| {
            let side = |of: fn(&RunPair) -> &Vec<f64>| {
                block_mean(&block.iter().map(|pair| block_mean(of(pair), positive)).collect::<Vec<f64>>(), positive)
            };
            (side(|pair| &pair.0), side(|pair| &pair.1))
        };
        let pairs: Vec<(f64, f64)> = blocks.iter().map(of).collect();
        Self { baseline, candidate, blocks: Some(pairs.len() as u32), units: Units::Paired(pairs) }
    }

    /// Whether neither group has values.
    pub(crate) fn is_empty(&self) -> bool {
        self.baseline.is_empty() && self.candidate.is_empty()
    }

    pub(crate) fn design(&self) -> ComparisonDesign {
        match self.units {
            Units::Paired(_) => ComparisonDesign::Paired,
            Units::Unpaired { .. } => ComparisonDesign::Unpaired,
        }
    }
}

/// The values of all runs, and the mean of each block, in the order of the first run.
fn clustered(records: &[&Record], metric: Metric) -> (Vec<f64>, Vec<f64>) {
    let mut clusters: Vec<(Option<String>, Vec<f64>)> = Vec::new();
    for record in records {
        let Some(value) = record.figures.get(metric) else { continue };
        let cluster = cluster(record);
        match clusters.iter_mut().find(|(known, _)| known.is_some() && *known == cluster) {
            Some((_, values)) => values.push(value),
            None => clusters.push((cluster, vec![value])),
        }
    }
    let all: Vec<f64> = records.iter().filter_map(|record| record.figures.get(metric)).collect();
    let positive = all.iter().all(|value| *value > 0.0);
    let means = clusters.iter().map(|(_, values)| block_mean(values, positive)).collect();
    (all, means)
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

/// Runs of baseline and candidate with the same levels in one block.
pub(crate) type RunPair = (Vec<f64>, Vec<f64>);

/// Block, and the levels of the varying settings.
type RunKey = (String, Vec<String>);

/// The key by which runs of two groups are paired.
fn key(record: &Record, varying: &[String]) -> Option<RunKey> {
    record.block?;
    let levels = varying.iter().map(|name| record.settings.get(name).cloned().unwrap_or_default());
    Some((cluster(record)?, levels.collect()))
}

/// What runs share that are not independent: block of an experiment, or seed of a lab.
fn cluster(record: &Record) -> Option<String> {
    let experiment = record.experiment.as_deref().unwrap_or_default();
    match (record.block, record.seed.filter(|_| record.digest.is_some())) {
        // Blocks in the order of their numbers.
        (Some(block), _) => Some(format!("{experiment} {block:010}")),
        (None, Some(seed)) => Some(format!("{experiment} seed {seed}")),
        (None, None) => None,
    }
}
