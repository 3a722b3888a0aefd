//! In what groups differ besides their figures.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::ComparedDifference;
use landspeed_results::Record;

use crate::group::Group;

/// What a setting is called that was left at its default.
const DEFAULT: &str = "(default)";

/// Everything recorded in which the groups differ, or one of them is not alike in itself. A difference is declared if `factors`
/// name it. Without `factors` it is the one setting that each group has alike and in which groups differ, or else the one fact
/// of the hosts.
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

/// Whether a factor names this key: `congestion` and `settings.congestion`, `kernel_release` of any host, all of `client.nic`.
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

/// What a fact is about: the kernel of the client and that of the server are one factor, and so are its release and its build.
fn subject(key: &str) -> &str {
    let name = key.split_once('.').map_or(key, |(_, name)| name);
    if name.starts_with("kernel_") { "kernel" } else { name }
}

/// The values of each key among a group's records.
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

    /// Of settings, what a group does not name is the default; of hosts, it is unknown.
    fn values(&self, key: &str) -> Option<BTreeSet<String>> {
        let default = || (self.1 && key.starts_with("settings.")).then(|| BTreeSet::from([DEFAULT.to_owned()]));
        self.0.get(key).cloned().or_else(default)
    }
}
