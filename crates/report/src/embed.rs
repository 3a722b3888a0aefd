//! Documents as JSON embedded in the page.

use landspeed_model::{
    FiguresDocument, HostSeries, Interval, LAB_SCHEMA, LabDocument, LatencyUnderLoad, RunDocument, Sample, StreamEnd,
    TRACE_SCHEMA, TraceComparison, TraceDocument,
};
use serde::Serialize;
use serde_json::Value;

use crate::pack;

/// Returns a run as JSON that no HTML parser can mistake for markup, without the raw `tcp_info` blobs and with
/// long lists packed.
pub(crate) fn run(document: &RunDocument) -> Result<String, serde_json::Error> {
    Ok(escape_for_script(&serde_json::to_string(&packed_run(document)?)?))
}

/// The same for a lab document, in the current version: the runs of its flows and the series of its queues are
/// packed.
pub(crate) fn lab(document: &LabDocument) -> Result<String, serde_json::Error> {
    let mut shell = LabDocument { schema: LAB_SCHEMA.to_owned(), ..document.clone() };
    let mut parts: Vec<(String, Value)> = Vec::new();
    for (index, flow) in shell.flows.iter_mut().enumerate() {
        if let Some(run) = flow.run.take() {
            parts.push((format!("/flows/{index}/run"), packed_run(&run)?));
        }
    }
    for (index, queue) in shell.queues.iter_mut().enumerate() {
        let series = &mut queue.series;
        for (name, list) in [
            ("backlog_bytes_max", &mut series.backlog_bytes_max),
            ("drops", &mut series.drops),
            ("bytes", &mut series.bytes),
        ] {
            parts.push((format!("/queues/{index}/series/{name}"), pack::rows(&std::mem::take(list))?));
        }
    }
    Ok(escape_for_script(&serde_json::to_string(&filled(&shell, parts)?)?))
}

/// The same for a trace: its long columns are packed.
pub(crate) fn trace(document: &TraceDocument) -> Result<String, serde_json::Error> {
    Ok(escape_for_script(&serde_json::to_string(&packed_trace(document)?)?))
}

/// The same for two traces.
pub(crate) fn trace_comparison(document: &TraceComparison) -> Result<String, serde_json::Error> {
    let mut json = serde_json::to_value(document)?;
    for (name, trace) in [("a", &document.a), ("b", &document.b)] {
        json[name] = packed_trace(trace)?;
    }
    Ok(escape_for_script(&serde_json::to_string(&json)?))
}

/// The same for figures, with their long columns packed.
pub(crate) fn figures(document: &FiguresDocument) -> Result<String, serde_json::Error> {
    let mut json: Value = serde_json::from_str(&serde_json::to_string(document)?)?;
    for figure in json["figures"].as_array_mut().into_iter().flatten() {
        pack_in(&mut figure["drawing"])?;
    }
    Ok(escape_for_script(&serde_json::to_string(&json)?))
}

/// Packs every list of numbers that is long enough, at any depth: there are many, and all are packed alike.
fn pack_in(value: &mut Value) -> Result<(), serde_json::Error> {
    match value {
        Value::Array(list) if list.first().is_some_and(|one| one.is_number() || one.is_null()) => {
            *value = pack::rows(list)?;
        }
        Value::Array(list) => list.iter_mut().try_for_each(pack_in)?,
        Value::Object(fields) => fields.values_mut().try_for_each(pack_in)?,
        _ => {}
    }
    Ok(())
}

fn packed_trace(document: &TraceDocument) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::to_value(document)?;
    pack_in(&mut json)?;
    json["schema"] = TRACE_SCHEMA.into();
    Ok(json)
}

/// The same for a short document, without packing.
pub(crate) fn plain(document: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(escape_for_script(&serde_json::to_string(document)?))
}

fn packed_run(document: &RunDocument) -> Result<Value, serde_json::Error> {
    let mut shell = document.clone();
    let mut lists: Vec<(String, Value)> = Vec::new();
    for (index, stream) in shell.streams.iter_mut().enumerate() {
        let path = format!("/streams/{index}");
        let intervals: Vec<Interval> = std::mem::take(&mut stream.intervals);
        lists.push((format!("{path}/intervals"), pack::rows(&intervals)?));
        for (name, end) in [("sender", &mut stream.sender), ("receiver", &mut stream.receiver)] {
            if let Some(end) = end {
                lists.push((format!("{path}/{name}/samples"), pack::rows(&without_blobs(end))?));
            }
        }
    }
    let series = &mut shell.host_series;
    for (name, series) in [("client", &mut series.client), ("server", &mut series.server)] {
        if let Some(HostSeries { samples, .. }) = series {
            lists.push((format!("/host_series/{name}/samples"), pack::rows(&std::mem::take(samples))?));
        }
    }
    for (index, result) in shell.latency.iter_mut().enumerate() {
        lists.push((format!("/latency/{index}/histogram"), pack::rows(&std::mem::take(&mut result.histogram))?));
    }
    if let Some(LatencyUnderLoad { idle, loaded, .. }) = &mut shell.latency_under_load {
        for (name, result) in [("idle", idle.as_mut()), ("loaded", Some(loaded))] {
            if let Some(result) = result {
                let histogram = std::mem::take(&mut result.histogram);
                lists.push((format!("/latency_under_load/{name}/histogram"), pack::rows(&histogram)?));
            }
        }
    }
    filled(&shell, lists)
}

/// Puts the parts that were taken out of a document back at their paths.
fn filled(shell: &impl Serialize, parts: Vec<(String, Value)>) -> Result<Value, serde_json::Error> {
    // Through text: an `f32` keeps its few digits, while `to_value` would widen it.
    let mut json: Value = serde_json::from_str(&serde_json::to_string(shell)?)?;
    for (path, part) in parts {
        *json.pointer_mut(&path).expect("the shell has a place for every part taken from it") = part;
    }
    Ok(json)
}

/// Takes the samples of a sender or receiver, without the blobs that repeat decoded values in base64.
fn without_blobs(end: &mut StreamEnd) -> Vec<Sample> {
    let mut samples = std::mem::take(&mut end.samples);
    for sample in &mut samples {
        sample.tcp_info_raw = None;
    }
    samples
}

/// Returns JSON in which `<` is written as `\u003c`: it only occurs inside strings, and without it neither
/// `</script>` nor `<!--` can end or change the element that contains the JSON.
fn escape_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::escape_for_script;

    #[test]
    fn markup_in_strings_cannot_end_the_script_element() {
        let json = escape_for_script(&serde_json::to_string("</script><!--<script>").unwrap());
        assert!(!json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><!--<script>");
    }
}
