//! `landspeed archive`.

mod export;
mod filter;
mod import;
mod list;
mod prune;
mod show;
mod tag;
pub mod text;
mod trend;
mod verify;

use anyhow::anyhow;
use landspeed_archive::{Archive, ArchiveError, ENV_VARIABLE, Location};
use landspeed_model::BuildInfo;

use crate::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  landspeed archive list                             the newest results
  landspeed archive find --host dtn1 --last 30d      one host's results of a month
  landspeed archive find --metric 'goodput<5G' --setting congestion=bbr
  landspeed archive show 4be1c0                      what the command printed then
  landspeed archive show 4be1c0 --json - > run.json  the document as it was
  landspeed archive trend goodput --target dtn2      a metric over time, and its changes
  landspeed archive tag 4be1c0 +before-upgrade       find them together later
  landspeed archive import results/*.json            iperf3, nuttcp, flent, perfSONAR
  landspeed archive export --format csv > all.csv    for other programs
  landspeed archive prune --older-than 365d          what would be removed; --yes removes
  landspeed archive verify                           is everything there and whole

Results are kept in ~/.local/share/landspeed/archive. LANDSPEED_ARCHIVE names another directory; LANDSPEED_ARCHIVE=off
keeps nothing.

Exit status: 0 clean, 1 damage found (verify) or a file not imported, 2 failure.";

/// Options of `archive`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one value in a program's life")]
enum Command {
    /// List documents, the newest first
    List(list::ListArgs),
    /// Print a document as the command that made it did
    Show(show::Args),
    /// Find records by host, path, kernel, setting, verdict, figure, time, tag
    Find(Box<list::FindArgs>),
    /// Show a metric over time and where it changed
    Trend(Box<trend::Args>),
    /// Add and remove tags of documents
    Tag(tag::Args),
    /// Remove old documents; without --yes, only show which
    Prune(prune::Args),
    /// Check every document, and bring the index into agreement with them
    Verify(verify::Args),
    /// Write records or series for other programs
    Export(Box<export::Args>),
    /// Add documents of landspeed, iperf3, nuttcp, flent and perfSONAR
    Import(import::Args),
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    match &args.command {
        Command::List(args) => list::list(args),
        Command::Show(args) => show::main(args),
        Command::Find(args) => list::find(args),
        Command::Trend(args) => trend::main(args),
        Command::Tag(args) => tag::main(args),
        Command::Prune(args) => prune::main(args),
        Command::Verify(args) => verify::main(args),
        Command::Export(args) => export::main(args),
        Command::Import(args) => import::main(args),
    }
}

/// Returns the archive's directory; an error if the archive is off or cannot be located.
pub fn directory() -> anyhow::Result<std::path::PathBuf> {
    match Location::from_environment() {
        Location::Directory(directory) => Ok(directory),
        Location::Off => Err(anyhow!(
            "results are not kept: {ENV_VARIABLE} is off\nUnset {ENV_VARIABLE}, or set it to the directory of an archive."
        )),
        Location::Unknown => Err(anyhow!(
            "cannot find the archive: neither HOME nor XDG_DATA_HOME is set\nSet {ENV_VARIABLE} to a directory."
        )),
    }
}

/// Opens the existing archive.
pub fn open() -> anyhow::Result<Archive> {
    let archive = Archive::open_existing(&directory()?).map_err(advised)?;
    warn_unadopted(&archive);
    Ok(archive)
}

/// Prints a warning if documents that a killed process stored may be missing in the index.
pub fn warn_unadopted(archive: &Archive) {
    if let Some(why) = archive.unadopted() {
        errln!("landspeed: warning: documents of a process that was killed may be missing: {why}");
    }
}

/// Converts an archive error into a message with its advice.
pub fn advised(error: ArchiveError) -> anyhow::Error {
    match error.advice() {
        Some(advice) => anyhow!("{error}\n{advice}."),
        None => error.into(),
    }
}

/// Returns the build information for new documents.
fn build() -> BuildInfo {
    BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None }
}
