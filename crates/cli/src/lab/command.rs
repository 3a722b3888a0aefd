//! `landspeed lab run PATH -- CMD`: one command on a host of a scenario, and a remote one.

use anyhow::{bail, ensure};
use landspeed_experiment::edit::{self, AddedProgram};
use landspeed_lab::plan::OWN_PROGRAM;
use landspeed_model::{LabDocument, LabOutput, LabProgram};

/// Name of the command's program.
const COMMAND: &str = "command";
/// Name of the remote program.
const REMOTE: &str = "remote";
/// Start of the command, after the remote one.
const START: &str = "100ms";

/// Options of a command.
#[derive(Debug, clap::Args)]
pub struct CommandArgs {
    /// Run this command on a host of the scenario, with its files read-only; the other host is reached by its name
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// Hosts of the command and of the remote one [default: the scenario's two hosts, in the order of its links]
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',', num_args = 1, requires = "command")]
    pub hosts: Vec<String>,
    /// Run this command on the remote host, by the shell [default: landspeed serve, for landspeed and iperf3 clients]
    #[arg(long, value_name = "CMD", requires = "command")]
    pub remote: Option<String>,
}

impl CommandArgs {
    /// Returns the scenario's text with the command and the remote one.
    pub fn add_to(&self, text: &str) -> anyhow::Result<String> {
        if self.command.is_empty() {
            return Ok(text.to_owned());
        }
        let hosts = if self.hosts.is_empty() { edit::hosts(text) } else { self.hosts.clone() };
        let [local, remote] = &hosts[..] else {
            bail!(match (self.hosts.is_empty(), hosts.len()) {
                (true, count @ 0..=1) => format!(
                    "a command needs two hosts, and the scenario has {count}\nAdd hosts ([host.NAME]) and links between them."
                ),
                (true, count) => format!("the scenario has {count} hosts\nName two: --hosts HOST,HOST"),
                (false, count) => format!("--hosts names {count} hosts\nName two: --hosts HOST,HOST"),
            });
        };
        ensure!(local != remote, "the command and the remote one have the same host\nName two: --hosts HOST,HOST");
        let serve = || [OWN_PROGRAM, "serve", "--quiet"].map(str::to_owned).to_vec();
        let by_shell = |words: &String| ["sh", "-c", words].map(str::to_owned).to_vec();
        let programs = [
            AddedProgram {
                name: REMOTE,
                host: remote,
                run: &self.remote.as_ref().map_or_else(serve, by_shell),
                at: None,
                stop: Some("end"),
            },
            AddedProgram { name: COMMAND, host: local, run: &self.command, at: Some(START), stop: None },
        ];
        Ok(edit::add_programs(text, &programs))
    }
}

/// Prints what the command of a run printed, and says how the remote one ended if it did so early.
pub fn print_output(document: &LabDocument) {
    let named = |name: &str| document.programs.iter().find(|program| program.name == name);
    if let Some(program) = named(COMMAND) {
        out!("{}", program.stdout.text);
        err!("{}", program.stderr.text);
        for (stream, output) in [("output", &program.stdout), ("errors", &program.stderr)] {
            if is_cut(output) {
                errln!("landspeed: the command's {stream} are cut: {} bytes in total", output.bytes);
            }
        }
    }
    if let Some(program) = named(REMOTE).filter(|program| !program.expected) {
        err!("{}", program.stderr.text);
    }
}

/// Returns whether an output has more than is kept.
fn is_cut(output: &LabOutput) -> bool {
    output.bytes > 1 << 20
}

/// Returns the exit status of the command; `None` if it has none.
pub fn exit_status(document: &LabDocument) -> Option<u8> {
    let program: &LabProgram = document.programs.iter().find(|program| program.name == COMMAND)?;
    program.exit_status.and_then(|status| u8::try_from(status).ok())
}
