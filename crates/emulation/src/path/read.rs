//! Parsing of path files.

use landspeed_problems::{self as source, FormatTerms, Problem, Problems};

use super::plan::{DirectionPlan, plan};
use super::{Path, event, judge};

/// Maximum size of a path file, bytes.
pub const MAX_TEXT: usize = 256 << 10;
/// Name for a path file in messages until the caller sets one.
const FILE: &str = "path";

/// Vocabulary of the format, for hints on mistakes.
const KEYWORDS: FormatTerms = FormatTerms { arrays: &["link", "event"], named: &[], example: key_example };

fn key_example(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add a name: name = \"a 10G path\"",
        "rate" => "add the rate: rate = \"10G\"",
        "burst" => "add the burst that passes at once: burst = \"100KB\"",
        "kind" => "name the queueing discipline: kind = \"bfifo\"",
        "spread" => "add the width: spread = \"1ms\"",
        "at" => "say when: at = \"10s\"",
        "for" => "say how long: for = \"2s\"",
        "p" | "r" => "set p (good to bad) and r (bad to good), probabilities per frame",
        _ => return None,
    })
}

/// A validated path, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPath {
    /// Contents of the path file.
    pub path: Path,
    /// Plan from the first host to the second.
    pub forward: DirectionPlan,
    /// Plan from the second host to the first.
    pub reverse: DirectionPlan,
    /// Warnings, each beginning with the key that it is about.
    pub warnings: Vec<String>,
}

/// Parses and validates a path file. `files` returns the text of a trace file named in it, or the reason why it
/// cannot be read.
pub fn load(text: &str, files: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<LoadedPath, Problems> {
    let many = |list| Problems::new(FILE, list);
    if text.len() > MAX_TEXT {
        let message = format!("the path has {} bytes, the maximum is {MAX_TEXT}", text.len());
        return Err(many(vec![Problem::new("", message)]));
    }
    let document = source::parse(text).map_err(|problem| many(vec![problem]))?;
    let path: Path = source::typed(text, &document, &KEYWORDS).map_err(many)?;
    let problems = match load_typed(path, files) {
        Ok(loaded) => return Ok(loaded),
        Err(problems) => problems,
    };
    let placed = |problem: Problem| {
        let steps: Vec<String> = problem.key.split('.').map(str::to_owned).collect();
        let span = source::span_of(&document, &steps);
        if span.is_empty() { problem } else { problem.at(text, span) }
    };
    Err(many(problems.into_iter().map(placed).collect()))
}

/// Validates a path that is parsed already; problems have keys and no positions. `files` is as for [`load`].
///
/// # Errors
/// Returns everything that is wrong with it.
pub fn load_typed(
    path: Path,
    files: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<LoadedPath, Vec<Problem>> {
    let mut judgement = judge::judge(&path);
    if judgement.problems.is_empty() {
        event::judge(&path, &mut judgement);
    }
    let judge::Judgement { mut problems, warnings } = judgement;
    let [forward, reverse] = plan(&path, files, &mut problems);
    if problems.is_empty() { Ok(LoadedPath { path, forward, reverse, warnings }) } else { Err(problems) }
}

/// Returns the JSON Schema of a path file (for its TOML converted to JSON).
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Path).to_value()
}
