//! `docs/verdicts.md` and the code say the same.

use landspeed_model::Cause;

const DOC: &str = include_str!("../../../../docs/verdicts.md");
const THRESHOLDS: &str = include_str!("../../src/thresholds.rs");

/// Every cause. The match below fails to compile when one is added and not listed here.
const CAUSES: [Cause; 26] = [
    Cause::ReceiverWindow,
    Cause::SlowReader,
    Cause::ReceiveBuffer,
    Cause::SendBuffer,
    Cause::Application,
    Cause::Pacing,
    Cause::SenderCpu,
    Cause::ReceiverCpu,
    Cause::LinkRate,
    Cause::NetworkCongestion,
    Cause::NetworkLoss,
    Cause::NetworkPath,
    Cause::SlowStartOvershoot,
    Cause::ShallowBuffer,
    Cause::Policer,
    Cause::Reordering,
    Cause::ReceiverHostDrops,
    Cause::AckPath,
    Cause::LocalQdisc,
    Cause::PathMtu,
    Cause::RoundTrip,
    Cause::Storage,
    Cause::RequestGaps,
    Cause::CpuQuota,
    Cause::Firewall,
    Cause::Undetermined,
];

fn position(cause: Cause) -> usize {
    match cause {
        Cause::ReceiverWindow => 0,
        Cause::SlowReader => 1,
        Cause::ReceiveBuffer => 2,
        Cause::SendBuffer => 3,
        Cause::Application => 4,
        Cause::Pacing => 5,
        Cause::SenderCpu => 6,
        Cause::ReceiverCpu => 7,
        Cause::LinkRate => 8,
        Cause::NetworkCongestion => 9,
        Cause::NetworkLoss => 10,
        Cause::NetworkPath => 11,
        Cause::SlowStartOvershoot => 12,
        Cause::ShallowBuffer => 13,
        Cause::Policer => 14,
        Cause::Reordering => 15,
        Cause::ReceiverHostDrops => 16,
        Cause::AckPath => 17,
        Cause::LocalQdisc => 18,
        Cause::PathMtu => 19,
        Cause::RoundTrip => 20,
        Cause::Storage => 21,
        Cause::RequestGaps => 22,
        Cause::CpuQuota => 23,
        Cause::Firewall => 24,
        Cause::Undetermined => 25,
    }
}

#[test]
fn the_page_has_a_section_for_every_cause() {
    for (index, cause) in CAUSES.into_iter().enumerate() {
        assert_eq!(position(cause), index);
        let name = serde_json::to_value(cause).expect("a cause serialises");
        let heading = format!("\n### {}\n", name.as_str().expect("a cause is a word"));
        let section = DOC.split_once(&heading).map(|(_, rest)| rest.split("\n##").next().unwrap_or_default());
        let section = section.unwrap_or_else(|| panic!("docs/verdicts.md has no section{heading}"));
        for part in ["**Decided by**", "**Try**"] {
            assert!(section.contains(part), "{heading} lacks {part}");
        }
    }
}

/// `NAME value` of every threshold in the code.
fn thresholds() -> Vec<(String, f64)> {
    THRESHOLDS
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("pub(crate) const ")?.split_once(':')?;
            let value = rest.split_once('=')?.1.trim().trim_end_matches(';').replace('_', "");
            Some((name.to_owned(), value.parse().expect("a threshold is a plain number")))
        })
        .collect()
}

#[test]
fn the_page_gives_every_threshold_its_value_and_no_others() {
    let known = thresholds();
    assert!(known.len() > 30, "the thresholds were not parsed");
    let (_, table) = DOC.split_once("## Thresholds").expect("the page lists the thresholds");
    let rows: Vec<(&str, f64)> = table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.trim_end_matches('`');
            let value = cells.next()?.replace(' ', "").parse().expect("a value is a plain number");
            Some((name, value))
        })
        .collect();
    for (name, value) in &known {
        let row = rows.iter().find(|(row, _)| row == name);
        let (_, shown) = row.unwrap_or_else(|| panic!("docs/verdicts.md does not list {name}"));
        assert!((shown - value).abs() < 1e-12, "{name} is {value}, docs/verdicts.md says {shown}");
    }
    assert_eq!(rows.len(), known.len(), "docs/verdicts.md lists a threshold that is gone");
}
