//! `landspeed lab`: emulated paths in virtual time with the real Linux TCP stack.

mod command;
pub mod demo;
mod engine;
pub mod figures;
mod gallery;
mod kernel;
mod kernels;
mod new;
pub mod run;
pub mod suite;
pub mod text;
mod vary;

use crate::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  landspeed lab kernel build                       build the kernel for scenarios, once
  landspeed lab new path.toml                      write a commented scenario
  landspeed lab run path.toml --report path.html
  landspeed lab gallery                            list published experiments
  landspeed lab suite run rfc9743                  test cases for congestion controls

A run needs no root and sends nothing to the network. The same scenario, seed and kernel give the
same result, bit for bit.";

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
    /// List, print and run the scenarios that come with landspeed
    Gallery(gallery::Args),
    /// Run lists of scenarios with criteria, such as the test cases of a standard
    Suite(suite::Args),
    /// Write a commented scenario to start from
    New(new::Args),
    /// Build, list and remove the kernels that scenarios run on
    Kernel(kernel::Args),
    /// The program inside the lab's kernel
    #[command(hide = true)]
    Guest,
}

/// Runs the subcommand.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    match &args.command {
        Command::Run(args) => run::main(args),
        Command::Gallery(args) => gallery::main(args),
        Command::Suite(args) => suite::main(args),
        Command::New(args) => new::main(args),
        Command::Kernel(args) => kernel::main(args),
        Command::Guest => guest(),
    }
}

/// Runs the guest's init. It powers the machine off at the end, so it refuses to run outside a guest.
fn guest() -> anyhow::Result<CommandOutcome> {
    anyhow::ensure!(
        std::process::id() == 1,
        "`lab guest` runs only inside the lab's kernel\nRun `landspeed lab run SCENARIO`."
    );
    landspeed_lab::guest::main(&engine::Flow);
    Ok(CommandOutcome::Failure)
}
