//! Reading from a tool's output how many tests passed, failed and were skipped.

use std::ops::AddAssign;

/// Counts of one step or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran and held.
    pub passed: u64,
    /// Ran and did not hold.
    pub failed: u64,
    /// Could not run here.
    pub skipped: u64,
}

impl Tally {
    /// Nothing was counted.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// A command that is one check: its exit code says it all.
pub fn one_check(_: &[String]) -> Tally {
    Tally::default()
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, one line for each test binary.
pub fn cargo_test(lines: &[String]) -> Tally {
    let mut tally = Tally::default();
    for line in lines.iter().filter(|line| line.starts_with("test result: ")) {
        tally += Tally {
            passed: before(line, " passed"),
            failed: before(line, " failed"),
            skipped: before(line, " ignored"),
        };
    }
    tally
}

/// pytest's closing line: `2 failed, 5 passed, 1 skipped, 1 error in 3.21s`.
pub fn pytest(lines: &[String]) -> Tally {
    let closing = lines.iter().rev().find(|line| line.contains(" in ") && line.trim_end().ends_with('s'));
    closing.map_or_else(Tally::default, |line| Tally {
        passed: before(line, " passed"),
        failed: before(line, " failed") + before(line, " error"),
        skipped: before(line, " skipped"),
    })
}

/// A script's own closing line (`3 passed, 0 failed, 1 skipped` or `3 of 3 claims hold`), or the counts of node's test
/// runner (`# pass 3`).
/// Without either only lines with `SKIPPED:` are counted.
pub fn script(lines: &[String]) -> Tally {
    if let Some(line) = lines.iter().rev().find(|line| line.contains(" passed") && line.contains(" failed")) {
        let (passed, failed, skipped) = (before(line, " passed"), before(line, " failed"), before(line, " skipped"));
        return Tally { passed, failed, skipped };
    }
    if let Some(line) = lines.iter().rev().find(|line| line.contains(" claims hold")) {
        let (held, all) = (before(line, " of "), before(line, " claims"));
        return Tally { passed: held, failed: all.saturating_sub(held), skipped: 0 };
    }
    let node = |word: &str| {
        lines.iter().rev().find_map(|line| {
            let rest = line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix(word)?;
            rest.trim().parse::<u64>().ok()
        })
    };
    if let (Some(passed), Some(failed)) = (node("pass "), node("fail ")) {
        return Tally { passed, failed, skipped: node("skipped ").unwrap_or(0) };
    }
    let skipped = lines.iter().filter(|line| line.contains("SKIPPED:")).count() as u64;
    Tally { skipped, ..Tally::default() }
}

/// The number that stands right before `word`; 0 when there is none.
fn before(line: &str, word: &str) -> u64 {
    let Some((head, _)) = line.split_once(word) else { return 0 };
    let digits = head.rfind(|char: char| !char.is_ascii_digit()).map_or(0, |at| at + 1);
    head[digits..].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_errors_of_pytest_are_counted() {
        let lines = ["..F".to_owned(), "1 failed, 2 passed, 3 skipped, 1 error in 0.10s".to_owned()];
        assert_eq!(pytest(&lines), Tally { passed: 2, failed: 2, skipped: 3 });
        assert_eq!(pytest(&["5 passed in 3.04s".to_owned()]).passed, 5);
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn cargo_results_are_summed_over_binaries() {
        let output = lines(
            "running 25 tests\ntest result: ok. 24 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
             test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        assert_eq!(cargo_test(&output), Tally { passed: 27, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_script_may_close_with_its_own_line() {
        assert_eq!(script(&lines("ok 1\n12 passed, 1 failed")), Tally { passed: 12, failed: 1, skipped: 0 });
        assert_eq!(
            script(&lines("712 of 714 claims hold for 11 reports")),
            Tally { passed: 712, failed: 2, skipped: 0 }
        );
        assert_eq!(script(&lines("2 passed, 0 failed, 3 skipped")), Tally { passed: 2, failed: 0, skipped: 3 });
    }

    #[test]
    fn node_summaries_are_read_in_both_its_formats() {
        let expected = Tally { passed: 7, failed: 1, skipped: 2 };
        assert_eq!(script(&lines("# tests 10\n# pass 7\n# fail 1\n# skipped 2")), expected);
        assert_eq!(script(&lines("ℹ tests 10\nℹ pass 7\nℹ fail 1\nℹ skipped 2")), expected);
    }

    #[test]
    fn a_script_without_counts_still_shows_its_skips() {
        assert_eq!(script(&lines("SKIPPED: no browser")), Tally { skipped: 1, ..Tally::default() });
        assert!(script(&lines("done")).is_empty());
    }
}
