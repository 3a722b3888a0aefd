//! From text to a path.

use landspeed_problems::{self as source, Problem, Problems, Words};

use super::plan::{DirectionPlan, plan};
use super::{Path, judge};

/// Longest text of a path file, bytes.
pub const MAX_TEXT: usize = 256 << 10;
/// What a path is called where its file has no name.
const FILE: &str = "path";

/// The words of the format, for hints about mistakes.
const WORDS: Words = Words { arrays: &["link"], named: &[], example: key_example };

fn key_example(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add a name: name = \"a 10G path\"",
        "rate" => "add the rate: rate = \"10G\"",
        "burst" => "add the burst that passes at once: burst = \"100KB\"",
        "kind" => "name the queueing discipline: kind = \"bfifo\"",
        "spread" => "add the width: spread = \"1ms\"",
        "at" => "say when it goes down: at = \"10s\"",
        "for" => "say how long: for = \"2s\"",
        "p" | "r" => "set p (good to bad) and r (bad to good), probabilities per frame",
        _ => return None,
    })
}

/// A path that was read and found fit to run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPath {
    /// What the file says.
    pub path: Path,
    /// From the first end to the second.
    pub forward: DirectionPlan,
    /// From the second end to the first.
    pub reverse: DirectionPlan,
    /// What a reader should know; each begins with the key it is about.
    pub warnings: Vec<String>,
}

/// Reads a path file and judges it. `files` returns the text of a trace file that it names, or why that cannot be read.
pub fn load(text: &str, files: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<LoadedPath, Problems> {
    let many = |list| Problems::new(FILE, list);
    if text.len() > MAX_TEXT {
        let message = format!("the path has {} bytes, the maximum is {MAX_TEXT}", text.len());
        return Err(many(vec![Problem::new("", message)]));
    }
    let document = source::parse(text).map_err(|problem| many(vec![problem]))?;
    let path: Path = source::typed(text, &document, &WORDS).map_err(many)?;
    let judge::Judgement { mut problems, warnings } = judge::judge(&path);
    let [forward, reverse] = plan(&path, files, &mut problems);
    if problems.is_empty() {
        return Ok(LoadedPath { path, forward, reverse, warnings });
    }
    let placed = |problem: Problem| {
        let steps: Vec<String> = problem.key.split('.').map(str::to_owned).collect();
        let span = source::span_of(&document, &steps);
        if span.is_empty() { problem } else { problem.at(text, span) }
    };
    Err(many(problems.into_iter().map(placed).collect()))
}

/// The JSON Schema of a path file, once its TOML is taken as JSON.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Path).to_value()
}
