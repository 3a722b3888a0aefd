//! Scores of verdicts: right, acceptable, undetermined or wrong; counts and tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use landspeed_model::Confidence;

use super::judge::Prediction;
use super::truth::{Accept, View};

/// Comparison of a verdict with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Score {
    /// The true cause.
    Right,
    /// Another cause that an expert could name with equal justification.
    Acceptable,
    /// No cause named.
    Undetermined,
    /// A wrong cause at low confidence.
    WrongLow,
    /// A wrong cause at medium or high confidence.
    WrongConfident,
}

impl Score {
    /// Compares a verdict with the truth.
    pub fn new(truth: &str, accept: &[Accept], view: View, predicted: &Prediction) -> Self {
        match () {
            () if predicted.cause == truth => Self::Right,
            () if accept.iter().any(|accept| accept.cause == predicted.cause && view >= accept.from) => {
                Self::Acceptable
            }
            () if predicted.cause == "undetermined" => Self::Undetermined,
            () if predicted.confidence == Confidence::Low => Self::WrongLow,
            () => Self::WrongConfident,
        }
    }

    fn is_good(self) -> bool {
        matches!(self, Self::Right | Self::Acceptable)
    }
}

/// A scenario's verdict and its true cause.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the scenario.
    pub name: String,
    /// The true cause.
    pub truth: &'static str,
    /// The verdict.
    pub predicted: Prediction,
    /// Result of the comparison.
    pub score: Score,
}

/// Verdicts of one view.
#[derive(Debug, Clone)]
pub struct Scores {
    /// View on which the verdicts are based.
    pub view: View,
    /// Whether the hosts had other load: then "undetermined" is right as well.
    pub is_loaded: bool,
    /// One row per scenario.
    pub rows: Vec<Row>,
}

/// Number of verdicts by score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    right: usize,
    acceptable: usize,
    undetermined: usize,
    wrong_low: usize,
    wrong_confident: usize,
}

impl Tally {
    fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut tally = Self::default();
        for row in rows {
            *match row.score {
                Score::Right => &mut tally.right,
                Score::Acceptable => &mut tally.acceptable,
                Score::Undetermined => &mut tally.undetermined,
                Score::WrongLow => &mut tally.wrong_low,
                Score::WrongConfident => &mut tally.wrong_confident,
            } += 1;
        }
        tally
    }

    fn total(self) -> usize {
        self.right + self.acceptable + self.undetermined + self.wrong_low + self.wrong_confident
    }

    fn cells(self) -> String {
        let total = self.total();
        let Self { right, acceptable, undetermined, wrong_low, wrong_confident } = self;
        let shares: Vec<String> = [right, acceptable, undetermined, wrong_low, wrong_confident]
            .into_iter()
            .map(|count| format!("{count} ({})", percent(count, total)))
            .collect();
        format!("{total} | {}", shares.join(" | "))
    }
}

const TABLE_HEADER: &str = "n | right | acceptable | undetermined | wrong, low | wrong, medium or high";

impl Scores {
    /// Goal of the view: minimum share right or acceptable, and upper bound of the share wrong at medium or high
    /// confidence.
    fn goal(&self) -> (f64, f64) {
        match self.view {
            _ if self.is_loaded => (0.0, 0.01),
            View::Lab | View::BothHosts => (0.95, 0.01),
            View::SenderOnly | View::WatchSender => (0.85, 0.02),
            // A receiver sees only its own host: "undetermined" is right for most causes, a wrong cause is not.
            View::WatchReceiver => (0.0, 0.02),
        }
    }

    /// Whether the goal is met.
    pub fn meets_goal(&self) -> bool {
        let tally = Tally::of(&self.rows);
        let (good, wrong) = self.goal();
        let total = tally.total() as f64;
        (tally.right + tally.acceptable) as f64 >= good * total && (tally.wrong_confident as f64) < wrong * total
    }

    /// Formats the confusion matrix: true causes in rows, named causes in columns.
    fn confusion(&self) -> String {
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry((row.truth, &row.predicted.cause)).or_default() += 1;
        }
        let truths: BTreeSet<&str> = self.rows.iter().map(|row| row.truth).collect();
        let named: BTreeSet<&str> = self.rows.iter().map(|row| row.predicted.cause.as_str()).collect();
        let named: Vec<&str> = named.into_iter().collect();
        let mut text = format!("| truth ↓ named → | {} |\n|---|{}\n", named.join(" | "), "--:|".repeat(named.len()));
        for truth in truths {
            let cells: Vec<String> = named
                .iter()
                .map(|named| match counts.get(&(truth, *named)) {
                    Some(count) if *named == truth => format!("**{count}**"),
                    Some(count) => count.to_string(),
                    None => String::new(),
                })
                .collect();
            let _ = writeln!(text, "| {truth} | {} |", cells.join(" | "));
        }
        text
    }

    /// Formats the share right or acceptable by level of confidence.
    fn reliability(&self) -> String {
        let mut text = String::new();
        for (level, name, goal) in [
            (Confidence::High, "high", "≥ 99 %"),
            (Confidence::Medium, "medium", "≥ 90 %"),
            (Confidence::Low, "low", ""),
        ] {
            let rows: Vec<&Row> = self
                .rows
                .iter()
                .filter(|row| row.predicted.confidence == level && row.score != Score::Undetermined)
                .collect();
            let good = rows.iter().filter(|row| row.score.is_good()).count();
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {good} ({}) | {goal} |",
                self.view.name(),
                rows.len(),
                percent(good, rows.len())
            );
        }
        text
    }
}

/// Formats all tables.
pub fn tables(all: &[Scores]) -> String {
    let mut text = format!("| view | {TABLE_HEADER} | goal |\n|---|{}---|\n", "--:|".repeat(6));
    for scores in all {
        let (good, wrong) = scores.goal();
        let _ = writeln!(
            text,
            "| {} | {} | {}< {:.0} % wrong at medium or high: {} |",
            scores.view.name(),
            Tally::of(&scores.rows).cells(),
            if good > 0.0 { format!("≥ {:.0} % right or acceptable, ", good * 100.0) } else { String::new() },
            wrong * 100.0,
            if scores.meets_goal() { "met" } else { "not met" }
        );
    }
    text.push_str("\n| view | confidence | n | right or acceptable | goal |\n|---|---|--:|--:|---|\n");
    for scores in all {
        text.push_str(&scores.reliability());
    }
    for scores in all {
        let _ = write!(text, "\n{}:\n\n{}", capitalize(scores.view.name()), scores.confusion());
    }
    text
}

/// Formats the scores by true cause for one view.
pub fn by_cause(scores: &Scores) -> String {
    let mut text = format!("| truth | {TABLE_HEADER} |\n|---|{}\n", "--:|".repeat(6));
    let truths: BTreeSet<&str> = scores.rows.iter().map(|row| row.truth).collect();
    for truth in truths {
        let rows = scores.rows.iter().filter(|row| row.truth == truth);
        let _ = writeln!(text, "| {truth} | {} |", Tally::of(rows).cells());
    }
    text
}

/// Lists the scenarios whose verdict is neither right nor acceptable.
pub fn mistakes(scores: &Scores) -> String {
    scores.rows.iter().filter(|row| !row.score.is_good()).fold(String::new(), |mut text, row| {
        let confidence = format!("{:?}", row.predicted.confidence).to_lowercase();
        let _ = writeln!(
            text,
            "{:<26} truth {:<22} predicted {} ({confidence})",
            row.name, row.truth, row.predicted.cause
        );
        text
    })
}

/// Formats a count as a percentage.
pub fn percent(count: usize, total: usize) -> String {
    if total == 0 { "–".to_owned() } else { format!("{:.1} %", count as f64 * 100.0 / total as f64) }
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(cause: &str, confidence: Confidence) -> Prediction {
        Prediction { cause: cause.to_owned(), confidence }
    }

    fn rows(count: usize, score: Score, confidence: Confidence) -> impl Iterator<Item = Row> {
        let cause = if score == Score::Right { "pacing" } else { "application" };
        (0..count).map(move |number| Row {
            name: format!("pacing-{number}"),
            truth: "pacing",
            predicted: predicted(cause, confidence),
            score,
        })
    }

    #[test]
    fn verdicts_are_scored_by_causes_acceptable_in_their_view() {
        let accept = [Accept { cause: "network-path", from: View::SenderOnly }];
        let score = |cause, confidence, view| Score::new("link-rate", &accept, view, &predicted(cause, confidence));
        assert_eq!(score("link-rate", Confidence::Low, View::Lab), Score::Right);
        assert_eq!(score("network-path", Confidence::High, View::SenderOnly), Score::Acceptable);
        assert_eq!(score("network-path", Confidence::High, View::BothHosts), Score::WrongConfident);
        assert_eq!(score("network-path", Confidence::Medium, View::Lab), Score::WrongConfident);
        assert_eq!(score("pacing", Confidence::Low, View::Lab), Score::WrongLow);
        assert_eq!(score("undetermined", Confidence::Low, View::Lab), Score::Undetermined);
    }

    #[test]
    fn goals_count_right_verdicts_and_confident_mistakes() {
        let meets = |view, right, low, sure| {
            let rows = rows(right, Score::Right, Confidence::High)
                .chain(rows(low, Score::WrongLow, Confidence::Low))
                .chain(rows(sure, Score::WrongConfident, Confidence::High))
                .collect();
            Scores { view, is_loaded: false, rows }.meets_goal()
        };
        assert!(meets(View::BothHosts, 95, 5, 0));
        assert!(!meets(View::BothHosts, 94, 6, 0));
        assert!(!meets(View::BothHosts, 99, 0, 1), "1 % is not below 1 %");
        assert!(meets(View::SenderOnly, 85, 14, 1));
        assert!(!meets(View::SenderOnly, 98, 0, 2));
    }

    #[test]
    fn tables_count_every_verdict_once() {
        let rows = rows(9, Score::Right, Confidence::High).chain(rows(1, Score::WrongConfident, Confidence::Medium));
        let scores = Scores { view: View::BothHosts, is_loaded: false, rows: rows.collect() };
        let text = tables(std::slice::from_ref(&scores));
        assert!(
            text.contains("| two ends | 10 | 9 (90.0 %) | 0 (0.0 %) | 0 (0.0 %) | 0 (0.0 %) | 1 (10.0 %) |"),
            "{text}"
        );
        assert!(text.contains("| two ends | high | 9 | 9 (100.0 %) | ≥ 99 % |"), "{text}");
        assert!(text.contains("| two ends | medium | 1 | 0 (0.0 %) | ≥ 90 % |"), "{text}");
        assert!(text.contains("| pacing | 1 | **9** |"), "{text}");
        assert!(by_cause(&scores).contains("| pacing | 10 | 9 (90.0 %)"));
        assert_eq!(mistakes(&scores).lines().count(), 1);
    }
}
