//! What the tests cost, in `target/test-times.md`, and the budget that each group has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::load;
use super::steps::TimedTest;
use super::tally::Tally;

/// Seconds of tests that a group may take in all, in a whole run on a quiet machine with two cores; docs/testing.md has the
/// measurement. A group that takes half as much again fails.
const BUDGETS_S: [(&str, f64); 7] = [
    ("unit", 600.0),
    ("e2e", 450.0),
    ("netns", 1000.0),
    ("rivals", 320.0),
    ("lab", 700.0),
    ("machine", 80.0),
    ("timing", 60.0),
];
/// Share of the machine that other programs may use for the times to be judged.
const OTHERS_MAX: f64 = 0.15;

/// A row of the table.
#[derive(Default)]
struct Cost {
    tests: usize,
    seconds: f64,
    longest_s: f64,
}

impl Cost {
    fn add(&mut self, test: &TimedTest) {
        self.tests += 1;
        self.seconds += test.seconds;
        self.longest_s = self.longest_s.max(test.seconds);
    }
}

/// Writes the table, and, after a run of all groups, holds each to its budget.
pub fn write(
    root: &Path,
    tests: &[TimedTest],
    groups: &BTreeMap<(String, String), String>,
    all: bool,
    load: &load::Reading,
) -> Result<(Tally, Vec<TimedTest>)> {
    let others = load.others();
    let (mut rows, mut sums) = (BTreeMap::<(&str, String), Cost>::new(), BTreeMap::<&str, Cost>::new());
    for test in tests {
        let named = groups.get(&(test.binary.clone(), test.test.clone()));
        let group = named.map_or("", String::as_str);
        rows.entry((group, program(test))).or_default().add(test);
        sums.entry(group).or_default().add(test);
    }
    let path = root.join("target").join("test-times.md");
    std::fs::write(&path, table(&rows, &sums, others)).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    let mut tally = Tally { passed: 1, ..Tally::default() };
    if !all {
        return Ok((tally, Vec::new()));
    }
    let over: Vec<String> =
        BUDGETS_S.iter().filter_map(|&(group, budget)| over_budget(group, budget, &sums)).collect();
    for line in &over {
        println!("{line}");
    }
    match others {
        Some(share) if share <= OTHERS_MAX => tally.failed += over.len() as u64,
        Some(share) => println!("budgets not judged: other programs used {:.0} % of the CPU time", share * 100.0),
        None => println!("budgets not judged: the load of other programs is not visible"),
    }
    Ok((tally, Vec::new()))
}

fn over_budget(group: &str, budget_s: f64, sums: &BTreeMap<&str, Cost>) -> Option<String> {
    let seconds = sums.get(group)?.seconds;
    (seconds > 1.5 * budget_s).then(|| {
        format!("group {group}: {seconds:.0} s of tests exceed the budget of {budget_s:.0} s by more than half (docs/testing.md)")
    })
}

/// Binary, and of the binary with the tests of the whole program the module.
fn program(test: &TimedTest) -> String {
    let part = if test.binary == "landspeed::testsuite" { test.test.split("::").next() } else { None };
    part.map_or_else(|| test.binary.clone(), |module| format!("{} {module}", test.binary))
}

fn table(rows: &BTreeMap<(&str, String), Cost>, sums: &BTreeMap<&str, Cost>, others: Option<f64>) -> String {
    let mut text = String::from("| group | binary | s | tests | longest, s |\n|---|---|---:|---:|---:|\n");
    let mut row = |group: &str, binary: &str, cost: &Cost| {
        let Cost { tests, seconds, longest_s } = cost;
        let _ = writeln!(text, "| {group} | {binary} | {seconds:.1} | {tests} | {longest_s:.1} |");
    };
    for (group, sum) in sums {
        row(group, "**all**", sum);
        let mut costs: Vec<_> = rows.iter().filter(|((of, _), _)| of == group).collect();
        costs.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
        for ((_, binary), cost) in costs {
            row(group, binary, cost);
        }
    }
    let others = others.map_or_else(|| "unknown".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let _ = writeln!(text, "\nCPU time of other programs meanwhile: {others}.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(binary: &str, test: &str, seconds: f64) -> TimedTest {
        TimedTest { binary: binary.to_owned(), test: test.to_owned(), seconds }
    }

    #[test]
    fn tests_of_the_program_are_summed_by_module() {
        assert_eq!(program(&test("landspeed::testsuite", "lab::exact::a", 1.0)), "landspeed::testsuite lab");
        assert_eq!(program(&test("landspeed-trace::testsuite", "ecn::a", 1.0)), "landspeed-trace::testsuite");
    }

    #[test]
    fn a_group_fails_beyond_one_and_a_half_budgets() {
        let mut cost = Cost::default();
        cost.add(&test("b", "t", 14.9));
        assert_eq!(over_budget("lab", 10.0, &BTreeMap::from([("lab", cost)])), None);
        let mut cost = Cost::default();
        cost.add(&test("b", "t", 15.1));
        assert!(over_budget("lab", 10.0, &BTreeMap::from([("lab", cost)])).is_some());
    }
}
