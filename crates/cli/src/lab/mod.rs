//! `landspeed lab`: paths in virtual time with the real Linux TCP stack.

mod cells;
pub mod demo;
mod edit;
mod engine;
mod gallery;
mod kernel;
mod new;
mod run;
mod set;
mod text;

use crate::Outcome;

const EXAMPLES: &str = "\
Examples:
  landspeed lab kernel build                    once, a few minutes: the kernel that scenarios run on
  landspeed lab new path.toml                   a commented scenario
  landspeed lab run path.toml --report path.html
  landspeed lab gallery                         published experiments, ready to run

A run needs no root, sends nothing anywhere, and repeats to the byte.";

/// Options of `lab`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run a scenario
    Run(Box<run::Args>),
    /// List, show and run the scenarios that come with the program
    Gallery(gallery::Args),
    /// Write a commented scenario to start from
    New(new::Args),
    /// Build, list and remove the kernels that scenarios run on
    Kernel(kernel::Args),
    /// What runs inside the lab's kernel
    #[command(hide = true)]
    Guest,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Run(args) => run::main(args),
        Command::Gallery(args) => gallery::main(args),
        Command::New(args) => new::main(args),
        Command::Kernel(args) => kernel::main(args),
        Command::Guest => guest(),
    }
}

/// The guest's only program. On any other machine it would switch that off: it refuses.
fn guest() -> anyhow::Result<Outcome> {
    anyhow::ensure!(std::process::id() == 1, "`lab guest` is what the lab's kernel starts; try `landspeed lab run`");
    landspeed_lab::guest::main(&engine::Flow);
    Ok(Outcome::Failure)
}
