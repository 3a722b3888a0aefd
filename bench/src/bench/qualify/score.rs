//! Verdicts against TCP: false passes and false fails, costs, and which tests decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use landspeed_model::{QualifyDocument, QualifyResult, QualifyWeight};

use super::results::Kept;
use super::sections::{CONGESTION, Section};

/// Share of the target data rate that the mean of the TCP flows must reach.
const REACHED: f64 = 0.9;
/// Quantile of the normal distribution for 95 % intervals.
const Z: f64 = 1.959_964;

/// Half of the sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Those that may set constants.
    Training,
    /// Those that may not.
    HeldOut,
}

/// A section with its results.
pub struct Case {
    section: Section,
    /// Suite for each congestion control, in the order of [`CONGESTION`]; `None` without a valid result.
    suites: Vec<Option<Suite>>,
    /// Mean goodput of the flows with each congestion control, bits/s; `None` without a valid result.
    goodput_bps: Vec<Option<f64>>,
    /// Time of one TCP flow, seconds.
    tcp_s: f64,
}

/// Results of the tests of a section.
struct Suite {
    document: QualifyDocument,
    virtual_s: f64,
}

impl Case {
    /// Reads the results of a section's scenarios: the suites in the order of [`CONGESTION`], and TCP.
    pub fn new(section: &Section, suites: [Option<Kept>; CONGESTION.len()], tcp: Option<Kept>) -> Self {
        let tcp = tcp.filter(|kept| kept.is_valid);
        let suite = |kept: Option<Kept>| {
            let kept = kept.filter(|kept| kept.is_valid)?;
            Some(Suite { document: kept.qualify?, virtual_s: kept.virtual_s })
        };
        let mean = |congestion: &str| {
            let flows = tcp
                .as_ref()?
                .flows
                .iter()
                .filter(|flow| flow.name.strip_prefix(congestion).is_some_and(|rest| rest.starts_with('-')));
            let goodputs: Option<Vec<f64>> = flows.map(|flow| flow.goodput_bps).collect();
            let goodputs = goodputs.filter(|goodputs| !goodputs.is_empty())?;
            Some(goodputs.iter().sum::<f64>() / goodputs.len() as f64)
        };
        let flows = tcp.as_ref().map_or(1, |tcp| tcp.flows.iter().filter(|flow| flow.name != "cross").count().max(1));
        Self {
            section: section.clone(),
            suites: suites.into_iter().map(suite).collect(),
            goodput_bps: CONGESTION.iter().map(|(name, _)| mean(name)).collect(),
            tcp_s: tcp.as_ref().map_or(0.0, |tcp| tcp.virtual_s / flows as f64),
        }
    }

    fn half(&self) -> Half {
        if self.section.is_training() { Half::Training } else { Half::HeldOut }
    }

    /// Whether TCP with congestion control `at` reaches the target; `None` if unknown.
    fn reaches(&self, at: usize) -> Option<bool> {
        Some(self.goodput_bps[at]? >= REACHED * self.section.target_bps())
    }

    /// Whether all results of the section are there.
    fn is_complete(&self) -> bool {
        let mut expected = (0..CONGESTION.len()).filter(|at| self.section.runs(CONGESTION[*at].1));
        expected.all(|at| self.outcome(at, at).is_some())
    }

    /// Verdict of the model `model` and whether TCP with congestion control `tcp` reaches the target.
    fn outcome(&self, model: usize, tcp: usize) -> Option<(QualifyResult, bool)> {
        Some((self.suites[model].as_ref()?.document.verdict, self.reaches(tcp)?))
    }
}

/// Number of sections by truth and verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    reach: usize,
    miss: usize,
    false_pass: usize,
    false_fail: usize,
    undecided: usize,
}

impl Tally {
    fn of(outcomes: impl Iterator<Item = (QualifyResult, bool)>) -> Self {
        let mut tally = Self::default();
        for (verdict, reaches) in outcomes {
            *if reaches { &mut tally.reach } else { &mut tally.miss } += 1;
            match (verdict, reaches) {
                (QualifyResult::Pass, false) => tally.false_pass += 1,
                (QualifyResult::Fail, true) => tally.false_fail += 1,
                (QualifyResult::Inconclusive, _) => tally.undecided += 1,
                _ => {}
            }
        }
        tally
    }

    fn row(self) -> String {
        let Self { reach, miss, false_pass, false_fail, undecided } = self;
        format!(
            "{} | {reach} | {} | {} | {undecided}",
            reach + miss,
            share(false_pass, miss),
            share(false_fail, reach)
        )
    }
}

const HEADER: &str = "sections | reach the target | false passes | false fails | inconclusive";
const RULE: &str = "--:|--:|--:|--:|--:";

/// Formats a share with Wilson's 95 % interval.
fn share(count: usize, total: usize) -> String {
    let Some((low, high)) = wilson(count, total) else { return "–".to_owned() };
    format!("{count} of {total}: {:.1}% ({:.1}–{:.1})", percent(count, total), low * 100.0, high * 100.0)
}

fn percent(count: usize, total: usize) -> f64 {
    count as f64 * 100.0 / total as f64
}

/// Wilson's score interval of a proportion (Wilson 1927); `None` without trials.
fn wilson(count: usize, total: usize) -> Option<(f64, f64)> {
    if total == 0 {
        return None;
    }
    let (n, p) = (total as f64, count as f64 / total as f64);
    let centre = p + Z * Z / (2.0 * n);
    let width = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Some((((centre - width) / scale).max(0.0), ((centre + width) / scale).min(1.0)))
}

/// Formats the table of one half by congestion control: verdicts of the matching model, and of Reno's.
pub fn by_congestion(cases: &[Case], half: Half) -> String {
    let name = if half == Half::Training { "Training half" } else { "Held-out half" };
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.half() == half).collect();
    format!("{name}:\n\n{}", congestion_rows(&chosen))
}

fn congestion_rows(cases: &[&Case]) -> String {
    let mut text = format!("| TCP | verdict for | {HEADER} |\n|---|---|{RULE}|\n");
    let reno = CONGESTION.iter().position(|(name, _)| *name == "reno").unwrap_or(0);
    for (tcp, (name, _)) in CONGESTION.iter().enumerate() {
        let models: BTreeSet<usize> = [tcp, reno].into();
        for model in models {
            let tally = Tally::of(cases.iter().filter_map(|case| case.outcome(model, tcp)));
            let _ = writeln!(text, "| {name} | {} | {} |", CONGESTION[model].0, tally.row());
        }
    }
    text
}

/// Formats all tables over both halves.
pub fn tables(cases: &[Case]) -> String {
    let all: Vec<&Case> = cases.iter().collect();
    let complete = cases.iter().filter(|case| case.is_complete()).count();
    let mut text = format!("{complete} of {} sections have all results.\n\n{}\n", cases.len(), congestion_rows(&all));
    let _ = writeln!(text, "| target | TCP | {HEADER} |\n|---|---|{RULE}|");
    let targets: BTreeSet<(u32, u32)> = cases.iter().map(|case| case.section.target).collect();
    for target in targets {
        for (at, (name, _)) in CONGESTION.iter().enumerate() {
            let chosen = cases.iter().filter(|case| case.section.target == target);
            let tally = Tally::of(chosen.filter_map(|case| case.outcome(at, at)));
            if tally != Tally::default() {
                let _ = writeln!(text, "| {} Mb/s × {} ms | {name} | {} |", target.0, target.1, tally.row());
            }
        }
    }
    let _ = writeln!(text, "\n| section | TCP | {HEADER} |\n|---|---|{RULE}|");
    for family in super::sections::FAMILIES {
        for (at, (name, _)) in CONGESTION.iter().enumerate() {
            let chosen = cases.iter().filter(|case| case.section.family == family);
            let tally = Tally::of(chosen.filter_map(|case| case.outcome(at, at)));
            let _ = writeln!(text, "| {family} | {name} | {} |", tally.row());
        }
    }
    let _ = write!(text, "\n{}\n{}", decisions(cases), costs(cases));
    text
}

/// Results of a test over all suites.
#[derive(Debug, Clone, Copy, Default)]
struct TestTally {
    pass: usize,
    fail: usize,
    undecided: usize,
    /// Failures that do not count in the verdict.
    excused: usize,
    /// Failures of no other test that counts.
    alone: usize,
    /// Those of them where TCP reaches the target.
    wrong: usize,
}

/// Formats how often each test decides, and how often its failure is the only one of its suite.
fn decisions(cases: &[Case]) -> String {
    let mut counts: BTreeMap<String, TestTally> = BTreeMap::new();
    let suites = cases.iter().flat_map(|case| {
        case.suites.iter().enumerate().filter_map(move |(at, suite)| Some((case, at, suite.as_ref()?)))
    });
    for (case, at, suite) in suites {
        let counted = |weight: QualifyWeight| weight != QualifyWeight::Informative;
        let tests = &suite.document.tests;
        let failed: Vec<&str> = tests
            .iter()
            .filter(|test| counted(test.weight) && test.result == QualifyResult::Fail)
            .map(|test| test.name.as_str())
            .collect();
        for test in tests {
            let entry = counts.entry(test.name.clone()).or_default();
            *match test.result {
                QualifyResult::Pass => &mut entry.pass,
                QualifyResult::Fail => &mut entry.fail,
                QualifyResult::Inconclusive => &mut entry.undecided,
            } += 1;
            entry.excused += usize::from(test.result == QualifyResult::Fail && !counted(test.weight));
            let alone = failed == [test.name.as_str()];
            entry.alone += usize::from(alone);
            entry.wrong += usize::from(alone && case.reaches(at) == Some(true));
        }
    }
    let mut text =
        "| test | pass | fail | does not count | inconclusive | fails alone | alone, but TCP reaches the target |\n\
                    |---|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for (name, TestTally { pass, fail, undecided, excused, alone, wrong }) in counts {
        let _ = writeln!(text, "| `{name}` | {pass} | {fail} | {excused} | {undecided} | {alone} | {wrong} |");
    }
    text
}

/// Formats time and load of the suites beside those of a TCP flow over the long path.
fn costs(cases: &[Case]) -> String {
    let mut text =
        "| target | for | suite: time | sent | one TCP flow: time | sent at the target |\n|---|---|--:|--:|--:|--:|\n".to_owned();
    let targets: BTreeSet<(u32, u32)> = cases.iter().map(|case| case.section.target).collect();
    for target in targets {
        for (at, (name, _)) in CONGESTION.iter().enumerate() {
            let chosen: Vec<&Case> = cases.iter().filter(|case| case.section.target == target).collect();
            // Traffic of others outlasts a suite.
            let timed = chosen.iter().filter(|case| !case.section.has_cross_traffic());
            let seconds = timed.filter_map(|case| Some(case.suites[at].as_ref()?.virtual_s)).collect();
            let bytes = chosen.iter().filter_map(|case| Some(case.suites[at].as_ref()?.document.sent_bytes as f64));
            if chosen.iter().all(|case| case.suites[at].is_none()) {
                continue;
            }
            let tcp_s = chosen.iter().map(|case| case.tcp_s).fold(0.0, f64::max);
            let _ = writeln!(
                text,
                "| {} Mb/s × {} ms | {name} | {:.0} s | {:.0} MB | {tcp_s:.0} s | {:.0} MB |",
                target.0,
                target.1,
                median(seconds),
                median(bytes.collect()) / 1e6,
                f64::from(target.0) * tcp_s / 8.0
            );
        }
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Lists the wrong and the open verdicts of the training half.
pub fn mistakes(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases.iter().filter(|case| case.half() == Half::Training) {
        for (at, (name, _)) in CONGESTION.iter().enumerate() {
            let Some((verdict, reaches)) = case.outcome(at, at) else { continue };
            let is_right = matches!((verdict, reaches), (QualifyResult::Pass, true) | (QualifyResult::Fail, false));
            let Some(suite) = case.suites[at].as_ref().filter(|_| !is_right) else { continue };
            let goodput = case.goodput_bps[at].unwrap_or(f64::NAN) / case.section.target_bps();
            let _ = writeln!(
                text,
                "{:<34} {name:<5} {verdict:?}, TCP {goodput:.2} of {} Mb/s × {} ms; {}; {}",
                case.section.name,
                case.section.target.0,
                case.section.target.1,
                case.section.what,
                suite.document.reason
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_intervals_match_the_published_example() {
        // 81 of 263 (Newcombe 1998, table I, method 3): 0.2553 to 0.3662.
        let (low, high) = wilson(81, 263).expect("trials");
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5, "{low} {high}");
        assert_eq!(wilson(0, 0), None);
    }

    #[test]
    fn a_pass_is_false_where_tcp_misses_the_target() {
        use QualifyResult::{Fail, Inconclusive, Pass};
        let outcomes = [(Pass, true), (Pass, false), (Fail, true), (Fail, false), (Inconclusive, false)];
        let tally = Tally::of(outcomes.into_iter());
        assert_eq!(tally, Tally { reach: 2, miss: 3, false_pass: 1, false_fail: 1, undecided: 1 });
    }
}
