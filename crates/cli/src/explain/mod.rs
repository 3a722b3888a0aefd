//! `landspeed explain`: the documentation of a cause, a check or a term, from the binary.

mod glossary;
pub mod markdown;

use std::collections::BTreeMap;

use anyhow::bail;
use landspeed_checks::Check;
use landspeed_model::Cause;

use crate::CommandOutcome;
use crate::terminal::Stream;
use crate::text::Page;
use glossary::Term;
use markdown::Line;

const EXAMPLES: &str = "\
Examples:
  landspeed explain receiver-window   a cause that a verdict named: how to confirm it, what to do
  landspeed explain BUF-001           a check: what it reads, why it matters, its sources
  landspeed explain zero window       a term of the glossary
  landspeed explain                   the list of all names";

/// The pages of the causes by their names, Markdown.
const CAUSES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/causes.rs"));

/// Most names that are proposed for an unknown one.
const MAX_PROPOSED: usize = 6;

/// Options of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A cause of a verdict, a check (code or name), or a term of the glossary; without it: the list
    #[arg(value_name = "CAUSE|CHECK|TERM")]
    topic: Vec<String>,
}

/// Something that has a page.
enum Topic {
    Term(Term),
    Cause(Cause),
    Check(&'static Check),
}

/// Prints what is known about a name, or the list of names.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let name = args.topic.join(" ");
    print(&if name.trim().is_empty() { list() } else { pages(&name, crate::text::width())? });
    Ok(CommandOutcome::Clean)
}

/// Prints the page of a check.
pub fn print_check(check: &'static Check) {
    print(&Topic::Check(check).page(crate::text::width()));
}

/// Lays out every page of a name.
pub fn pages(name: &str, width: usize) -> anyhow::Result<Vec<Line>> {
    let wanted = key(name);
    let found = topics().filter(|topic| topic.names().contains(&wanted)).map(|topic| topic.page(width));
    let found: Vec<Vec<Line>> = found.collect();
    if found.is_empty() {
        bail!(
            "no cause, check or term is called `{name}`{}\nTry `landspeed explain` for the list.",
            proposal(&wanted)
        );
    }
    Ok(found.join(&Line::Text(String::new())))
}

/// Returns the names to complete, each once and with its title.
pub fn names() -> BTreeMap<String, String> {
    let names = topics().flat_map(|topic| match topic {
        Topic::Check(check) => vec![(check.code.to_owned(), check.title.to_owned())],
        Topic::Cause(cause) => vec![(cause.name().to_owned(), title(cause).to_owned())],
        Topic::Term(term) => term.names.iter().map(|name| (key(name), term.meaning.to_owned())).collect(),
    });
    names.collect()
}

impl Topic {
    /// The keys that it is found by.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Term(term) => term.names.iter().map(|name| key(name)).collect(),
            Self::Cause(cause) => vec![cause.name().to_owned()],
            Self::Check(check) => vec![key(check.code), check.name()],
        }
    }

    /// Lays out its page.
    fn page(&self, width: usize) -> Vec<Line> {
        match self {
            Self::Term(term) => markdown::lines(&term.page(), "", width),
            Self::Cause(cause) => markdown::lines(page_of(*cause), "docs/causes", width),
            Self::Check(check) => markdown::lines(&landspeed_checks::page(check), "docs/checks", width),
        }
    }
}

/// All topics; of one name, the short explanation first.
fn topics() -> impl Iterator<Item = Topic> {
    let causes = Cause::ALL.iter().map(|&cause| Topic::Cause(cause));
    glossary::terms().map(Topic::Term).chain(causes).chain(landspeed_checks::all().map(Topic::Check))
}

/// A name as it is compared: `Zero window` is `zero-window`.
fn key(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '_'], "-")
}

/// The page of a cause, Markdown.
fn page_of(cause: Cause) -> &'static str {
    CAUSES.iter().find(|(name, _)| *name == cause.name()).map_or("", |(_, page)| page)
}

/// The title of a cause's page, without its name.
fn title(cause: Cause) -> &'static str {
    let first = page_of(cause).lines().next().unwrap_or_default();
    first.split_once(": ").map_or(first, |(_, title)| title)
}

/// Names that an unknown one may stand for: those that contain it, else the most similar one.
fn proposal(wanted: &str) -> String {
    let names: Vec<String> = topics().flat_map(|topic| topic.names()).collect();
    let mut near: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| wanted.len() > 2 && name.contains(wanted)).collect();
    near.dedup();
    if near.is_empty() {
        let similar = landspeed_problems::suggest(wanted, names.iter().map(String::as_str));
        return similar.map(|text| format!(": {text}")).unwrap_or_default();
    }
    let more = if near.len() > MAX_PROPOSED { ", …" } else { "" };
    near.truncate(MAX_PROPOSED);
    format!(": did you mean {}{more}?", near.join(", "))
}

fn print(lines: &[Line]) {
    for line in lines {
        match line {
            Line::Heading(text) => Stream::Out.heading(text),
            Line::Text(text) => outln!("{text}"),
        }
    }
}

fn list() -> Vec<Line> {
    let heading = |text: &str| Line::Heading(text.to_owned());
    let mut lines = vec![heading("Causes of verdicts")];
    lines.extend(Cause::ALL.iter().map(|&cause| Line::Text(format!("  {:<22}{}", cause.name(), title(cause)))));
    lines.extend([Line::Text(String::new()), heading("Checks")]);
    let checks = crate::check::text::list(landspeed_checks::all());
    lines.extend(checks.lines().map(|line| Line::Text(line.to_owned())));
    lines.extend([Line::Text(String::new()), heading("Terms")]);
    let terms: Vec<&str> = glossary::terms().flat_map(|term| term.names).collect();
    let mut page = Page::default();
    page.paragraph("  ", 2, &terms.join(", "));
    lines.extend(page.text.lines().map(|line| Line::Text(line.to_owned())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_renders_without_markdown_within_the_width() {
        for topic in topics() {
            let mut in_code = false;
            for line in topic.page(60) {
                let is_heading = matches!(line, Line::Heading(_));
                let (Line::Heading(text) | Line::Text(text)) = line;
                for mark in ["](", "**", "```", "|--", "\u{e000}"] {
                    assert!(!text.contains(mark), "{mark}: {text}");
                }
                // Commands and tables are not wrapped.
                in_code = text.starts_with("    ") || in_code && text.is_empty();
                let one_word = !text.trim_start_matches([' ', '-']).contains(' ');
                assert!(in_code || one_word || is_heading || text.chars().count() <= 60, "{text}");
            }
        }
    }

    #[test]
    fn every_cause_has_its_page() {
        for &cause in Cause::ALL {
            assert!(page_of(cause).starts_with(&format!("# {}: ", cause.name())), "{}", cause.name());
        }
    }

    #[test]
    fn every_name_finds_its_topic_and_completes() {
        let completed: Vec<String> = names().into_keys().map(|name| key(&name)).collect();
        for topic in topics() {
            let names = topic.names();
            assert!(
                !names.is_empty() && names.iter().all(|name| !name.is_empty() && *name == key(name)),
                "{names:?}"
            );
            assert!(names.iter().any(|name| completed.contains(name)), "{names:?}");
        }
        let found = |name: &str| topics().filter(|topic| topic.names().contains(&key(name))).count();
        // A name that is a term and a cause has both.
        assert_eq!((found("undetermined"), found("Zero_Window"), found("bUf-001"), found("rwnd")), (2, 1, 1, 2));
    }

    #[test]
    fn unknown_names_get_near_names() {
        assert!(proposal("window").contains("receiver-window"), "{}", proposal("window"));
        assert!(proposal("recieve-windo").contains("did you mean `receive"), "{}", proposal("recieve-windo"));
        assert_eq!(proposal("%%%"), "");
    }
}
