//! A sweep as cells with values.

use std::collections::BTreeMap;

use landspeed_model::{Better, FigureAxis, FigureScale, Metric, SweepDocument, SweepFactor, SweepMetric};

use super::charts::{self, Lead, ReportedValue};
use super::quantity::plain;

/// Ratio of largest to smallest level from which an axis is logarithmic.
const MIN_LOG_RATIO: f64 = 30.0;

/// A varied parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) labels: Vec<String>,
    /// Levels as numbers in one unit; empty if they are not numeric.
    pub(crate) numbers: Vec<f64>,
    pub(crate) unit: String,
}

impl Factor {
    fn of(factor: &SweepFactor) -> Self {
        let numeric = factor.numbers.len() == factor.levels.len();
        Self {
            name: factor.name.clone(),
            key: factor.key.clone(),
            labels: factor.levels.iter().map(plain).collect(),
            numbers: if numeric { factor.numbers.clone() } else { Vec::new() },
            unit: factor.unit.clone(),
        }
    }

    pub(crate) fn is_numeric(&self) -> bool {
        !self.numbers.is_empty() && self.labels.len() > 1
    }

    /// Returns whether its levels are CPU cores of threads or interrupts.
    pub(crate) fn is_cores(&self) -> bool {
        let word = |text: &str| {
            let text = text.to_ascii_lowercase();
            ["cpu", "core", "irq", "affinity"].iter().any(|part| text.contains(part))
        };
        word(&self.name) || word(&self.key)
    }

    /// Returns the axis: linear or logarithmic for numbers, else one position per level.
    pub(crate) fn axis(&self) -> FigureAxis {
        if !self.is_numeric() {
            return self.places();
        }
        let (least, most) = self.numbers.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        let log = least > 0.0 && most / least >= MIN_LOG_RATIO && self.numbers.len() > 2;
        FigureAxis {
            title: self.name.clone(),
            unit: self.unit.clone(),
            scale: if log { FigureScale::Log } else { FigureScale::Linear },
            labels: Vec::new(),
        }
    }

    /// Returns an axis with one position per level.
    pub(crate) fn places(&self) -> FigureAxis {
        FigureAxis {
            title: self.name.clone(),
            scale: FigureScale::Category,
            labels: self.labels.clone(),
            ..FigureAxis::default()
        }
    }

    /// Returns the position of a level on [`Factor::axis`].
    pub(crate) fn at(&self, level: usize) -> f64 {
        if self.is_numeric() { self.numbers[level] } else { level as f64 }
    }

    /// Formats a level with the factor's name: `buffer 16MiB`.
    pub(crate) fn named(&self, level: usize) -> String {
        format!("{} {}", self.name, self.labels[level])
    }
}

/// One combination of levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cell {
    /// Index of the level of each factor.
    pub(crate) levels: Vec<usize>,
    /// Values of usable runs by flow and field.
    values: BTreeMap<(String, String), Vec<f64>>,
    /// Goodput of each stream of each usable run, by flow.
    pub(crate) streams: BTreeMap<String, Vec<Vec<f64>>>,
    /// Reasons why runs were not usable.
    pub(crate) problems: Vec<String>,
}

/// Results of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Samples {
    pub(crate) factors: Vec<Factor>,
    pub(crate) flows: Vec<String>,
    pub(crate) metrics: Vec<SweepMetric>,
    pub(crate) cells: Vec<Cell>,
    /// Figures that the scenario's question is about, in order.
    pub(crate) leads: Vec<Lead>,
    /// Reported values that belong to one level or cell.
    pub(crate) reported: Vec<ReportedValue>,
    /// Whether the experiment ends at a precision, so that its intervals must hold after every block.
    pub(crate) stopping: bool,
}

impl Samples {
    /// Returns the samples of a sweep. The second runs of its A/A control are omitted, so that those cells do
    /// not have more runs than others.
    pub(crate) fn of_sweep(sweep: &SweepDocument) -> Self {
        let mut samples = Self {
            factors: sweep.factors.iter().map(Factor::of).collect(),
            metrics: sweep.metrics.clone(),
            leads: charts::leads(sweep),
            reported: charts::reported_values(sweep),
            stopping: sweep.design.until.is_some(),
            ..Self::default()
        };
        for cell in &sweep.cells {
            let level = |factor: &SweepFactor| {
                let value = cell.levels.get(&factor.name)?;
                factor.levels.iter().position(|level| level == value)
            };
            let Some(levels) = sweep.factors.iter().map(level).collect::<Option<Vec<_>>>() else { continue };
            let mut into = Cell { levels, ..Cell::default() };
            for run in cell.runs.iter().filter(|run| !run.control) {
                if !run.usable {
                    into.problems.extend(run.problems.iter().cloned());
                    continue;
                }
                for flow in &run.flows {
                    let name = flow.name.clone().unwrap_or_default();
                    samples.add_flow(&name);
                    for (field, value) in &flow.figures {
                        into.values.entry((name.clone(), field.clone())).or_default().push(*value);
                    }
                    if flow.streams_bps.len() > 1 {
                        into.streams.entry(name).or_default().push(flow.streams_bps.clone());
                    }
                }
            }
            samples.cells.push(into);
        }
        if samples.factors.is_empty() {
            // Repeats of one cell.
            samples.factors.push(Factor {
                name: String::new(),
                key: String::new(),
                labels: vec!["all runs".to_owned()],
                numbers: Vec::new(),
                unit: String::new(),
            });
            samples.cells.iter_mut().for_each(|cell| cell.levels.push(0));
        }
        samples
    }

    fn add_flow(&mut self, flow: &str) {
        if !self.flows.iter().any(|known| known == flow) {
            self.flows.push(flow.to_owned());
        }
    }

    /// Returns whether any run has this field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.cells.iter().any(|cell| cell.values.keys().any(|(_, known)| known == field))
    }

    /// Returns the values of a cell.
    pub(crate) fn values<'a>(cell: &'a Cell, flow: &str, field: &str) -> &'a [f64] {
        cell.values.get(&(flow.to_owned(), field.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Returns the indices of factors with more than one level.
    pub(crate) fn varied(&self) -> Vec<usize> {
        (0..self.factors.len()).filter(|at| self.factors[*at].labels.len() > 1).collect()
    }

    /// Formats the levels of a cell: `buffer 16MiB, congestion bbr`.
    pub(crate) fn place(&self, cell: &Cell) -> String {
        self.varied().iter().map(|at| self.factors[*at].named(cell.levels[*at])).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the title of a metric; its name if a later version added it.
pub(crate) fn title(metric: &SweepMetric) -> String {
    Metric::find(&metric.name).map_or_else(|| metric.name.clone(), |known| known.title().to_owned())
}

/// Returns whether higher values are better.
pub(crate) fn higher(better: Better) -> bool {
    better == Better::Higher
}
