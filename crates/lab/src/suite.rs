//! Suites: lists of scenarios with criteria, such as the test cases of a standard.

use landspeed_model::Criterion;
use landspeed_problems::suggest_or_list;
use serde::Deserialize;

/// Scenario texts that the cases of the suites are based on, by name.
const BASES: &[(&str, &str)] = &[
    ("single", include_str!("suite/single.toml")),
    ("pair", include_str!("suite/pair.toml")),
    ("rrul", include_str!("suite/rrul.toml")),
];

/// Names of the suites with their texts.
const SUITES: &[(&str, &str)] = &[
    ("ccwg-bbr", include_str!("suite/ccwg-bbr.toml")),
    ("rfc9743", include_str!("suite/rfc9743.toml")),
    ("rrul", include_str!("suite/rrul-suite.toml")),
];

/// Label of the factor with the congestion control under test.
pub const CONGESTION_LABEL: &str = "cc";

/// A list of scenarios with criteria.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Suite {
    /// Name on the command line.
    #[serde(skip)]
    pub name: &'static str,
    /// One-line description.
    pub title: String,
    /// Document that defines the cases.
    pub source: String,
    /// What the suite shows, and where its limits come from.
    pub about: String,
    /// Congestion controls to test by default.
    pub congestion: Vec<String>,
    /// Congestion control that criteria compare with; it always runs. `None` if no criterion compares.
    pub baseline: Option<String>,
    /// Cases, in the order in which they run.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// A case of a suite.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name, unique in the suite.
    pub name: String,
    /// One-line description.
    pub title: String,
    /// Section of the suite's source.
    pub section: String,
    /// Name of the scenario that it is based on.
    base: String,
    /// Conditions that cannot be seen from outside the sender.
    pub hidden: Option<String>,
    /// Keys of the scenario to replace.
    #[serde(default)]
    pub set: toml::Table,
    /// Criteria; a case without any is listed, and does not run.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
}

impl Case {
    /// Returns the text of the scenario that the case is based on.
    #[must_use]
    pub fn base(&self) -> &'static str {
        BASES.iter().find(|(name, _)| *name == self.base).map_or("", |(_, text)| text)
    }
}

/// Returns the names of the suites.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    SUITES.iter().map(|(name, _)| *name)
}

/// Returns a suite by name.
///
/// # Errors
/// If there is none, with a suggestion.
pub fn find(name: &str) -> Result<Suite, String> {
    let Some((name, text)) = SUITES.iter().find(|(known, _)| *known == name) else {
        let hint = suggest_or_list(name, names()).unwrap_or_default();
        return Err(format!("no suite `{name}`\n{hint}"));
    };
    let suite: Suite = toml::from_str(text).map_err(|why| format!("cannot read the suite `{name}`: {why}"))?;
    Ok(Suite { name, ..suite })
}

impl Suite {
    /// Returns a case by name.
    ///
    /// # Errors
    /// If there is none, with a suggestion.
    pub fn case(&self, name: &str) -> Result<&Case, String> {
        self.cases.iter().find(|case| case.name == name).ok_or_else(|| {
            let hint = suggest_or_list(name, self.cases.iter().map(|case| case.name.as_str())).unwrap_or_default();
            format!("no case `{name}` in the suite {}\n{hint}", self.name)
        })
    }
}
