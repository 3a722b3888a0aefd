//! Conditions of `--fail-if` on a comparison.

use std::str::FromStr;

use landspeed_model::{Better, ComparedMetric, ComparisonCondition, ComparisonVerdict, Metric};
use thiserror::Error;

/// A condition such as `goodput worse 3%`: true if the whole interval lies beyond the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    /// `None` for `any`.
    metric: Option<Metric>,
    change: Change,
    /// The minimum relative change: 0.03 is 3 %.
    min_change: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Better,
    Worse,
    Different,
}

/// Error in a condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// Neither two nor three words.
    #[error("`{0}` is not a condition: write METRIC better|worse|different [PERCENT], such as `goodput worse 3%`")]
    Form(String),
    /// Neither `any` nor a metric; the second field lists the metrics.
    #[error("`{0}` is not a metric: use `any` or one of {1}")]
    Metric(String, String),
    /// Not a percentage.
    #[error("`{0}` is not a percentage from 0% to 99%, such as 3%")]
    Percent(String),
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let form = || ConditionError::Form(text.to_owned());
        let (metric, change, min_change) = match words.as_slice() {
            [metric, change] => (*metric, *change, "0%"),
            [metric, change, min_change] => (*metric, *change, *min_change),
            _ => return Err(form()),
        };
        let change = match change {
            "better" => Change::Better,
            "worse" => Change::Worse,
            "different" => Change::Different,
            _ => return Err(form()),
        };
        let percent = || ConditionError::Percent(min_change.to_owned());
        let number: f64 = min_change.strip_suffix('%').ok_or_else(percent)?.parse().map_err(|_| percent())?;
        if !(0.0..=99.0).contains(&number) {
            return Err(percent());
        }
        let metric = match metric {
            "any" => None,
            name => Some(Metric::find(name).ok_or_else(|| {
                let all: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
                ConditionError::Metric(name.to_owned(), all.join(", "))
            })?),
        };
        Ok(Self { text: words.join(" "), metric, change, min_change: number / 100.0 })
    }
}

impl Condition {
    /// The metric of the condition; `None` for `any`.
    pub fn metric(&self) -> Option<Metric> {
        self.metric
    }

    /// Evaluates the condition: true if it holds for any candidate and flow. The detail lists the deciding figures.
    pub fn evaluate(&self, metrics: &[ComparedMetric]) -> ComparisonCondition {
        let about = |metric: &&ComparedMetric| self.metric.is_none_or(|wanted| wanted.name() == metric.name);
        let concerned: Vec<&ComparedMetric> = metrics.iter().filter(about).collect();
        let holding: Vec<&&ComparedMetric> = concerned.iter().filter(|metric| self.is_met_by(metric)).collect();
        let detail = if concerned.is_empty() {
            "no result has this metric".to_owned()
        } else if holding.is_empty() {
            let described: Vec<String> = concerned.iter().map(|metric| self.failure_reason(metric)).collect();
            described.join("; ")
        } else {
            let described: Vec<String> = holding.iter().map(|metric| change(metric)).collect();
            described.join("; ")
        };
        ComparisonCondition { condition: self.text.clone(), holds: !holding.is_empty(), detail }
    }

    fn is_met_by(&self, metric: &ComparedMetric) -> bool {
        let right_side = match (self.change, metric.verdict) {
            (Change::Better | Change::Different, ComparisonVerdict::Better)
            | (Change::Worse | Change::Different, ComparisonVerdict::Worse) => true,
            _ => return false,
        };
        // Without both ends of the interval it is a change from 0, which exceeds any percentage.
        let (low, high) = (metric.low, metric.high);
        (low.is_none() && high.is_none() && right_side)
            || low.is_some_and(|low| low >= 1.0 + self.min_change && low > 1.0)
            || high.is_some_and(|high| high <= 1.0 - self.min_change && high < 1.0)
    }

    fn failure_reason(&self, metric: &ComparedMetric) -> String {
        let seen = change(metric);
        let blind =
            metric.minimum_detectable.filter(|min_change| *min_change > self.min_change && self.min_change > 0.0);
        match blind {
            Some(min_change) => {
                format!("{seen}; these runs show only changes of {:.1} % and more", min_change * 100.0)
            }
            None => seen,
        }
    }
}

/// Formats a change as `goodput -4.1 % (-6.0 % to -2.2 %)`.
fn change(metric: &ComparedMetric) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let of = match &metric.flow {
        Some(flow) => format!("{} of {flow}", metric.name),
        None => metric.name.clone(),
    };
    let figures = match (metric.ratio, metric.low, metric.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} ({} to {})", percent(ratio), percent(low), percent(high))
        }
        _ => match metric.verdict {
            ComparisonVerdict::TooFewRuns => "too few runs".to_owned(),
            ComparisonVerdict::NoDetectableDifference => "no detectable difference".to_owned(),
            _ => match metric.better {
                Better::Lower if metric.verdict == ComparisonVerdict::Worse => "more".to_owned(),
                Better::Higher if metric.verdict == ComparisonVerdict::Better => "more".to_owned(),
                _ => "less".to_owned(),
            },
        },
    };
    format!("{of} {figures}")
}
