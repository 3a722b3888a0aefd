//! `landspeed archive trend`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{anyhow, ensure};
use landspeed_archive::{Query, Row};
use landspeed_model::{Metric, TREND_SCHEMA, TrendChange, TrendDocument, TrendPoint, TrendSegment};
use landspeed_results::{Record, RecordStatus};
use landspeed_stats::{ChangePoint, MIN_VALUES, change_points, quantile};

use super::{advised, build, filter::Filter, open, text};
use crate::CommandOutcome;
use crate::output::Sink;

/// Options of `archive trend`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive trend goodput --target dtn2.example
  landspeed archive trend rtt_p99 --host dtn1 --last 90d --json -
  landspeed archive trend retransmits tag=nightly

Changes are found by binary segmentation of ranks with a permutation test. --level is the share of series without a change in
which one is reported, where results do not depend on the ones before.")]
pub struct Args {
    /// The metric: goodput, retransmits, loss, rtt_p50, rtt_p99, latency_p99, cpu, …
    #[arg(value_parser = metric, value_name = "METRIC")]
    shown: Metric,
    #[command(flatten)]
    filter: Filter,
    /// Level of the test for a change
    #[arg(long, default_value_t = 0.01, value_name = "P", value_parser = level)]
    level: f64,
    /// Write the trend as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

fn metric(name: &str) -> Result<Metric, String> {
    Metric::find(name).ok_or_else(|| format!("the metrics are {}", Metric::ALL.map(Metric::name).join(", ")))
}

fn level(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(level) if (0.001..=0.2).contains(&level) => Ok(level),
        _ => Err("a level is a number from 0.001 to 0.2".to_owned()),
    }
}

/// Seed of the permutation test: fixed, so that the same records give the same changes.
const SEED: u64 = 1;
/// A value is the usual one of a segment if more than this share of its records have it.
const USUAL_SHARE: f64 = 0.5;

/// Prints a metric over time.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let query = args.filter.query()?;
    let archive = open()?;
    let mut rows = archive.rows(&query).map_err(advised)?;
    // Records without a start time cannot be placed in a trend.
    rows.retain(|row| row.record.status == RecordStatus::Complete && row.started_ns.is_some());
    rows.retain(|row| row.record.figures.get(args.shown).is_some());
    rows.reverse();
    ensure!(
        !rows.is_empty(),
        "no complete record that matches has {}\nSee what there is: `landspeed archive find`.",
        args.shown.name()
    );
    let document = document(args, &query, &rows)?;
    if let Some(sink) = &args.json {
        let mut json = serde_json::to_vec_pretty(&document)?;
        json.push(b'\n');
        sink.write(&json)?;
    }
    if args.json != Some(Sink::Stdout) {
        out!("{}", text::trend(&document, args.shown, mixed(&rows).as_deref()));
    }
    Ok(CommandOutcome::Clean)
}

fn document(args: &Args, query: &Query, rows: &[Row]) -> anyhow::Result<TrendDocument> {
    let value = |row: &Row| row.record.figures.get(args.shown).unwrap_or_default();
    let values: Vec<f64> = rows.iter().map(value).collect();
    let found = change_points(&values, args.level, SEED);
    let mut bounds: Vec<usize> = vec![0];
    bounds.extend(found.iter().map(|change| change.index));
    bounds.push(values.len());
    let segment = |bounds: &[usize]| -> anyhow::Result<TrendSegment> {
        let part = &values[bounds[0]..bounds[1]];
        let at = |p| quantile(part, p).ok_or_else(|| anyhow!("a stretch has no values"));
        Ok(TrendSegment {
            first: bounds[0] as u64,
            values: part.len() as u64,
            median: at(0.5)?,
            p10: at(0.1)?,
            p90: at(0.9)?,
        })
    };
    let segments: Vec<TrendSegment> = bounds.windows(2).map(segment).collect::<Result<_, _>>()?;
    let change = |(i, change): (usize, &ChangePoint)| {
        let row = &rows[change.index];
        let (before, after) = (segments[i].median, segments[i + 1].median);
        TrendChange {
            index: change.index as u64,
            id: row.id.to_string(),
            started: row.record.started.clone(),
            ratio: (before != 0.0).then(|| after / before),
            p_value: change.p_value,
            differences: differences(&rows[bounds[i]..bounds[i + 1]], &rows[bounds[i + 1]..bounds[i + 2]]),
        }
    };
    Ok(TrendDocument {
        schema: TREND_SCHEMA.to_owned(),
        landspeed: build(),
        query: query.to_string(),
        metric: args.shown.name().to_owned(),
        field: args.shown.field().to_owned(),
        unit: args.shown.unit().to_owned(),
        better: args.shown.better(),
        level: args.level,
        points: rows
            .iter()
            .map(|row| TrendPoint {
                id: row.id.to_string(),
                started: row.record.started.clone(),
                flow: row.record.flow.clone(),
                value: value(row),
            })
            .collect(),
        changes: found.iter().enumerate().map(change).collect(),
        segments,
    })
}

/// Returns settings and facts whose usual value differs before and after a change.
fn differences(before: &[Row], after: &[Row]) -> BTreeMap<String, (String, String)> {
    let (before, after) = (usual(before), usual(after));
    let differs = |(key, old): (&String, &String)| {
        let new = after.get(key)?;
        (new != old).then(|| (key.clone(), (old.clone(), new.clone())))
    };
    before.iter().filter_map(differs).collect()
}

/// Returns the value of each setting and fact that more than half of the records share.
fn usual(rows: &[Row]) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<(&String, &String), usize> = BTreeMap::new();
    for row in rows {
        let Record { settings, hosts, .. } = &row.record;
        for pair in settings.iter().chain(hosts) {
            *counts.entry(pair).or_default() += 1;
        }
    }
    let most = counts.into_iter().filter(|(_, count)| *count as f64 > USUAL_SHARE * rows.len() as f64);
    most.map(|((key, value), _)| (key.clone(), value.clone())).collect()
}

/// Returns a note if the records have several targets, flows or titles, or if there are too few of them.
fn mixed(rows: &[Row]) -> Option<String> {
    let mut what = Vec::new();
    let distinct = |of: fn(&Row) -> Option<&String>| rows.iter().filter_map(of).collect::<BTreeSet<_>>();
    for (name, plural, values) in [
        ("--target", "targets", distinct(|row| row.record.target.as_ref())),
        ("--flow", "flows", distinct(|row| row.record.flow.as_ref())),
        ("--title", "titles", distinct(|row| row.record.title.as_ref())),
    ] {
        if values.len() > 1 {
            what.push(format!("{} {plural} ({name} selects one)", values.len()));
        }
    }
    if rows.len() < 2 * MIN_VALUES {
        what.push(format!("{} records; a change needs at least {} on each side", rows.len(), MIN_VALUES));
    }
    (!what.is_empty()).then(|| what.join(", "))
}
