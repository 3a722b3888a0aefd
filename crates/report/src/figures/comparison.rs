//! Figures of a comparison: ratios with their intervals, and the values behind them.

use landspeed_model::{
    Better, ComparedMetric, ComparisonDesign, ComparisonDocument, ComparisonVerdict, Drawing, Figure, FigureAxis,
    FigureChart, FigureLine, FigureNote, FigurePanel, FigureRow, FigureRows, FigureScale, FiguresDocument, Metric,
    SweepControl,
};

use super::{plural, quantity, spread};

/// Maximum number of metrics whose values are drawn.
const MAX_VALUES: usize = 4;

/// Returns the page of a comparison.
pub(crate) fn figures(comparison: &ComparisonDocument) -> FiguresDocument {
    let names: Vec<&str> = comparison.groups.iter().map(|group| group.name.as_str()).collect();
    let mut figures = vec![Figure {
        id: "comparison".to_owned(),
        title: format!("Ratio to {}", names.first().copied().unwrap_or("the baseline")),
        caption: forest_caption(&comparison.metrics, comparison.level),
        drawing: Drawing::Rows(forest(&comparison.metrics, names.len() > 2)),
    }];
    if !comparison.noise.is_empty() {
        figures.push(Figure {
            id: "noise".to_owned(),
            title: format!("Noise: {} against itself", names.first().copied().unwrap_or("the baseline")),
            caption: forest_caption(&comparison.noise, comparison.level),
            drawing: Drawing::Rows(forest(&comparison.noise, false)),
        });
    }
    figures.extend(values(comparison));
    let design = match comparison.design {
        ComparisonDesign::Paired => "paired by block",
        ComparisonDesign::Unpaired => "unpaired",
    };
    let mut facts = vec![["design".to_owned(), design.to_owned()]];
    facts.extend(
        comparison
            .groups
            .iter()
            .map(|group| [group.name.clone(), format!("{}, {}", plural(group.runs as usize, "run"), group.source)]),
    );
    FiguresDocument {
        about: "comparison".to_owned(),
        title: names.join(" · "),
        answer: answer(comparison),
        started: comparison.groups.first().map(|group| group.from.clone()).unwrap_or_default(),
        facts,
        notes: notes(comparison),
        figures,
        ..FiguresDocument::default()
    }
}

/// Returns the figure of a sweep's A/A control.
pub(crate) fn control(control: &SweepControl) -> Option<Figure> {
    let level = control.metrics.first()?.level;
    Some(Figure {
        id: "control".to_owned(),
        title: "A/A control: one cell against itself".to_owned(),
        caption: format!(
            "Points: ratio of medians. Lines: its interval; {} for each metric by itself. 1: no difference. What differs here \
             is noise.",
            quantity::percent(level)
        ),
        drawing: Drawing::Rows(forest(&control.metrics, false)),
    })
}

/// Returns the verdict of the first metric of each candidate, and other changes.
fn answer(comparison: &ComparisonDocument) -> String {
    let mut sentences = Vec::new();
    for group in comparison.groups.iter().skip(1) {
        let own: Vec<&ComparedMetric> = comparison.metrics.iter().filter(|m| m.candidate == group.name).collect();
        let Some(first) = own.first() else { continue };
        let others = |verdict| {
            let found = own.iter().skip(1).filter(|metric| metric.verdict == verdict);
            found.map(|metric| title(metric)).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!("{}: {} {}", group.name, title(first), verdict(first));
        for (verdict, word) in [(ComparisonVerdict::Worse, "worse"), (ComparisonVerdict::Better, "better")] {
            let found = others(verdict);
            if !found.is_empty() {
                text.push_str(&format!("; {word}: {found}"));
            }
        }
        sentences.push(text + ".");
    }
    if sentences.is_empty() { "Nothing was compared.".to_owned() } else { sentences.join(" ") }
}

fn notes(comparison: &ComparisonDocument) -> Vec<FigureNote> {
    let mut notes: Vec<FigureNote> = comparison
        .conditions
        .iter()
        .map(|condition| FigureNote {
            serious: condition.holds,
            text: format!(
                "Condition `{}` {}: {}.",
                condition.condition,
                if condition.holds { "met" } else { "not met" },
                condition.detail.trim_end_matches('.')
            ),
        })
        .collect();
    for group in comparison.groups.iter().filter(|group| !group.left_out.is_empty()) {
        notes.push(FigureNote {
            serious: true,
            text: format!(
                "{}: {} left out: {}.",
                group.name,
                plural(group.left_out.len(), "result"),
                group.left_out[0].trim_end_matches('.')
            ),
        });
    }
    for difference in &comparison.differences {
        let values: Vec<String> =
            difference.values.iter().map(|(group, values)| format!("{group}: {}", values.join(", "))).collect();
        let what = if difference.declared { "Compared" } else { "Also different" };
        notes.push(FigureNote {
            serious: !difference.declared,
            text: format!("{what}: {} ({}).", difference.what, values.join("; ")),
        });
    }
    notes.extend(
        comparison.warnings.iter().map(|warning| FigureNote { serious: false, text: warning.message.clone() }),
    );
    notes
}

fn title(metric: &ComparedMetric) -> String {
    let title = Metric::find(&metric.name).map_or_else(|| metric.name.clone(), |known| known.title().to_owned());
    match &metric.flow {
        Some(flow) => format!("{title}, flow {flow}"),
        None => title,
    }
}

/// Formats the verdict with the size of the change.
fn verdict(metric: &ComparedMetric) -> String {
    let change = metric.ratio.map(|ratio| percent_change(ratio - 1.0)).unwrap_or_default();
    match metric.verdict {
        ComparisonVerdict::Better => format!("is better ({change})"),
        ComparisonVerdict::Worse => format!("is worse ({change})"),
        ComparisonVerdict::NoDetectableDifference => match metric.minimum_detectable {
            Some(least) => {
                format!("shows no detectable difference (smallest detectable: {})", quantity::percent(least))
            }
            None => "shows no detectable difference".to_owned(),
        },
        ComparisonVerdict::TooFewRuns => "has too few runs to say".to_owned(),
    }
}

fn percent_change(change: f64) -> String {
    let sign = if change > 0.0 { "+" } else { "" };
    format!("{sign}{}", quantity::percent(change))
}

fn forest(metrics: &[ComparedMetric], several: bool) -> FigureRows {
    let rows = metrics.iter().map(|metric| {
        let medians = match (metric.baseline_median, metric.candidate_median) {
            (Some(a), Some(b)) => {
                format!("{} → {}", quantity::text(a, &metric.unit), quantity::text(b, &metric.unit))
            }
            _ => "not measured in both".to_owned(),
        };
        let (ratio, interval) = match (metric.ratio, metric.low, metric.high) {
            (Some(ratio), Some(low), Some(high)) => (format!("×{ratio:.3}"), format!(" ({low:.3} to {high:.3})")),
            (Some(ratio), ..) => (format!("×{ratio:.3}"), ", no interval".to_owned()),
            (None, ..) => ("no ratio: the baseline is 0 or absent".to_owned(), String::new()),
        };
        FigureRow {
            label: if several { format!("{}: {}", metric.candidate, title(metric)) } else { title(metric) },
            text: format!("{ratio}{interval}, {}", verdict_word(metric.verdict)),
            detail: format!(
                "{medians}; n = {} and {}{}{}",
                metric.baseline_runs,
                metric.candidate_runs,
                match metric.blocks {
                    Some(blocks) if blocks < metric.candidate_runs => format!(" runs in {blocks} independent blocks"),
                    _ => String::new(),
                },
                if metric.better == Better::Lower { "; lower is better" } else { "" }
            ),
            from: None,
            to: metric.ratio,
            low: metric.low,
            high: metric.high,
            better: match metric.verdict {
                ComparisonVerdict::Better => Some(true),
                ComparisonVerdict::Worse => Some(false),
                _ => None,
            },
        }
    });
    FigureRows {
        axis: FigureAxis {
            title: "Candidate / baseline, ratio of medians".to_owned(),
            unit: "ratio".to_owned(),
            ..FigureAxis::default()
        },
        neutral: Some(1.0),
        rows: rows.collect(),
    }
}

fn verdict_word(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::NoDetectableDifference => "no detectable difference",
        ComparisonVerdict::TooFewRuns => "too few runs",
    }
}

fn forest_caption(metrics: &[ComparedMetric], level: f64) -> String {
    let least = metrics.iter().map(|metric| metric.level).fold(f64::MAX, f64::min);
    let most = metrics.iter().map(|metric| metric.level).fold(f64::MIN, f64::max);
    let own = if (most - least).abs() < 1e-9 || metrics.is_empty() {
        String::new()
    } else {
        format!(" (single intervals {} to {})", quantity::percent(least), quantity::percent(most))
    };
    format!(
        "Points: ratio of medians. Lines: its interval; {} for all metrics together{own}. 1: no difference.",
        quantity::percent(level)
    )
}

/// Returns figures of the values behind the first metrics, group by group.
fn values(comparison: &ComparisonDocument) -> Vec<Figure> {
    let mut names: Vec<(&str, Option<&str>)> = Vec::new();
    for metric in &comparison.metrics {
        let name = (metric.name.as_str(), metric.flow.as_deref());
        if !names.contains(&name) && !metric.baseline_values.is_empty() {
            names.push(name);
        }
    }
    let figure = |(name, flow): (&str, Option<&str>)| {
        let own: Vec<&ComparedMetric> =
            comparison.metrics.iter().filter(|m| m.name == name && m.flow.as_deref() == flow).collect();
        let first = *own.first()?;
        let mut line = FigureLine::default();
        let mut runs = Vec::new();
        for (at, group) in comparison.groups.iter().enumerate() {
            let found = own.iter().find(|metric| metric.candidate == group.name);
            let values = match (at, found) {
                (0, _) => &first.baseline_values,
                (_, Some(metric)) => &metric.candidate_values,
                _ => continue,
            };
            runs.push(values.len());
            spread::add(&mut line, at as f64, values, false);
        }
        Some(Figure {
            id: format!("values-{name}"),
            title: format!("{} of each run", title(first)),
            caption: spread::caption(&runs, false),
            drawing: Drawing::Chart(FigureChart {
                x: FigureAxis {
                    scale: FigureScale::Category,
                    labels: comparison.groups.iter().map(|group| group.name.clone()).collect(),
                    ..FigureAxis::default()
                },
                y: FigureAxis { title: title(first), unit: first.unit.clone(), ..FigureAxis::default() },
                series: vec![String::new()],
                panels: vec![FigurePanel { title: String::new(), lines: vec![line] }],
                marks: Vec::new(),
            }),
        })
    };
    names.into_iter().take(MAX_VALUES).filter_map(figure).collect()
}
