//! `landspeed archive show`.

use landspeed_archive::{Archive, ListedDocument, Reading};
use landspeed_results::Document;

use super::{advised, open, text};
use crate::output::Sink;
use crate::{CommandOutcome, check, lab, mesh, qualify, tap, trace, tuneup, watch};

/// Options of `archive show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of a document, or its beginning
    id: String,
    /// Write the document's bytes as they were stored (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
    /// Print details too, as the command does with -v
    #[arg(short, long)]
    verbose: bool,
}

/// Prints a document.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let archive = open()?;
    let listed = archive.resolve(&args.id).map_err(advised)?;
    let bytes = archive.document(&listed.id).map_err(advised)?;
    if let Some(sink) = &args.json {
        sink.write_bytes(&bytes)?;
    }
    if args.json != Some(Sink::Stdout) {
        out!("{}", text::heading(&listed));
        out!("{}", content(&archive, &listed, &bytes, args.verbose)?);
    }
    Ok(CommandOutcome::Clean)
}

/// Formats a document as the command that created it prints it.
fn content(archive: &Archive, listed: &ListedDocument, bytes: &[u8], verbose: bool) -> anyhow::Result<String> {
    let reading = Reading::of(bytes).map_err(advised)?;
    let Some(document) = &reading.document else {
        return Ok(if reading.understood { text::figures(&reading) } else { text::later(&reading) });
    };
    Ok(match document {
        Document::Run(run) => {
            let details = if verbose { format!("\n{}", crate::text::details(run)) } else { String::new() };
            crate::text::summary(run) + &details
        }
        Document::Lab(lab) => lab::text::run(lab),
        Document::Tuneup(tuneup) => tuneup::text::summary(tuneup),
        Document::Qualify(qualify) => qualify::text::summary(qualify),
        Document::Mesh(mesh) => mesh::text::matrix(mesh),
        Document::Watch(watch) => watch::text::summary(watch),
        Document::Trace(trace) => trace::text::summary(trace),
        Document::Tap(tap) => tap::text::summary(tap),
        Document::Audit(audit) => check::text::audit(audit, verbose),
        Document::Comparison(comparison) => crate::compare::text::report(comparison),
        Document::Emulate(emulate) => crate::emulate::text::summary(emulate),
        Document::Suite(suite) => lab::suite::summary(suite),
        Document::Sweep(sweep) => crate::sweep::text::summary(sweep, None),
        Document::TraceComparison(_) | Document::Facts(_) | Document::Demo(_) | Document::Figures(_) => {
            let mut query = landspeed_archive::Query::all();
            query.push(landspeed_archive::Condition::Id(listed.id.to_string()));
            let rows = archive.find(&query).map_err(advised)?;
            text::records(&rows, rows.len() as u64, &query)
        }
    })
}
