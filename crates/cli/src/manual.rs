//! `landspeed completions` and `landspeed man`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory;

use crate::{Cli, Outcome};

const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(landspeed completions bash)
  landspeed completions zsh > ~/.zfunc/_landspeed
  landspeed completions fish > ~/.config/fish/completions/landspeed.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  landspeed man ~/.local/share/man/man1 && man landspeed-run";

/// Options of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionArgs {
    /// Which shell
    shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Directory to write the pages to; it is made if need be
    directory: PathBuf,
}

/// Prints a completion script.
pub fn completions(args: &CompletionArgs) -> Outcome {
    clap_complete::generate(args.shell, &mut Cli::command(), "landspeed", &mut std::io::stdout());
    Outcome::Clean
}

/// Writes one page for the program and one for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<Outcome> {
    let directory: &Path = &args.directory;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    Ok(Outcome::Clean)
}
