//! Removes reports and samples from recorded runs, and compares what remains known with the complete run.
//!
//! A recording (`fixtures/ends/*.json`) is what a client collected: the reports of both ends, before they are combined
//! into a document.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the recordings, by name.
pub fn recordings() -> Vec<(String, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ends");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a recording");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, serde_json::from_str(&text).expect("JSON"))
        })
        .collect()
}

/// Lists what can be missing: each end's report, its streams, the samples of each, and the samples of its host. JSON
/// pointers.
pub fn parts(recording: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for end in ["/client", "/server"] {
        let Some(report) = recording.pointer(end).filter(|report| report.is_object()) else { continue };
        found.push(end.to_owned());
        found.push(format!("{end}/host/samples"));
        for list in ["streams", "rr_streams"] {
            for index in 0..report[list].as_array().map_or(0, Vec::len) {
                found.push(format!("{end}/{list}/{index}"));
                if list == "streams" {
                    found.push(format!("{end}/{list}/{index}/end/samples"));
                }
            }
        }
    }
    found
}

/// Returns a recording without `parts`.
pub fn without(recording: &Value, parts: &[&str]) -> Value {
    let mut left = recording.clone();
    for part in parts {
        let Some(value) = left.pointer_mut(part) else { continue };
        *value = if value.is_array() { Value::Array(Vec::new()) } else { Value::Null };
    }
    for list in ["/client/streams", "/client/rr_streams", "/server/streams", "/server/rr_streams"] {
        if let Some(streams) = left.pointer_mut(list).and_then(Value::as_array_mut) {
            streams.retain(|stream| !stream.is_null());
        }
    }
    left
}

/// Lists the figures of `partial` that are neither those of `full` nor null.
pub fn invented(full: &Value, partial: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(full), Some(partial), &mut found, &mut Vec::new());
    found
}

/// Lists the paths of figures that `full` has and `partial` does not.
pub fn unknown(full: &Value, partial: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(full), Some(partial), &mut Vec::new(), &mut found);
    found
}

fn compare(
    path: &str,
    full: Option<&Value>,
    partial: Option<&Value>,
    invented: &mut Vec<String>,
    unknown: &mut Vec<String>,
) {
    match (full, partial) {
        (Some(Value::Number(_)), None | Some(Value::Null)) => unknown.push(path.to_owned()),
        (None | Some(Value::Null), Some(Value::Number(value))) => invented.push(format!("{path}: {value}, was null")),
        (Some(Value::Number(value)), Some(Value::Number(other))) if value != other => {
            invented.push(format!("{path}: {other}, was {value}"));
        }
        (full, partial) if full.is_some_and(is_tree) || partial.is_some_and(is_tree) => {
            for key in keys(full, partial) {
                let [full, partial] = [full, partial].map(|tree| tree.and_then(|tree| member(tree, &key)));
                compare(&format!("{path}/{key}"), full, partial, invented, unknown);
            }
        }
        _ => {}
    }
}

fn is_tree(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn keys(full: Option<&Value>, partial: Option<&Value>) -> Vec<String> {
    let mut keys = Vec::new();
    for tree in [full, partial].into_iter().flatten() {
        let of_tree: Vec<String> = match tree {
            Value::Object(fields) => fields.keys().cloned().collect(),
            Value::Array(items) => (0..items.len()).map(|index| item_key(&items[index], index)).collect(),
            _ => Vec::new(),
        };
        keys.extend(of_tree.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    }
    keys
}

fn member<'a>(tree: &'a Value, key: &str) -> Option<&'a Value> {
    match tree {
        Value::Object(fields) => fields.get(key),
        Value::Array(items) => {
            items.iter().enumerate().find(|(index, item)| item_key(item, *index) == key).map(|(_, item)| item)
        }
        _ => None,
    }
}

/// Items of a list are matched by what they are about, not by their position.
fn item_key(item: &Value, index: usize) -> String {
    let texts = ["direction", "name", "place"].iter().filter_map(|field| item.get(field)?.as_str());
    let key = texts.collect::<Vec<_>>().join(" ");
    if key.is_empty() { index.to_string() } else { key }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_zero_for_a_missing_figure_is_invented() {
        let full = json!({ "sent": 5, "lost": [{ "place": "network", "packets": 2 }], "name": "x" });
        assert!(invented(&full, &json!({ "sent": null, "name": "y" })).is_empty());
        assert_eq!(unknown(&full, &json!({ "sent": null })), ["/sent", "/lost/network/packets"]);
        assert_eq!(invented(&full, &json!({ "sent": 0 })), ["/sent: 0, was 5"]);
        assert_eq!(invented(&json!({}), &json!({ "sent": 0 })), ["/sent: 0, was null"]);
    }

    #[test]
    fn parts_are_removed_by_pointer() {
        let run = json!({ "client": { "streams": [{ "end": { "samples": [1] } }, { "end": { "samples": [2] } }] } });
        assert_eq!(parts(&run).len(), 6);
        let left = without(&run, &["/client/streams/0", "/client/streams/1/end/samples"]);
        assert_eq!(left, json!({ "client": { "streams": [{ "end": { "samples": [] } }] } }));
        assert_eq!(without(&run, &["/client", "/client/streams/0"]), json!({ "client": null }));
    }
}
