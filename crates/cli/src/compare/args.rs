//! Options of `compare`.

use landspeed_compare::Condition;
use landspeed_model::Metric;

use crate::output::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  landspeed compare before/ after/                      runs in two directories
  landspeed compare bbr.sweep                           the levels of a sweep's first factor
  landspeed compare s.json:cc=cubic s.json:cc=bbr       two levels of a sweep, paired by block
  landspeed compare old=a1.json,a2.json new=b1.json,b2.json
  landspeed compare archive:tag=before archive:tag=after --factor kernel_release
  landspeed compare main/ change/ --fail-if 'goodput worse 3%' --fail-if 'cpu worse 5%'

Exit status: 0 compared, 1 a condition of --fail-if holds, 2 failure.";

/// Options of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Groups of results, the first is the baseline: FILE, FILE,FILE, 'runs/*.json', DIRECTORY, SWEEP.json:FACTOR=LEVEL,
    /// archive:QUERY; NAME=GROUP names one. A single sweep: the levels of its first factor
    #[arg(value_name = "GROUP", required = true)]
    pub groups: Vec<String>,
    /// What the groups are meant to differ in: a setting (congestion) or a fact of the hosts (kernel_release, client.nic).
    /// Other differences are reported [default: the only setting that differs]
    #[arg(long = "factor", value_name = "KEY")]
    pub factors: Vec<String>,
    /// Metrics, such as goodput,cpu; goodput brings retransmits [default: rates, retransmits, loss, latency, CPU]
    #[arg(long = "metric", value_name = "NAME", value_delimiter = ',', value_parser = metric)]
    pub metrics: Vec<Metric>,
    /// Confidence of all verdicts together (Holm)
    #[arg(long, value_name = "PERCENT", value_parser = level, default_value = "95%")]
    pub level: f64,
    /// Exit with 1 if the interval shows it: METRIC|any better|worse|different [PERCENT]; repeat for more
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<Condition>,
    /// Seed of the resampling
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub output: OutputArgs,
}

fn metric(text: &str) -> Result<Metric, String> {
    Metric::find(text).ok_or_else(|| {
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("no metric has this name; there is: {}", names.join(", "))
    })
}

/// Parses a confidence level: `95%` or `0.95`.
fn level(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|level| (0.5..=0.9999).contains(level))
        .ok_or_else(|| "a level is from 50% to 99.99%, such as 95%".to_owned())
}
