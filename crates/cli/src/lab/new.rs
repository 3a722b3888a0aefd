//! `landspeed lab new`.

use std::path::PathBuf;

use anyhow::ensure;
use landspeed_lab::scenario;

use crate::CommandOutcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab new path.toml     TCP and UDP over 10 Gb/s, 50 ms, a switch with a 1 MB buffer
  landspeed schema scenario       the JSON Schema of scenarios (for an editor)";

/// Options of `lab new`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
}

/// Writes the template; does not overwrite an existing file.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    match &args.file {
        None => Sink::Stdout.write(scenario::TEMPLATE.as_bytes())?,
        Some(path) => {
            ensure!(
                !path.exists(),
                "cannot write {}: it exists\nName another file, or remove this one.",
                path.display()
            );
            Sink::File(path.clone()).write(scenario::TEMPLATE.as_bytes())?;
            errln!("wrote {}; run it: landspeed lab run {}", path.display(), landspeed_quote::shell_path(path));
        }
    }
    Ok(CommandOutcome::Clean)
}
