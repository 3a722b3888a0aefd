//! `docs/verdicts.md` and `docs/causes` agree with the code.

use landspeed_model::Cause;

const DOC: &str = include_str!("../../../../docs/verdicts.md");
const THRESHOLDS: &str = include_str!("../../src/thresholds.rs");

/// Every cause. The match below does not compile if one is added and not listed here.
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

/// Maximum length of a page, lines.
const LONGEST: usize = 40;

fn name(cause: Cause) -> String {
    let name = serde_json::to_value(cause).expect("a cause serialises");
    name.as_str().expect("a cause is a word").to_owned()
}

#[test]
fn every_cause_has_a_page_and_every_page_a_cause() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes");
    let mut pages: Vec<String> = std::fs::read_dir(&directory)
        .expect("the directory of the pages")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for (index, cause) in CAUSES.into_iter().enumerate() {
        assert_eq!(position(cause), index);
        let name = name(cause);
        let file = format!("{name}.md");
        pages.retain(|page| *page != file);
        let page = std::fs::read_to_string(directory.join(&file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        assert!(page.starts_with(&format!("# {name}: ")), "{file} begins with its cause");
        for part in ["\n## How it is recognised\n", "\n## Confirm it\n", "\n```\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{file} lacks {part:?}");
        }
        assert!(page.lines().count() <= LONGEST, "{file} is longer than {LONGEST} lines");
        assert!(DOC.contains(&format!("| [{name}](causes/{file}) | ")), "docs/verdicts.md does not link {file}");
    }
    assert!(pages.is_empty(), "pages without a cause: {pages:?}");
}

/// Name and value of every threshold in the code.
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
fn docs_list_every_threshold_with_its_value() {
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
