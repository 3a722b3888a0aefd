//! `landspeed completions` and `landspeed man`: files for packagers.

pub mod examples;
pub mod page;
mod tidy;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use clap::CommandFactory;
use landspeed_sys::clock;

use crate::output::Sink;
use crate::{Cli, CommandOutcome, complete};

const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(landspeed completions bash)
  landspeed completions bash > ~/.local/share/bash-completion/completions/landspeed
  landspeed completions zsh > ~/.zfunc/_landspeed
  landspeed completions fish > ~/.config/fish/completions/landspeed.fish

The script calls landspeed to complete words, so it knows the interfaces, congestion controls, check
codes and kernels of this host. Print it again after an update of landspeed.";

const MAN_EXAMPLES: &str = "\
Examples:
  landspeed man ~/.local/share/man/man1 && man landspeed-run
  SOURCE_DATE_EPOCH=1700000000 landspeed man build/man1    the same pages each time, for packages

Pages carry today's date, or that of SOURCE_DATE_EPOCH.";

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
    /// Directory for the pages; created if it does not exist
    directory: PathBuf,
}

/// Prints a completion script.
pub fn completions(args: &CompletionArgs) -> anyhow::Result<CommandOutcome> {
    Sink::Stdout.write(complete::script(args.shell)?.as_bytes())?;
    Ok(CommandOutcome::Clean)
}

/// Writes one manual page for the program and one for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<CommandOutcome> {
    let directory: &Path = &args.directory;
    let program = Cli::command();
    let named = directory.to_str().and_then(|name| program.find_subcommand(name));
    if let Some(command) = named.filter(|_| !directory.exists()) {
        let name = command.get_name();
        bail!(
            "cannot write pages to {name}: it is the name of a command\nName a directory, ./{name} for this one, and read its page there: \
             `man ./{name}/landspeed-{name}.1`. The command's options: `landspeed {name} --help`."
        );
    }
    landspeed_sys::file::create_directory(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let pages = page::all(program, &date()?);
    for (name, text) in &pages {
        Sink::File(directory.join(format!("{name}.1"))).write(text.as_bytes())?;
    }
    outln!("{} manual pages in {}", pages.len(), directory.display());
    Ok(CommandOutcome::Clean)
}

/// Returns the date in the footer of the pages, `2026-11-22`.
fn date() -> anyhow::Result<String> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is `{text}`, no number of seconds"))?,
        Err(_) => clock::realtime_ns() / 1_000_000_000,
    };
    // Latest time with a four-digit year: 9999-12-31 23:59:59.
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799));
    let mut text = humantime::format_rfc3339_seconds(time).to_string();
    text.truncate("2026-11-22".len());
    Ok(text)
}
