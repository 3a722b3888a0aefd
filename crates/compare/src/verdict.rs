//! The verdict of each metric.

use landspeed_model::{Better, ComparedInterval, ComparedMetric, ComparisonVerdict, Metric};
use landspeed_results::Record;
use landspeed_stats::{Bootstrap, BootstrapError, Contrast, median};

use crate::group::{Group, Options, Values};

/// One metric of one flow of one candidate, before its level is known.
pub(crate) struct Question {
    candidate: String,
    flow: Option<String>,
    metric: Metric,
    values: Values,
    contrast: Option<Contrast>,
    /// Whether the contrast is the logarithm of a ratio; else it is a difference.
    ratio: bool,
}

/// Each metric of each candidate against the baseline, with intervals at the levels of Holm's correction over all of them.
pub fn compare(baseline: &Group, candidates: &[Group], options: &Options) -> Vec<ComparedMetric> {
    let mut questions = Vec::new();
    for candidate in candidates {
        for flow in baseline.flows().intersection(&candidate.flows()) {
            let of = |group: &Group| -> Vec<Record> {
                group.usable().into_iter().filter(|record| record.flow.as_deref() == *flow).cloned().collect()
            };
            let (a, b) = (of(baseline), of(candidate));
            let (a, b): (Vec<&Record>, Vec<&Record>) = (a.iter().collect(), b.iter().collect());
            for metric in options.metrics() {
                let values = Values::of(&a, &b, metric);
                let (left, right) = values.sides();
                if left.is_empty() && right.is_empty() {
                    continue;
                }
                questions.push(question(&candidate.name, *flow, metric, values, options.seed));
            }
        }
    }
    answer(questions, options.level)
}

/// One question about values that are matched already.
pub(crate) fn question(name: &str, flow: Option<&str>, metric: Metric, values: Values, seed: u64) -> Question {
    let (a, b) = values.sides();
    let ratio = a.iter().chain(&b).all(|value| *value > 0.0);
    let scale = |value: f64| if ratio { value.ln() } else { value };
    let contrast = match &values {
        Values::Paired(pairs) => {
            let contrasts: Vec<f64> = pairs.iter().map(|(a, b)| scale(*b) - scale(*a)).collect();
            Contrast::paired(&contrasts, seed)
        }
        Values::Unpaired(a, b) => {
            let scaled = |values: &[f64]| values.iter().map(|value| scale(*value)).collect::<Vec<f64>>();
            Contrast::unpaired(&scaled(a), &scaled(b), seed)
        }
    };
    Question { candidate: name.to_owned(), flow: flow.map(str::to_owned), metric, values, contrast, ratio }
}

/// The answers, each at the level of its rank (Holm 1979): the i-th smallest of m p-values is held to α/(m − i + 1); from the
/// first that fails on, the level stays.
pub(crate) fn answer(questions: Vec<Question>, level: f64) -> Vec<ComparedMetric> {
    let alpha = 1.0 - level;
    let mut order: Vec<(usize, f64)> = questions
        .iter()
        .enumerate()
        .filter_map(|(i, question)| Some((i, question.contrast.as_ref()?.p_value())))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut tails = vec![alpha; questions.len()];
    let mut stopped = None;
    for (rank, (i, _)) in order.iter().enumerate() {
        let tail = stopped.unwrap_or(alpha / (order.len() - rank) as f64);
        tails[*i] = tail;
        let excludes = questions[*i].contrast.as_ref().and_then(|contrast| contrast.interval(1.0 - tail).ok());
        if stopped.is_none() && !excludes.is_some_and(|(low, high)| low > 0.0 || high < 0.0) {
            stopped = Some(tail);
        }
    }
    questions.into_iter().zip(tails).map(|(question, tail)| answered(question, 1.0 - tail)).collect()
}

fn answered(question: Question, level: f64) -> ComparedMetric {
    let Question { candidate, flow, metric, values, contrast, ratio } = question;
    let (a, b) = values.sides();
    let interval = contrast.as_ref().map(|contrast| contrast.interval(level));
    let (low, high) = match &interval {
        Some(Ok((low, high))) => (Some(*low), Some(*high)),
        _ => (None, None),
    };
    let estimate = contrast.as_ref().map(Contrast::estimate);
    let verdict = match (low, high) {
        (Some(low), Some(high)) if low > 0.0 || high < 0.0 => {
            let grew = low > 0.0;
            if grew == (metric.better() == Better::Higher) {
                ComparisonVerdict::Better
            } else {
                ComparisonVerdict::Worse
            }
        }
        (Some(_), Some(_)) => ComparisonVerdict::NoDetectableDifference,
        _ => ComparisonVerdict::TooFewRuns,
    };
    let as_ratio = |value: Option<f64>| value.filter(|_| ratio).map(f64::exp);
    let half = low.zip(high).map(|(low, high)| (high - low) / 2.0);
    ComparedMetric {
        candidate,
        name: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        better: metric.better(),
        flow,
        baseline_runs: a.len() as u32,
        candidate_runs: b.len() as u32,
        baseline_median: median(&a),
        candidate_median: median(&b),
        ratio: as_ratio(estimate),
        low: as_ratio(low),
        high: as_ratio(high),
        level,
        verdict,
        design: values.design(),
        p_value: contrast.as_ref().map(Contrast::p_value),
        difference: estimate.filter(|_| !ratio).map(|estimate| ComparedInterval { estimate, low, high }),
        runs_needed: match interval {
            Some(Err(BootstrapError::TooFew { need, .. })) => Some(need as u32),
            _ => None,
        },
        autocorrelation: None,
        minimum_detectable: half.filter(|_| ratio).map(|half| (half * 1.43).exp() - 1.0),
        baseline_values: a,
        candidate_values: b,
    }
}

/// Half the width of the interval of the median, relative to the median: 0.02 is ±2 %. `None` where the runs are too few for the
/// level, or the median is 0.
pub fn precision(records: &[Record], metric: Metric, level: f64) -> Option<f64> {
    let values: Vec<f64> = records.iter().filter_map(|record| record.figures.get(metric)).collect();
    let interval = Bootstrap { level, ..Bootstrap::default() }.median(&values).ok()?;
    (interval.estimate != 0.0).then(|| (interval.high - interval.low) / 2.0 / interval.estimate.abs())
}
