//! Verdicts of the metrics.

use std::cmp::Ordering;

use landspeed_model::{Better, ComparedInterval, ComparedMetric, ComparisonVerdict, Metric};
use landspeed_results::{Record, RecordStatus};
use landspeed_stats::{
    BootstrapError, Contrast, HolmStep, UNBOUNDED_CHANGE, autocorrelation, holm, median, relative_change,
};

use crate::group::{Group, Options, Units, Values};

/// One metric of one flow of one candidate, before the level of its interval is known.
pub(crate) struct MetricComparison {
    candidate: String,
    flow: Option<String>,
    metric: Metric,
    values: Values,
    /// `None` if a group has no values.
    contrast: Option<Contrast>,
    /// Relative change, if there are zeros.
    change: Option<Contrast>,
    scale: Scale,
    autocorrelation: Option<f64>,
}

/// Scale of a contrast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Logarithm of the ratio.
    Ratio,
    /// Probability of a greater value, used if there are zeros.
    Greater,
}

/// Compares each metric of each candidate with the baseline; Holm's correction over all of them determines the
/// levels of the intervals.
pub fn compare(baseline: &Group, candidates: &[Group], options: &Options) -> Vec<ComparedMetric> {
    let mut questions = Vec::new();
    for candidate in candidates {
        for flow in baseline.flows().intersection(&candidate.flows()) {
            let of_flow = |record: &&Record| record.flow.as_deref() == *flow;
            let a: Vec<&Record> = baseline.usable().into_iter().filter(of_flow).collect();
            let b: Vec<&Record> = candidate.usable().into_iter().filter(of_flow).collect();
            for metric in options.metrics() {
                let values = Values::of(&a, &b, metric);
                if !values.is_empty() {
                    questions.push(MetricComparison::new(&candidate.name, *flow, metric, values, options.seed));
                }
            }
        }
    }
    answer(questions, options.level)
}

impl MetricComparison {
    /// Creates a question from values that are already paired or grouped.
    pub(crate) fn new(candidate: &str, flow: Option<&str>, metric: Metric, values: Values, seed: u64) -> Self {
        let (a, b): (Vec<f64>, Vec<f64>) = match &values.units {
            Units::Paired(pairs) => pairs.iter().copied().unzip(),
            Units::Unpaired { a, b, .. } => (a.clone(), b.clone()),
        };
        let scale = if a.iter().chain(&b).all(|value| *value > 0.0) { Scale::Ratio } else { Scale::Greater };
        let mut correlated = None;
        let (contrast, change) = match &values.units {
            Units::Paired(pairs) if scale == Scale::Ratio => {
                (Contrast::of_pairs(&pairs.iter().map(|(a, b)| (b / a).ln()).collect::<Vec<f64>>()), None)
            }
            Units::Paired(pairs) => (
                Contrast::share_of_pairs(pairs),
                Contrast::of_pairs(&pairs.iter().map(|(a, b)| relative_change(*a, *b)).collect::<Vec<f64>>()),
            ),
            Units::Unpaired { in_time, .. } => {
                let correlation = if *in_time { autocorrelation([&a, &b]) } else { 0.0 };
                correlated = in_time.then_some(correlation);
                match scale {
                    Scale::Ratio => (Contrast::of_groups(&a, &b, correlation, seed), None),
                    Scale::Greater => (
                        Contrast::share_of_groups(&a, &b, correlation, seed),
                        Contrast::change_of_groups(&a, &b, correlation, seed),
                    ),
                }
            }
        };
        let (candidate, flow) = (candidate.to_owned(), flow.map(str::to_owned));
        Self { candidate, flow, metric, values, contrast, change, scale, autocorrelation: correlated }
    }

    fn answer(self, p_value: Option<f64>, step: HolmStep) -> ComparedMetric {
        let level = 1.0 - step.tail;
        let metric = self.metric;
        let design = self.values.design();
        let (a, b) = (self.values.baseline, self.values.candidate);
        let interval = self.contrast.as_ref().map(|contrast| contrast.interval(level));
        let ends = interval.as_ref().and_then(|interval| interval.as_ref().ok());
        let verdict = match self.contrast.as_ref().map(|contrast| contrast.side(level)) {
            _ if ends.is_none() => ComparisonVerdict::TooFewRuns,
            Some(Some(side)) if (side == Ordering::Greater) == (metric.better() == Better::Higher) => {
                ComparisonVerdict::Better
            }
            Some(Some(_)) => ComparisonVerdict::Worse,
            _ => ComparisonVerdict::NoDetectableDifference,
        };
        let estimate = self.contrast.as_ref().map(Contrast::estimate);
        let (baseline_median, candidate_median) = (median(&a), median(&b));
        let ratios = self.scale == Scale::Ratio;
        // If some values are zero, the ratio is 1 + the relative change, without an end where it is a change from 0.
        let relative = |change: f64| Some(1.0 + change).filter(|ratio| *ratio < UNBOUNDED_CHANGE / 2.0);
        let (ratio, low, high) = match self.change.as_ref().map(|change| (change.estimate(), change.interval(level)))
        {
            Some((estimate, ends)) => {
                let ends = ends.ok();
                let end = |end: fn(&(f64, f64)) -> f64| ends.as_ref().map(end).and_then(relative);
                (relative(estimate), end(|ends| ends.0), end(|ends| ends.1))
            }
            None => (estimate.map(f64::exp), ends.map(|ends| ends.0.exp()), ends.map(|ends| ends.1.exp())),
        };
        ComparedMetric {
            candidate: self.candidate,
            name: metric.name().to_owned(),
            unit: metric.unit().to_owned(),
            better: metric.better(),
            flow: self.flow,
            baseline_runs: a.len() as u32,
            candidate_runs: b.len() as u32,
            baseline_median,
            candidate_median,
            blocks: self.values.blocks,
            ratio,
            low,
            high,
            level,
            verdict,
            design,
            p_value: p_value.filter(|_| ends.is_some()),
            adjusted_p_value: p_value.filter(|_| ends.is_some()).map(|_| step.adjusted),
            greater: estimate.filter(|_| !ratios).map(|estimate| ComparedInterval {
                estimate,
                low: ends.map(|ends| ends.0),
                high: ends.map(|ends| ends.1),
            }),
            runs_needed: match interval {
                Some(Err(BootstrapError::TooFew { need, .. })) => Some(need as u32),
                _ => None,
            },
            autocorrelation: self.autocorrelation,
            minimum_detectable: self
                .contrast
                .as_ref()
                .filter(|_| ratios)
                .and_then(|contrast| Some(contrast.detectable(level)?.exp_m1())),
            baseline_values: a,
            candidate_values: b,
        }
    }
}

/// Evaluates the questions, each at the level of its rank among all p-values (Holm).
pub(crate) fn answer(questions: Vec<MetricComparison>, level: f64) -> Vec<ComparedMetric> {
    let p_values: Vec<Option<f64>> =
        questions.iter().map(|question| Some(question.contrast.as_ref()?.p_value())).collect();
    let known: Vec<f64> = p_values.iter().flatten().copied().collect();
    let mut steps = holm(&known, 1.0 - level).into_iter();
    let unknown = HolmStep { tail: 1.0 - level, adjusted: 1.0 };
    let answers = questions.into_iter().zip(p_values).map(|(question, p_value)| {
        let step = p_value.and_then(|_| steps.next()).unwrap_or(unknown);
        question.answer(p_value, step)
    });
    answers.collect()
}

/// Relative precision of the median: half the width of its interval at `level` divided by the median; 0.02 is
/// ±2 %. Uses complete runs without A/A controls. `None` if there are too few for the level, or the median is
/// 0.
pub fn precision<'a>(records: impl IntoIterator<Item = &'a Record>, metric: Metric, level: f64) -> Option<f64> {
    let usable = records.into_iter().filter(|record| record.status == RecordStatus::Complete && !record.control);
    let values: Vec<f64> = usable.filter_map(|record| record.figures.get(metric)).collect();
    let contrast = Contrast::of_pairs(&values)?;
    let (low, high) = contrast.interval(level).ok()?;
    (contrast.estimate() != 0.0).then(|| (high - low) / 2.0 / contrast.estimate().abs())
}
