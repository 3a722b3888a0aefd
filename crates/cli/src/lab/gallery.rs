//! `landspeed lab gallery`: the scenarios that come with the program.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use landspeed_lab::gallery::{self, EXHIBITS, Exhibit};

use super::run;
use crate::Outcome;
use crate::output::Sink;

const EXAMPLES: &str = "\
Examples:
  landspeed lab gallery                              what there is
  landspeed lab gallery show buffer-size > mine.toml  an exhibit as a scenario of one's own
  landspeed lab gallery run nuttcp-burst             runs it; writes nuttcp-burst.json and nuttcp-burst.html
  landspeed lab gallery run --all --yes              all of them, one after the other";

/// Options of `lab gallery`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the exhibits: what each shows, how many cells it has, what it takes
    List,
    /// Print an exhibit's scenario
    Show {
        /// The exhibit
        #[arg(value_name = "EXHIBIT")]
        name: String,
    },
    /// Run an exhibit; its document and report go into this directory unless told otherwise
    Run(Box<RunArgs>),
}

/// Options of `lab gallery run`.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The exhibit
    #[arg(value_name = "EXHIBIT", required_unless_present = "all")]
    name: Option<String>,
    /// Run all of them, one after the other
    #[arg(long, conflicts_with_all = ["name", "json", "report", "set", "pcap"])]
    all: bool,
    #[command(flatten)]
    options: run::Options,
}

/// Runs the subcommand; without one it lists.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        None | Some(Command::List) => {
            Sink::Stdout.write(list()?.as_bytes())?;
            Ok(Outcome::Clean)
        }
        Some(Command::Show { name }) => {
            let exhibit = gallery::find(name).map_err(|message| anyhow!(message))?;
            Sink::Stdout.write(exhibit.text.as_bytes())?;
            Ok(Outcome::Clean)
        }
        Some(Command::Run(args)) => match &args.name {
            Some(name) => one(gallery::find(name).map_err(|message| anyhow!(message))?, &args.options),
            None => all(&args.options),
        },
    }
}

fn one(exhibit: &Exhibit, options: &run::Options) -> anyhow::Result<Outcome> {
    let options = run::Options {
        json: options.json.clone().or_else(|| Some(Sink::File(format!("{}.json", exhibit.name).into()))),
        report: options.report.clone().or_else(|| Some(PathBuf::from(format!("{}.html", exhibit.name)))),
        ..options.clone()
    };
    run::run(exhibit.name, exhibit.text, &options)
}

/// One exhibit that cannot be run does not keep the others from it.
fn all(options: &run::Options) -> anyhow::Result<Outcome> {
    let mut worst = Outcome::Clean;
    let mut failed = Vec::new();
    for exhibit in EXHIBITS {
        if landspeed_sys::process::catch_interrupts().load(std::sync::atomic::Ordering::Relaxed) {
            failed.push(format!("{} and what follows it: interrupted", exhibit.name));
            break;
        }
        if !options.quiet {
            eprintln!("{}: {}", exhibit.name, exhibit.title);
        }
        match one(exhibit, options) {
            Ok(outcome) => worst = if outcome as u8 > worst as u8 { outcome } else { worst },
            Err(error) => failed.push(format!("{}: {error:#}", exhibit.name)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(worst)
}

fn list() -> anyhow::Result<String> {
    let width = EXHIBITS.iter().map(|exhibit| exhibit.name.len()).max().unwrap_or(0);
    let mut text = format!("  {:width$}  CELLS   TAKES  SHOWS\n", "EXHIBIT");
    for exhibit in EXHIBITS {
        let (cells, wall_s) = gallery::takes(exhibit)?;
        let takes = run::duration(wall_s / 2.0);
        let _ = writeln!(text, "  {:width$}  {cells:>5}  {takes:>6}  {}", exhibit.name, exhibit.title);
    }
    let _ = writeln!(
        text,
        "\n  Times are expected ones, for two cells at once. `landspeed lab gallery run NAME` runs one, `show NAME` prints it\n  \
         for `landspeed lab run` to take it changed."
    );
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
