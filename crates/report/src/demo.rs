//! Page of the demo: four claims, their results, and links to their reports. It needs no script.

use std::fmt::Write as _;

use landspeed_model::{DEMO_SCHEMA, DemoBar, DemoChart, DemoDocument, DemoPart, DemoResult, DemoScene};

use crate::{ReportError, STYLE, escape, known};

/// Style of this page, in addition to the reports' style.
const OWN_STYLE: &str = include_str!("demo.css");

/// Colours of the style in order of use: the warm one is for the last part, such as losses.
const PALETTE: [u8; 8] = [0, 2, 1, 3, 4, 5, 6, 7];
/// Space to the right of a limit's line, as a factor of the scale.
const LIMIT_MARGIN: f64 = 1.04;

/// Renders the claims and results of the demo. Links are relative: the page must be in the directory of the
/// reports.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_demo(document: &DemoDocument) -> Result<String, ReportError> {
    known(&document.schema, DEMO_SCHEMA)?;
    let headline = escape(&headline(document));
    let mut scenes = String::new();
    for (at, scene) in document.scenes.iter().enumerate() {
        scenes.push_str(&section(at + 1, scene));
    }
    let where_ = [document.host.as_str(), document.started.as_str()];
    let where_: Vec<String> = where_.iter().filter(|text| !text.is_empty()).map(|text| escape(text)).collect();
    let body = format!(
        "<p class=\"kicker\">landspeed demo · {place} · {wall:.0} s</p>\n\
         <h1>{headline}</h1>\n\
         <p class=\"lead\">Each scene states what must be true, measures, and compares. The first three ran between \
         two ends on this machine, over loopback; the fourth ran the Linux TCP stack in virtual time.</p>\n\
         <ol class=\"scenes\">\n{scenes}</ol>\n\
         <h2>Between two hosts</h2>\n\
         <pre><code>server$ landspeed serve\nclient$ landspeed run SERVER --report run.html</code></pre>\n\
         <p class=\"muted\">The claims as JSON: <a href=\"demo.json\">demo.json</a></p>\n",
        place = where_.join(" · "),
        wall = document.wall_s,
    );
    Ok(story(&format!("{headline} · landspeed demo"), &body))
}

/// Returns a page without a script around a `body` of HTML. Both arguments are already escaped.
pub(crate) fn story(title: &str, body: &str) -> String {
    let version = escape(env!("CARGO_PKG_VERSION"));
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"landspeed {version}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n\
         <style>{STYLE}{OWN_STYLE}</style>\n\
         </head>\n\
         <body class=\"story\">\n\
         {body}\
         </body>\n\
         </html>\n"
    )
}

fn headline(document: &DemoDocument) -> String {
    let count = |result: DemoResult| document.scenes.iter().filter(|scene| scene.result == result).count();
    let mut text = format!("{} of {} claims hold", count(DemoResult::Holds), document.scenes.len());
    for (result, what) in [(DemoResult::Fails, "fails"), (DemoResult::NotChecked, "not checked")] {
        if count(result) > 0 {
            let _ = write!(text, ", {} {what}", count(result));
        }
    }
    text
}

fn section(number: usize, scene: &DemoScene) -> String {
    let (class, result) = match scene.result {
        DemoResult::Holds => ("holds", "✓ claim holds"),
        DemoResult::Fails => ("fails", "✗ claim FAILS"),
        DemoResult::NotChecked => ("not-checked", "– not checked"),
    };
    let mut html = format!(
        "<li class=\"scene {class}\">\n<h2>{number}. {}</h2>\n<p><span class=\"muted\">Claim:</span> {}</p>\n\
         <p class=\"result\">{result}</p>\n",
        escape(&scene.title),
        escape(&scene.claim)
    );
    if let Some(reason) = &scene.reason {
        let _ = writeln!(html, "<p class=\"reason\">{}</p>", escape(reason));
    }
    if let Some(chart) = &scene.chart {
        html.push_str(&figure(chart));
    }
    if !scene.measured.is_empty() {
        let measured = escape(&scene.measured);
        let _ = writeln!(html, "<p class=\"measured\"><span class=\"muted\">Measured:</span> {measured}</p>");
    }
    let links = [(&scene.report, "Report"), (&scene.document, "JSON")];
    let links: String = links
        .iter()
        .filter_map(|(file, name)| Some(format!("<a href=\"{}\">{name}</a>", escape(file.as_deref()?))))
        .collect();
    if !links.is_empty() {
        let _ = writeln!(html, "<p class=\"links\">{links}</p>");
    }
    html.push_str("</li>\n");
    html
}

/// Renders bars below each other, all on one scale.
fn figure(chart: &DemoChart) -> String {
    let length = |bar: &DemoBar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let longest = chart.bars.iter().map(length).fold(0.0, f64::max);
    let scale = chart.limit.as_ref().map_or(longest, |limit| longest.max(limit.value) * LIMIT_MARGIN);
    // A part has the same colour in every bar.
    let mut colours: Vec<&str> = Vec::new();
    for part in chart.bars.iter().flat_map(|bar| &bar.parts) {
        if !colours.contains(&part.label.as_str()) {
            colours.push(&part.label);
        }
    }
    let class = |part: &DemoPart| {
        let at = colours.iter().position(|colour| *colour == part.label).unwrap_or(0);
        format!("c{}", PALETTE[at % PALETTE.len()])
    };
    let percent = |value: f64| if scale > 0.0 { (value / scale * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let mut html = "<figure>\n<figcaption>".to_owned();
    html.push_str(&escape(&chart.caption));
    if let Some(limit) = &chart.limit {
        let (label, text) = (escape(&limit.label), escape(&limit.text));
        let _ = write!(html, "<span><span class=\"key line\"></span>{label} {text}</span>");
    }
    html.push_str("</figcaption>\n");
    for bar in &chart.bars {
        let _ = write!(html, "<div class=\"measure\"><p><span>{}</span>", escape(&bar.label));
        for part in &bar.parts {
            let named = !part.label.is_empty() && part.label != bar.label;
            let name = if named { format!("{} ", escape(&part.label)) } else { String::new() };
            let _ =
                write!(html, "<span><span class=\"key {}\"></span>{name}{}</span>", class(part), escape(&part.text));
        }
        // The text above the drawing has the same content.
        html.push_str("</p><svg aria-hidden=\"true\">");
        let mut left = 0.0;
        for part in &bar.parts {
            let width = percent(part.value);
            let _ = write!(
                html,
                "<rect class=\"{}\" x=\"{left:.3}%\" width=\"{width:.3}%\" height=\"16\"/>",
                class(part)
            );
            left += width;
        }
        if let Some(limit) = &chart.limit {
            let x = percent(limit.value);
            let _ = write!(html, "<line x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"0\" y2=\"16\"/>");
        }
        html.push_str("</svg></div>\n");
    }
    html.push_str("</figure>\n");
    html
}

#[cfg(test)]
mod tests {
    use landspeed_model::BuildInfo;

    use super::*;

    fn scene(name: &str, result: DemoResult) -> DemoScene {
        let part = |label: &str, value: f64| DemoPart { label: label.to_owned(), value, text: format!("{value} B") };
        DemoScene {
            name: name.to_owned(),
            title: format!("Scene {name}"),
            claim: "a < b & c".to_owned(),
            result,
            measured: "1 = 1".to_owned(),
            reason: (result != DemoResult::Holds).then(|| "<script>alert(1)</script>".to_owned()),
            report: Some(format!("{name}.html")),
            document: Some(format!("{name}.json")),
            chart: Some(DemoChart {
                caption: "Bytes".to_owned(),
                bars: vec![
                    DemoBar { label: "sent".to_owned(), parts: vec![part("sent", 4.0)] },
                    DemoBar {
                        label: "accounted for".to_owned(),
                        parts: vec![part("received", 3.0), part("lost", 1.0)],
                    },
                ],
                limit: None,
            }),
        }
    }

    fn document() -> DemoDocument {
        let results = [DemoResult::Holds, DemoResult::Fails, DemoResult::NotChecked];
        DemoDocument {
            schema: DEMO_SCHEMA.to_owned(),
            landspeed: BuildInfo::default(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: Vec::new(),
            host: "<host>".to_owned(),
            wall_s: 12.0,
            scenes: ["a", "b", "c"].iter().zip(results).map(|(name, result)| scene(name, result)).collect(),
        }
    }

    #[test]
    fn the_headline_counts_every_result() {
        let page = render_demo(&document()).expect("drawn");
        assert!(page.contains("<h1>1 of 3 claims hold, 1 fails, 1 not checked</h1>"), "{page}");
    }

    #[test]
    fn the_page_links_its_reports_and_fetches_nothing() {
        let page = render_demo(&document()).expect("drawn");
        for name in ["a", "b", "c"] {
            assert!(page.contains(&format!("href=\"{name}.html\"")), "{name}");
        }
        assert!(page.contains("default-src 'none'"));
        for foreign in ["<script", "<host>", " src=", "url(", "@import", "http:", "https:"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn bars_share_one_scale() {
        let page = render_demo(&document()).expect("drawn");
        assert!(page.contains("x=\"0.000%\" width=\"100.000%\""), "what was sent is the whole width");
        assert!(page.contains("x=\"0.000%\" width=\"75.000%\""));
        assert!(page.contains("x=\"75.000%\" width=\"25.000%\""));
    }

    #[test]
    fn a_document_of_another_schema_is_refused() {
        let other = DemoDocument { schema: "landspeed.demo/99".to_owned(), ..document() };
        assert!(matches!(render_demo(&other), Err(ReportError::UnknownSchema { .. })));
    }
}
