//! Groups of results from the command's operands.

use std::collections::BTreeMap;
use std::path::Path;

use landspeed_compare::Group;
use landspeed_model::SweepFactor;
use landspeed_results::{Document, Record};

use crate::source::{self, LoadedData, Source};

/// The groups that the operands name.
pub struct Groups {
    /// One group per operand, or per level of a single sweep.
    pub groups: Vec<Group>,
    /// Factors fixed by the operands.
    pub factors: Vec<String>,
    /// Results that could not be read.
    pub unreadable: Vec<String>,
}

/// Loads the groups: one per operand, or one per level of the first factor of a single sweep.
pub fn load(operands: &[String]) -> anyhow::Result<Groups> {
    if let [single] = operands {
        return levels(single);
    }
    let sources =
        operands.iter().map(|operand| source::load(operand, LoadedData::Records)).collect::<Result<Vec<_>, _>>()?;
    let mut factors: Vec<String> = sources.iter().flat_map(|source| source.fixed.clone()).collect();
    factors.sort();
    factors.dedup();
    let unreadable = sources.iter().flat_map(|source| &source.unreadable).map(ToString::to_string).collect();
    let names = names(&sources);
    let mut groups = Vec::new();
    for (source, name) in sources.into_iter().zip(names) {
        let mut left_out: Vec<String> = source.unreadable.iter().map(ToString::to_string).collect();
        let mut records = Vec::new();
        for item in source.items {
            if item.records.is_empty() {
                left_out.push(format!("{}: it measured no transfer", item.origin));
            }
            records.extend(item.records);
        }
        if records.is_empty() {
            let why = left_out.first().cloned().unwrap_or_else(|| "it is empty".to_owned());
            anyhow::bail!("cannot compare {}: no result can be used: {why}", source.operand);
        }
        groups.push(Group { name, source: source.operand, records, left_out });
    }
    Ok(Groups { groups, factors, unreadable })
}

/// Loads one group per level of a sweep's first factor.
fn levels(operand: &str) -> anyhow::Result<Groups> {
    let source = source::load(operand, LoadedData::Documents)?;
    let unreadable = source.unreadable.iter().map(ToString::to_string).collect();
    let sweep = source.items.iter().find_map(|item| match &item.document {
        Some(Document::Sweep(sweep)) => Some((item, sweep)),
        _ => None,
    });
    let factor = sweep.and_then(|(item, sweep)| {
        let open = sweep.factors.iter().find(|factor| !source.fixed.contains(&factor.name))?;
        Some((item, open.clone()))
    });
    let Some((item, factor)) = factor.filter(|_| source.items.len() == 1) else {
        anyhow::bail!(
            "cannot compare {operand} with nothing: one group is there\nName a second group, or one sweep.json: \
             `landspeed compare --help`."
        );
    };
    let groups = of_levels(&factor, &item.records, &source.operand);
    anyhow::ensure!(
        groups.len() > 1,
        "cannot compare {operand}: fewer than two levels of {} were measured",
        factor.name
    );
    Ok(Groups { groups, factors: vec![factor.name], unreadable })
}

/// Returns one group for each level of a factor that has results in `records`; `source` names their origin.
pub fn of_levels(factor: &SweepFactor, records: &[Record], source: &str) -> Vec<Group> {
    let groups = factor.levels.iter().map(|level| {
        let level = level.as_str().map_or_else(|| level.to_string(), str::to_owned);
        let of_level = |record: &&Record| record.settings.get(&factor.name) == Some(&level);
        let records: Vec<_> = records.iter().filter(of_level).cloned().collect();
        Group::new(level.clone(), format!("{source}:{}={level}", factor.name), records)
    });
    groups.filter(|group| !group.records.is_empty()).collect()
}

/// Returns a unique name for each group: the given one, or one derived from its operand.
fn names(sources: &[Source]) -> Vec<String> {
    let suggested: Vec<String> =
        sources.iter().map(|source| source.name.clone().unwrap_or_else(|| suggest(source))).collect();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for name in &suggested {
        *counts.entry(name).or_default() += 1;
    }
    let numbered = |(i, name): (usize, &String)| {
        let unique = counts[name] == 1 && !name.is_empty();
        if unique { name.clone() } else { format!("{name}{}", letter(i)) }
    };
    suggested.iter().enumerate().map(numbered).collect()
}

/// Returns the letter for an index: A, B, C …
fn letter(i: usize) -> String {
    char::from_u32('A' as u32 + i as u32).filter(char::is_ascii_uppercase).map_or_else(|| i.to_string(), String::from)
}

/// Derives a name from the operand: the levels of a part of a sweep, the archive query, or the file or
/// directory name.
fn suggest(source: &Source) -> String {
    if !source.fixed.is_empty() {
        let (_, levels) = source.operand.rsplit_once(':').unwrap_or_default();
        return levels.split(',').filter_map(|pair| Some(pair.split_once('=')?.1)).collect::<Vec<_>>().join(",");
    }
    if let Some(query) = source.operand.strip_prefix(source::ARCHIVE) {
        return query.to_owned();
    }
    let path = Path::new(&source.operand);
    let name = if path.is_dir() { path.file_name() } else { path.file_stem().filter(|_| path.exists()) };
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
