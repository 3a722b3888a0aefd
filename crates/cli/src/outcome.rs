//! Outcome of a command.

use std::process::ExitCode;

/// The result of a command, which sets the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandOutcome {
    /// Success, nothing to report: exit status 0.
    Clean,
    /// The command ran and found something to check: exit status 1.
    Findings,
    /// The command failed: exit status 2.
    Failure,
    /// The program that the command ran for the user ended with this status, which is passed on.
    Program(u8),
}

impl From<CommandOutcome> for ExitCode {
    fn from(outcome: CommandOutcome) -> Self {
        Self::from(match outcome {
            CommandOutcome::Clean => 0,
            CommandOutcome::Findings => 1,
            CommandOutcome::Failure => 2,
            CommandOutcome::Program(status) => status,
        })
    }
}
