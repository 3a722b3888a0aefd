//! `landspeed archive verify`.

use landspeed_archive::{Archive, Verification};
use landspeed_model::{ARCHIVE_CHECK_SCHEMA, ArchiveCheckDocument, ArchiveDamage, ArchiveUnreadable};

use super::{advised, build, directory, text};
use crate::CommandOutcome;
use crate::output::Sink;

/// Options of `archive verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads every document and compares its bytes with its id. A document that a killed process had stored and not indexed is
added to the index. A damaged document is moved to `damaged/`, and the exit status is 1. What this user cannot read is
named and skipped, with the same exit status.")]
pub struct Args {
    /// Make the index again from the documents
    #[arg(long)]
    rebuild: bool,
    /// Write the result as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

/// Verifies the archive.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let directory = directory()?;
    let found = if args.rebuild {
        Archive::rebuild(&directory)
    } else {
        Archive::open_existing(&directory).and_then(|mut archive| archive.verify())
    }
    .map_err(advised)?;
    let whole = found.damaged.is_empty() && found.unreadable.is_empty();
    let document = document(found);
    if let Some(sink) = &args.json {
        let mut json = serde_json::to_vec_pretty(&document)?;
        json.push(b'\n');
        sink.write(&json)?;
    }
    if args.json != Some(Sink::Stdout) {
        out!("{}", text::verification(&document, &directory, args.rebuild));
    }
    Ok(if whole { CommandOutcome::Clean } else { CommandOutcome::Findings })
}

fn document(found: Verification) -> ArchiveCheckDocument {
    let damage = |damage: landspeed_archive::Damage| ArchiveDamage {
        id: damage.id,
        why: damage.why,
        moved_to: damage.moved_to.map(|path| path.display().to_string()),
    };
    ArchiveCheckDocument {
        schema: ARCHIVE_CHECK_SCHEMA.to_owned(),
        landspeed: build(),
        intact: found.intact,
        adopted: found.adopted,
        unfinished: found.unfinished,
        series_rebuilt: found.series_rebuilt,
        damaged: found.damaged.into_iter().map(damage).collect(),
        unreadable: found
            .unreadable
            .into_iter()
            .map(|found| ArchiveUnreadable { path: found.path.display().to_string(), why: found.why })
            .collect(),
    }
}
