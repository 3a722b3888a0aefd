//! Settings and hosts of the runs of an experiment, without those set by factors.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{SweepCell, SweepEnvironment, Warning};
use landspeed_results::Record;

use super::FinishedRun;
use crate::id;

/// Hash of the scenario of a lab; differs between cells if a factor is a key of the scenario.
const SCENARIO: &str = "lab.scenario";
/// Maximum number of values of a fact that a warning lists.
const MAX_LISTED: usize = 3;

/// Takes the settings and hosts from a record.
pub(super) fn environment_of(record: &Record) -> SweepEnvironment {
    SweepEnvironment {
        target: record.target.clone(),
        kernel: record.kernel.clone(),
        settings: record.settings.clone(),
        hosts: record.hosts.clone(),
    }
}

/// Sets the environment index of every flow. Returns the environments, and a warning for each fact of the hosts
/// that changed during the experiment.
pub(super) fn assign(cells: &mut [SweepCell], runs: &[FinishedRun]) -> (Vec<SweepEnvironment>, Vec<Warning>) {
    let of_run: BTreeMap<&str, &[SweepEnvironment]> =
        runs.iter().map(|run| (run.id.as_str(), run.facts.environments.as_slice())).collect();
    let values = Values::of(cells, &of_run);
    let mut indices: BTreeMap<SweepEnvironment, usize> = BTreeMap::new();
    let mut environments = Vec::new();
    for run in cells.iter_mut().flat_map(|cell| &mut cell.runs) {
        let recorded = of_run.get(run.id.as_str()).copied().unwrap_or_default();
        for (flow, environment) in run.flows.iter_mut().zip(recorded) {
            let environment = values.without_levels(flow.name.as_deref(), environment);
            let next = environments.len();
            let index = *indices.entry(environment.clone()).or_insert(next);
            if index == next {
                environments.push(environment);
            }
            flow.environment = Some(index);
        }
    }
    (environments, values.changes())
}

/// A fact of one flow: name of the flow and key of the fact.
type Fact = (Option<String>, String);

/// The values of each fact, by cell.
struct Values(BTreeMap<Fact, BTreeMap<String, BTreeSet<String>>>);

impl Values {
    fn of(cells: &[SweepCell], of_run: &BTreeMap<&str, &[SweepEnvironment]>) -> Self {
        let mut values: BTreeMap<Fact, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (cell, run) in cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| (cell, run))) {
            let recorded = of_run.get(run.id.as_str()).copied().unwrap_or_default();
            for (flow, environment) in run.flows.iter().zip(recorded).filter(|_| run.usable) {
                for (key, value) in facts(environment) {
                    let of_cell = values.entry((flow.name.clone(), key)).or_default();
                    of_cell.entry(cell.id.clone()).or_default().insert(value.to_owned());
                }
            }
        }
        Self(values)
    }

    /// Whether a fact has one value per cell that differs between cells, which means that a factor sets it.
    fn follows_cells(&self, flow: Option<&str>, key: &str) -> bool {
        let Some(by_cell) = self.0.get(&(flow.map(str::to_owned), key.to_owned())) else { return false };
        by_cell.values().all(|values| values.len() == 1) && by_cell.values().collect::<BTreeSet<_>>().len() > 1
    }

    /// An environment without the facts that factors set.
    fn without_levels(&self, flow: Option<&str>, environment: &SweepEnvironment) -> SweepEnvironment {
        let mut kept = environment.clone();
        kept.target = kept.target.filter(|_| !self.follows_cells(flow, TARGET));
        kept.settings.retain(|key, _| !self.follows_cells(flow, &setting(key)));
        kept.hosts.retain(|key, _| !self.follows_cells(flow, key));
        if environment.hosts.contains_key(SCENARIO) && !kept.hosts.contains_key(SCENARIO) {
            kept.hosts.insert(SCENARIO.to_owned(), self.scenarios(flow));
        }
        kept
    }

    /// SHA-256 of the hashes of all scenarios of a flow, hex; equal for experiments with the same scenarios.
    fn scenarios(&self, flow: Option<&str>) -> String {
        let by_cell = self.0.get(&(flow.map(str::to_owned), SCENARIO.to_owned()));
        let all: BTreeSet<&str> =
            by_cell.into_iter().flat_map(BTreeMap::values).flatten().map(String::as_str).collect();
        id::sha256(all.into_iter().collect::<Vec<_>>().join(" ").as_bytes())
    }

    /// Warnings about facts of hosts that have several values in one cell, which no factor explains.
    fn changes(&self) -> Vec<Warning> {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for ((_, key), by_cell) in &self.0 {
            let is_host = key != TARGET && !key.starts_with(SETTINGS);
            if is_host && by_cell.values().any(|values| values.len() > 1) {
                found.entry(key).or_default().extend(by_cell.values().flatten().map(String::as_str));
            }
        }
        let warning = |(key, values): (&str, BTreeSet<&str>)| {
            let mut listed: Vec<&str> = values.iter().copied().take(MAX_LISTED).collect();
            if values.len() > MAX_LISTED {
                listed.push("…");
            }
            let message =
                format!("{key} changed during the experiment, and no factor sets it: {}", listed.join("; "));
            Warning { code: "host-changed".to_owned(), message }
        };
        found.into_iter().map(warning).collect()
    }
}

const TARGET: &str = "target";
const SETTINGS: &str = "settings.";

fn setting(name: &str) -> String {
    format!("{SETTINGS}{name}")
}

/// The comparable facts of an environment, as key and value.
fn facts(environment: &SweepEnvironment) -> impl Iterator<Item = (String, &str)> {
    let target = environment.target.iter().map(|target| (TARGET.to_owned(), target.as_str()));
    let settings = environment.settings.iter().map(|(name, value)| (setting(name), value.as_str()));
    let hosts = environment.hosts.iter().map(|(name, value)| (name.clone(), value.as_str()));
    target.chain(settings).chain(hosts)
}
