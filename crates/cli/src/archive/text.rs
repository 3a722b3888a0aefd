//! Terminal output of `archive`.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_archive::{Id, ListedDocument, Pruned, Query, Reading, Row};
use landspeed_model::{ArchiveCheckDocument, Better, Metric, TrendDocument};
use landspeed_quote::shell_path;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::{Page, number, percent, plural};

/// Maximum width of a title or host in a table, columns.
const MAX_CELL_WIDTH: usize = 28;

/// Formats a table: columns as wide as their widest cell, the last one not padded.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..head.len())
        .map(|i| rows.iter().map(|row| row[i].chars().count()).chain([head[i].len()]).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    let mut line = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(i, (cell, width))| {
                    if i + 1 == cells.len() { (*cell).to_owned() } else { format!("{cell:<width$}") }
                },
            )
            .collect();
        let _ = writeln!(text, "  {}", padded.join("  ").trim_end());
    };
    line(head);
    for row in rows {
        line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// Returns the text on one line, cut to at most `most` characters.
fn short(text: &str, most: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= most {
        return clean;
    }
    clean.chars().take(most - 1).chain(['…']).collect()
}

/// Formats a time as `2026-11-24 15:03`, UTC.
fn minute(ns: Option<i64>) -> String {
    let Some(ns) = ns.and_then(|ns| u64::try_from(ns).ok()) else { return "unknown".to_owned() };
    let text =
        humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(ns)).to_string();
    text[..16].replace('T', " ")
}

/// Formats a value with its unit.
pub fn figure(metric: Metric, value: f64) -> String {
    match metric.unit() {
        "bit/s" => BitRate::from_bps(value as u64).to_string(),
        "ns" => Nanos::new(value as u64).to_string(),
        "ratio" if metric == Metric::StreamBalance => format!("{value:.3}"),
        "ratio" => percent(value),
        "packets" => plural(value as u64, "packet"),
        unit => number(value, unit),
    }
}

/// Formats the list of documents, newest first.
pub fn documents(documents: &[ListedDocument], total: u64, directory: &Path) -> String {
    if documents.is_empty() {
        return format!("no documents match in {}\n", directory.display());
    }
    let row = |document: &ListedDocument| {
        let file = |path: &String| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let what = document
            .title
            .clone()
            .or_else(|| document.source.as_ref().and_then(file))
            .unwrap_or_else(|| document.command.iter().skip(1).cloned().collect::<Vec<_>>().join(" "));
        let kind = if document.understood { document.kind.clone() } else { document.schema.clone() };
        let tags: Vec<String> = document.tags.iter().map(|tag| format!("+{tag}")).collect();
        let what = format!("{} {}", short(&what, MAX_CELL_WIDTH), tags.join(" "));
        vec![document.id.short().to_owned(), minute(document.started_ns), kind, what.trim().to_owned()]
    };
    let rows: Vec<Vec<String>> = documents.iter().map(row).collect();
    let mut text = table(&["id", "started (UTC)", "kind", "what"], &rows);
    if total > documents.len() as u64 {
        let _ = writeln!(text, "  {} of {total}; --limit 0 shows all", documents.len());
    }
    if documents.iter().any(|document| !document.understood) {
        text += "  A schema in place of a kind: a later landspeed wrote the document, and can show it.\n";
    }
    text
}

/// Formats the list of records, newest first.
pub fn records(rows: &[Row], total: u64, query: &Query) -> String {
    if rows.is_empty() {
        return format!(
            "no records match {}\n",
            if query.is_all() { "(the archive is empty)".to_owned() } else { query.to_string() }
        );
    }
    let line = |row: &Row| {
        let record = &row.record;
        // A lab record's target is its path; its flow is more specific.
        let path = record.flow.as_ref().or(record.target.as_ref()).or(row.client.as_ref());
        let primary = [Metric::Goodput, Metric::Transactions, Metric::LatencyP50]
            .into_iter()
            .find_map(|metric| Some(figure(metric, record.figures.get(metric)?)));
        let cause = match (&record.cause, record.status.word()) {
            (_, status @ ("failed" | "partial" | "invalid")) => status.to_owned(),
            (Some(cause), _) => cause.clone(),
            (None, _) => "-".to_owned(),
        };
        let tags: Vec<String> = row.tags.iter().map(|tag| format!("+{tag}")).collect();
        let title = record.title.as_ref().map(|title| short(title, 20)).unwrap_or_default();
        vec![
            row.id.short().to_owned(),
            minute(row.started_ns),
            row.kind.clone(),
            path.map_or_else(|| "-".to_owned(), |path| short(path, 16)),
            primary.unwrap_or_else(|| "-".to_owned()),
            cause,
            format!("{title} {}", tags.join(" ")).trim().to_owned(),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let mut text = table(&["id", "started (UTC)", "kind", "path", "result", "cause", "title, tags"], &lines);
    if total > rows.len() as u64 {
        let _ = writeln!(text, "  {} of {total}; --limit 0 shows all", rows.len());
    }
    text
}

/// Formats the archive's metadata of a document, printed above its content.
pub fn heading(document: &ListedDocument) -> String {
    let mut page = Page::default();
    let tags: Vec<String> = document.tags.iter().map(|tag| format!("+{tag}")).collect();
    let about = [
        document.id.short().to_owned(),
        document.schema.clone(),
        document.started_ns.map_or_else(|| "start unknown".to_owned(), |ns| minute(Some(ns)) + " UTC"),
        document.tool.clone(),
        tags.join(" "),
    ];
    page.line("archive", &about.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", "));
    if !document.command.is_empty() {
        let mut words = document.command.clone();
        words[0] = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
        page.line("command", &words.join(" "));
    }
    if let Some(source) = &document.source {
        page.line("source", source);
    }
    page.text
}

/// Formats a result of another program.
pub fn figures(reading: &Reading) -> String {
    let mut page = Page::default();
    for record in &reading.records {
        if reading.records.len() > 1 {
            let about = [Some(record.started.clone()), record.target.clone(), record.flow.clone()];
            page.line("record", &about.into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        if let Some(title) = &record.title {
            page.line("title", title);
        }
        page.line("status", record.status.word());
        if let Some(target) = &record.target {
            page.line("target", target);
        }
        let all: Vec<String> = record
            .figures
            .iter()
            .map(|(metric, value)| format!("{} {}", metric.name(), figure(metric, value)))
            .collect();
        if !all.is_empty() {
            page.line("figures", &all.join(", "));
        }
        for note in &record.notes {
            page.line("note", note);
        }
        let settings: Vec<String> = record.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if !settings.is_empty() {
            page.line("settings", &settings.join(", "));
        }
    }
    page.text
}

/// Formats the notice for a document of a later version.
pub fn later(reading: &Reading) -> String {
    let mut page = Page::default();
    page.line(
        "unknown",
        &format!(
            "{} is of a later landspeed ({}). It is kept as it is; --json gives its bytes.",
            reading.schema, reading.tool
        ),
    );
    page.text
}

/// Formats the documents that pruning removed or would remove.
pub fn pruned(pruned: &[Pruned], done: bool) -> String {
    let bytes: u64 = pruned.iter().map(|pruned| pruned.file_bytes).sum();
    let mut text = String::new();
    if pruned.is_empty() {
        return "nothing to remove\n".to_owned();
    }
    if !done {
        const MAX_LISTED: usize = 20;
        let line = |pruned: &Pruned| {
            let document = &pruned.document;
            vec![
                document.id.short().to_owned(),
                minute(document.started_ns),
                document.kind.clone(),
                Bytes::new(pruned.file_bytes).to_string(),
            ]
        };
        let lines: Vec<Vec<String>> = pruned.iter().take(MAX_LISTED).map(line).collect();
        text += &table(&["id", "started (UTC)", "kind", "size"], &lines);
        if pruned.len() > MAX_LISTED {
            let _ = writeln!(text, "  and {} more", pruned.len() - MAX_LISTED);
        }
    }
    let count = plural(pruned.len() as u64, "document");
    let size = Bytes::new(bytes);
    text + &if done {
        format!("{count} removed, {size}\n")
    } else {
        format!("{count} would be removed, {size}; repeat with --yes\n")
    }
}

/// Formats the result of a verification.
pub fn verification(document: &ArchiveCheckDocument, directory: &Path, rebuilt: bool) -> String {
    let mut page = Page::default();
    page.raw("archive", &directory.display().to_string());
    let state = match (rebuilt, document.unreadable.is_empty()) {
        (true, _) => "index rebuilt from the documents",
        (false, true) => "index and documents agree",
        (false, false) => "some could not be read",
    };
    page.line("documents", &format!("{} intact; {state}", document.intact));
    if document.adopted > 0 && !rebuilt {
        page.line(
            "adopted",
            &format!("{} that a cut-off write had left out of the index", plural(document.adopted, "document")),
        );
    }
    if document.unfinished > 0 {
        page.line("removed", &plural(document.unfinished, "unfinished file"));
    }
    if document.series_rebuilt > 0 {
        page.line("series", &format!("{} written again", document.series_rebuilt));
    }
    for damage in &document.damaged {
        let id = Id::parse(&damage.id).map_or_else(|| damage.id.clone(), |id| id.short().to_owned());
        let moved = damage.moved_to.as_ref().map(|path| format!("; moved to {path}")).unwrap_or_default();
        page.line("damaged", &format!("{id}: {}{moved}", damage.why));
    }
    for unreadable in &document.unreadable {
        page.line("skipped", &format!("{}: {}", unreadable.path, unreadable.why));
    }
    if !document.unreadable.is_empty() {
        page.raw("", &format!("Run `sudo chown -R $(id -u) {}`, then verify again.", shell_path(directory)));
    }
    page.text
}

/// Width of a plot, columns.
const PLOT_WIDTH: usize = 64;
/// Maximum number of differences listed for a change.
const MAX_DIFFERENCES: usize = 6;

/// Formats a metric over time.
pub fn trend(document: &TrendDocument, metric: Metric, mixed: Option<&str>) -> String {
    let mut page = Page::default();
    let points = &document.points;
    let day = |index: usize| points.get(index).and_then(|point| point.started.get(..10)).unwrap_or("?");
    let last = points.len().saturating_sub(1);
    page.line(
        "trend",
        &format!("{}, {}, {} to {}", metric.name(), plural(points.len() as u64, "record"), day(0), day(last)),
    );
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let changes: Vec<usize> = document.changes.iter().map(|change| change.index as usize).collect();
    let (bars, marks, low, high) = plot(&values, &changes);
    page.raw("", &bars);
    if !changes.is_empty() {
        page.raw("", &marks);
    }
    page.line("range", &format!("{} to {}", figure(metric, low), figure(metric, high)));
    for (i, segment) in document.segments.iter().enumerate() {
        if i > 0 {
            change(document, metric, i - 1, &mut page);
        }
        let spread = format!("p10 {}, p90 {}", figure(metric, segment.p10), figure(metric, segment.p90));
        let from = day(segment.first as usize);
        page.line(
            "level",
            &format!(
                "{} ({spread}): {} from {from}",
                figure(metric, segment.median),
                plural(segment.values, "record")
            ),
        );
    }
    if document.changes.is_empty() {
        page.line("changes", &format!("none at level {}", document.level));
    }
    if let Some(mixed) = mixed {
        page.line("note", mixed);
    }
    page.text
}

fn change(document: &TrendDocument, metric: Metric, at: usize, page: &mut Page) {
    let change = &document.changes[at];
    let (before, after) = (document.segments[at].median, document.segments[at + 1].median);
    let better = (after > before) == (metric.better() == Better::Higher);
    let word = if better { "better" } else { "worse" };
    let ratio = change
        .ratio
        .map(|ratio| format!("{}{}, ", if ratio < 1.0 { "-" } else { "+" }, percent((ratio - 1.0).abs())));
    let moment = change.started.get(..16).unwrap_or(&change.started).replace('T', " ");
    let id = change.id.get(..Id::SHORT_LEN).unwrap_or(&change.id);
    page.line(
        "change",
        &format!(
            "{}{word} (p = {}), from {moment} UTC ({id}): {} to {}",
            ratio.unwrap_or_default(),
            change.p_value,
            figure(metric, before),
            figure(metric, after)
        ),
    );
    let mut differing: Vec<String> = change
        .differences
        .iter()
        .map(|(key, (old, new))| format!("{key} {} to {}", short(old, 32), short(new, 32)))
        .collect();
    let more = differing.len().saturating_sub(MAX_DIFFERENCES);
    differing.truncate(MAX_DIFFERENCES);
    if more > 0 {
        differing.push(format!("and {more} more (--json)"));
    }
    if !differing.is_empty() {
        page.line("differs", &differing.join("; "));
    }
}

/// Returns the bars, the marks below the changes, and the lowest and highest value. If there are more values
/// than columns, a column is the median of its values.
fn plot(values: &[f64], changes: &[usize]) -> (String, String, f64, f64) {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = values.len().clamp(1, PLOT_WIDTH);
    let part = |column: usize| {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        landspeed_stats::median(&values[from..to]).unwrap_or_default()
    };
    let shown: Vec<f64> = (0..columns).map(part).collect();
    let of = |values: &[f64], choose: fn(f64, f64) -> f64| values.iter().copied().reduce(choose).unwrap_or_default();
    let (low, high) = (of(&shown, f64::min), of(&shown, f64::max));
    let bar = |value: &f64| {
        let height = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS[((height * 7.0).round() as usize).min(7)]
    };
    let mut marks = vec![' '; columns];
    for change in changes {
        marks[(change * columns / values.len()).min(columns - 1)] = '^';
    }
    let marks = marks.into_iter().collect::<String>().trim_end().to_owned();
    (shown.iter().map(bar).collect(), marks, of(values, f64::min), of(values, f64::max))
}
