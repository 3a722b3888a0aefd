//! One self-contained HTML file from a run document.
//!
//! The page is built from `web/` and embedded here as text, so nothing is fetched when it is opened and Node is not
//! needed to build it. The document goes in as inert JSON, and a content security policy lets the browser use one
//! script and one style sheet only: those whose hashes were recorded when the page was built.
#![forbid(unsafe_code)]

mod embed;
mod pack;

use std::fmt::Write as _;

use landspeed_model::{RunDocument, Status};
use thiserror::Error;

/// The page's script, built by `npm --prefix web run build`.
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
/// The page's style sheet, built with it.
const STYLE: &str = include_str!("../../../web/dist/report.css");
/// `sha256-…` of the script, in the form a content security policy wants.
const SCRIPT_HASH: &str = include_str!("../../../web/dist/report.js.csp");

/// The same of the style sheet.
const STYLE_HASH: &str = include_str!("../../../web/dist/report.css.csp");

/// Why a document could not be drawn.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The document is of a kind or version this program does not know.
    #[error(
        "cannot draw a `{found}` document: this version reads `{}`; a newer landspeed may",
        landspeed_model::RUN_SCHEMA
    )]
    UnknownSchema {
        /// What the document calls itself.
        found: String,
    },
    /// The document could not be written as JSON.
    #[error("cannot write the document into the report")]
    Json(#[from] serde_json::Error),
}

/// Draws a document as one HTML page that needs no other file and no network.
///
/// Everything of the document is inside it and can be saved from it again, but for `tcp_info_raw`, which repeats in
/// base64 what is decoded beside it.
///
/// # Errors
/// The document's schema is not the one this version knows.
pub fn render(document: &RunDocument) -> Result<String, ReportError> {
    if !document.is_readable() {
        return Err(ReportError::UnknownSchema { found: document.schema.clone() });
    }
    let json = embed::document(document)?;
    let mut page = String::with_capacity(SCRIPT.len() + STYLE.len() + json.len() + 4096);
    let title = escape(&title(document));
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
         <noscript><h1>{title}</h1><p>{verdict}</p><p>The charts and tables are drawn by a script inside this file; \
         it fetches nothing. The measurements are below it as JSON.</p></noscript>\n\
         <div id=\"report\"></div>\n\
         <script type=\"application/json\" id=\"document\">{json}</script>\n\
         <script>{SCRIPT}</script>\n\
         </body>\n\
         </html>\n",
        version = escape(env!("CARGO_PKG_VERSION")),
        verdict = escape(&document.verdict.summary),
    )
    .expect("a String takes everything written to it");
    Ok(page)
}

/// What a browser shows on the tab: what was measured and the figure.
fn title(document: &RunDocument) -> String {
    let known = |names: &[Option<&str>], fallback: &str| {
        names.iter().flatten().find(|n| !n.is_empty()).map_or_else(|| fallback.to_owned(), |n| (*n).to_owned())
    };
    let client = known(&[document.hosts.client.as_ref().map(|h| h.hostname.as_str())], "client");
    let asked = match document.command.as_slice() {
        [_, run, target, ..] if run == "run" && !target.starts_with('-') => Some(target.as_str()),
        _ => None,
    };
    let server = known(
        &[
            document.hosts.server.as_ref().map(|h| h.hostname.as_str()),
            document.path.as_ref().map(|p| p.target.as_str()),
            asked,
        ],
        "server",
    );
    let name = document.requested.title.as_deref().map(|t| format!("{t} · ")).unwrap_or_default();
    let figure = match (document.status, document.summary.goodput_bps) {
        (Status::Failed, _) => " · failed".to_owned(),
        (_, Some(rate)) => format!(" · {}", landspeed_units::BitRate::from_bps(rate.max(0.0).round() as u64)),
        (_, None) => String::new(),
    };
    format!("{name}{client} → {server}{figure} · landspeed")
}

/// Text as HTML text or attribute value.
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
