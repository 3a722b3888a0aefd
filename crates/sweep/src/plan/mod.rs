//! What a plan says.

mod read;
mod template;

use std::ops::Range;

use landspeed_model::{Metric, Reference};
use landspeed_problems::{Problem, Problems};

use crate::Rules;

pub use read::{MAX_CELLS, MAX_TEXT, read};
pub use template::TEMPLATE;

/// A plan: what is measured, what is varied, and when there is enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name, shown with results.
    pub name: String,
    /// In words.
    pub description: Option<String>,
    /// Published results of this experiment.
    pub reference: Option<Reference>,
    /// The metric in question.
    pub metric: Metric,
    /// When there is enough.
    pub rules: Rules,
    /// Seed of the order, and the first seed of the runs.
    pub seed: u64,
    /// Of a two-level design, one run of 2^this; 0 is the full design.
    pub fraction: u32,
    /// What is measured.
    pub subject: Subject,
    /// What is varied, the slowest first. May be empty: one cell.
    pub factors: Vec<Factor>,
    /// The text that was read.
    pub text: String,
}

/// What a plan measures.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A scenario in virtual time.
    Lab(LabSubject),
    /// Real hosts.
    Hosts(HostsSubject),
}

/// `[lab]`.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSubject {
    /// A file beside the plan, or `gallery:NAME`.
    pub scenario: Written<String>,
    /// The flow that the metric in question is of.
    pub flow: Option<Written<String>>,
    /// Keys of the scenario that are set in all cells.
    pub set: Vec<Setting>,
}

/// `[run]`, `[hosts]` and `[[cross]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct HostsSubject {
    /// The server, where this host is the client.
    pub target: Option<Written<String>>,
    /// Options of `run`, by their long names.
    pub options: Vec<Setting>,
    /// Hosts that send; empty where this host is the client.
    pub senders: Vec<Written<String>>,
    /// Hosts that receive.
    pub receivers: Vec<Written<String>>,
    /// Traffic beside every run.
    pub cross: Vec<CrossTraffic>,
}

/// `[[cross]]`: traffic between two other hosts beside every run.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossTraffic {
    /// The host that sends.
    pub from: Written<String>,
    /// The host that receives.
    pub to: Written<String>,
    /// Options of `run`.
    pub options: Vec<Setting>,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key.
    pub key: Written<String>,
    /// Its value.
    pub value: Written<toml::Value>,
}

/// Something that stands at a place of the plan's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Written<T> {
    /// What it says.
    pub value: T,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The name in tables.
    pub name: String,
    /// What it sets: one key, or several that change together.
    pub keys: Vec<Written<String>>,
    /// The levels, in the order of the plan.
    pub levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What it is called in tables and documents.
    pub label: serde_json::Value,
    /// One value for each key of the factor.
    pub values: Vec<toml::Value>,
    /// Where it is written.
    pub span: Range<usize>,
}

impl Factor {
    /// Its keys, as documents have them.
    pub fn key(&self) -> String {
        self.keys.iter().map(|key| key.value.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Level {
    /// The label as text, without the quotes of a string.
    pub fn name(&self) -> String {
        plain(&self.label)
    }
}

impl Plan {
    /// A mistake at a place of the plan.
    pub fn problem(&self, span: &Range<usize>, key: &str, message: impl Into<String>) -> Problem {
        let problem = Problem::new(key, message);
        // A factor that a scenario declares has no place in the plan.
        if span.is_empty() { problem } else { problem.at(&self.text, span.clone()) }
    }

    /// The levels of a cell by the factors' names, in words: `buffer 64KB, rate 10G`.
    pub fn describe(&self, cell: &[usize]) -> String {
        let levels = self.factors.iter().zip(cell);
        levels
            .map(|(factor, &level)| format!("{} {}", factor.name, factor.levels[level].name()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Mistakes of a plan.
pub(crate) fn problems(list: Vec<Problem>) -> Problems {
    Problems::new("plan", list)
}

/// A value as text, without the quotes of a string.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
