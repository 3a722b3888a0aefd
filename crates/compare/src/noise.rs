//! Comparison of a group with itself.

use std::collections::BTreeMap;

use landspeed_model::ComparedMetric;
use landspeed_results::{Record, RecordStatus};

use crate::group::{Options, Units, Values};
use crate::verdict::{MetricComparison, answer};

/// Value of [`ComparedMetric::candidate`] for the second half of the group.
pub const AA_CONTROL: &str = "A/A control";

/// Compares a group with itself, so that any difference is noise: second runs of a cell with first runs by
/// block if the experiment made them, otherwise runs next to each other in time.
pub fn noise(records: &[Record], options: &Options) -> Vec<ComparedMetric> {
    let usable: Vec<&Record> = records.iter().filter(|record| record.status == RecordStatus::Complete).collect();
    let mut flows: BTreeMap<Option<&str>, Vec<&Record>> = BTreeMap::new();
    for record in usable {
        flows.entry(record.flow.as_deref()).or_default().push(record);
    }
    let mut questions = Vec::new();
    for (flow, mut records) in flows {
        records.sort_by(|a, b| a.started.cmp(&b.started));
        for metric in options.metrics() {
            let (control, first): (Vec<&Record>, Vec<&Record>) = records.iter().partition(|record| record.control);
            let values = Values::of(&first, &control, metric);
            let values = match &values.units {
                Units::Paired(_) => values,
                Units::Unpaired { a, .. } => {
                    let pairs: Vec<_> =
                        pair_neighbours(a).into_iter().map(|(a, b)| vec![(vec![a], vec![b])]).collect();
                    Values { blocks: None, ..Values::paired(&pairs) }
                }
            };
            if !values.is_empty() {
                questions.push(MetricComparison::new(AA_CONTROL, flow, metric, values, options.seed));
            }
        }
    }
    answer(questions, options.level)
}

/// Pairs adjacent values in alternating order, so that drift cancels out: first and second, fourth and third,
/// fifth and sixth.
fn pair_neighbours(values: &[f64]) -> Vec<(f64, f64)> {
    let pairs = values.chunks_exact(2).enumerate();
    pairs.map(|(i, pair)| if i % 2 == 0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) }).collect()
}
