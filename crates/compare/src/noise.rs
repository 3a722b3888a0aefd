//! A group against itself.

use std::collections::BTreeMap;

use landspeed_model::ComparedMetric;
use landspeed_results::{Record, RecordStatus};

use crate::group::{Options, Values};
use crate::verdict::{Question, answer};

/// The name of the second half in [`ComparedMetric::candidate`].
pub const ITSELF: &str = "A/A control";

/// The group against itself: what differs here is noise. Second runs of a cell against first runs by block, where the experiment
/// made them; else neighbours in time against each other.
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
            let values = match Values::of(&first, &control, metric) {
                values @ Values::Paired(_) => values,
                Values::Unpaired { a, .. } => Values::Paired(neighbours(&a)),
            };
            if !values.is_empty() {
                questions.push(Question::new(ITSELF, flow, metric, values, options.seed));
            }
        }
    }
    answer(questions, options.level)
}

/// Pairs of neighbours, in alternating order, so that drift cancels: first and second, fourth and third, fifth and sixth.
fn neighbours(values: &[f64]) -> Vec<(f64, f64)> {
    let pairs = values.chunks_exact(2).enumerate();
    pairs.map(|(i, pair)| if i % 2 == 0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) }).collect()
}
