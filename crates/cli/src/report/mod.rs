//! `landspeed report`.

mod args;
#[cfg(feature = "png")]
mod png;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use landspeed_model::FiguresDocument;
use landspeed_report::{Source, figures, has_figures, render_document, render_figures, scene, svg};
use landspeed_results::{Document, Record};

pub use args::Args;

use crate::CommandOutcome;
use crate::output::Sink;
use crate::source::{self, LoadedData};
use crate::text::Page;

/// Reads the documents and writes all requested outputs.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    check_outputs(args)?;
    let mut left_out = Vec::new();
    let sources = read(&args.operands, &mut left_out)?;
    for why in &left_out {
        errln!("landspeed: not drawn: {why}");
    }
    anyhow::ensure!(!sources.is_empty(), "cannot draw a report: none of the documents can be read");
    let mut page = figures(&sources, &args.limits);
    note_left_out(&mut page, &left_out);
    let alone = match sources.as_slice() {
        [one] => Some(one),
        several => {
            let unsuitable = several.iter().filter(|source| !has_figures(&source.document));
            let names: Vec<String> =
                unsuitable.map(|source| format!("{} ({})", source.name, source.document.kind())).collect();
            for name in &names {
                errln!("landspeed: not drawn together with others: {name}");
            }
            left_out.extend(names);
            anyhow::ensure!(
                left_out.len() < args.operands.len() || !page.figures.is_empty(),
                "cannot draw these documents together\nDraw each in a separate report."
            );
            None
        }
    };
    if let Some(sink) = &args.output {
        // A single document gets its own page, which contains more than its figures.
        let html = match alone {
            Some(source) if left_out.is_empty() || !has_figures(&source.document) => {
                render_document(source, &args.limits)?
            }
            _ => render_figures(&page)?,
        };
        sink.write(html.as_bytes())?;
    }
    write_figures(args, &page)?;
    if args.prints() {
        out!("{}", summary(args, &page, sources.len()));
    }
    Ok(if left_out.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

/// Checks that there is an output, and that each can be written.
fn check_outputs(args: &Args) -> anyhow::Result<()> {
    let sinks = args.sinks();
    let directories = args.directories();
    anyhow::ensure!(
        !sinks.is_empty() || !directories.is_empty(),
        "cannot draw a report: no output is given\nAdd `-o report.html`, or --svg, --png, --markdown, --csv, --gnuplot or --json."
    );
    for (at, sink) in sinks.iter().enumerate() {
        sink.check()?;
        anyhow::ensure!(!sinks[..at].contains(sink), "two outputs go to {sink}\nWrite each to a different file.");
    }
    for directory in directories {
        landspeed_sys::file::create_directory(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    Ok(())
}

/// Reads the documents of all operands; those that cannot be read are added to `left_out`.
fn read(operands: &[String], left_out: &mut Vec<String>) -> anyhow::Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    let mut foreign: Vec<(String, Vec<Record>)> = Vec::new();
    for operand in operands {
        let loaded = source::load(operand, LoadedData::Documents)?;
        left_out.extend(loaded.unreadable.iter().map(ToString::to_string));
        let several = loaded.items.len() > 1;
        for item in loaded.items {
            let short = Path::new(&item.origin).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let own = short.filter(|stem| !stem.is_empty()).unwrap_or_else(|| item.origin.clone());
            let name = match &loaded.name {
                Some(name) if several => format!("{name}: {own}"),
                Some(name) => name.clone(),
                None => own,
            };
            match item.document {
                Some(document) => sources.push(Source { name, document }),
                None => foreign.push((name, item.records)),
            }
        }
    }
    if !foreign.is_empty() {
        let name = foreign[0].0.clone();
        sources.push(Source { name, document: Document::Figures(Box::new(landspeed_report::of_records(&foreign))) });
    }
    // Items from different directories may have equal names.
    Ok(sources)
}

fn note_left_out(page: &mut FiguresDocument, left_out: &[String]) {
    for why in left_out.iter().rev() {
        let text = format!("Not drawn: {why}.");
        page.notes.insert(0, landspeed_model::FigureNote { serious: true, text });
    }
}

/// Writes all outputs except the HTML page.
fn write_figures(args: &Args, page: &FiguresDocument) -> anyhow::Result<()> {
    let write = |directory: &Path, name: String, content: &[u8]| Sink::File(directory.join(name)).write(content);
    for figure in &page.figures {
        if let Some(directory) = &args.svg {
            write(directory, format!("{}.svg", figure.id), svg(&scene(figure)).as_bytes())?;
        }
        #[cfg(feature = "png")]
        if let Some(directory) = &args.png {
            write(directory, format!("{}.png", figure.id), &png::png(&scene(figure))?)?;
        }
        if let Some(directory) = &args.gnuplot {
            let (data, script) = landspeed_report::gnuplot(figure);
            write(directory, format!("{}.dat", figure.id), data.as_bytes())?;
            write(directory, format!("{}.gp", figure.id), script.as_bytes())?;
        }
    }
    if let Some(sink) = &args.markdown {
        sink.write(landspeed_report::markdown(page).as_bytes())?;
    }
    if let Some(sink) = &args.csv {
        sink.write(landspeed_report::csv(page).as_bytes())?;
    }
    if let Some(sink) = &args.json {
        let mut json = serde_json::to_vec_pretty(page).context("cannot encode the figures")?;
        json.push(b'\n');
        sink.write(&json)?;
    }
    Ok(())
}

fn summary(args: &Args, page: &FiguresDocument, documents: usize) -> String {
    let mut text = Page::default();
    text.line("answer", &page.answer);
    let count = |n: usize, noun: &str| if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") };
    text.line("figures", &format!("{} of {}", count(page.figures.len(), "figure"), count(documents, "document")));
    let files: Vec<PathBuf> = [&args.output, &args.markdown, &args.csv, &args.json]
        .into_iter()
        .flatten()
        .filter_map(|sink| match sink {
            Sink::File(path) => Some(path.clone()),
            Sink::Stdout => None,
        })
        .chain(args.directories().into_iter().cloned())
        .collect();
    for file in files {
        text.raw("written", &file.display().to_string());
    }
    for note in page.notes.iter().filter(|note| note.serious) {
        text.line("note", &note.text);
    }
    text.text
}
