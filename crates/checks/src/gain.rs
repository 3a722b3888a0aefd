//! Measured effects of recommendations: figures from `cargo xtask gains`, and the conclusions they support.

use std::fmt::Write as _;
use std::sync::LazyLock;

use landspeed_units::{BitRate, Nanos};
use serde::{Deserialize, Serialize};

/// Smallest ratio of two medians that counts as a difference. Smaller ones are not noticeable on a real path,
/// where two runs differ by more.
pub const NOTICEABLE_FACTOR: f64 = 1.05;

/// Minimum number of runs of a row: the range of fewer is meaningless.
pub const RUNS: usize = 3;

/// One setting, tried with the value that a check finds and the one it recommends; all else stays the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// Codes of the checks that recommend it.
    pub codes: Vec<String>,
    /// Varied setting, as shown to readers.
    pub setting: String,
    /// The scenario's file in `docs/checks/lab`.
    pub scenario: String,
    /// Path and traffic, a sentence.
    pub path: String,
    /// Metric of the rows.
    pub figure: Figure,
    /// Kernel version of the measurement.
    pub kernel: String,
    /// Values: the first is what the check finds, the last what it recommends.
    pub rows: Vec<Row>,
    /// Verdict that `because` explains; must equal the verdict of the figures.
    pub expected: Verdict,
    /// Explanation of the figures, and their limits.
    pub because: String,
}

/// One value of a setting, and its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Value, as shown to readers.
    pub value: String,
    /// Arguments of `landspeed lab run --set`.
    pub set: Vec<String>,
    /// One run for each seed.
    pub runs: Vec<Run>,
}

/// Result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Seed of the scenario.
    pub seed: u64,
    /// Measured value, bits/s or nanoseconds.
    pub figure: u64,
    /// Retransmitted segments, if TCP counted them for the flow.
    pub retransmits: Option<u64>,
    /// Whether data was still undelivered at the run's timeout: the figure covers the data received until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stuck: bool,
}

/// Metric of a gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Goodput of the receiver, bits/s: more is better.
    Goodput,
    /// Median request time, nanoseconds: less is better.
    Median,
    /// 99th percentile of the request time, nanoseconds: less is better.
    P99,
}

/// Conclusion about the recommended value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than [`NOTICEABLE_FACTOR`], and every run is better than every run with the old value.
    Helps,
    /// Worse by more than [`NOTICEABLE_FACTOR`], and every run is worse.
    Costs,
    /// The medians differ by at most [`NOTICEABLE_FACTOR`].
    Same,
    /// The medians differ by more, but the ranges of the runs overlap.
    Unclear,
}

/// Returns all measured gains.
pub fn gains() -> &'static [Gain] {
    static GAINS: LazyLock<Vec<Gain>> =
        LazyLock::new(|| serde_json::from_str(include_str!("../gains.json")).expect("a test reads gains.json"));
    &GAINS
}

impl Figure {
    /// Returns the name used in tables.
    fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Median => "time of a request",
            Self::P99 => "99th percentile of a request",
        }
    }

    /// Formats a value with its unit.
    fn text(self, value: u64) -> String {
        match self {
            Self::Goodput => BitRate::from_bps(value).to_string(),
            Self::Median | Self::P99 => Nanos::new(value).to_string(),
        }
    }
}

impl Row {
    /// Returns minimum, median and maximum.
    pub fn spread(&self) -> [u64; 3] {
        spread(self.runs.iter().map(|run| run.figure)).unwrap_or_default()
    }

    fn retransmits(&self) -> Option<u64> {
        Some(spread(self.runs.iter().filter_map(|run| run.retransmits))?[1])
    }
}

fn spread(values: impl Iterator<Item = u64>) -> Option<[u64; 3]> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    Some([*values.first()?, values[values.len() / 2], *values.last()?])
}

impl Gain {
    /// Returns the improvement of the median as a ratio, above 1 if the recommended value is better; infinite
    /// if the divisor is 0.
    pub fn factor(&self) -> f64 {
        let [before, after] = self.ends().map(|row| row.spread()[1]);
        let (better, worse) = if self.figure == Figure::Goodput { (after, before) } else { (before, after) };
        if better == worse { 1.0 } else { better as f64 / worse as f64 }
    }

    /// Returns the verdict of the figures.
    pub fn verdict(&self) -> Verdict {
        let [[low, _, high], [after_low, _, after_high]] = self.ends().map(Row::spread);
        let apart = after_low > high || low > after_high;
        match self.factor() {
            factor if factor > NOTICEABLE_FACTOR && apart => Verdict::Helps,
            factor if factor < 1.0 / NOTICEABLE_FACTOR && apart => Verdict::Costs,
            factor if (1.0 / NOTICEABLE_FACTOR..=NOTICEABLE_FACTOR).contains(&factor) => Verdict::Same,
            _ => Verdict::Unclear,
        }
    }

    /// Returns both medians as text, and their difference as text.
    fn both(&self) -> (String, String) {
        let [before, after] = self.ends();
        let text = |row: &Row| format!("{} with {}", self.figure.text(row.spread()[1]), row.value);
        let factor = self.factor();
        let times = match factor.max(1.0 / factor) {
            factor if !factor.is_finite() => String::new(),
            factor if factor >= 10.0 => format!(", a factor of {factor:.0}"),
            factor if factor >= 2.0 => format!(", a factor of {factor:.1}"),
            // A decrease is stated as "… % less", an increase without a sign.
            _ if factor < 1.0 => format!(", {:.0} % less", (1.0 - factor) * 100.0),
            _ => format!(", {:.0} %", (factor - 1.0) * 100.0),
        };
        (format!("{}, {}", text(before), text(after)), times)
    }

    /// Returns a one-line summary for a finding.
    pub(crate) fn headline(&self) -> String {
        let (both, times) = self.both();
        match self.verdict() {
            Verdict::Helps => format!("In the lab {both}{times}."),
            Verdict::Costs => format!("Worse in the lab: {both}{times}."),
            Verdict::Same => format!("No measurable effect in the lab: {both}."),
            Verdict::Unclear => format!("No clear effect in the lab: {both}; the runs overlap."),
        }
    }

    /// Returns the verdict as a sentence with its figures.
    pub fn verdict_sentence(&self) -> String {
        let (both, times) = self.both();
        match self.verdict() {
            Verdict::Helps => format!("Better on this path: {both}{times}."),
            Verdict::Costs => format!("Worse on this path: {both}{times}."),
            Verdict::Same => format!("No measurable effect on this path: {both}."),
            Verdict::Unclear => format!("No clear effect on this path: {both}; the runs overlap."),
        }
    }

    /// Returns the rows of the value that the check finds and of the one it recommends.
    fn ends(&self) -> [&Row; 2] {
        let (first, last) = (self.rows.first(), self.rows.last());
        [first.expect("a gain has rows"), last.expect("a gain has rows")]
    }

    /// Returns the table and its verdict, Markdown.
    pub(crate) fn section(&self) -> String {
        let runs = self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
        let mut text = format!("**{}** {}\n\n", self.verdict_sentence(), self.because);
        let _ = writeln!(text, "{} The lab's Linux {}, {runs} seeds each:\n", self.path, self.kernel);
        let counted = self.rows.iter().any(|row| row.retransmits().is_some());
        let (more, line) = if counted { (" retransmits |", "---|") } else { ("", "") };
        let _ = writeln!(
            text,
            "| {} | {}, median | range |{more}\n|---|---|---|{line}",
            self.setting,
            self.figure.name()
        );
        for row in &self.rows {
            let [low, middle, high] = row.spread().map(|value| self.figure.text(value));
            let stuck = if row.runs.iter().any(|run| run.stuck) { " (stuck at the end)" } else { "" };
            let _ = write!(text, "| {} | {middle}{stuck} | {low} to {high} |", row.value);
            match row.retransmits() {
                Some(count) => _ = writeln!(text, " {count} |"),
                None if counted => text.push_str(" - |\n"),
                None => text.push('\n'),
            }
        }
        let set = self.ends()[1].set.iter().fold(String::new(), |line, set| format!("{line} --set '{set}'"));
        let _ =
            writeln!(text, "\n```console\n$ landspeed lab run docs/checks/lab/{}{set} --seed 1\n```", self.scenario);
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::registry;

    fn gain(figure: Figure, rows: [[u64; 3]; 2]) -> Gain {
        let row = |figures: [u64; 3]| Row {
            value: "it".into(),
            set: Vec::new(),
            runs: figures.map(|figure| Run { seed: 1, figure, retransmits: None, stuck: false }).to_vec(),
        };
        Gain {
            codes: vec!["TCP-001".into()],
            setting: "net.ipv4.tcp_sack".into(),
            scenario: "path.toml".into(),
            path: String::new(),
            figure,
            kernel: String::new(),
            rows: rows.map(row).to_vec(),
            expected: Verdict::Same,
            because: String::new(),
        }
    }

    #[test]
    fn gains_are_claimed_only_above_five_per_cent() {
        assert_eq!(gain(Figure::Goodput, [[1000; 3], [1050; 3]]).verdict(), Verdict::Same);
        assert_eq!(gain(Figure::Goodput, [[1000; 3], [1051; 3]]).verdict(), Verdict::Helps);
        assert_eq!(gain(Figure::Goodput, [[1051; 3], [1000; 3]]).verdict(), Verdict::Costs);
    }

    #[test]
    fn less_is_better_for_times() {
        assert_eq!(gain(Figure::Median, [[200; 3], [50; 3]]).verdict(), Verdict::Helps);
        assert_eq!(gain(Figure::P99, [[50; 3], [200; 3]]).verdict(), Verdict::Costs);
    }

    #[test]
    fn overlapping_runs_are_unclear() {
        assert_eq!(gain(Figure::Goodput, [[100, 200, 500], [400, 900, 950]]).verdict(), Verdict::Unclear);
        assert_eq!(gain(Figure::Goodput, [[100, 200, 400], [400, 900, 950]]).verdict(), Verdict::Unclear);
        assert_eq!(gain(Figure::Goodput, [[100, 200, 399], [400, 900, 950]]).verdict(), Verdict::Helps);
    }

    #[test]
    fn a_zero_baseline_gives_no_ratio() {
        let stuck = gain(Figure::Goodput, [[0; 3], [10; 3]]);
        assert_eq!((stuck.verdict(), stuck.factor()), (Verdict::Helps, f64::INFINITY));
        assert_eq!(gain(Figure::Goodput, [[0; 3], [0; 3]]).verdict(), Verdict::Same);
        assert_eq!(gain(Figure::Goodput, [[10; 3], [0; 3]]).verdict(), Verdict::Costs);
    }

    #[test]
    fn every_gain_names_an_existing_check_and_scenario() {
        let known: BTreeSet<_> = registry::all().map(|check| check.code).collect();
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks/lab");
        assert!(!gains().is_empty());
        for gain in gains() {
            assert!(!gain.codes.is_empty(), "{gain:?}");
            assert!(gain.codes.iter().all(|code| known.contains(code.as_str())), "{:?}", gain.codes);
            assert!(scenarios.join(&gain.scenario).is_file(), "{:?}: no {}", gain.codes, gain.scenario);
        }
    }

    #[test]
    fn all_values_of_a_gain_share_the_seeds() {
        for gain in gains() {
            assert!(gain.rows.len() >= 2 && !gain.kernel.is_empty(), "{gain:?}");
            let seeds = |row: &Row| row.runs.iter().map(|run| run.seed).collect::<BTreeSet<_>>();
            let first = seeds(&gain.rows[0]);
            assert!(first.len() >= RUNS, "{:?} {}", gain.codes, gain.setting);
            assert!(
                gain.rows.iter().all(|row| seeds(row) == first && row.runs.len() == first.len()),
                "{:?}",
                gain.codes
            );
            let sets: BTreeSet<_> = gain.rows.iter().map(|row| &row.set).collect();
            assert_eq!(sets.len(), gain.rows.len(), "{:?}: two values are the same", gain.codes);
        }
    }

    #[test]
    fn explanations_match_the_measured_gains() {
        for gain in gains() {
            assert_eq!(
                gain.verdict(),
                gain.expected,
                "{:?} {}: {}",
                gain.codes,
                gain.setting,
                gain.verdict_sentence()
            );
            assert!(gain.because.ends_with('.'), "{:?}: {}", gain.codes, gain.because);
        }
    }
}
