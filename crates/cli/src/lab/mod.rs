//! `landspeed lab`: paths in virtual time with the real Linux TCP stack.

mod kernel;

use crate::Outcome;

/// Options of `lab`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Build, list and remove the kernels that scenarios run on
    Kernel(kernel::Args),
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Kernel(args) => kernel::main(args),
    }
}
