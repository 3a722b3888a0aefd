//! Figures as data, derived from documents; they are drawn on a page, as SVG and PNG, and written as tables.

mod charts;
mod comparison;
mod emulate;
mod grid;
mod mesh;
mod qualify;
pub(crate) mod quantity;
mod record;
mod records;
mod runs;
mod samples;
mod slug;
mod spread;
mod suite;
mod sweep;
mod tuneup;

use landspeed_model::{BuildInfo, FIGURES_SCHEMA, Figure, FigureNote, FiguresDocument, RunDocument};
use landspeed_results::Document;
use landspeed_units::BitRate;

use self::slug::slug;
pub use records::of_records;
pub use tuneup::map_axes;
pub(crate) use tuneup::{
    drawn as tuneup, headline as tuneup_headline, ratio as tuneup_ratio, whole_rate as tuneup_rate,
};

/// Maximum number of runs that are drawn.
pub const MAX_RUNS: usize = 20;
/// Maximum number of runs that are overlaid, one colour each; more are small multiples.
const MAX_OVERLAYS: usize = 8;

/// A saved document and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// File name, or name in an archive.
    pub name: String,
    /// Contents of the document.
    pub document: Document,
}

/// A limit with which rates are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Factor and level to which it applies; `None` for all cells.
    pub level: Option<(String, String)>,
    /// Rate of the limit.
    pub rate: BitRate,
}

/// Returns whether a document has figures, alone and together with others.
pub fn has_figures(document: &Document) -> bool {
    match document {
        Document::Run(_)
        | Document::Sweep(_)
        | Document::Comparison(_)
        | Document::Tuneup(_)
        | Document::Emulate(_)
        | Document::Suite(_)
        | Document::Mesh(_)
        | Document::Qualify(_)
        | Document::Figures(_) => true,
        Document::Lab(lab) => lab.flows.iter().any(|flow| flow.run.is_some()),
        _ => false,
    }
}

/// Returns the figures of documents: of one experiment, or of several results together.
///
/// Kinds without figures (audits, traces, watches, host facts, taps, demos) are named in a serious note.
pub fn figures(sources: &[Source], limits: &[Limit]) -> FiguresDocument {
    let mut page = match sources {
        [one] => single_document(one, limits),
        several => multiple_documents(several, limits),
    };
    FIGURES_SCHEMA.clone_into(&mut page.schema);
    page.landspeed = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
    page.sources = sources.iter().map(|source| source.name.clone()).collect();
    make_ids_unique(&mut page.figures);
    page
}

fn single_document(source: &Source, limits: &[Limit]) -> FiguresDocument {
    match &source.document {
        Document::Sweep(sweep) => sweep::figures(sweep, limits),
        Document::Comparison(comparison) => comparison::figures(comparison),
        Document::Tuneup(tuneup) => tuneup::figures(tuneup),
        Document::Emulate(emulate) => emulate::figures(emulate),
        Document::Suite(suite) => suite::figures(suite),
        Document::Mesh(mesh) => mesh::figures(mesh),
        Document::Qualify(section) => qualify::figures(section),
        Document::Figures(figures) => (**figures).clone(),
        _ => multiple_documents(std::slice::from_ref(source), limits),
    }
}

/// Overlays runs, then adds the figures of each experiment.
fn multiple_documents(sources: &[Source], limits: &[Limit]) -> FiguresDocument {
    let runs: Vec<(String, &RunDocument)> = sources.iter().flat_map(runs_of).collect();
    let mut parts = Vec::new();
    let mut left_out = Vec::new();
    for source in sources {
        match &source.document {
            Document::Sweep(_)
            | Document::Comparison(_)
            | Document::Tuneup(_)
            | Document::Emulate(_)
            | Document::Suite(_)
            | Document::Mesh(_)
            | Document::Qualify(_)
            | Document::Figures(_) => {
                parts.push((source.name.clone(), single_document(source, limits)));
            }
            drawn if has_figures(drawn) => {}
            other => left_out.push(format!("{} ({})", source.name, other.kind())),
        }
    }
    let mut page = if runs.is_empty() { FiguresDocument::default() } else { runs::figures(&runs) };
    if runs.is_empty() && parts.len() == 1 {
        page = parts.remove(0).1;
    }
    for (name, part) in parts {
        if page.title.is_empty() {
            page = FiguresDocument { title: "Several experiments".to_owned(), ..FiguresDocument::default() };
        }
        let answer = format!("{}: {}", part.title, part.answer);
        page.answer = format!("{} {answer}", page.answer).trim().into();
        let several = |text: &str| format!("{name}: {text}");
        page.notes.extend(part.notes.into_iter().map(|note| FigureNote { text: several(&note.text), ..note }));
        page.figures.extend(part.figures.into_iter().map(|figure| Figure {
            id: format!("{}-{}", slug(&name), figure.id),
            title: format!("{}: {}", part.title, figure.title),
            ..figure
        }));
    }
    if page.about.is_empty() {
        page.about = format!("{} documents", sources.len());
    }
    if page.answer.is_empty() {
        "No document here has figures to draw together.".clone_into(&mut page.answer);
    }
    if !left_out.is_empty() {
        page.notes.insert(
            0,
            FigureNote {
                serious: true,
                text: format!("Not drawn together with others: {}. Open each alone.", left_out.join(", ")),
            },
        );
    }
    if let Some(records) = record::chart(sources) {
        page.figures.push(records);
    }
    page
}

/// Returns the runs in a document, each with a name.
fn runs_of(source: &Source) -> Vec<(String, &RunDocument)> {
    match &source.document {
        Document::Run(run) => {
            let title = run.requested.title.clone().filter(|title| !title.is_empty());
            vec![(title.unwrap_or_else(|| source.name.clone()), run)]
        }
        Document::Lab(lab) => {
            let flows = lab.flows.iter().filter_map(|flow| Some((flow.name.clone(), flow.run.as_ref()?)));
            let several = lab.flows.len() > 1;
            flows
                .map(|(flow, run)| {
                    (if several { format!("{}: {flow}", source.name) } else { source.name.clone() }, run)
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Gives every figure a unique name.
fn make_ids_unique(figures: &mut [Figure]) {
    let mut seen: Vec<String> = Vec::new();
    for figure in figures {
        let wanted = slug(&figure.id);
        let mut id = wanted.clone();
        let mut number = 2;
        while seen.contains(&id) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        figure.id.clone_from(&id);
        seen.push(id);
    }
}

/// Formats a count with its noun: `1 run`, `3 runs`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests;
