//! Page of a search for better settings: a waterfall, the rejected changes, and commands to paste. It needs no
//! script.

use std::fmt::Write as _;

use landspeed_model::{Drawing, Figure, TUNEUP_SCHEMA, TuneupDocument};

use crate::demo::story;
use crate::figures::tuneup_rate as rate;
use crate::{ReportError, escape, figures, known};

/// Renders the tried and kept changes of a search. The page contains the document.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_tuneup(document: &TuneupDocument) -> Result<String, ReportError> {
    known(&document.schema, TUNEUP_SCHEMA)?;
    let headline = escape(&figures::tuneup_headline(document));
    let json = serde_json::to_string(document)?.replace('<', "\\u003c");
    let mut body = String::new();
    if let Some(result) = &document.result {
        let _ = writeln!(body, "<pre><code>{}</code></pre>", escape(&result.command));
    }
    for figure in figures::tuneup(document) {
        body.push_str(&waterfall(&figure));
        body.push_str(&heat_map(&figure));
    }
    body.push_str(&rejected(document));
    body.push_str(&evidence_section(document));
    let place = [document.target.as_str(), document.started.as_str()].map(escape).join(" · ");
    let page = format!(
        "<p class=\"kicker\">landspeed tuneup · {place} · {tests} tests in {spent:.0} s</p>\n\
         <h1>{headline}</h1>\n\
         <p class=\"lead\">{because}.</p>\n\
         {body}\
         <script type=\"application/json\" id=\"document\">{json}</script>\n",
        tests = document.tests,
        spent = document.spent_ns as f64 / 1e9,
        because = escape(&sentence(&document.ended_because)),
    );
    Ok(story(&format!("{headline} · landspeed tuneup"), &page))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Renders a bar for each row, all on one scale.
fn waterfall(figure: &Figure) -> String {
    let Drawing::Rows(rows) = &figure.drawing else { return String::new() };
    let highest = rows.rows.iter().filter_map(|row| row.to).fold(1.0, f64::max);
    let percent = |bps: f64| (bps / highest * 100.0).clamp(0.0, 100.0);
    let mut html = format!("<figure>\n<figcaption>{}</figcaption>\n", escape(&figure.title));
    for row in &rows.rows {
        let (from, to) = (row.from.unwrap_or(0.0), row.to.unwrap_or(0.0));
        let (left, width) = (percent(from), (percent(to) - percent(from)).max(0.4));
        let _ = writeln!(
            html,
            "<div class=\"measure\"><p><span>{}</span><span>{}</span><span class=\"muted\">{}</span></p>\
             <svg aria-hidden=\"true\"><rect class=\"c0\" x=\"{left:.3}%\" width=\"{width:.3}%\" height=\"16\"/></svg></div>",
            escape(&row.label),
            escape(&row.text),
            escape(&row.detail)
        );
    }
    html.push_str("</figure>\n");
    html
}

/// Renders a table of cells; darker is faster.
fn heat_map(figure: &Figure) -> String {
    let Drawing::Grid(grid) = &figure.drawing else { return String::new() };
    let highest = grid.cells.iter().flatten().copied().fold(1.0, f64::max);
    let columns = grid.columns.labels.len().max(1);
    let mut html = format!(
        "<figure>\n<figcaption>{}. Rows: {}. Columns: {}.</figcaption>\n<table class=\"map\"><thead><tr><th></th>",
        escape(&figure.title),
        escape(&grid.rows.title),
        escape(&grid.columns.title)
    );
    for label in &grid.columns.labels {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(label));
    }
    html.push_str("</tr></thead><tbody>\n");
    for (row, (label, cells)) in grid.rows.labels.iter().zip(grid.cells.chunks(columns)).enumerate() {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(label));
        for (column, value) in cells.iter().enumerate() {
            let at = row * columns + column;
            let end = |ends: &[Option<f64>]| ends.get(at).copied().flatten().map_or_else(|| "–".to_owned(), rate);
            if let Some(median) = value {
                let _ = write!(
                    html,
                    "<td style=\"--heat:{:.3}\" title=\"{} to {}\">{}</td>",
                    median / highest,
                    end(&grid.low),
                    end(&grid.high),
                    rate(*median)
                );
            } else {
                let why = grid.missing.iter().find(|gap| gap.cell == at).map_or("not measured", |gap| &gap.why);
                let _ = write!(html, "<td title=\"{}\">–</td>", escape(why));
            }
        }
        html.push_str("</tr>\n");
    }
    let _ = write!(html, "</tbody></table>\n<p class=\"muted\">{}</p>\n</figure>\n", escape(&figure.caption));
    html
}

fn rejected(document: &TuneupDocument) -> String {
    let mut rows = String::new();
    for rung in document.rungs.iter().filter(|rung| !rung.kept) {
        let why = rung.rejected.as_deref().unwrap_or_default();
        let (change, ratio) = (escape(&rung.change), escape(&figures::tuneup_ratio(rung)));
        let _ = writeln!(
            rows,
            "<tr><td>{change}</td><td>{ratio}</td><td>{}</td><td>{}</td></tr>",
            rung.pairs,
            escape(why)
        );
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<h2>Not kept</h2>\n<table><thead><tr><th>Change</th><th>Ratio</th><th>Pairs</th><th>Why</th></tr></thead>\
         <tbody>\n{rows}</tbody></table>\n"
    )
}

/// Renders the evidence for the figures, and the rules of the search.
fn evidence_section(document: &TuneupDocument) -> String {
    let mut lines = Vec::new();
    for sanity in &document.sanity {
        let shows = match (sanity.shows, document.map.is_some()) {
            (true, false) => "is slower, as it must be",
            (true, true) => "is slower than the fastest, in tests of their own",
            (false, _) => "makes no difference here",
        };
        lines.push(format!(
            "{} {shows}: ×{:.3} ({:.3} to {:.3})",
            sentence(&sanity.change),
            sanity.ratio,
            sanity.low,
            sanity.high
        ));
    }
    if let Some(again) = &document.baseline_again {
        let moved = if again.moved { "moved" } else { "did not move" };
        lines.push(format!(
            "The first settings {moved} in the meantime: ×{:.3} ({:.3} to {:.3})",
            again.ratio, again.low, again.high
        ));
    }
    let rules = &document.rules;
    if document.map.is_some() {
        lines.push(format!("The placements took turns in random order, seed {}.", document.seed));
    } else {
        lines.push(format!(
        "A change is kept if the interval of its ratio lies above 1, the ratio is at least {}, and RTT, retransmits and CPU time stay \
         within their bounds. If no change helps, a search keeps one with a probability of at most {}. Seed {}.",
        rules.min_ratio, rules.error_rate, document.seed
    ));
    }
    lines.extend(document.notes.iter().map(|note| sentence(note)));
    let mut items = String::new();
    for line in &lines {
        let _ = writeln!(items, "<li>{}</li>", escape(line));
    }
    format!("<h2>Can it be trusted</h2>\n<ul>\n{items}</ul>\n")
}

#[cfg(test)]
mod tests {
    use landspeed_model::{
        BuildInfo, Cause, Confidence, Direction, Parameters, Status, TuneupBaseline, TuneupEnd, TuneupPlan,
        TuneupResult, TuneupRules, TuneupRung,
    };

    use super::*;

    fn rung(change: &str, kept: bool) -> TuneupRung {
        TuneupRung {
            change: change.to_owned(),
            reason: "a reason".to_owned(),
            cause: None,
            evidence: Vec::new(),
            ratio: Some(2.0),
            low: Some(1.9),
            high: Some(2.1),
            level: Some(0.99),
            pairs: 6,
            best_bps: Some(1e9),
            goodput_bps: Some(2e9),
            bounds: Vec::new(),
            kept,
            rejected: (!kept).then(|| "no <gain>".to_owned()),
            client_changes: Vec::new(),
            server_changes: Vec::new(),
        }
    }

    fn document() -> TuneupDocument {
        TuneupDocument {
            schema: TUNEUP_SCHEMA.to_owned(),
            landspeed: BuildInfo::default(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: Vec::new(),
            status: Status::Complete,
            errors: Vec::new(),
            target: "dtn.example:5210".to_owned(),
            direction: Direction::Upload,
            seed: 7,
            budget_ns: 0,
            spent_ns: 60_000_000_000,
            tests: 40,
            test_ns: 0,
            omit_ns: 0,
            ended: TuneupEnd::NothingHelps,
            ended_because: "no other change helps".to_owned(),
            rules: TuneupRules {
                min_ratio: 1.02,
                error_rate: 0.05,
                most_candidates: 20,
                rtt_p50_factor: 2.0,
                rtt_p50_more_us: 0.0,
                rtt_p99_factor: 3.0,
                rtt_p99_more_us: 0.0,
                retransmits_factor: 2.0,
                retransmits_more_per_gb: 0.0,
                cpu_factor: 1.25,
                gain_weight_max: 1.0,
            },
            baseline: Some(TuneupBaseline {
                goodput_bps: 1e9,
                cv: 0.01,
                ratio: 1.0,
                low: 0.99,
                high: 1.01,
                level: 0.97,
                goodputs_bps: vec![1e9; 8],
                cause: Cause::ReceiverWindow,
                confidence: Confidence::High,
                summary: "<b>small</b>".to_owned(),
                settings: Parameters::default(),
            }),
            rungs: vec![rung("window 64 KiB → autotuned", true), rung("streams 1 → 2", false)],
            map: None,
            sanity: Vec::new(),
            baseline_again: None,
            result: Some(TuneupResult {
                goodput_bps: 2e9,
                ratio: Some(2.0),
                low: Some(1.9),
                high: Some(2.1),
                command: "landspeed run dtn.example:5210".to_owned(),
                plan: TuneupPlan::default(),
                settings: Parameters::default(),
                cause: None,
                summary: None,
            }),
            placement: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn waterfall_bars_begin_where_the_previous_ended() {
        let page = render_tuneup(&document()).expect("drawn");
        assert!(page.contains("<h1>1.00 Gb/s → 2.00 Gb/s, 2.00 times as much</h1>"), "{page}");
        assert!(page.contains("x=\"0.000%\" width=\"50.000%\""));
        assert!(page.contains("x=\"50.000%\" width=\"50.000%\""));
    }

    #[test]
    fn document_text_is_escaped() {
        let page = render_tuneup(&document()).expect("drawn");
        assert!(page.contains("&lt;b&gt;small") && !page.contains("<b>") && !page.contains("<gain>"));
        let other = TuneupDocument { schema: "landspeed.tuneup/99".to_owned(), ..document() };
        assert!(matches!(render_tuneup(&other), Err(ReportError::UnknownSchema { .. })));
    }
}
