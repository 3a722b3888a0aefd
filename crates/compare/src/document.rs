//! The comparison document.

use std::collections::BTreeSet;

use landspeed_model::{
    BuildInfo, COMPARISON_SCHEMA, ComparedDifference, ComparedGroup, ComparedMetric, ComparisonDesign,
    ComparisonDocument, ComparisonVerdict, Warning,
};
use landspeed_results::{Record, RecordStatus};

use crate::conditions::Condition;
use crate::differences::{differences, names};
use crate::group::{Group, Options};
use crate::noise::noise;
use crate::verdict::compare;

/// Maximum number of entries that a warning lists.
const MAX_LISTED: usize = 6;

/// Compares groups with the first one. The caller fills in `created` and `command`.
pub fn document(
    mut groups: Vec<Group>,
    options: &Options,
    conditions: &[Condition],
    landspeed: BuildInfo,
) -> ComparisonDocument {
    for group in &mut groups {
        group.exclude_unusable();
    }
    let (baseline, candidates) = groups.split_first().map_or((None, &[][..]), |(a, b)| (Some(a), b));
    let metrics = baseline.map_or_else(Vec::new, |baseline| compare(baseline, candidates, options));
    let noise = baseline.map_or_else(Vec::new, |baseline| noise(&baseline.records, options));
    let differences = differences(&groups, &options.factors);
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| warnings.push(Warning { code: code.to_owned(), message });
    undeclared(&differences, &options.factors, &mut warn);
    warn_shared_results(&groups, &metrics, &mut warn);
    warn_noise(&metrics, &noise, &mut warn);
    missing(&groups, &metrics, options, &mut warn);
    ComparisonDocument {
        schema: COMPARISON_SCHEMA.to_owned(),
        landspeed,
        created: String::new(),
        command: Vec::new(),
        groups: groups.iter().map(described).collect(),
        design: metrics.first().map_or(ComparisonDesign::Unpaired, |metric| metric.design),
        level: options.level,
        seed: options.seed,
        conditions: conditions.iter().map(|condition| condition.evaluate(&metrics)).collect(),
        metrics,
        noise,
        differences,
        warnings,
    }
}

impl Group {
    /// Moves results that must not be counted to [`Group::left_out`]: incomplete ones and duplicates.
    fn exclude_unusable(&mut self) {
        let mut seen: Vec<Record> = Vec::new();
        for record in std::mem::take(&mut self.records) {
            let what = format!("{} of {}", record.title.as_deref().unwrap_or("a result"), record.started);
            if record.status != RecordStatus::Complete {
                let why = record.notes.first().map_or_else(String::new, |note| format!(" ({note})"));
                self.left_out.push(format!("{what}: {}{why}", record.status.word()));
            } else if seen.iter().any(|other| same(other, &record)) {
                self.left_out.push(format!("{what}: the same result is there already"));
            } else {
                seen.push(record);
            }
        }
        self.records = seen;
    }
}

/// Whether two records are the same result: a repeated lab run has the same digest.
fn same(a: &Record, b: &Record) -> bool {
    let repeated = a.digest.is_some() && (&a.digest, a.seed) == (&b.digest, b.seed);
    let copied = a.started == b.started && a.figures == b.figures && a.seed == b.seed;
    let place = |record: &Record| (record.experiment.clone(), record.block, record.control);
    (repeated || copied) && a.flow == b.flow && a.settings == b.settings && place(a) == place(b)
}

fn described(group: &Group) -> ComparedGroup {
    let usable = group.usable();
    let flows = group.flows().len().max(1);
    let started = || usable.iter().map(|record| record.started.as_str());
    ComparedGroup {
        name: group.name.clone(),
        source: group.source.clone(),
        runs: (usable.len() / flows) as u32,
        left_out: group.left_out.clone(),
        from: started().min().unwrap_or_default().to_owned(),
        to: started().max().unwrap_or_default().to_owned(),
    }
}

/// Warns about undeclared differences, and about factors in which the groups do not differ.
fn undeclared(differences: &[ComparedDifference], factors: &[String], warn: &mut impl FnMut(&str, String)) {
    for factor in factors {
        if !differences.iter().any(|difference| names(factor, &difference.what)) {
            warn("no-such-difference", format!("the groups do not differ in `{factor}`"));
        }
    }
    let (between, within): (Vec<_>, Vec<_>) = differences
        .iter()
        .filter(|difference| !difference.declared)
        .partition(|difference| difference.values.values().all(|values| values.len() == 1));
    let list = |found: &[&ComparedDifference]| {
        let names: Vec<&str> = found.iter().take(MAX_LISTED).map(|difference| difference.what.as_str()).collect();
        let more = found.len().saturating_sub(MAX_LISTED);
        names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    if !between.is_empty() {
        let besides = if differences.iter().any(|difference| difference.declared) { "also " } else { "" };
        warn(
            "other-differences",
            format!("the groups {besides}differ in {}: a verdict may be due to that", list(&between)),
        );
    }
    if !within.is_empty() {
        warn("not-alike", format!("runs of one group differ in {}", list(&within)));
    }
}

/// Warns about results in two groups, and about groups that were not measured alternately.
fn warn_shared_results(groups: &[Group], metrics: &[ComparedMetric], warn: &mut impl FnMut(&str, String)) {
    let Some((baseline, candidates)) = groups.split_first() else { return };
    for candidate in candidates {
        let shared = candidate.records.iter().filter(|a| baseline.records.iter().any(|b| same(a, b))).count();
        if shared > 0 {
            warn("shared-results", format!("{shared} results of {} are also in {}", candidate.name, baseline.name));
        }
        let unpaired = metrics
            .iter()
            .any(|metric| metric.candidate == candidate.name && metric.design == ComparisonDesign::Unpaired);
        let real = |group: &Group| group.usable().iter().all(|record| record.digest.is_none());
        let (a, b) = (described(baseline), described(candidate));
        let apart = a.to < b.from || b.to < a.from;
        if unpaired && apart && real(baseline) && real(candidate) && !a.from.is_empty() && !b.from.is_empty() {
            warn(
                "not-interleaved",
                format!(
                    "all runs of {} were made before those of {}: what else changed in between is mixed with the effect; \
                     `landspeed sweep` takes turns",
                    if a.to < b.from { &a.name } else { &b.name },
                    if a.to < b.from { &b.name } else { &a.name },
                ),
            );
        }
    }
}

/// Warns about verdicts that the noise of the baseline could explain.
fn warn_noise(metrics: &[ComparedMetric], noise: &[ComparedMetric], warn: &mut impl FnMut(&str, String)) {
    let claimed = |verdict| matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
    for floor in noise {
        let of = |metric: &&ComparedMetric| metric.name == floor.name && metric.flow == floor.flow;
        if claimed(floor.verdict) {
            warn(
                "noise-differs",
                format!("the baseline differs from itself in {}: its runs are no replicates", floor.name),
            );
        }
        for metric in metrics.iter().filter(of).filter(|metric| claimed(metric.verdict)) {
            let (Some(effect), Some(apart)) = (metric.ratio, floor.ratio) else { continue };
            if apart.ln().abs() >= effect.ln().abs() {
                warn(
                    "noise-exceeds-effect",
                    format!(
                        "{} of {}: halves of the baseline differ as much ({:+.1} %) as the groups ({:+.1} %)",
                        metric.name,
                        metric.candidate,
                        (apart - 1.0) * 100.0,
                        (effect - 1.0) * 100.0
                    ),
                );
            }
        }
    }
}

/// Warns about requested metrics without values, and about metrics and flows that not all groups have.
fn missing(groups: &[Group], metrics: &[ComparedMetric], options: &Options, warn: &mut impl FnMut(&str, String)) {
    for metric in &options.metrics {
        if !metrics.iter().any(|compared| compared.name == metric.name()) {
            warn("no-such-figure", format!("no result has {}", metric.name()));
        }
    }
    let one_sided: BTreeSet<String> = metrics
        .iter()
        .filter(|metric| (metric.baseline_runs == 0) != (metric.candidate_runs == 0))
        .map(|metric| metric.name.clone())
        .collect();
    for name in one_sided {
        warn("one-sided", format!("not every group has {name}"));
    }
    let flows: Vec<BTreeSet<Option<&str>>> = groups.iter().map(Group::flows).collect();
    if let Some((first, others)) = flows.split_first() {
        let unmatched: BTreeSet<&str> = others
            .iter()
            .flat_map(|other| first.symmetric_difference(other))
            .map(|flow| flow.unwrap_or("(no flow)"))
            .collect();
        if !unmatched.is_empty() {
            let names: Vec<&str> = unmatched.into_iter().take(MAX_LISTED).collect();
            warn("unmatched-flows", format!("not every group has the flows {}", names.join(", ")));
        }
    }
}
