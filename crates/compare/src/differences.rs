//! Differences between groups in settings and hosts.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::ComparedDifference;
use landspeed_results::Record;

use crate::group::Group;

/// Value shown for a setting that was not set.
const DEFAULT: &str = "(default)";

/// Returns all recorded settings and host facts that differ between the groups or within one. A difference is
/// declared if `factors` names it. Without `factors`, the only setting that is constant in each group and
/// differs between groups is taken as declared, or if there is none, the only such host fact.
pub fn differences(groups: &[Group], factors: &[String]) -> Vec<ComparedDifference> {
    let facts: Vec<(&str, Facts)> =
        groups.iter().map(|group| (group.name.as_str(), Facts::of(&group.usable()))).collect();
    let keys: BTreeSet<&String> = facts.iter().flat_map(|(_, facts)| facts.0.keys()).collect();
    let mut found: Vec<ComparedDifference> = Vec::new();
    for key in keys {
        let values: BTreeMap<String, Vec<String>> = facts
            .iter()
            .filter_map(|(name, facts)| Some(((*name).to_owned(), facts.values(key)?.into_iter().collect())))
            .collect();
        let all: BTreeSet<&String> = values.values().flatten().collect();
        if all.len() > 1 {
            found.push(ComparedDifference { what: key.clone(), declared: false, values });
        }
    }
    let declared = if factors.is_empty() { assumed(&found) } else { named(&found, factors) };
    for difference in &mut found {
        difference.declared = declared.contains(&difference.what);
    }
    found
}

/// Whether a factor matches this key: `congestion` matches `settings.congestion`, `kernel_release` that of any
/// host, `client.nic` all its properties.
pub fn names(factor: &str, key: &str) -> bool {
    key == factor || key.ends_with(&format!(".{factor}")) || key.starts_with(&format!("{factor}."))
}

fn named(found: &[ComparedDifference], factors: &[String]) -> BTreeSet<String> {
    let keys = found.iter().map(|difference| &difference.what);
    keys.filter(|key| factors.iter().any(|factor| names(factor, key))).cloned().collect()
}

fn assumed(found: &[ComparedDifference]) -> BTreeSet<String> {
    let consistent = || found.iter().filter(|difference| difference.values.values().all(|values| values.len() == 1));
    let settings: BTreeSet<String> =
        consistent().filter(|d| d.what.starts_with("settings.")).map(|d| d.what.clone()).collect();
    if settings.len() == 1 {
        return settings;
    }
    let subjects: BTreeSet<&str> = consistent().map(|difference| subject(&difference.what)).collect();
    if settings.is_empty() && subjects.len() == 1 {
        return consistent().map(|difference| difference.what.clone()).collect();
    }
    BTreeSet::new()
}

/// The subject of a fact: release and build of the kernel, on client and server, are one subject.
fn subject(key: &str) -> &str {
    let name = key.split_once('.').map_or(key, |(_, name)| name);
    if name.starts_with("kernel_") { "kernel" } else { name }
}

/// The values of each key in a group's records, and whether any has settings.
struct Facts(BTreeMap<String, BTreeSet<String>>, bool);

impl Facts {
    fn of(records: &[&Record]) -> Self {
        let mut facts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let settings: BTreeSet<&String> = records.iter().flat_map(|record| record.settings.keys()).collect();
        for record in records {
            let mut put = |key: String, value: &str| facts.entry(key).or_default().insert(value.to_owned());
            put("tool".to_owned(), &record.tool);
            if let Some(target) = &record.target {
                put("target".to_owned(), target);
            }
            for name in &settings {
                put(format!("settings.{name}"), record.settings.get(*name).map_or(DEFAULT, String::as_str));
            }
            for (name, value) in &record.hosts {
                put(name.clone(), value);
            }
        }
        Self(facts, !settings.is_empty())
    }

    /// The values of a key. A missing setting has its default, a missing host fact is unknown.
    fn values(&self, key: &str) -> Option<BTreeSet<String>> {
        let default = || (self.1 && key.starts_with("settings.")).then(|| BTreeSet::from([DEFAULT.to_owned()]));
        self.0.get(key).cloned().or_else(default)
    }
}
