//! Terminal output of a comparison: headline, table, differences and caveats.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use landspeed_model::{
    ComparedDifference, ComparedGroup, ComparedMetric, ComparisonDesign, ComparisonDocument, ComparisonVerdict,
};
use landspeed_units::{BitRate, Nanos};

use crate::text::Page;

/// Width of the metric column.
const NAME_WIDTH: usize = 12;
/// Maximum number of differences printed; the document has all.
const MAX_DIFFERENCES: usize = 8;

/// Formats the comparison.
pub fn report(document: &ComparisonDocument) -> String {
    let mut page = Page::default();
    let Some((baseline, candidates)) = document.groups.split_first() else { return page.text };
    for candidate in candidates {
        page.line("result", &headline(document, baseline, candidate));
    }
    page.line("baseline", &group(baseline));
    for candidate in candidates {
        page.line("candidate", &group(candidate));
    }
    for candidate in candidates {
        table(document, baseline, candidate, &mut page);
    }
    page.text.push('\n');
    page.line("intervals", &method(document));
    if let Some(detectable) = detectable(document) {
        page.line("detectable", &detectable);
    }
    page.line("noise", &noise(document));
    differences(document, &mut page);
    for warning in &document.warnings {
        page.line("doubt", &warning.message);
    }
    for condition in &document.conditions {
        let met = if condition.holds { "met" } else { "not met" };
        page.line("fail if", &format!("{}: {met}: {}", condition.condition, condition.detail));
    }
    page.text
}

fn of<'a>(document: &'a ComparisonDocument, candidate: &ComparedGroup) -> impl Iterator<Item = &'a ComparedMetric> {
    let name = candidate.name.clone();
    document.metrics.iter().filter(move |metric| metric.candidate == name)
}

/// Formats the headline: `after is worse than before in goodput; 3 metrics: no detectable difference`.
fn headline(document: &ComparisonDocument, baseline: &ComparedGroup, candidate: &ComparedGroup) -> String {
    let with = |verdict: ComparisonVerdict| -> Vec<String> {
        of(document, candidate).filter(|metric| metric.verdict == verdict).map(label).collect()
    };
    let mut parts = Vec::new();
    for (verdict, word) in [(ComparisonVerdict::Worse, "worse"), (ComparisonVerdict::Better, "better")] {
        let names = with(verdict);
        if !names.is_empty() {
            parts.push(format!("{word} in {}", names.join(", ")));
        }
    }
    let (none, few) = (with(ComparisonVerdict::NoDetectableDifference), with(ComparisonVerdict::TooFewRuns));
    if !none.is_empty() {
        let which =
            if parts.is_empty() && few.is_empty() { String::new() } else { format!(" in {}", none.join(", ")) };
        parts.push(format!("no detectable difference{which}"));
    }
    if !few.is_empty() {
        let need = of(document, candidate).filter_map(|metric| metric.runs_needed).max();
        let need = need.map_or_else(String::new, |need| format!(" (needs {need} of each)"));
        parts.push(format!("too few runs{need} for {}", few.join(", ")));
    }
    format!("{} against {}: {}", candidate.name, baseline.name, parts.join("; "))
}

fn label(metric: &ComparedMetric) -> String {
    match &metric.flow {
        Some(flow) => format!("{} of {flow}", metric.name),
        None => metric.name.clone(),
    }
}

/// Describes a group: `before: 15 runs, 2026-11-24 21:02 to 21:09`.
fn group(group: &ComparedGroup) -> String {
    let runs = if group.runs == 1 { "run" } else { "runs" };
    let minute = |time: &str| time.get(..16).unwrap_or(time).replace('T', " ");
    let (from, to) = (minute(&group.from), minute(&group.to));
    let to = if from.get(..10) == to.get(..10) { to.get(11..).unwrap_or_default().to_owned() } else { to };
    let span = match (from.is_empty(), to.is_empty() || group.from == group.to) {
        (true, _) => String::new(),
        (false, true) => format!(", {from}"),
        (false, false) => format!(", {from} to {to}"),
    };
    let left_out = match group.left_out.as_slice() {
        [] => String::new(),
        [one] => format!("; left out: {one}"),
        many => format!("; {} left out, such as {}", many.len(), many[0]),
    };
    format!("{}: {} {runs}{span}{left_out}", group.name, group.runs)
}

fn table(document: &ComparisonDocument, baseline: &ComparedGroup, candidate: &ComparedGroup, page: &mut Page) {
    let short = |name: &str| name.chars().take(10).collect::<String>();
    let flows: BTreeSet<Option<&String>> = of(document, candidate).map(|metric| metric.flow.as_ref()).collect();
    for flow in flows {
        page.text.push('\n');
        let title = flow.map(String::as_str).unwrap_or_default();
        let _ = writeln!(
            page.text,
            "  {:NAME_WIDTH$} {:>10} {:>10} {:>5} {:11} verdict",
            title,
            short(&baseline.name),
            short(&candidate.name),
            "ratio",
            "interval"
        );
        for metric in of(document, candidate).filter(|metric| metric.flow.as_ref() == flow) {
            let line = row(metric);
            page.text.push_str(line.trim_end());
            page.text.push('\n');
        }
    }
}

fn row(metric: &ComparedMetric) -> String {
    let median = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figure(value, &metric.unit));
    let (ratio, interval) = match (metric.ratio, metric.low, metric.high) {
        (Some(ratio), Some(low), Some(high)) => (times(ratio), format!("{}–{}", times(low), times(high))),
        (Some(ratio), _, _) => (times(ratio), "-".to_owned()),
        _ => ("-".to_owned(), "-".to_owned()),
    };
    let name = match metric.name.len() {
        length if length > NAME_WIDTH => format!("  {}\n  {:NAME_WIDTH$}", metric.name, ""),
        _ => format!("  {:NAME_WIDTH$}", metric.name),
    };
    format!(
        "{name} {:>10} {:>10} {ratio:>5} {interval:11} {}",
        median(metric.baseline_median),
        median(metric.candidate_median),
        verdict(metric.verdict)
    )
}

fn verdict(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::NoDetectableDifference => "no detectable difference",
        ComparisonVerdict::TooFewRuns => "too few runs",
    }
}

/// Formats a ratio with three decimals below 10, so that 1.000 and 1.002 differ.
fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 999.5 => format!("{r:.0e}"),
        r if r >= 99.5 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r => format!("{r:.3}"),
    }
}

/// Formats a value with its unit in at most ten columns.
fn figure(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => BitRate::from_bps(value.max(0.0).round() as u64).to_string(),
        "ns" => Nanos::new(value.max(0.0).round() as u64).to_string(),
        "s/Gb" => format!("{} s/Gb", digits(value)),
        "per GB" => format!("{}/GB", digits(value)),
        "per s" => format!("{}/s", digits(value)),
        "ratio" if value < 0.1 => format!("{} %", digits(value * 100.0)),
        "ratio" => format!("{value:.3}"),
        "bit·m/s" => format!("{value:.2e}"),
        _ => digits(value),
    }
}

/// Formats a number with three significant digits; 0 and whole numbers without decimals.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 1e6 => format!("{value:.2e}"),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

fn method(document: &ComparisonDocument) -> String {
    let level = percent(document.level);
    let all = document.metrics.len();
    let together = if all > 1 { format!(" for all {all} verdicts together (Holm)") } else { String::new() };
    let paired = document.metrics.iter().filter(|metric| metric.design == ComparisonDesign::Paired).count();
    let how = match paired {
        n if n == all => {
            let most = |of: fn(&ComparedMetric) -> u32| document.metrics.iter().map(of).max().unwrap_or(0);
            let blocks = most(|metric| metric.blocks.unwrap_or(metric.candidate_runs));
            let runs = most(|metric| metric.candidate_runs);
            let means =
                if runs > blocks { format!(" (each a mean of its runs, {runs} in all)") } else { String::new() };
            format!("median ratio within {blocks} blocks{means}")
        }
        0 if document.metrics.iter().any(|metric| metric.blocks.is_some()) => {
            let blocks = document.metrics.iter().filter_map(|metric| metric.blocks).max().unwrap_or(0);
            format!("ratio of medians of {blocks} blocks of each (each a mean of its runs), bootstrap")
        }
        0 => "ratio of medians, bootstrap".to_owned(),
        _ => "within blocks where there are blocks, else ratio of medians".to_owned(),
    };
    let correlated = document.metrics.iter().filter_map(|metric| metric.autocorrelation).fold(0.0, f64::max);
    let wider = if correlated > 0.005 {
        format!("; widened for correlation in time (up to {correlated:.2})")
    } else {
        String::new()
    };
    format!("{level}{together}; {how}{wider}")
}

/// Returns the minimum detectable change of each metric without a difference.
fn detectable(document: &ComparisonDocument) -> Option<String> {
    let parts: Vec<String> = document
        .metrics
        .iter()
        .filter(|metric| metric.verdict == ComparisonVerdict::NoDetectableDifference)
        .filter_map(|metric| Some((metric, metric.minimum_detectable?)))
        .map(|(metric, least)| match least {
            least if least < 1.0 => format!("{} {}", label(metric), percent(least)),
            _ => format!("{} more than 100 %", label(metric)),
        })
        .collect();
    (!parts.is_empty()).then(|| format!("changes from {} (in 4 of 5 comparisons like this)", parts.join(", ")))
}

/// Formats the A/A comparison of the baseline with itself.
fn noise(document: &ComparisonDocument) -> String {
    let parts: Vec<String> = document
        .noise
        .iter()
        .filter_map(|metric| {
            let (low, high) = metric.low.zip(metric.high)?;
            // Without an end where a value is 0.
            let share = Some((high / low).sqrt() - 1.0).filter(|share| share.is_finite())?;
            Some(format!("{} ±{}", label(metric), percent(share)))
        })
        .collect();
    let pairs = document.noise.iter().map(|metric| metric.candidate_runs).max().unwrap_or(0);
    if parts.is_empty() {
        return format!("unknown: {pairs} pairs of runs of the baseline are too few for an A/A comparison");
    }
    format!("{} (A/A: the baseline against itself, {pairs} pairs)", parts.join(", "))
}

fn differences(document: &ComparisonDocument, page: &mut Page) {
    let (declared, others): (Vec<&ComparedDifference>, Vec<_>) =
        document.differences.iter().partition(|difference| difference.declared);
    for difference in declared.iter().take(MAX_DIFFERENCES) {
        page.line("factor", &describe_difference(document, difference));
    }
    for difference in others.iter().take(MAX_DIFFERENCES) {
        page.line("differs", &describe_difference(document, difference));
    }
    let more = others.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        page.line("differs", &format!("{more} more: `--json -` lists all"));
    }
    if document.differences.is_empty() {
        page.line("differs", "nothing that was recorded");
    }
}

/// Formats a difference: `congestion: cubic (before), bbr (after)`.
fn describe_difference(document: &ComparisonDocument, difference: &ComparedDifference) -> String {
    let values = document.groups.iter().filter_map(|group| {
        let values = difference.values.get(&group.name)?;
        let shown: Vec<&str> = values.iter().take(3).map(String::as_str).collect();
        let more = if values.len() > 3 { ", …" } else { "" };
        Some(format!("{}{more} ({})", shown.join(", "), group.name))
    });
    let name = difference.what.strip_prefix("settings.").unwrap_or(&difference.what);
    format!("{name}: {}", values.collect::<Vec<_>>().join("; "))
}

/// Formats a share as `95 %` or `2.1 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 99.95 || (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}
