//! `landspeed lab new`.

use std::path::PathBuf;

use anyhow::ensure;
use landspeed_lab::scenario;

use crate::Outcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab new path.toml     two hosts across 50 ms, cross traffic, a switch with a 1 MB buffer
  landspeed schema scenario       what a scenario may say, as JSON Schema (for an editor)";

/// Options of `lab new`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
}

/// Writes it; a file that is there stays.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    match &args.file {
        None => Sink::Stdout.write(scenario::TEMPLATE.as_bytes())?,
        Some(path) => {
            ensure!(!path.exists(), "{} is there already: name another file, or remove it", path.display());
            Sink::File(path.clone()).write(scenario::TEMPLATE.as_bytes())?;
            eprintln!("{} is written; run it: landspeed lab run {0}", path.display());
        }
    }
    Ok(Outcome::Clean)
}
