//! Renders a document as one self-contained HTML file: a run, a lab run, a set of lab cells, an audit, a demo,
//! a watch, or one or two traces.
//!
//! The page is built from `web/` and embedded here as text, so that nothing is fetched when it is opened and
//! Node is not needed to build it. The document is included as inert JSON, and a content security policy
//! restricts the browser to one script and one style sheet: those whose hashes were recorded when the page was
//! built.
#![forbid(unsafe_code)]

mod demo;
mod draw;
mod embed;
mod figures;
mod pack;
mod tables;
mod title;
mod tuneup;

use std::fmt::Write as _;

use landspeed_model::{
    AUDIT_SCHEMA, AuditDocument, FIGURES_SCHEMA, FiguresDocument, LAB_SCHEMA, LAB_SCHEMA_1, LabDocument, RUN_SCHEMA,
    RunDocument, TRACE_COMPARISON_SCHEMA, TRACE_SCHEMA, TRACE_SCHEMA_1, TraceComparison, TraceDocument, WATCH_SCHEMA,
    WatchDocument,
};
use landspeed_results::Document;
use thiserror::Error;

pub use demo::render_demo;
pub use draw::{Anchor, Ink, Scene, Shape, scene, svg};
pub use figures::{Limit, MAX_RUNS, Source, figures, has_figures, map_axes, of_records};
pub use tables::{csv, gnuplot, markdown};
pub use tuneup::render_tuneup;

/// The page's script, built by `npm --prefix web run build`.
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
/// The page's style sheet, from the same build.
const STYLE: &str = include_str!("../../../web/dist/report.css");
/// `sha256-…` of the script, in the format of a content security policy.
const SCRIPT_HASH: &str = include_str!("../../../web/dist/report.js.csp");

/// `sha256-…` of the style sheet, in the same format.
const STYLE_HASH: &str = include_str!("../../../web/dist/report.css.csp");

/// Errors of rendering a document.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The kind or version of the document is not supported.
    #[error("cannot draw a `{found}` document: this version reads `{known}`; a newer landspeed may")]
    UnknownSchema {
        /// Schemas that are supported.
        known: &'static str,
        /// Schema of the document.
        found: String,
    },
    /// The document's kind has no page.
    #[error("a `{kind}` document has no page")]
    NoPage {
        /// Kind of the document.
        kind: &'static str,
    },
    /// The document could not be written as JSON.
    #[error("cannot write the document into the report")]
    Json(#[from] serde_json::Error),
}

/// Renders a run as one HTML page that needs no other file and no network.
///
/// The page contains the whole document, which can be saved from it, except `tcp_info_raw`, which repeats
/// decoded values in base64.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render(document: &RunDocument) -> Result<String, ReportError> {
    known(&document.schema, RUN_SCHEMA)?;
    Ok(page(&title::run(document), &document.verdict.summary, &embed::run(document)?))
}

/// Renders one run of a lab scenario, as [`render`] does a run.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_lab(document: &LabDocument) -> Result<String, ReportError> {
    if document.schema != LAB_SCHEMA_1 {
        known(&document.schema, LAB_SCHEMA)?;
    }
    Ok(page(&title::lab(document), &title::lab_summary(document), &embed::lab(document)?))
}

/// Renders an audit, as [`render`] does a run.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_audit(document: &AuditDocument) -> Result<String, ReportError> {
    known(&document.schema, AUDIT_SCHEMA)?;
    Ok(page(&title::audit(document), &title::audit_summary(document), &embed::plain(document)?))
}

/// Renders a trace, as [`render`] does a run.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_trace(document: &TraceDocument) -> Result<String, ReportError> {
    known_trace(document)?;
    Ok(page(&title::trace(document), &title::trace_summary(document), &embed::trace(document)?))
}

/// Renders two traces side by side, as [`render`] does a run.
///
/// # Errors
/// The schema of the document or of one of its traces is not supported by this version.
pub fn render_trace_comparison(document: &TraceComparison) -> Result<String, ReportError> {
    known(&document.schema, TRACE_COMPARISON_SCHEMA)?;
    known_trace(&document.a)?;
    known_trace(&document.b)?;
    let title = format!("{} · against · {}", title::trace(&document.a), title::trace(&document.b));
    let summary = format!("{} {}", title::trace_summary(&document.a), title::trace_summary(&document.b));
    Ok(page(&title, &summary, &embed::trace_comparison(document)?))
}

fn known_trace(document: &TraceDocument) -> Result<(), ReportError> {
    if document.schema == TRACE_SCHEMA_1 { Ok(()) } else { known(&document.schema, TRACE_SCHEMA) }
}

/// Renders the observations of running flows, as [`render`] does a run.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_watch(document: &WatchDocument) -> Result<String, ReportError> {
    known(&document.schema, WATCH_SCHEMA)?;
    Ok(page(&title::watch(document), &title::watch_summary(document), &embed::plain(document)?))
}

/// Renders figures made from one or several documents, as [`render`] does a run.
///
/// # Errors
/// The document's schema is not supported by this version.
pub fn render_figures(document: &FiguresDocument) -> Result<String, ReportError> {
    known(&document.schema, FIGURES_SCHEMA)?;
    Ok(page(&title::figures(document), &document.answer, &embed::figures(document)?))
}

/// Renders any document as a separate page.
///
/// # Errors
/// The document's schema is not supported by this version, or its kind has no page: taps, host facts and tests of a section.
pub fn render_document(source: &Source, limits: &[Limit]) -> Result<String, ReportError> {
    match &source.document {
        Document::Run(run) => render(run),
        Document::Lab(lab) => render_lab(lab),
        Document::Tuneup(tuneup) => render_tuneup(tuneup),
        Document::Watch(watch) => render_watch(watch),
        Document::Trace(trace) => render_trace(trace),
        Document::TraceComparison(comparison) => render_trace_comparison(comparison),
        Document::Audit(audit) => render_audit(audit),
        Document::Demo(demo) => render_demo(demo),
        Document::Sweep(_)
        | Document::Suite(_)
        | Document::Comparison(_)
        | Document::Figures(_)
        | Document::Emulate(_)
        | Document::Mesh(_)
        | Document::Qualify(_) => render_figures(&figures(std::slice::from_ref(source), limits)),
        Document::Tap(_) | Document::Facts(_) => Err(ReportError::NoPage { kind: source.document.kind() }),
    }
}

fn known(found: &str, known: &'static str) -> Result<(), ReportError> {
    if found == known {
        return Ok(());
    }
    Err(ReportError::UnknownSchema { known, found: found.to_owned() })
}

/// Returns the page around a document's JSON.
fn page(title: &str, summary: &str, json: &str) -> String {
    let mut page = String::with_capacity(SCRIPT.len() + STYLE.len() + json.len() + 4096);
    let (title, summary) = (escape(title), escape(summary));
    let (hash, style_hash) = (SCRIPT_HASH.trim(), STYLE_HASH.trim());
    write!(
        page,
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{hash}'; \
         style-src '{style_hash}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"landspeed {version}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n\
         <style>{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <noscript><h1>{title}</h1><p>{summary}</p><p>The charts and tables are drawn by a script inside this file; \
         it fetches nothing. The measurements are below it as JSON.</p></noscript>\n\
         <div id=\"report\"></div>\n\
         <script type=\"application/json\" id=\"document\">{json}</script>\n\
         <script>{SCRIPT}</script>\n\
         </body>\n\
         </html>\n",
        version = escape(env!("CARGO_PKG_VERSION")),
    )
    .expect("a String takes everything written to it");
    page
}

/// Escapes text for HTML text or attribute values.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
