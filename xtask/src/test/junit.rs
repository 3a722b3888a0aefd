//! Reading the JUnit report that nextest writes: counts, and the time of each test.

use anyhow::{Context, Result};

use super::steps::TimedTest;
use super::tally::Tally;

/// Counts and tests of a report.
pub fn read(report: &str) -> Result<(Tally, Vec<TimedTest>)> {
    let all = tags(report, "testsuites").next().context("the report has no <testsuites>")?;
    let count = |name: &str| -> Result<u64> {
        let value = attribute(all, name).with_context(|| format!("<testsuites> has no {name}"))?;
        value.parse().with_context(|| format!("{name} is not a number: {value}"))
    };
    let failed = count("failures")? + count("errors")?;
    let passed = count("tests")?.saturating_sub(failed);
    let tests = tags(report, "testcase").filter_map(|tag| {
        Some(TimedTest {
            binary: attribute(tag, "classname")?.to_owned(),
            test: attribute(tag, "name")?.to_owned(),
            seconds: attribute(tag, "time")?.parse().ok()?,
        })
    });
    Ok((Tally { passed, failed, skipped: 0 }, tests.collect()))
}

/// The opening tags of that name, from after the name to before the `>`.
fn tags<'a>(report: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!("<{name} ");
    let starts: Vec<usize> = report.match_indices(&opening).map(|(at, found)| at + found.len()).collect();
    starts.into_iter().filter_map(|start| report[start..].split_once('>').map(|(tag, _)| tag))
}

/// The value of an attribute. Names of tests and binaries have no characters that XML escapes.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let opening = format!("{name}=\"");
    let at = tag.match_indices(&opening).find(|&(at, _)| at == 0 || tag[..at].ends_with(' '))?.0;
    tag[at + opening.len()..].split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="c5" timestamp="2026-11-22T23:00:00.000+00:00" time="2.5">
    <testsuite name="landspeed::lab" tests="2" disabled="0" errors="0" failures="1">
        <testcase name="exact::a" classname="landspeed::lab" timestamp="2026-11-22T23:00:00.000+00:00" time="1.250">
        </testcase>
        <testcase name="exact::b" classname="landspeed::lab" timestamp="2026-11-22T23:00:00.000+00:00" time="0.004">
            <failure type="test failure" message="thread 'exact::b' panicked: tests=&quot;9&quot;">at b.rs:1</failure>
        </testcase>
    </testsuite>
    <testsuite name="landspeed-calc" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="tests::c" classname="landspeed-calc" timestamp="2026-11-22T23:00:00.000+00:00" time="0.010"/>
    </testsuite>
</testsuites>"#;

    #[test]
    fn a_report_gives_counts_and_times() {
        let (tally, tests) = read(REPORT).expect("a report");
        assert_eq!(tally, Tally { passed: 2, failed: 1, skipped: 0 });
        let timed = |binary: &str, test: &str, seconds| TimedTest {
            binary: binary.to_owned(),
            test: test.to_owned(),
            seconds,
        };
        let expected = [
            timed("landspeed::lab", "exact::a", 1.25),
            timed("landspeed::lab", "exact::b", 0.004),
            timed("landspeed-calc", "tests::c", 0.01),
        ];
        assert_eq!(tests, expected);
    }

    #[test]
    fn a_cut_report_is_an_error() {
        assert!(read("<testsuites name=\"nextest-run\" tests=\"3\"").is_err());
        assert!(read("").is_err());
    }
}
