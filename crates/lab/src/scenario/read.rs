//! Parses the text of a scenario into cells.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use landspeed_problems::{self as source, Document, MAX_PROBLEMS, Problem};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use super::judge::reference;
use super::vary::{self, Axis, steps};
use super::words::KEYWORDS;
use super::{Problems, Scenario, Vary};

/// Maximum number of cells in a scenario.
pub const MAX_CELLS: usize = 10_000;
/// Maximum length of a scenario's text, bytes.
pub const MAX_TEXT: usize = 2 << 20;
/// Name of a scenario whose file has no name.
const FILE: &str = "scenario";
/// Maximum total text of all cells, bytes: the longer a scenario, the fewer cells it may have.
const MAX_CELL_TEXT: usize = 512 << 20;

/// One run: a scenario with nothing left to vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Labels (or keys) that are varied, and their values in this cell.
    pub values: BTreeMap<String, serde_json::Value>,
    /// Seed of this cell: that of the scenario plus the number of the repeat.
    pub seed: u64,
    /// Number of cells that differ only by seed, including this one.
    pub repeats: u32,
    /// The scenario to run: `vary` applied and empty, `repeats` 1, `seed` that of the cell.
    pub scenario: Scenario,
    /// SHA-256 of the scenario, hex; see [`hash`].
    pub hash: String,
}

/// Parses a scenario and expands its cells: every combination of the varied values, the first key varying
/// slowest, each repeated `repeats` times with increasing seeds. Never empty. Only the form is validated.
pub fn read(text: &str) -> Result<Vec<Cell>, Problems> {
    resolve(text, |_| Vec::new())
}

/// Like [`read`], but calls `judge` once for every combination of varied values; the problems it returns get
/// their positions.
pub(super) fn resolve(text: &str, mut judge: impl FnMut(&Scenario) -> Vec<Problem>) -> Result<Vec<Cell>, Problems> {
    let one = |problem| Problems::new(FILE, vec![problem]);
    if text.len() > MAX_TEXT {
        let message = format!("the scenario has {} bytes, the maximum is {MAX_TEXT}", text.len());
        return Err(one(Problem::new("", message)));
    }
    let mut document = source::parse(text).map_err(one)?;
    let axes = take_axes(text, &mut document).map_err(|list| Problems::new(FILE, list))?;
    let combinations = axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.values.len()));
    check_limits(text, combinations, 1).map_err(one)?;

    let mut cells = Vec::new();
    let mut problems: Vec<Problem> = Vec::new();
    for number in 0..combinations {
        match combination(text, &document, &axes, number) {
            Err(found) => add(&mut problems, found),
            Ok((resolved, mut scenario, values)) => {
                check_limits(text, combinations, scenario.repeats).map_err(one)?;
                let labels: Vec<&str> = axes.iter().map(|axis| axis.label.as_str()).collect();
                let figures = scenario.reference.iter().flat_map(|reference| reference::labels(reference, &labels));
                let found = judge(&scenario).into_iter().chain(figures);
                add(&mut problems, found.map(|p| with_position(text, &resolved, p)).collect());
                if problems.is_empty() {
                    scenario.apply_flow_events();
                    let hash = hash(&scenario);
                    let repeats = scenario.repeats;
                    cells.extend((0..repeats).map(|repeat| {
                        let seed = scenario.seed.wrapping_add(u64::from(repeat));
                        let scenario = Scenario { seed, repeats: 1, ..scenario.clone() };
                        Cell { values: values.clone(), seed, repeats, scenario, hash: hash.clone() }
                    }));
                }
            }
        }
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    if problems.is_empty() { Ok(cells) } else { Err(Problems::new(FILE, problems)) }
}

/// Returns the SHA-256, hex, of everything in a scenario that determines the run: all but its seed, name,
/// description, reference and charts. Comments, the order of keys and the notation of quantities do not change
/// it.
pub fn hash(scenario: &Scenario) -> String {
    let mut value = serde_json::to_value(scenario).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        for key in ["seed", "repeats", "name", "description", "reference", "charts", "vary"] {
            map.remove(key);
        }
    }
    let mut text = String::new();
    canonical(&value, &mut text);
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Writes JSON with sorted keys, without whitespace and nulls.
fn canonical(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            out.push('{');
            for (key, value) in sorted {
                let _ = write!(out, "{},", serde_json::Value::from(key.as_str()));
                canonical(value, out);
            }
            out.push('}');
        }
        serde_json::Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

#[derive(Deserialize)]
struct OnlyVary {
    #[serde(default)]
    vary: Vec<Vary>,
}

/// Removes `vary` from the document, and returns its axes.
fn take_axes<'i>(text: &str, document: &mut Document<'i>) -> Result<Vec<Axis<'i>>, Vec<Problem>> {
    let mut only = Spanned::new(document.span(), DeTable::new());
    if let Some((key, value)) = document.get_ref().get_key_value("vary") {
        only.get_mut().insert(key.clone(), value.clone());
    }
    let vary: OnlyVary = source::typed(text, &only, &KEYWORDS)?;
    let axes = vary::axes(text, document, &vary.vary)?;
    document.get_mut().remove("vary");
    Ok(axes)
}

fn check_limits(text: &str, combinations: usize, repeats: u32) -> Result<(), Problem> {
    let span = |key: &str| {
        let document = source::parse(text).ok();
        document.map_or(0..0, |d| source::span_of(&d, &[key.to_owned()]))
    };
    if repeats == 0 {
        return Err(Problem::new("repeats", "0 repeats run nothing")
            .at(text, span("repeats"))
            .hint("use at least 1"));
    }
    let cells = combinations.saturating_mul(repeats as usize);
    let most = MAX_CELLS.min(MAX_CELL_TEXT / text.len().max(1));
    if cells <= most {
        return Ok(());
    }
    let key = if combinations > most { "vary" } else { "repeats" };
    let message =
        format!("{combinations} combinations with {repeats} repeats make {cells} cells, the maximum is {most}");
    Err(Problem::new(key, message).at(text, span(key)).hint("vary fewer values, or split the scenario"))
}

type Resolved<'i> = (Document<'i>, Scenario, BTreeMap<String, serde_json::Value>);

/// Returns the document and the scenario of combination `number`, with the values of the varied keys.
fn combination<'i>(
    text: &str,
    document: &Document<'i>,
    axes: &[Axis<'i>],
    number: usize,
) -> Result<Resolved<'i>, Vec<Problem>> {
    let mut document = document.clone();
    let mut values = BTreeMap::new();
    let mut rest = number;
    for axis in axes.iter().rev() {
        let index = rest % axis.values.len();
        rest /= axis.values.len();
        axis.set(text, &mut document, index).map_err(|problem| vec![problem])?;
        values.insert(axis.label.clone(), axis.json[index].clone());
    }
    let scenario = source::typed(text, &document, &KEYWORDS)?;
    Ok((document, scenario, values))
}

fn with_position(text: &str, document: &Document, problem: Problem) -> Problem {
    let span = source::span_of(document, &steps(&problem.key));
    if span.is_empty() { problem } else { problem.at(text, span) }
}

fn add(problems: &mut Vec<Problem>, found: Vec<Problem>) {
    for problem in found {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}
