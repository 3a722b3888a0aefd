//! `landspeed lab kernel`.

use crate::Outcome;

/// Options of `lab kernel`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// The kernels that are built
    List,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    match args.command {
        Command::List => anyhow::bail!("not here yet"),
    }
}
