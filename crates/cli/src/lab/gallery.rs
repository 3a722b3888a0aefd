//! `landspeed lab gallery`: the scenarios that come with landspeed.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use landspeed_lab::gallery::{self, EXHIBITS, Exhibit};

use super::run;
use crate::CommandOutcome;
use crate::board::duration;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab gallery                               list the exhibits
  landspeed lab gallery run nuttcp-burst              write nuttcp-burst.json and .html
  landspeed lab gallery show buffer-size > mine.toml  copy an exhibit, to change it
  landspeed lab gallery run --all --yes               run all of them, one by one";

/// Options of `lab gallery`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the exhibits with their number of cells and estimated run time
    List,
    /// Print an exhibit's scenario
    Show {
        /// The exhibit
        #[arg(value_name = "EXHIBIT")]
        name: String,
    },
    /// Run an exhibit; writes EXHIBIT.json and EXHIBIT.html unless --json or --report say otherwise
    Run(Box<RunArgs>),
}

/// Options of `lab gallery run`.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The exhibit
    #[arg(value_name = "EXHIBIT", required_unless_present = "all")]
    name: Option<String>,
    /// Run all exhibits, one by one
    #[arg(long, conflicts_with_all = ["name", "json", "report", "set", "pcap"])]
    all: bool,
    #[command(flatten)]
    options: run::Options,
}

/// Runs the subcommand; without one it lists.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    match &args.command {
        None | Some(Command::List) => {
            Sink::Stdout.write(list()?.as_bytes())?;
            Ok(CommandOutcome::Clean)
        }
        Some(Command::Show { name }) => {
            let exhibit = gallery::find(name).map_err(|message| anyhow!(message))?;
            Sink::Stdout.write(exhibit.text.as_bytes())?;
            Ok(CommandOutcome::Clean)
        }
        Some(Command::Run(args)) => match &args.name {
            Some(name) => run_one(gallery::find(name).map_err(|message| anyhow!(message))?, &args.options),
            None => run_all(&args.options),
        },
    }
}

fn run_one(exhibit: &Exhibit, options: &run::Options) -> anyhow::Result<CommandOutcome> {
    let options = run::Options {
        json: options.json.clone().or_else(|| Some(Sink::File(format!("{}.json", exhibit.name).into()))),
        report: options.report.clone().or_else(|| Some(PathBuf::from(format!("{}.html", exhibit.name)))),
        ..options.clone()
    };
    run::run(exhibit.name, exhibit.text, &options)
}

/// Runs all exhibits; a failure does not stop the others.
fn run_all(options: &run::Options) -> anyhow::Result<CommandOutcome> {
    let mut worst = CommandOutcome::Clean;
    let mut failed = Vec::new();
    for exhibit in EXHIBITS {
        if landspeed_sys::process::catch_interrupts().load(std::sync::atomic::Ordering::Relaxed) {
            failed.push(format!("{} and later exhibits: interrupted", exhibit.name));
            break;
        }
        if !options.quiet {
            eprintln!("{}: {}", exhibit.name, exhibit.title);
        }
        match run_one(exhibit, options) {
            Ok(outcome) => worst = if outcome as u8 > worst as u8 { outcome } else { worst },
            Err(error) => failed.push(format!("{}: {error:#}", exhibit.name)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(worst)
}

fn list() -> anyhow::Result<String> {
    let width = EXHIBITS.iter().map(|exhibit| exhibit.name.len()).max().unwrap_or(0);
    let mut text = format!("  {:width$}  CELLS    TIME  EXPERIMENT\n", "EXHIBIT");
    for exhibit in EXHIBITS {
        let (cells, wall_s) = gallery::takes(exhibit)?;
        let takes = duration(wall_s / 2.0);
        let _ = writeln!(text, "  {:width$}  {cells:>5}  {takes:>6}  {}", exhibit.name, exhibit.title);
    }
    let _ =
        writeln!(text, "\n  TIME is an estimate, for two cells at once. Run one: landspeed lab gallery run EXHIBIT");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_every_exhibit_once() {
        let text = list().expect("the exhibits read");
        for exhibit in EXHIBITS {
            let lines = text.lines().filter(|line| line.trim_start().starts_with(&format!("{} ", exhibit.name)));
            assert_eq!(lines.count(), 1, "{}\n{text}", exhibit.name);
        }
    }
}
