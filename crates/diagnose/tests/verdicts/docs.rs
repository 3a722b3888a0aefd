//! `docs/verdicts.md` and `docs/causes` agree with the code.

use landspeed_model::Cause;

const DOC: &str = include_str!("../../../../docs/verdicts.md");
const WEB: &str = include_str!("../../../../web/src/evidence.ts");
const THRESHOLDS: &str = include_str!("../../src/thresholds.rs");

/// Maximum length of a page, lines.
const LONGEST: usize = 40;

#[test]
fn every_cause_has_a_page_and_every_page_a_cause() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<String> = std::fs::read_dir(root.join("docs/causes"))
        .expect("the directory of the pages")
        .map(|entry| format!("docs/causes/{}", entry.expect("an entry").file_name().display()))
        .collect();
    for cause in Cause::ALL {
        let name = cause.name();
        let file = &format!("docs/causes/{name}.md");
        pages.retain(|page| page != file);
        let page = std::fs::read_to_string(root.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        let title = page.lines().next().and_then(|line| line.strip_prefix(&format!("# {name}: ")));
        let title = title.unwrap_or_else(|| panic!("{file} does not begin with its cause"));
        for part in ["\n## How it is recognised\n", "\n## Confirm it\n", "\n```\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{file} lacks {part:?}");
        }
        assert!(page.lines().count() <= LONGEST, "{file} is longer than {LONGEST} lines");
        let row = format!("| [{name}](causes/{name}.md) | {title} |\n");
        assert!(DOC.contains(&row), "docs/verdicts.md lacks the row {row:?}");
        let named = [format!("    \"{name}\": \""), format!("    {name}: \"")].iter().any(|key| WEB.contains(key));
        assert!(named, "web/src/evidence.ts has no phrase for {name}");
    }
    assert!(pages.is_empty(), "pages without a cause: {pages:?}");
}

#[test]
fn names_of_causes_are_those_of_documents() {
    for &cause in Cause::ALL {
        assert_eq!(serde_json::to_value(cause).expect("a cause serialises"), cause.name());
        assert_eq!(Cause::from_name(cause.name()), Some(cause));
    }
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
