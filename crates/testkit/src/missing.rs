//! Removes reports and samples from recorded runs, and compares what remains known with the complete run.
//!
//! A recording is what a client collected: the reports of both ends, before they are combined into a document. They are
//! taken from recorded documents, which have every report in full.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

/// Returns recordings of TCP and UDP in each direction and in both, with several streams, of request/response, and of
/// tests against an iperf3 server, by name.
pub fn recordings() -> Vec<(String, Value)> {
    let tcp = collected("crates/diagnose/fixtures/real/bulk-loopback-bbr.json");
    let udp = collected("fixtures/documents/udp.json");
    let refused = collected("crates/diagnose/fixtures/real/udp-refused-by-qdisc.json");
    [
        ("tcp-loss", collected("crates/diagnose/fixtures/real/loss-cubic.json")),
        ("tcp-reverse", reversed(&tcp)),
        ("tcp-bidir", collected("crates/diagnose/fixtures/real/bidir-loopback-bbr.json")),
        ("udp-reverse", reversed(&udp)),
        ("udp-bidir", both_ways(&udp)),
        ("rr", collected("fixtures/documents/rr.json")),
        ("iperf3-tcp", totals_only(tcp.clone())),
        ("iperf3-udp", totals_only(udp.clone())),
        ("iperf3-udp-reverse", totals_only(reversed(&refused))),
        ("udp-refused", refused),
        ("tcp", tcp),
        ("udp", udp),
    ]
    .map(|(name, recording)| (name.to_owned(), recording))
    .into()
}

/// Reads the reports of both ends from a recorded document. Sender and receiver divide the test at different times.
fn collected(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let run = document.get("run").unwrap_or(&document);
    let report = |side: &str| {
        let received = if side == "server" { "upload" } else { "download" };
        let has_own = run["phases"].as_array().expect("phases").iter().any(|phase| phase["direction"] == received);
        let mut cuts = Map::new();
        for phase in run["phases"].as_array().expect("phases") {
            if !has_own || phase["direction"] == received {
                let end = match phase["name"].as_str().expect("a name") {
                    "startup" => "startup_end_ns",
                    "omitted" => "omit_end_ns",
                    "steady" => "steady_end_ns",
                    _ => "end_ns",
                };
                let earlier_ns = if has_own { 0 } else { 10_000 };
                let end_ns = phase["end_ns"].as_u64().expect("a time").saturating_sub(earlier_ns);
                cuts.insert(end.to_owned(), end_ns.into());
            }
        }
        let (mut streams, mut rr_streams) = (Vec::new(), Vec::new());
        let is_rr = run["requested"]["rr"].is_object();
        for stream in run["streams"].as_array().expect("streams") {
            let sends = (stream["direction"] == "download") == (side == "server");
            let end = &stream[if sends { "sender" } else { "receiver" }];
            if is_rr {
                rr_streams.push(json!({ "id": stream["id"], "thread_cpu_ns": end["thread_cpu_ns"] }));
            } else {
                let (id, direction) = (&stream["id"], &stream["direction"]);
                streams.push(json!({
                    "id": id, "direction": direction, "sends": sends, "local_addr": "", "peer_addr": "", "end": end,
                }));
            }
        }
        let own = |value: &Value, otherwise: Value| if side == "client" { value.clone() } else { otherwise };
        json!({
            "streams": streams, "rr_streams": rr_streams, "cuts": cuts, "host": run["host_series"][side],
            "latency": own(&run["latency"], json!([])), "under_load": own(&run["latency_under_load"], Value::Null),
            "notes": [],
        })
    };
    json!({
        "requested": run["requested"], "effective": run["effective"], "command": [], "id": "", "started_unix_ns": 0,
        "path": run["path"], "client": report("client"), "server": report("server"), "notes": [], "errors": [],
    })
}

fn set_direction(recording: &mut Value, direction: &str) {
    for parameters in ["requested", "effective"] {
        recording[parameters]["direction"] = direction.into();
    }
}

/// Returns an upload as a download: the ends change places.
fn reversed(upload: &Value) -> Value {
    let mut recording = upload.clone();
    set_direction(&mut recording, "download");
    (recording["client"], recording["server"]) = (upload["server"].clone(), upload["client"].clone());
    for side in ["client", "server"] {
        for stream in recording[side]["streams"].as_array_mut().expect("streams") {
            stream["direction"] = "download".into();
        }
    }
    recording
}

/// Returns an upload of one stream and the same as a download, at once.
fn both_ways(upload: &Value) -> Value {
    let (mut recording, download) = (upload.clone(), reversed(upload));
    set_direction(&mut recording, "both");
    for side in ["client", "server"] {
        let mut stream = download[side]["streams"][0].clone();
        stream["id"] = 1.into();
        recording[side]["streams"].as_array_mut().expect("streams").push(stream);
    }
    recording["client"]["cuts"] = upload["server"]["cuts"].clone();
    recording
}

/// Returns a recording whose server reported only what an iperf3 server does.
fn totals_only(mut recording: Value) -> Value {
    let server = &mut recording["server"];
    (server["cuts"], server["host"]["samples"]) = (json!({}), json!([]));
    for stream in server["streams"].as_array_mut().expect("streams") {
        let end = &stream["end"];
        let udp = end["udp"].as_object().map(|udp| {
            let known = |key: &str| udp[key].clone();
            json!({
                "sent_packets": known("sent_packets"), "delivered_packets": known("delivered_packets"),
                "highest_seq": known("highest_seq"), "jitter_ns": known("jitter_ns"),
                "gro_used": false, "gso_used": false,
            })
        });
        stream["end"] =
            json!({ "bytes": end["bytes"], "retransmits": end["retransmits"], "udp": udp, "samples": [] });
    }
    recording
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
            let [full, partial] = [full, partial].map(|tree| tree.map(members).unwrap_or_default());
            let added = partial.keys().filter(|key| !full.contains_key(*key));
            for key in full.keys().chain(added) {
                let [full, partial] = [&full, &partial].map(|tree| tree.get(key).copied());
                compare(&format!("{path}/{key}"), full, partial, invented, unknown);
            }
        }
        _ => {}
    }
}

fn is_tree(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Fields of an object or items of a list; of items with one key, the first.
fn members(tree: &Value) -> BTreeMap<String, &Value> {
    match tree {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().rev().map(|(index, item)| (item_key(item, index), item)).collect()
        }
        _ => BTreeMap::new(),
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
        assert_eq!(unknown(&full, &json!({ "sent": null })), ["/lost/network/packets", "/sent"]);
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
