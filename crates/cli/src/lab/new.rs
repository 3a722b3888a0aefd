//! `landspeed lab new`.

use std::path::PathBuf;

use anyhow::ensure;
use landspeed_lab::scenario;

use crate::Outcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab new path.toml     two hosts across 50 ms, cross traffic, a switch with a 1 MB buffer
  landspeed lab new --schema      what a scenario may say, as JSON Schema (for an editor)";

/// Options of `lab new`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
    /// Write the JSON Schema of scenarios instead
    #[arg(long)]
    schema: bool,
}

/// Writes it; a file that is there stays.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let text = if args.schema {
        format!("{}\n", serde_json::to_string_pretty(&scenario::schema())?)
    } else {
        scenario::TEMPLATE.to_owned()
    };
    match &args.file {
        None => Sink::Stdout.write(text.as_bytes())?,
        Some(path) => {
            ensure!(!path.exists(), "{} is there already: name another file, or remove it", path.display());
            Sink::File(path.clone()).write(text.as_bytes())?;
            eprintln!("{} is written; run it: landspeed lab run {0}", path.display());
        }
    }
    Ok(Outcome::Clean)
}
