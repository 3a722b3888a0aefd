//! Deserializes TOML and keeps the position of every value: an error is reported with its line, and the rest of
//! the document is still checked.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::problem::{Problem, suggest_or_list};

/// Terms of a file format, for the hints.
#[derive(Debug, Clone, Copy)]
pub struct FormatTerms {
    /// Arrays of tables: they are written with two brackets.
    pub arrays: &'static [&'static str],
    /// Tables of named tables: they are written with one bracket and a name.
    pub named: &'static [&'static str],
    /// Returns an example of a missing key.
    pub example: fn(&str) -> Option<&'static str>,
}

/// Keys that a release renamed: the old name, the new name.
const RENAMED: &[(&str, &str)] = &[("back", "reverse")];

/// Properties of links in other emulators that these formats do not have, each with the reason or the key to use.
const ABSENT: &[(&[&str], &str)] = &[
    (
        &["corrupt", "corruption", "bit-errors", "ber"],
        "frames with bit errors are not emulated: the receiver's interface or checksum drops them, so write `loss`",
    ),
    (
        &["correlation", "loss-correlation", "delay-correlation"],
        "draws are independent: write losses in bursts as loss = { gilbert-elliott = { p = \"0.1%\", r = \"20%\" } }",
    ),
    (
        &["table", "delay-distribution", "distribution-table"],
        "distribution tables are not read: write jitter = { spread = \"1ms\", distribution = \"normal\" }",
    ),
    (&["slots"], "write `slot`, which the lab has on links that do not change"),
    (
        &["cell", "cell-size", "cell-overhead", "cells", "overhead", "atm"],
        "cells and other overheads are not emulated: write framing = \"ethernet\" (24 bytes per frame) or \"none\", and a lower rate",
    ),
    (
        &["mark", "ce", "ecn", "ce-marks"],
        "a link does not mark: write ecn = true in a red, codel, fq_codel or pie queue, which marks instead of dropping",
    ),
];

/// Returns the hint about a key that a release renamed; `None` if it has no new name.
pub fn renamed(name: &str) -> Option<String> {
    let (old, new) = RENAMED.iter().find(|(old, _)| *old == name)?;
    Some(format!("`{old}` was renamed: write `{new}`"))
}

/// Maximum number of errors reported for one document.
pub const MAX_PROBLEMS: usize = 20;

/// Beginning of the message about a table without the required keys.
pub const EMPTY: &str = "the table is empty";

/// A document whose values have positions.
pub type Document<'i> = Spanned<DeTable<'i>>;

/// Parses `text`, or returns the first syntax error.
pub fn parse(text: &str) -> Result<Document<'_>, Problem> {
    DeTable::parse(text).map_err(|error| {
        let problem = Problem::new("", format!("not valid TOML: {}", error.message()));
        problem.at(text, error.span().unwrap_or(0..0))
    })
}

/// Deserializes the document as a `T`, or returns all errors: an invalid value is removed, and the rest
/// deserialized again.
pub fn typed<T: DeserializeOwned>(text: &str, document: &Document, words: &FormatTerms) -> Result<T, Vec<Problem>> {
    let mut rest = document.clone();
    let mut problems = Vec::new();
    let mut removed: Vec<Vec<String>> = Vec::new();
    loop {
        let error = match T::deserialize(Deserializer::from(rest.clone())) {
            Ok(value) if problems.is_empty() => return Ok(value),
            Ok(_) => return Err(problems),
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let path = path_of(document.get_ref(), &span).unwrap_or_default();
        // Keys that were removed because they are wrong are not missing.
        let gone =
            |key: &str| removed.iter().any(|r| r.starts_with(&path) && r.get(path.len()).is_some_and(|k| k == key));
        let emptied = || removed.iter().any(|r| r.len() > path.len() && r.starts_with(&path));
        let own_doing = match missing(error.message()) {
            Some(key) => gone(key),
            None => error.message().starts_with(EMPTY) && emptied(),
        };
        if !own_doing {
            let problem = explain(error.message(), &path, words);
            problems.push(if path.is_empty() { problem } else { problem.at(text, span.clone()) });
        }
        let Some(here) = path_of(rest.get_ref(), &span) else { return Err(problems) };
        if problems.len() >= MAX_PROBLEMS || here.is_empty() || !remove(rest.get_mut(), &here) {
            return Err(problems);
        }
        removed.push(path);
    }
}

/// Returns the position of the value at `path`, or of its nearest existing parent.
pub fn span_of(document: &Document, path: &[String]) -> Range<usize> {
    let mut span = 0..0;
    let mut table = Some(document.get_ref());
    let mut array: Option<&[Spanned<DeValue>]> = None;
    for (i, step) in path.iter().enumerate() {
        // The names of sysctls contain dots.
        let rest = (i > 0 && path[i - 1] == "sysctl").then(|| path[i..].join("."));
        let step = rest.as_ref().unwrap_or(step);
        let value = if let Some(table) = table {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == step) else { break };
            // The header is the best position for a table.
            span = if value.get_ref().is_table() { key.span() } else { value.span() };
            value
        } else if let Some(value) = array.and_then(|a| step.parse::<usize>().ok().and_then(|i| a.get(i))) {
            span = value.span();
            value
        } else {
            break;
        };
        table = value.get_ref().as_table();
        array = value.get_ref().as_array().map(|a| &a[..]);
    }
    span
}

/// Returns the path of the value or key at `span`.
fn path_of(table: &DeTable, span: &Range<usize>) -> Option<Vec<String>> {
    fn find_below(value: &Spanned<DeValue>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
        match value.get_ref() {
            DeValue::Table(table) => find_in_table(table, span, path),
            DeValue::Array(array) => array.iter().enumerate().any(|(i, item)| step(i.to_string(), item, span, path)),
            _ => false,
        }
    }
    fn step(name: String, value: &Spanned<DeValue>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
        path.push(name);
        let found = find_below(value, span, path) || value.span() == *span;
        if !found {
            path.pop();
        }
        found
    }
    fn find_in_table(table: &DeTable, span: &Range<usize>, path: &mut Vec<String>) -> bool {
        table.iter().any(|(key, value)| {
            step(key.get_ref().to_string(), value, span, path)
                || (key.span() == *span && {
                    path.push(key.get_ref().to_string());
                    true
                })
        })
    }
    let mut path = Vec::new();
    find_in_table(table, span, &mut path).then_some(path)
}

fn remove(table: &mut DeTable, path: &[String]) -> bool {
    fn from_value(value: &mut DeValue, path: &[String]) -> bool {
        match (value, path) {
            (DeValue::Table(table), _) => remove(table, path),
            (DeValue::Array(array), [index]) => {
                let gone = index.parse::<usize>().ok();
                let mut kept = toml::de::DeArray::new();
                for (_, item) in array.iter().enumerate().filter(|(i, _)| Some(*i) != gone) {
                    kept.push(item.clone());
                }
                let shrunk = kept.len() < array.len();
                *array = kept;
                shrunk
            }
            (DeValue::Array(array), [index, rest @ ..]) => {
                let item = index.parse::<usize>().ok().and_then(|i| array.get_mut(i));
                item.is_some_and(|item| from_value(item.get_mut(), rest))
            }
            _ => false,
        }
    }
    match path {
        [] => false,
        [key] => table.remove(key.as_str()).is_some(),
        [key, rest @ ..] => table.get_mut(key.as_str()).is_some_and(|value| from_value(value.get_mut(), rest)),
    }
}

fn missing(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'))
}

/// Rewrites serde's message in the terms of the file format.
fn explain(message: &str, path: &[String], words: &FormatTerms) -> Problem {
    let key = path.join(".");
    if let Some(name) = missing(message) {
        return Problem::new(key, format!("`{name}` is missing"))
            .maybe_hint((words.example)(name).map(str::to_owned));
    }
    if message.contains("$__toml_private") {
        return Problem::new(key, "a date is not allowed here").hint("put text in quotes");
    }
    if let Some((name, known)) = parse_alternatives(message, "unknown field `") {
        let known = || known.iter().map(String::as_str);
        let renamed = RENAMED.iter().find(|&&(old, new)| old == name && known().any(|key| key == new));
        let hint = renamed.map(|(old, new)| format!("`{old}` was renamed: write `{new}`"));
        let of_link = || known().any(|key| ["delay", "spread", "gilbert-elliott"].contains(&key));
        let absent = ABSENT.iter().find(|(names, _)| names.contains(&name.as_str()) && of_link());
        let hint = hint.or_else(|| absent.map(|(_, why)| (*why).to_owned()));
        let hint = hint.or_else(|| suggest_or_list(&name, known()));
        return Problem::new(key, format!("unknown key `{name}`")).maybe_hint(hint);
    }
    if let Some((name, known)) = parse_alternatives(message, "unknown variant `") {
        let hint = suggest_or_list(&name, known.iter().map(String::as_str));
        return Problem::new(key, format!("unknown value `{name}`")).maybe_hint(hint);
    }
    let wrong = |prefix| message.strip_prefix(prefix).and_then(|rest: &str| rest.rsplit_once(", expected "));
    if let Some((found, wanted)) = wrong("invalid type: ").or_else(|| wrong("invalid value: ")) {
        let hint = match (path.first().map(String::as_str), found) {
            (Some(name), "map") if path.len() == 1 && words.arrays.contains(&name) => {
                Some(format!("write [[{name}]], with two brackets"))
            }
            (Some(name), "sequence") if path.len() <= 2 && words.named.contains(&name) => {
                Some(format!("write [{name}.NAME], with one bracket and a name"))
            }
            _ => None,
        };
        return Problem::new(key, format!("expected {}, found {}", plain(wanted), plain(found))).maybe_hint(hint);
    }
    if let Some((found, wanted)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return Problem::new(key, format!("expected {}, found {found}", plain(wanted)));
    }
    Problem::new(key, message)
}

/// Parses the name and the alternatives in "unknown field `x`, expected one of `a`, `b`".
fn parse_alternatives(message: &str, prefix: &str) -> Option<(String, Vec<String>)> {
    let (name, known) = message.strip_prefix(prefix)?.rsplit_once("`, ").map_or((message, ""), |_| {
        let rest = &message[prefix.len()..];
        rest.split_once("`, expected ").or_else(|| rest.split_once("`, there are no ")).unwrap_or((rest, ""))
    });
    let known = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some((name.to_owned(), known))
}

fn plain(what: &str) -> String {
    match what {
        "map" | "a map" => "a table".to_owned(),
        "sequence" | "a sequence" => "an array".to_owned(),
        "an array of length 2" => "an array of two".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "f64" => "a number".to_owned(),
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u32" => "a whole number from 0 to 4294967295".to_owned(),
        "u64" => "a whole number, not negative".to_owned(),
        "i64" => "a whole number".to_owned(),
        _ if what.starts_with("struct ") || what.starts_with("any valid TOML") => "a table".to_owned(),
        _ => what
            .strip_prefix("integer `")
            .or_else(|| what.strip_prefix("floating point `"))
            .or_else(|| what.strip_prefix("boolean `"))
            .and_then(|rest| rest.strip_suffix('`'))
            .map_or_else(|| what.replacen("string \"", "the text \"", 1), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrade_notes_have_every_renamed_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/upgrading.md");
        let page = std::fs::read_to_string(path).expect("the page");
        for (old, _) in RENAMED {
            let says = renamed(old).expect("it has a new name");
            assert!(page.contains(&says), "docs/upgrading.md lacks: {says}");
        }
    }
}
