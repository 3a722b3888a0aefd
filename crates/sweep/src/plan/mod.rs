//! Plans of experiments.

mod read;
mod template;

use std::ops::Range;

use landspeed_model::{Metric, Reference};
use landspeed_problems::{Problem, Problems};

use crate::Rules;

pub use read::{MAX_CELLS, MAX_TEXT, read};
pub use template::TEMPLATE;

/// A plan: subject, factors and stopping rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the experiment, shown with its results.
    pub name: String,
    /// Free text about the experiment.
    pub description: Option<String>,
    /// Published results of this experiment.
    pub reference: Option<Reference>,
    /// The metric that the experiment is about.
    pub metric: Metric,
    /// The stopping rules.
    pub rules: Rules,
    /// Seed of the order of runs, and seed of the first runs.
    pub seed: u64,
    /// Two-level design: power p of the fraction 1/2^p; 0 is the full design.
    pub fraction: u32,
    /// The measurement: a lab scenario or real hosts.
    pub subject: Subject,
    /// The factors, the slowest first; without any there is one cell.
    pub factors: Vec<Factor>,
    /// The text of the plan.
    pub text: String,
    /// File name, for messages.
    pub file: String,
}

/// The measurement that a plan repeats.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A scenario in virtual time.
    Lab(LabSubject),
    /// Real hosts.
    Hosts(HostsSubject),
}

/// The table `[lab]`.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSubject {
    /// A file in the plan's directory, or `gallery:NAME`.
    pub scenario: Written<String>,
    /// The flow that the plan's metric is taken from; `None` for the first.
    pub flow: Option<Written<String>>,
    /// Keys of the scenario that are set in all cells.
    pub set: Vec<Setting>,
}

/// The tables `[run]`, `[hosts]` and `[[cross]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct HostsSubject {
    /// Address of the server, if this host is the client.
    pub target: Option<Written<String>>,
    /// Options of `landspeed run`, by their long names.
    pub options: Vec<Setting>,
    /// Sending hosts; empty if this host is the client.
    pub senders: Vec<Written<String>>,
    /// Receiving hosts.
    pub receivers: Vec<Written<String>>,
    /// Cross traffic during every run.
    pub cross: Vec<CrossTraffic>,
}

/// `[[cross]]`: traffic between two other hosts during every run.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossTraffic {
    /// The sending host.
    pub from: Written<String>,
    /// The receiving host.
    pub to: Written<String>,
    /// Options of `landspeed run`.
    pub options: Vec<Setting>,
}

/// A key and its value in the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key, with its position.
    pub key: Written<String>,
    /// The value, with its position.
    pub value: Written<toml::Value>,
}

/// A value with its position in the plan's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Written<T> {
    /// The value itself.
    pub value: T,
    /// Byte range in the text.
    pub span: Range<usize>,
}

/// A factor of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Name shown in tables.
    pub name: String,
    /// The key that it sets, or several keys that change together.
    pub keys: Vec<Written<String>>,
    /// The levels, in the order of the plan.
    pub levels: Vec<Level>,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Label in tables and documents.
    pub label: serde_json::Value,
    /// One value per key of the factor.
    pub values: Vec<toml::Value>,
    /// Byte range in the plan's text.
    pub span: Range<usize>,
}

impl Factor {
    /// The keys, joined as in documents.
    pub fn key(&self) -> String {
        self.keys.iter().map(|key| key.value.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Level {
    /// The label as text; strings without quotes.
    pub fn name(&self) -> String {
        plain(&self.label)
    }
}

impl Plan {
    /// A problem at a position of the plan's text.
    pub fn problem(&self, span: &Range<usize>, key: &str, message: impl Into<String>) -> Problem {
        let problem = Problem::new(key, message);
        // A factor declared by a scenario has no position in the plan.
        if span.is_empty() { problem } else { problem.at(&self.text, span.clone()) }
    }

    /// Collects problems of this plan.
    pub fn problems(&self, list: Vec<Problem>) -> Problems {
        Problems::new(self.file.clone(), list)
    }

    /// The levels of a cell with the names of the factors: `buffer 64KB, rate 10G`.
    pub fn describe(&self, cell: &[usize]) -> String {
        let levels = self.factors.iter().zip(cell);
        levels
            .map(|(factor, &level)| format!("{} {}", factor.name, factor.levels[level].name()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A value as text; strings without quotes.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
