//! Ids of cells, runs and experiments, derived from their content.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{PlannedRun, RunKind};

/// The id of a cell: SHA-256, hex, of everything that determines its figures except the seed. The order of keys
/// has no influence.
pub fn cell(content: &Value) -> String {
    digest(&["cell", &canonical(content)])
}

/// The id of a run, from the id of its cell.
pub fn run(cell: &str, run: &PlannedRun) -> String {
    let kind = match run.kind {
        RunKind::Repeat => "repeat",
        // A control run has another seed.
        RunKind::Cell | RunKind::Control => "run",
    };
    digest(&[kind, cell, &run.seed.to_string()])
}

/// The id of an experiment, from the text of its plan and its cells in any order.
pub fn sweep<'a>(plan: &str, cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut parts: Vec<&str> = cells.into_iter().collect();
    parts.sort_unstable();
    parts.insert(0, plan);
    parts.insert(0, "sweep");
    digest(&parts)
}

/// SHA-256 of the parts, each preceded by its length, hex.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// SHA-256 of `bytes`, hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// JSON with sorted keys, without nulls.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            let inside: Vec<String> = sorted
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", inside.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_do_not_depend_on_the_order_of_keys() {
        let a: Value = serde_json::from_str(r#"{"a": 1, "b": {"c": [1, 2], "d": null}}"#).expect("JSON");
        let b: Value = serde_json::from_str(r#"{"b": {"c": [1, 2]}, "a": 1}"#).expect("JSON");
        assert_eq!(cell(&a), cell(&b));
        assert_ne!(cell(&a), cell(&json!({"a": 1, "b": {"c": [2, 1]}})));
        assert_eq!(sweep("p", ["x", "y"]), sweep("p", ["y", "x"]));
    }

    #[test]
    fn run_id_depends_on_seed_and_repetition() {
        let run = |seed, kind| run("cell", &PlannedRun { block: 0, place: 0, cell: 0, kind, seed });
        assert_ne!(run(1, RunKind::Cell), run(2, RunKind::Cell));
        assert_ne!(run(1, RunKind::Cell), run(1, RunKind::Repeat));
        assert_eq!(run(1, RunKind::Cell), run(1, RunKind::Control));
    }
}
