//! `landspeed archive prune`.

use anyhow::ensure;
use landspeed_archive::Limits;
use landspeed_units::{Bytes, Nanos};

use super::{advised, open, text};
use crate::{CommandOutcome, options};

/// Options of `archive prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive prune --older-than 365d        show which would go
  landspeed archive prune --older-than 365d --yes  remove them
  landspeed archive prune --max-size 2GB --yes     remove the oldest until the rest fits
  landspeed archive prune --kind watch --keep 100 --yes

Documents with tags stay, unless --tagged is given.")]
pub struct Args {
    /// Documents that started longer ago than this
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    older_than: Option<Nanos>,
    /// All but the N newest
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// The oldest, until the archive takes no more than this
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Bytes>,
    /// Only documents of this kind
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Remove documents with tags too
    #[arg(long)]
    tagged: bool,
    /// Remove them: without it, they are only listed
    #[arg(short, long)]
    yes: bool,
}

/// Shows or removes old documents.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    ensure!(
        args.older_than.is_some() || args.keep.is_some() || args.max_size.is_some(),
        "nothing says what may go\nUse --older-than, --keep or --max-size."
    );
    let limits = Limits {
        older_than: args.older_than,
        keep: args.keep,
        max_bytes: args.max_size.map(Bytes::get),
        kinds: args.kind.clone(),
        tagged: args.tagged,
    };
    let mut archive = open()?;
    let pruned = archive.prunable(&limits).map_err(advised)?;
    if args.yes {
        let ids: Vec<_> = pruned.iter().map(|pruned| pruned.document.id.clone()).collect();
        archive.remove(&ids).map_err(advised)?;
    }
    out!("{}", text::pruned(&pruned, args.yes));
    Ok(CommandOutcome::Clean)
}
