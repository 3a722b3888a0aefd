//! `landspeed lab gallery`: the scenarios included in landspeed.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use landspeed_lab::gallery::{self, EXHIBITS, Exhibit};

use super::run;
use crate::CommandOutcome;
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
    /// List the exhibits: cells, estimated run time, and how many reported figures they reproduce
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
    #[arg(long, conflicts_with_all = ["name", "json", "report", "out", "set", "pcap"])]
    all: bool,
    #[command(flatten)]
    options: run::Options,
}

/// Runs the subcommand; lists the exhibits if none is given.
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
    let mut options = options.clone();
    let output = &mut options.output;
    output.json.get_or_insert_with(|| Sink::File(format!("{}.json", exhibit.name).into()));
    output.report.get_or_insert_with(|| PathBuf::from(format!("{}.html", exhibit.name)));
    run::run(exhibit.name, exhibit.text, &options, false)
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
        if !options.output.quiet {
            errln!("{}: {}", exhibit.name, exhibit.title);
        }
        match run_one(exhibit, options) {
            Ok(outcome) => worst = worst.max(outcome),
            Err(error) => failed.push(format!("{}: {error:#}", exhibit.name)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(worst)
}

fn list() -> anyhow::Result<String> {
    let results = gallery::measured();
    let width = EXHIBITS.iter().map(|exhibit| exhibit.name.len()).max().unwrap_or(0);
    let mut text = format!("  {:width$}  CELLS    TIME  FIGURES  CLAIMS  EXPERIMENT\n", "EXHIBIT");
    let (mut figures, mut claims) = ((0, 0), (0, 0));
    for exhibit in EXHIBITS {
        let (cells, wall_s) = gallery::estimate_cost(exhibit)?;
        let result = results.iter().find(|result| result.exhibit == exhibit.name);
        let of_figures = result.map_or((0, 0), |result| gallery::reproduced(&result.figures));
        let of_claims = result.map_or((0, 0), |result| gallery::met(&result.criteria));
        figures = (figures.0 + of_figures.0, figures.1 + of_figures.1);
        claims = (claims.0 + of_claims.0, claims.1 + of_claims.1);
        let _ = writeln!(
            text,
            "  {:width$}  {cells:>5}  {:>6}  {:>7}  {:>6}  {}",
            exhibit.name,
            brief(wall_s / 2.0),
            share(of_figures),
            share(of_claims),
            exhibit.title
        );
    }
    let _ = writeln!(
        text,
        "\n  TIME is an estimate, for two cells at once. FIGURES are those within 10 % of\n  the reported value, of all that a \
         source prints: {} of {}. CLAIMS are\n  statements without a number, as limits: {} of {} are met.\n  Run one: landspeed \
         lab gallery run EXHIBIT",
        figures.0, figures.1, claims.0, claims.1
    );
    Ok(text)
}

/// Formats an estimate in seconds or whole minutes.
fn brief(seconds: f64) -> String {
    if seconds < 59.5 { format!("{seconds:.0} s") } else { format!("{:.0} min", (seconds / 60.0).ceil()) }
}

/// Formats `2/3`; `-` if there is none.
fn share((good, all): (usize, usize)) -> String {
    if all > 0 { format!("{good}/{all}") } else { "-".to_owned() }
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
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_list_counts_the_figures_of_the_results() {
        let text = list().expect("the exhibits read");
        for result in gallery::measured() {
            let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{} ", result.exhibit)));
            let counts = format!(
                "  {}  {:>6}  ",
                share(gallery::reproduced(&result.figures)),
                share(gallery::met(&result.criteria))
            );
            assert!(line.is_some_and(|line| line.contains(&counts)), "{}: no {counts}\n{text}", result.exhibit);
        }
    }

    #[test]
    fn reference_theory_matches_calc_formulas() {
        let exhibit = gallery::find("loss-rtt").expect("an exhibit");
        let cells = landspeed_lab::scenario::read(exhibit.text).expect("it reads");
        let reference = cells[0].scenario.reference.clone().expect("a reference");
        assert!(reference.figures.len() >= 8);
        for figure in &reference.figures {
            let delay = figure.cell["one-way delay"].as_str().and_then(|text| text.strip_suffix("ms"));
            let rtt_s = 2.0 * delay.and_then(|ms| ms.parse::<f64>().ok()).expect("milliseconds") / 1e3;
            let (mss, loss) = (8948.0, 1.0 / 21_739.0);
            let expected_bps = if figure.cell["congestion"] == "reno" {
                landspeed_calc::mathis_rate_bps(mss, rtt_s, loss)
            } else {
                landspeed_calc::window_rate_bps(landspeed_calc::cubic_window_segments(rtt_s, loss), mss, rtt_s)
            };
            let value_bps = figure.value * figure.unit.scale();
            assert!((value_bps / expected_bps - 1.0).abs() < 0.005, "{}: {expected_bps}", figure.name);
        }
    }
}
