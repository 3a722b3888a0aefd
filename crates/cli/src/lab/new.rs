//! `landspeed lab new`.

use std::path::PathBuf;

use anyhow::ensure;
use landspeed_lab::scenario;

use crate::CommandOutcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab new path.toml                      TCP and UDP over 10 Gb/s, 50 ms, 1 MB buffer
  landspeed lab new --example satellite leo.toml   hand-overs between satellites
  landspeed schema scenario                        the JSON Schema of scenarios (for an editor)";

/// Options of `lab new`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
    /// Write another scenario than the commented one
    #[arg(long, value_enum, value_name = "WHICH")]
    example: Option<Example>,
}

/// Scenarios besides the commented one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Example {
    /// Hand-overs between satellites
    Satellite,
    /// A cellular link with a changing rate
    Cellular,
    /// A receiver whose CPU is slower than the path
    SlowReceiver,
}

impl Example {
    fn text(self) -> &'static str {
        match self {
            Self::Satellite => scenario::SATELLITE,
            Self::Cellular => scenario::CELLULAR,
            Self::SlowReceiver => scenario::SLOW_RECEIVER,
        }
    }
}

/// Writes the template; does not overwrite an existing file.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let text = args.example.map_or(scenario::TEMPLATE, Example::text);
    match &args.file {
        None => Sink::Stdout.write(text.as_bytes())?,
        Some(path) => {
            ensure!(
                !path.exists(),
                "cannot write {}: it exists\nName another file, or remove this one.",
                path.display()
            );
            Sink::File(path.clone()).write(text.as_bytes())?;
            errln!("wrote {}; run it: landspeed lab run {}", path.display(), landspeed_quote::shell_path(path));
        }
    }
    Ok(CommandOutcome::Clean)
}
