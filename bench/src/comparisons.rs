//! `cargo xtask compare-validate`: checks the stated confidence level of `landspeed compare` on simulated runs
//! with and without a difference.

use std::fmt::Write as _;

use clap::Args;
use landspeed_stats::{Contrast, SplitMix64, autocorrelation};

/// Confidence level of every interval.
const LEVEL: f64 = 0.95;
/// Runs per group.
const RUNS: [usize; 6] = [6, 8, 10, 15, 30, 60];
/// True relative differences between the groups.
const EFFECTS: [f64; 3] = [0.0, 0.03, 0.10];

/// Options of `compare-validate`.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Simulated comparisons per line.
    #[arg(long, default_value_t = 2000)]
    comparisons: u64,
    /// Standard deviation of a run's rate, relative.
    #[arg(long, default_value_t = 0.05)]
    deviation: f64,
    /// Correlation between successive runs.
    #[arg(long, default_value_t = 0.5)]
    correlation: f64,
    /// Share of runs that stall; they lose 0 to 60 % of their rate.
    #[arg(long, default_value_t = 0.05)]
    stalls: f64,
    /// Standard deviation of the drift from one run to the next, relative.
    #[arg(long, default_value_t = 0.02)]
    drift: f64,
    /// Seed of the simulation.
    #[arg(long, default_value_t = 18)]
    seed: u64,
}

/// Order in which runs are made, and how they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Design {
    /// Blocks of two in random order, compared by block, as in a sweep.
    Blocks,
    /// `Blocks` with drift.
    BlocksWithDrift,
    /// All runs of one group, then all of the other.
    Sequential,
    /// Independent runs, as with lab seeds.
    Independent,
    /// `Sequential` with drift; no interval covers this correctly.
    SequentialWithDrift,
}

impl Design {
    const ALL: [Self; 5] =
        [Self::Blocks, Self::BlocksWithDrift, Self::Independent, Self::Sequential, Self::SequentialWithDrift];

    fn title(self) -> &'static str {
        match self {
            Self::Blocks => "paired by block, correlated in time",
            Self::BlocksWithDrift => "paired by block, correlated in time, with drift",
            Self::Independent => "unpaired, independent runs",
            Self::Sequential => "unpaired, all A then all B, correlated in time",
            Self::SequentialWithDrift => "unpaired, all A then all B, with drift",
        }
    }
}

/// Counts for one line of the table.
#[derive(Debug, Clone, Default)]
struct Line {
    covered: u64,
    detected: [u64; EFFECTS.len()],
    /// Comparisons in which the true change was the smallest detectable one and was detected.
    at_limit: u64,
    half_widths: Vec<f64>,
}

/// Prints the table.
pub fn run(options: &Options) {
    println!("{}", table(options));
}

fn table(options: &Options) -> String {
    let mut text = format!(
        "{} comparisons a line; level {} %; runs vary by {} %, {} % of them stall, each correlated with the next by {}; drift {} %\n\
         a run; seed {}. Expected: false alarms 5 %, coverage 95 % (± {:.1} %, two standard errors), and 80 % at the limit.\n\n",
        options.comparisons,
        LEVEL * 100.0,
        options.deviation * 100.0,
        options.stalls * 100.0,
        options.correlation,
        options.drift * 100.0,
        options.seed,
        200.0 * (0.05 * 0.95 / options.comparisons as f64).sqrt(),
    );
    for design in Design::ALL {
        let _ = writeln!(text, "**{}**\n", design.title());
        text +=
            "| runs of each | false alarms | coverage | 3 % found | 10 % found | found at the limit | interval |\n";
        text += "|---:|---:|---:|---:|---:|---:|---:|\n";
        let lines: Vec<(usize, Line)> = std::thread::scope(|scope| {
            let handles = RUNS.map(|runs| (runs, scope.spawn(move || line(design, runs, options))));
            handles.into_iter().map(|(runs, handle)| (runs, handle.join().expect("a line is computed"))).collect()
        });
        for (runs, mut line) in lines {
            line.half_widths.sort_by(f64::total_cmp);
            let share = |count: u64| 100.0 * count as f64 / options.comparisons as f64;
            let _ = writeln!(
                text,
                "| {runs} | {:.1} % | {:.1} % | {:.0} % | {:.0} % | {:.0} % | ±{:.1} % |",
                share(line.detected[0]),
                share(line.covered),
                share(line.detected[1]),
                share(line.detected[2]),
                share(line.at_limit),
                line.half_widths[line.half_widths.len() / 2] * 100.0,
            );
        }
        text.push('\n');
    }
    text
}

fn line(design: Design, runs: usize, options: &Options) -> Line {
    let mut random = SplitMix64::new(options.seed.wrapping_mul(1000) + runs as u64 * 10 + design as u64);
    let mut line = Line::default();
    // Detection limit: the median over 200 experiments.
    let limits: Vec<f64> = (0..200)
        .filter_map(|seed| contrast(design, &simulated(design, runs, options, &mut random), seed).detectable(LEVEL))
        .collect();
    let limit = landspeed_stats::median(&limits).unwrap_or(f64::NAN);
    for seed in 0..options.comparisons {
        let contrast = contrast(design, &simulated(design, runs, options, &mut random), seed);
        let Ok((low, high)) = contrast.interval(LEVEL) else { continue };
        // A true change multiplies every run of B, so it shifts the interval on the logarithmic scale.
        let excludes = |effect: f64| low + effect > 0.0 || high + effect < 0.0;
        line.covered += u64::from(!excludes(0.0));
        for (count, effect) in line.detected.iter_mut().zip(EFFECTS) {
            *count += u64::from(excludes(-f64::ln_1p(effect)));
        }
        line.at_limit += u64::from(excludes(limit));
        line.half_widths.push((high - low) / 2.0);
    }
    line
}

/// Returns the logarithms of the rates of A and B, with no true difference between them.
fn simulated(design: Design, runs: usize, options: &Options, random: &mut SplitMix64) -> (Vec<f64>, Vec<f64>) {
    let correlation = if design == Design::Independent { 0.0 } else { options.correlation };
    let drifts = matches!(design, Design::BlocksWithDrift | Design::SequentialWithDrift);
    let (mut level, mut noise) = (0.0, normal(random));
    let mut next = || {
        noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * normal(random);
        level += if drifts { options.drift * normal(random) } else { 0.0 };
        let stall = if random.random_bool(options.stalls) { f64::ln_1p(-0.6 * random.unit()) } else { 0.0 };
        level + options.deviation * noise + stall
    };
    let series: Vec<f64> = (0..2 * runs).map(|_| next()).collect();
    match design {
        Design::Blocks | Design::BlocksWithDrift => {
            let turns = series.chunks_exact(2);
            turns.map(|pair| if random.random_bool(0.5) { (pair[0], pair[1]) } else { (pair[1], pair[0]) }).unzip()
        }
        _ => (series[..runs].to_vec(), series[runs..].to_vec()),
    }
}

/// Compares the groups as `landspeed compare` does.
fn contrast(design: Design, (a, b): &(Vec<f64>, Vec<f64>), seed: u64) -> Contrast {
    let rates = |logarithms: &[f64]| logarithms.iter().map(|value| value.exp()).collect::<Vec<f64>>();
    let contrast = match design {
        Design::Blocks | Design::BlocksWithDrift => {
            Contrast::of_pairs(&a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<f64>>())
        }
        Design::Independent => Contrast::of_groups(&rates(a), &rates(b), 0.0, seed),
        Design::Sequential | Design::SequentialWithDrift => {
            Contrast::of_groups(&rates(a), &rates(b), autocorrelation([a, b]), seed)
        }
    };
    contrast.expect("the groups have values")
}

/// A standard normal deviate (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
